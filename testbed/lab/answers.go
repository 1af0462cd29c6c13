package lab

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"kith/testbed/metrics"
	"kith/testbed/report"
)

// question is a claim together with the trials that answer it.
type question struct {
	Claim
	needs []trial
	judge func(a *answers) Finding
}

// answers are the outcomes of trials: one for each stream.
type answers struct {
	env     *Env
	streams []*stream
	trials  map[trial][]*outcome
}

// answer runs all trials with all streams.
func answer(ctx context.Context, env *Env, streams []*stream, trials []trial) (*answers, error) {
	a := &answers{env: env, streams: streams, trials: make(map[trial][]*outcome)}
	var list []trial
	for _, t := range trials {
		if a.trials[t] == nil {
			a.trials[t] = make([]*outcome, len(streams))
			list = append(list, t)
		}
	}
	// The long runs come first, so that no processor waits for one at the end.
	slices.SortStableFunc(list, func(x, y trial) int { return y.weight() - x.weight() })
	n := len(streams)
	outcomes, err := Map(ctx, env, n*len(list), func(ctx context.Context, i int) (*outcome, error) {
		return streams[i%n].run(ctx, env, list[i/n])
	})
	if err != nil {
		return nil, err
	}
	for i, o := range outcomes {
		a.trials[list[i/n]][i%n] = o
	}
	return a, nil
}

// only returns the answers of one stream.
func (a *answers) only(i int) *answers {
	one := &answers{env: a.env, streams: a.streams[i : i+1], trials: make(map[trial][]*outcome)}
	for t, o := range a.trials {
		one.trials[t] = o[i : i+1]
	}
	return one
}

// weight is a guess at how long the trial takes, in no unit.
func (t trial) weight() int {
	switch t.scheme {
	case kDual:
		return 10 + 10*int(t.k)
	case kDist:
		return 10 + 5*int(t.k)
	case hierarchical:
		return 30
	case centralised:
		return 5
	}
	return 10
}

// has reports whether all trials were run.
func (a *answers) has(trials ...trial) bool {
	return !slices.ContainsFunc(trials, func(t trial) bool { return a.trials[t] == nil })
}

// spread is a figure for each stream.
type spread []float64

func (s spread) mean() float64 { return metrics.Mean(s) }

// text writes the mean, and the range over the streams if there is one.
func (s spread) text(unit string) string {
	sep := ""
	if unit != "" {
		sep = " "
	}
	text := report.Number(s.mean())
	if len(s) > 1 {
		if low, high := report.Number(slices.Min(s)), report.Number(slices.Max(s)); low != high {
			return fmt.Sprintf("%s%s%s (%s to %s)", text, sep, unit, low, high)
		}
	}
	return text + sep + unit
}

// of returns a figure of a trial for each stream.
func (a *answers) of(t trial, figure func(*outcome) float64) spread {
	var s spread
	for _, o := range a.trials[t] {
		s = append(s, figure(o))
	}
	return s
}

// ratio returns a figure of one trial over that of another, for each stream.
func (a *answers) ratio(t, over trial, figure func(*outcome) float64) spread {
	s := a.of(t, figure)
	for i, o := range a.trials[over] {
		s[i] /= figure(o)
	}
	return s
}

// where keeps the figures of the streams that ok accepts.
func (a *answers) where(s spread, ok func(*stream) bool) spread {
	var kept spread
	for i, v := range s {
		if ok(a.streams[i]) {
			kept = append(kept, v)
		}
	}
	return kept
}

// The figures that claims are about.
func meanSlowdown(o *outcome) float64   { return o.slowdown.Mean }
func meanTurnaround(o *outcome) float64 { return o.turnaround.Mean }
func lightSlowdown(o *outcome) float64  { return o.light }
func heavySlowdown(o *outcome) float64  { return o.heavy }
func lightOverHeavy(o *outcome) float64 { return o.light / o.heavy }

func classSlowdown(c metrics.Class) func(*outcome) float64 {
	return func(o *outcome) float64 { return o.class[c] }
}

// reading is one part of a finding.
type reading struct {
	name string
	v    spread
	unit string
	// met says whether this part is as it should be. A part that is not judged
	// is always met.
	met bool
}

// within is a reading that must lie in a band in the mean.
func within(name string, v spread, low, high float64) reading {
	return reading{name: name, v: v, met: v.mean() >= low && v.mean() <= high}
}

// shown is a reading that is only reported.
func shown(name string, v spread, unit string) reading { return reading{name, v, unit, true} }

// finding puts readings together: the claim holds if all parts do.
func finding(id string, parts ...reading) Finding {
	f := Finding{Claim: Claim{ID: id}}
	ok := true
	var texts []string
	for _, p := range parts {
		text := p.name
		if len(p.v) > 0 {
			text += " " + p.v.text(p.unit)
			f.Values = append(f.Values, Value{Name: p.name, Value: p.v.mean(), Unit: p.unit})
		}
		if !p.met {
			text += " [not met]"
		}
		ok = ok && p.met
		texts = append(texts, text)
	}
	f.Measured = strings.Join(texts, "; ")
	f.Verdict = VerdictOf(ok)
	return f
}

// noted adds a note, and one more for the case that the claim fails.
func (f Finding) noted(always, failing string) Finding {
	f.Note = always
	if f.Verdict == Fails && failing != "" {
		f.Note = strings.TrimSpace(always + " " + failing)
	}
	return f
}

// differing says that the source says something else, if it does.
func (f Finding) differing(does bool, text string) Finding {
	if does {
		f.Differs = strings.TrimSpace(f.Differs + " " + text)
	}
	return f
}
