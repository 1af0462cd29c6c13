package kdistributed

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"kith/meta"
	"kith/testbed/lab"
	"kith/testbed/metrics"
)

// made are the answers of one stream of the paper's load, in which every figure
// of a trial is the same number: that in figures, else 1.
func made(q *question, figures map[trial]float64) *answers {
	a := &answers{env: &lab.Env{}, streams: []*stream{{load: paperLoad}}, Outcomes: lab.Outcomes[trial, *outcome]{}}
	for _, t := range q.Needs {
		v, ok := figures[t]
		if !ok {
			v = 1
		}
		o := &outcome{jobs: 100, logical: 100 * int64(t.k), wire: 100 * int64(t.k), starts: "the same", light: v, heavy: v}
		o.slowdown.Mean, o.turnaround.Mean, o.bounded.Mean = v, v, v
		for c := range o.class {
			o.class[c] = v
		}
		a.Outcomes[t] = []*outcome{o}
	}
	return a
}

// The bands of spec 001 section 3.1: what lies just within each holds, what lies
// just outside does not. The numbers are those of the spec, not of the code.
func TestBandsOf001(t *testing.T) {
	const in, out = 0.999, 1.001
	type figures = map[trial]float64
	k := sweep(sharedMix, meta.RankWork)
	p := sweep(perfectMix, meta.RankWork)
	w := sweep(equalMix, meta.RankWork)
	movedKd, movedDual := kd4.moving(), dual.moving()
	for _, c := range []struct {
		claim string
		// within holds; without differs from it and does not.
		within, without figures
	}{
		{"C2", figures{ind: 2, cen: 0.75 * out}, figures{ind: 2, cen: 0.75 * in}},
		{"C2", figures{ind: 2, cen: 1.15 * in}, figures{ind: 2, cen: 1.15 * out}},
		{"C2", figures{ind: 2, hier: 0.75 * out}, figures{ind: 2, hier: 0.75 * in}},
		{"C2", figures{ind: 2, hier: 1.15 * in}, figures{ind: 2, hier: 1.15 * out}},
		{"C2", figures{ind: 1.1, cen: 1.1 * in}, figures{ind: 1.1, cen: 1.1 * out}},
		{"C2", figures{ind: 1.1, hier: 1.1 * in}, figures{ind: 1.1, hier: 1.1 * out}},
		{"C4", figures{dist: 1.5 * out}, figures{dist: 1.5 * in}},
		{"C4", figures{dist: 3, cen: 2 * in}, figures{dist: 3, cen: 2 * out}},
		{"C5", figures{uni: 0.95 * out}, figures{uni: 0.95 * in}},
		{"C6", figures{kd4: 0.7 * in}, figures{kd4: 0.7 * out}},
		{"C6", figures{kd4: 0.4 * out}, figures{kd4: 0.4 * in}},
		{"C8", figures{ind: 1 * out, dist: 2}, figures{ind: 1 * in, dist: 2}},
		{"C8", figures{cen: out / 1.1, dist: 2}, figures{cen: in / 1.1, dist: 2}},
		{"C8", figures{dual: 0.75 * out, dist: 2}, figures{dual: 0.75 * in, dist: 2}},
		{"C8", figures{dual: 1.2 * in, dist: 2}, figures{dual: 1.2 * out, dist: 2}},
		{"C8", figures{dist: out / 0.75}, figures{dist: in / 0.75}},
		{"C13", figures{k[1]: 0.55 * out, k[2]: 0.5, k[3]: 0.5}, figures{k[1]: 0.55 * in, k[2]: 0.5, k[3]: 0.5}},
		{"C13", figures{k[1]: 0.88 * in, k[2]: 0.8, k[3]: 0.75 * in}, figures{k[1]: 0.88 * out, k[2]: 0.8, k[3]: 0.75 * in}},
		{"C13", figures{k[1]: 0.6, k[2]: 0.45, k[3]: 0.4 * out}, figures{k[1]: 0.6, k[2]: 0.45, k[3]: 0.4 * in}},
		{"C13", figures{k[1]: 0.8, k[2]: 0.76, k[3]: 0.75 * in}, figures{k[1]: 0.8, k[2]: 0.76, k[3]: 0.75 * out}},
		{"C13", figures{k[1]: 0.75, k[2]: 0.5 * out, k[3]: 0.45}, figures{k[1]: 0.75, k[2]: 0.5 * in, k[3]: 0.45}},
		{"C13", figures{k[1]: 0.7, k[2]: 0.6, k[3]: 0.45 * out}, figures{k[1]: 0.7, k[2]: 0.6, k[3]: 0.45 * in}},
		{"C14", figures{p[1]: 0.75 * in, p[2]: 0.5}, figures{p[1]: 0.75 * out, p[2]: 0.5}},
		{"C14", figures{p[1]: 0.7, p[2]: 0.65 * in}, figures{p[1]: 0.7, p[2]: 0.65 * out}},
		{"C15", figures{p[1]: 0.5 * in, k[1]: 0.5}, figures{p[1]: 0.5 * out, k[1]: 0.5}},
		{"C16", figures{w[3]: 0.8 * out}, figures{w[3]: 0.8 * in}},
		{"C17", figures{cen.moving(): out}, figures{cen.moving(): in}},
		{"C17", figures{cen.moving(): 2, movedDual: 1.05 * in}, figures{cen.moving(): 2, movedDual: 1.05 * out}},
		{"C17", figures{cen.moving(): 2, movedKd: 1.35 * in}, figures{cen.moving(): 2, movedKd: 1.35 * out}},
	} {
		q := questionOf(t, c.claim)
		if f := q.Judge(made(q, c.within)); f.Result != lab.Holds {
			t.Errorf("%s with %s: %s", c.claim, named(c.within), f.Measured)
		}
		if f := q.Judge(made(q, c.without)); f.Result != lab.Fails {
			t.Errorf("%s holds with %s: %s", c.claim, named(c.without), f.Measured)
		}
	}
}

