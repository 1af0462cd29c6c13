package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Experiment is a set of claims and the way to find out about them.
type Experiment struct {
	// ID is what the command line calls it: the number of the paper's
	// specification, or a word.
	ID string
	// Title is what it is about, Source the paper it is from.
	Title, Source string
	// Seeds is how many there are if the user does not say.
	Seeds int
	// UsesTrace says that it can take its jobs from a log (Env.Trace).
	UsesTrace bool
	// Claims are in the order in which they are shown.
	Claims []Claim
	// Run finds out about the claims that env wants. It must add a finding for
	// each of those; others are left out.
	Run func(ctx context.Context, env *Env) (*Report, error)
}

// Experiments returns all there are, in order.
func Experiments() []Experiment {
	return []Experiment{
		kDistributed(),
		localPriority(),
		choice(),
	}
}

// Errors of [Select], [Run.Refresh] and [Execute]; the text names the word and the remedy.
var (
	// ErrUnknown is returned for a word that names no experiment and no claim.
	ErrUnknown = errors.New("there is no such experiment or claim")
	// ErrStale is returned for findings about a claim that has changed since.
	ErrStale = errors.New("the report is out of date")
	// ErrEnv is returned for an [Env] that makes no sense.
	ErrEnv = errors.New("not a usable value")
)

// Selection is an experiment and those of its claims that are wanted.
type Selection struct {
	Experiment Experiment
	// Claims are ids; nil means all.
	Claims []string
}

// Select finds the experiments that words name: the id of an experiment, or
// that of a claim for this claim alone. Case does not matter, and an
// experiment comes once however often it is named. Without words all are
// selected. The error wraps [ErrUnknown].
func Select(words []string) ([]Selection, error) {
	all := Experiments()
	chosen := make([]*Selection, len(all))
	for i := range all {
		if len(words) == 0 {
			chosen[i] = &Selection{Experiment: all[i]}
		}
	}
	for _, word := range words {
		i, claim := find(all, word)
		switch {
		case i < 0:
			return nil, fmt.Errorf("%.40q: %w; there are the experiments %s, and their claims, such as %s",
				word, ErrUnknown, strings.Join(ids(all), ", "), all[0].Claims[0].ID)
		case claim == "":
			chosen[i] = &Selection{Experiment: all[i]}
		case chosen[i] == nil:
			chosen[i] = &Selection{Experiment: all[i], Claims: []string{claim}}
		case chosen[i].Claims != nil && !slices.Contains(chosen[i].Claims, claim):
			chosen[i].Claims = append(chosen[i].Claims, claim)
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

// find returns the experiment that word names, or that has the claim it names.
func find(all []Experiment, word string) (index int, claim string) {
	for i := range all {
		if strings.EqualFold(all[i].ID, word) {
			return i, ""
		}
		for _, c := range all[i].Claims {
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

// Execute carries out what s selects in env, whose Claims it sets. The report
// has exactly the findings that were wanted, in the order of the claims.
func Execute(ctx context.Context, s Selection, env Env) (*Report, error) {
	env.Claims = s.Claims
	if err := env.settle(s.Experiment.Seeds); err != nil {
		return nil, fmt.Errorf("experiment %s: %w", s.Experiment.ID, err)
	}
	r, err := s.Experiment.Run(ctx, &env)
	if err != nil {
		return nil, fmt.Errorf("experiment %s: %w", s.Experiment.ID, err)
	}
	found := r.Findings
	r.Findings = nil
	for _, c := range s.Experiment.Claims {
		if !env.Wants(c.ID) {
			continue
		}
		i := slices.IndexFunc(found, func(f Finding) bool { return f.ID == c.ID })
		if i < 0 {
			return nil, fmt.Errorf("experiment %s: nothing was found about claim %s", s.Experiment.ID, c.ID)
		}
		found[i].Claim = c
		r.Findings = append(r.Findings, found[i])
	}
	r.Seeds = env.SeedList()
	return r, nil
}
