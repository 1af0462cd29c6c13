package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Experiment is a set of statements and the way to find out about them.
type Experiment struct {
	// ID is what the command line calls it: the number of the paper's
	// specification, or a word.
	ID string
	// Title is what it is about, Source the paper it is from.
	Title, Source string
	// Jobs is how many jobs a site has in the source. The bands are meant for as
	// many: a run with fewer has a [Report.Caveat].
	Jobs int
	// Seeds is how many there are if the user does not say.
	Seeds int
	// UsesTrace says that it can take its jobs from a log (Env.Trace).
	UsesTrace bool
	// Statements are in the order in which they are shown.
	Statements []Statement
	// Run finds out about the statements that env wants. It must add a finding
	// for each of those; others are left out.
	Run func(ctx context.Context, env *Env) (*Report, error)
}

// Errors of [Select], [Run.Refresh] and [Execute]; the text names the word and the remedy.
var (
	// ErrUnknown is returned for a word that names no experiment and no statement.
	ErrUnknown = errors.New("there is no such experiment or statement")
	// ErrStale is returned for findings about a statement that has changed since.
	ErrStale = errors.New("the report is out of date")
	// ErrEnv is returned for an [Env] that makes no sense.
	ErrEnv = errors.New("not a usable value")
)

// Selection is an experiment and those of its statements that are wanted.
type Selection struct {
	Experiment Experiment
	// Statements are ids; nil means all.
	Statements []string
}

// Select finds those of all experiments that words name: the id of an
// experiment, or that of a statement for this statement alone. Case does not
// matter, and an experiment comes once however often it is named. Without words
// all are selected. The error wraps [ErrUnknown].
func Select(all []Experiment, words []string) ([]Selection, error) {
	chosen := make([]*Selection, len(all))
	for i := range all {
		if len(words) == 0 {
			chosen[i] = &Selection{Experiment: all[i]}
		}
	}
	for _, word := range words {
		i, statement := find(all, word)
		switch {
		case i < 0:
			return nil, fmt.Errorf("%.40q: %w; there are the experiments %s, and their statements, such as %s",
				word, ErrUnknown, strings.Join(ids(all), ", "), all[0].Statements[0].ID)
		case statement == "":
			chosen[i] = &Selection{Experiment: all[i]}
		case chosen[i] == nil:
			chosen[i] = &Selection{Experiment: all[i], Statements: []string{statement}}
		case chosen[i].Statements != nil && !slices.Contains(chosen[i].Statements, statement):
			chosen[i].Statements = append(chosen[i].Statements, statement)
		}
	}
	var list []Selection
	for _, s := range chosen {
		if s != nil {
			list = append(list, *s)
		}
	}
	return list, nil
}

// find returns the experiment that word names, or that has the statement it names.
func find(all []Experiment, word string) (index int, statement string) {
	for i := range all {
		if strings.EqualFold(all[i].ID, word) {
			return i, ""
		}
		for _, c := range all[i].Statements {
			if strings.EqualFold(c.ID, word) {
				return i, c.ID
			}
		}
	}
	return -1, ""
}

func ids(all []Experiment) []string {
	var list []string
	for i := range all {
		list = append(list, all[i].ID)
	}
	return list
}

// Execute carries out what s selects in env, whose Statements it sets. The
// report has exactly the findings that were wanted, in the order of the statements.
func Execute(ctx context.Context, s Selection, env Env) (*Report, error) {
	env.Statements = s.Statements
	if err := env.Settle(s.Experiment.Seeds); err != nil {
		return nil, fmt.Errorf("experiment %s: %w", s.Experiment.ID, err)
	}
	r, err := s.Experiment.Run(ctx, &env)
	if err != nil {
		return nil, fmt.Errorf("experiment %s: %w", s.Experiment.ID, err)
	}
	found := r.Findings
	r.Findings = nil
	for _, c := range s.Experiment.Statements {
		if !env.Wants(c.ID) {
			continue
		}
		i := slices.IndexFunc(found, func(f Finding) bool { return f.ID == c.ID })
		if i < 0 {
			return nil, fmt.Errorf("experiment %s: nothing was found about statement %s", s.Experiment.ID, c.ID)
		}
		found[i].Statement = c
		r.Findings = append(r.Findings, found[i])
	}
	r.Seeds = env.SeedList()
	if full := s.Experiment.Jobs; env.Jobs != 0 && env.Jobs < full {
		r.Caveat = fmt.Sprintf("With %d jobs a site instead of %d the bands mean little.", env.Jobs, full)
		r.Remark("%s", r.Caveat)
	}
	return r, nil
}