func named(figures map[trial]float64) (list []string) {
	for t, v := range figures {
		list = append(list, fmt.Sprintf("%v: %.4f", t, v))
	}
	slices.Sort(list)
	return list
}

func questionOf(t *testing.T, id string) *question {
	t.Helper()
	for _, q := range questions() {
		if q.ID == id {
			return &q
		}
	}
	t.Fatalf("no claim %s", id)
	return nil
}

// The statements whose bands are about more than one figure of a trial.
func TestBandsOf001WithSides(t *testing.T) {
	for _, c := range []struct {
		name, claim string
		spoil       func(a *answers)
		want        lab.Result
	}{
		{"turnaround cut by less than the slowdown", "C7", func(a *answers) {
			set(a, kd4, func(o *outcome) { o.turnaround.Mean, o.slowdown.Mean = 0.75*1.001, 0.6 })
		}, lab.Holds},
		{"turnaround cut by more than 25 %", "C7", func(a *answers) {
			set(a, kd4, func(o *outcome) { o.turnaround.Mean, o.slowdown.Mean = 0.75*0.999, 0.6 })
		}, lab.Fails},
		{"turnaround cut by less than 3 %", "C7", func(a *answers) {
			set(a, kd4, func(o *outcome) { o.turnaround.Mean, o.slowdown.Mean = 0.97*1.001, 0.6 })
		}, lab.Fails},
		{"slowdown cut by less than the turnaround", "C7", func(a *answers) { set(a, kd4, func(o *outcome) { o.turnaround.Mean, o.slowdown.Mean = 0.8, 0.81 }) }, lab.Fails},
		{"light half of heavy", "C9", func(a *answers) { set(a, ind, func(o *outcome) { o.light = 0.5 * 0.999 }) }, lab.Holds},
		{"light more than half of heavy", "C9", func(a *answers) { set(a, ind, func(o *outcome) { o.light = 0.5 * 1.001 }) }, lab.Fails},
		{"light above heavy", "C10", func(a *answers) { set(a, dist, func(o *outcome) { o.light = 1.001 }) }, lab.Holds},
		{"light below heavy", "C10", func(a *answers) { set(a, dist, func(o *outcome) { o.light = 0.999 }) }, lab.Fails},
		{"smaller gap", "C11", func(a *answers) {
			set(a, dist, func(o *outcome) { o.light = 3 })
			set(a, kd4, func(o *outcome) { o.light = 2.99 })
		}, lab.Holds},
		{"larger gap of the other sign", "C11", func(a *answers) {
			set(a, dist, func(o *outcome) { o.light = 1.5 })
			set(a, kd4, func(o *outcome) { o.light = 0.4 })
		}, lab.Fails},
		{"as the source has it", "C12", dualHolds, lab.Holds},
		{"light above heavy", "C12", func(a *answers) { dualHolds(a); set(a, dual, func(o *outcome) { o.light = 1.001 * o.heavy }) }, lab.Fails},
		{"light above that of K-Distributed", "C12", func(a *answers) { dualHolds(a); set(a, dual.in(distinctMix), func(o *outcome) { o.light = 2.001 }) }, lab.Fails},
		{"heavy above half of Independent", "C12", func(a *answers) { dualHolds(a); set(a, dual.in(distinctMix), func(o *outcome) { o.heavy = 5.005 }) }, lab.Fails},
		{"other start instants", "C16", func(a *answers) {
			set(a, at(kDist, 4).in(equalMix).ranked(meta.RankStart), func(o *outcome) { o.starts = "others" })
		}, lab.Fails},
		{"a message too many", "C18", func(a *answers) { set(a, dual, func(o *outcome) { o.logical++ }) }, lab.Fails},
		{"one on the wire too many", "C18", func(a *answers) { set(a, dual, func(o *outcome) { o.wire++ }) }, lab.Fails},
		{"exact", "C18", func(*answers) {}, lab.Holds},
		{"levels", "C19", func(*answers) {}, lab.Informational},
		{"not a number", "C6", func(a *answers) { set(a, kd4, func(o *outcome) { o.slowdown.Mean = math.NaN() }) }, lab.Fails},
		{"short jobs only", "C4", func(a *answers) { set(a, dist, func(o *outcome) { o.class[metrics.ShortNarrow] = 1.499 }) }, lab.Fails},
	} {
		q := questionOf(t, c.claim)
		a := made(q, nil)
		c.spoil(a)
		if f := q.Judge(a); f.Result != c.want {
			t.Errorf("%s, %s: %s, want %s: %s", c.claim, c.name, f.Result, c.want, f.Measured)
		}
	}
}

func set(a *answers, t trial, do func(*outcome)) {
	for _, o := range a.Outcomes[t] {
		do(o)
	}
}

// dualHolds makes answers in which C12 holds.
func dualHolds(a *answers) {
	for _, m := range []mix{sharedMix, distinctMix} {
		set(a, ind.in(m), func(o *outcome) { o.light, o.heavy = 1, 10 })
		set(a, kd4.in(m), func(o *outcome) { o.light, o.heavy = 2, 1.9 })
		set(a, dual.in(m), func(o *outcome) { o.light, o.heavy = 1.5, 4.9 })
	}
}
