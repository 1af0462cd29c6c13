package forecasts

import (
	"errors"
	"io/fs"
	"testing"
	"time"

	"kith/internal/forecast"
	"kith/internal/job"
	"kith/testbed/lab"
	"kith/testbed/lab/labtest"
	"kith/testbed/workload"
)

// A small run is whole.
func TestSmall(t *testing.T) { labtest.Small(t, Experiment(), 2, 2) }

// oracle says the truth, and notes what it had learnt when it was asked.
type oracle struct {
	items []item
	known []bool
	t     *testing.T
}

func (m *oracle) ask(i int, d *forecast.Dist) forecast.Class {
	for k := range m.items {
		if should := k < i && m.items[k].known <= m.items[i].asked; m.known[k] != should {
			m.t.Errorf("asked about %d at %d, it knows the truth of %d, of %d: %v", i, m.items[i].asked, k, m.items[k].known, m.known[k])
		}
	}
	d.Reset()
	d.Add(m.items[i].truth-1, 1)
	d.Add(m.items[i].truth+1, 1)
	return 0
}

func (m *oracle) learn(i int) { m.known[i] = true }

// A forecast knows what was true by then and nothing else.
func TestNothingIsKnownBeforeItIsTrue(t *testing.T) {
	var items []item
	for i := range 60 {
		asked := job.Time(10 * i)
		items = append(items, item{asked, asked + job.Time(i*7919%200), time.Hour})
	}
	s := score(items, &oracle{items, make([]bool, len(items)), t}, 1, forecast.FadeRuns, 1)
	if r := record(s); r.Held != 60 {
		t.Errorf("%v of 60 held", r.Held)
	}
}

