package lab

import (
	"context"
	"slices"

	"kith/testbed/report"
)

// Question is a statement together with the trials that answer it. T is a
// configuration that can be run, A what the trials of an experiment say.
type Question[T comparable, A any] struct {
	// The first fields are those of [Statement].
	ID, Text, Source string
	Kind             Kind
	Band             string
	Enforced         bool
	// Needs are the trials that Judge looks at.
	Needs []T
	// Judge finds out; it leaves the statement to the caller.
	Judge func(a A) Finding
}

// Statement returns what the question is about.
func (q *Question[T, A]) Statement() Statement {
	return Statement{ID: q.ID, Text: q.Text, Source: q.Source, Kind: q.Kind, Band: q.Band, Enforced: q.Enforced}
}

// Answers are what the trials of an experiment say as a whole.
type Answers interface {
	// Workload says which jobs were run.
	Workload() string
	// Remark adds remarks: how things were read.
	Remark(r *Report)
	// Tables and Plots show whatever all trials were run for.
	Tables() []report.Table
	Plots() []report.Plot
}

// Study is an experiment that consists of trials and of questions to them.
type Study[T comparable, A Answers] struct {
	Questions []Question[T, A]
	// Shown are trials that tables and plots show, whichever questions need
	// them. They are run if all statements are wanted.
	Shown []T
	// Answer runs trials, in which one may occur several times.
	Answer func(ctx context.Context, env *Env, trials []T) (A, error)
}

// Experiment returns e with the statements of the study and the way to find out
// about them.
func (s *Study[T, A]) Experiment(e Experiment) Experiment {
	for i := range s.Questions {
		e.Statements = append(e.Statements, s.Questions[i].Statement())
	}
	e.Run = s.run
	return e
}

// run runs the trials of all wanted statements at once.
func (s *Study[T, A]) run(ctx context.Context, env *Env) (*Report, error) {
	var wanted []*Question[T, A]
	var trials []T
	for i := range s.Questions {
		if q := &s.Questions[i]; env.Wants(q.ID) {
			wanted = append(wanted, q)
			trials = append(trials, q.Needs...)
		}
	}
	if env.Statements == nil {
		trials = append(trials, s.Shown...)
	}
	a, err := s.Answer(ctx, env, trials)
	if err != nil {
		return nil, err
	}
	r := &Report{Workload: a.Workload()}
	for _, q := range wanted {
		f := q.Judge(a)
		f.Statement = q.Statement()
		r.Find(f)
	}
	a.Remark(r)
	r.Tables, r.Plots = a.Tables(), a.Plots()
	return r, nil
}

// Outcomes are what came of trials: for each, one outcome for each seed.
type Outcomes[T comparable, O any] map[T][]O

// Plan says how trials are run.
type Plan[T comparable, O any] struct {
	// Seeds returns how many seeds a trial has.
	Seeds func(t T) int
	// Expense is a guess at how long a trial takes, in no unit.
	Expense func(t T) int
	// Run runs a trial with the seed of an index below Seeds(t). It must not
	// depend on what other runs do.
	Run func(ctx context.Context, t T, seed int) (O, error)
}

// Try runs each trial with all of its seeds. Equal trials are run once.
func (p *Plan[T, O]) Try(ctx context.Context, env *Env, trials []T) (Outcomes[T, O], error) {
	type run struct {
		trial T
		seed  int
	}
	all := make(Outcomes[T, O])
	var runs []run
	for _, t := range trials {
		if all[t] != nil {
			continue
		}
		all[t] = make([]O, p.Seeds(t))
		for i := range all[t] {
			runs = append(runs, run{t, i})
		}
	}
	// The long runs come first, so that no processor waits for one at the end.
	slices.SortStableFunc(runs, func(x, y run) int { return p.Expense(y.trial) - p.Expense(x.trial) })
	outcomes, err := Map(ctx, env, len(runs), func(ctx context.Context, i int) (O, error) {
		return p.Run(ctx, runs[i].trial, runs[i].seed)
	})
	if err != nil {
		return nil, err
	}
	for i, o := range outcomes {
		all[runs[i].trial][runs[i].seed] = o
	}
	return all, nil
}

// Has reports whether all of these trials were run.
func (o Outcomes[T, O]) Has(trials ...T) bool {
	return !slices.ContainsFunc(trials, func(t T) bool { return o[t] == nil })
}

// Of returns a figure of a trial for each seed.
func (o Outcomes[T, O]) Of(t T, figure func(O) float64) Spread {
	var s Spread
	for _, x := range o[t] {
		s = append(s, figure(x))
	}
	return s
}

// Ratio returns a figure of one trial over that of another, for each seed.
func (o Outcomes[T, O]) Ratio(t, over T, figure func(O) float64) Spread {
	s := o.Of(t, figure)
	for i, x := range o[over] {
		s[i] /= figure(x)
	}
	return s
}

// Only returns what came of one seed.
func (o Outcomes[T, O]) Only(seed int) Outcomes[T, O] {
	one := make(Outcomes[T, O], len(o))
	for t, list := range o {
		one[t] = list[seed : seed+1]
	}
	return one
}

// Figure is a plot that needs trials.
type Figure[T comparable] struct {
	Needs []T
	Draw  func() report.Plot
}

// Draw returns the figures whose trials were all run.
func Draw[T comparable, O any](o Outcomes[T, O], figures []Figure[T]) []report.Plot {
	var list []report.Plot
	for _, f := range figures {
		if o.Has(f.Needs...) {
			list = append(list, f.Draw())
		}
	}
	return list
}

// WithRows returns the tables that have any.
func WithRows(tables ...report.Table) []report.Table {
	return slices.DeleteFunc(tables, func(t report.Table) bool { return len(t.Rows) == 0 })
}