func TestPartBelow(t *testing.T) {
	for _, c := range []struct{ level, below, upto, want float64 }{
		{0.5, 0.2, 0.4, 1}, {0.5, 0.6, 0.8, 0}, {0.5, 0.4, 0.8, 0.25}, {0.5, 0.5, 0.5, 0}, {0.5, 0.4, 0.4, 1}, {0.4, 0.2, 0.4, 1},
	} {
		if got := partBelow(c.level, c.below, c.upto); got < c.want-1e-9 || got > c.want+1e-9 {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// Bands accept what meets them and refuse what is just outside.
func TestBands(t *testing.T) {
	list := func(n, heldOf100 int, loss float64) []scored {
		l := make([]scored, n)
		for i := range l {
			l[i].Class, l[i].Pinball = forecast.Class(i/100%3), loss
			if i%100 < heldOf100 {
				l[i].Held = 1
			} else {
				l[i].Above = 1
			}
		}
		return l
	}
	answersOf := func(held int, loss float64) *answers {
		m := methods{}
		m.add("ours", list(3000, held, loss))
		for range 3 {
			m.add("others", list(3000, 80, 100))
		}
		a := &answers{env: &lab.Env{}, src: &source{}, starts: make(map[setting][]methods), runs: []methods{m}}
		for _, s := range settings {
			a.starts[s] = []methods{m}
		}
		return a
	}
	results := func(a *answers) string {
		s := ""
		for _, q := range questions() {
			if q.Judge(a).Result == lab.Holds {
				s += q.ID + " "
			}
		}
		return s
	}
	if got, want := results(answersOf(81, 74)), "F1 F2 F3 F4 F5 F6 F7 F8 F9 F10 F11 F12 F13 "; got != want {
		t.Errorf("all within: %s hold", got)
	}
	if got, want := results(answersOf(83, 87)), "F2 F3 F4 F8 F9 F10 F13 "; got != want {
		t.Errorf("some outside: %s hold", got)
	}
	if got := results(answersOf(70, 101)); got != "" {
		t.Errorf("all outside: %s hold", got)
	}
}

// The same seed gives the same forecasts, and another one others; all copies that wait are
// looked at by one part or another.
func TestForecastsAreRepeatable(t *testing.T) {
	for name, env := range labtest.Envs(t, 150) {
		env.Processors = 64
		src, err := newSource(env)
		if err != nil {
			t.Fatal(err)
		}
		seen, waiting := make(map[[2]int]bool), 0
		for part := range parts {
			o, err := trial{easy, part}.run(t.Context(), src, 1)
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range o.waits {
				seen[[2]int{w.site, w.index}] = true
			}
			waiting = o.waiting
			if part > 0 {
				continue
			}
			again, err := trial{easy, part}.run(t.Context(), src, 1)
			if err != nil || len(again.waits) != len(o.waits) {
				t.Fatalf("%s: %d forecasts, then %d, %v", name, len(o.waits), len(again.waits), err)
			}
			for i := range o.waits {
				if a, b := &o.waits[i], &again.waits[i]; a.latest != b.latest || a.all[0] != b.all[0] || a.all[len(a.all)-1] != b.all[len(b.all)-1] {
					t.Fatalf("%s: forecast %d differs", name, i)
				}
			}
		}
		if waiting == 0 || len(seen) != waiting {
			t.Errorf("%s: %d of %d jobs that wait are looked at", name, len(seen), waiting)
		}
	}
}

// On a part of a real log ranges hold about as often as they say, and beat what is simple.
func TestOnLog(t *testing.T) {
	if testing.Short() {
		t.Skip("left out of short runs: plays scenarios for some thousand jobs")
	}
	const path = "../../../../shared/traces/KTH-SP2-1996-2.1-cln.swf.gz"
	log, err := workload.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no %s: this test needs the shared traces beside the repository", path)
	}
	if err != nil {
		t.Fatal(err)
	}
	env := &lab.Env{Trace: log, Jobs: 4000}
	src, err := newSource(env)
	if err != nil {
		t.Fatal(err)
	}
	o, err := trial{easy, 0}.run(t.Context(), src, 1)
	if err != nil {
		t.Fatal(err)
	}
	m, err := scoreRuns(src, o, 1)
	if err != nil {
		t.Fatal(err)
	}
	if h := held(&m); h < 78 || h > 82 {
		t.Errorf("of run times %.1f %% held", h)
	}
	if ratio := lossOver(byWaits)(&m); ratio > 0.9 {
		t.Errorf("the loss of run times is %.2f of that of the last two", ratio)
	}
	a := &answers{outcomes: lab.Outcomes[trial, *outcome]{}}
	for _, x := range easy.trials() {
		a.outcomes[x] = []*outcome{{records: o.records, first: o.first}}
	}
	a.outcomes[trial{easy, 0}] = []*outcome{o}
	if m, err = a.scoreStarts(easy, 0, 1); err != nil {
		t.Fatal(err)
	}
	if h := held(&m); h < 72 || h > 88 {
		t.Errorf("of %d starts %.1f %% held", len(m.scores[ours]), h)
	}
	if ratio := lossOver(byLimits)(&m); ratio > 1 {
		t.Errorf("the loss of starts is %.2f of that of WhatIf", ratio)
	}
}

// Conservative backfill is left out of long logs, and its statement says so and is not judged.
func TestConservativeIsLeftOutOfLongLogs(t *testing.T) {
	for _, c := range []struct {
		jobs int
		want lab.Result
	}{{mostConservative, lab.Holds}, {mostConservative + 1, lab.Informational}} {
		m := methods{}
		m.add("ours", []scored{{Score: forecast.Score{Held: .8, Above: .2}}})
		a := &answers{src: &source{log: &workload.Workload{Jobs: make([]workload.Job, c.jobs)}}, starts: map[setting][]methods{conservative: {m}}}
		if q := questions()[5]; q.ID != "F6" || q.Judge(a).Result != c.want {
			t.Errorf("%s of a log of %d jobs: %v, want %v", q.ID, c.jobs, q.Judge(a).Result, c.want)
		}
		if a.src.leavesOut(easy) || a.src.leavesOut(federated) {
			t.Errorf("of a log of %d jobs others are left out, too", c.jobs)
		}
	}
}
