package harm

import (
	"testing"
	"time"

	"kith/testbed/lab"
	"kith/testbed/lab/labtest"
)

// A small run is whole.
func TestSmall(t *testing.T) { labtest.Small(t, Experiment(), 1, 1) }

// Bands accept what meets them and refuse what is just outside.
func TestBands(t *testing.T) {
	a := &answers{Outcomes: make(lab.Outcomes[trial, *outcome])}
	set := func(x trial, blocked10m, later int, delays, gains float64) {
		o := &outcome{}
		o.All.Jobs, o.All.Compared, o.All.Blocked, o.All.Blocked10m = 100, 100, blocked10m*2, blocked10m
		o.All.Later[0], o.All.Delays, o.All.Gains = later, delays, gains
		a.Outcomes[x] = []*outcome{o}
	}
	for _, x := range allTrials() {
		set(x, 0, 10, 25, 100)
	}
	set(alone, 0, 0, 0, 0)
	set(bounded, 0, 10, 25, 100)
	set(invisible, 0, 0, 0, 0)
	set(atOnce, 0, 0, 0, 0)
	a.Outcomes[invisible][0].GuestWait, a.Outcomes[bounded][0].evictions = 120, 1
	set(promise, 10, 0, 0, 0)
	a.Outcomes[promise][0].GuestWait = 100
	set(caps[0], 5, 0, 0, 0)
	set(caps[1], 1, 0, 0, 0)
	set(caps[2], 1, 0, 0, 0)
	results := func() (s string) {
		for _, q := range questions() {
			if q.Judge(a).Result == lab.Holds {
				s += q.ID + " "
			}
		}
		return s
	}
	if got, want := results(), "N1 N2 N3 N4 N5 N6 N7 N8 N9 N10 "; got != want {
		t.Errorf("all within: %s hold", got)
	}
	set(alone, 0, 0, 1, 0)
	set(promise, 4, 0, 0, 0)
	set(joined3, 0, 10, 26, 100)
	set(joined3s, 0, 9, 0, 0)
	a.Outcomes[joined2][0].moved = 1
	a.Outcomes[bounded][0].evictions, a.Outcomes[invisible][0].All.Worst = 1.1, 61
	a.Outcomes[invisible][0].GuestWait, a.Outcomes[promise][0].GuestWait = 121, 100
	a.Outcomes[atOnce][0].All.Gains = 1
	if got := results(); got != "" {
		t.Errorf("all outside: %s hold", got)
	}
}

// Guests of a capped trial have no longer limits, and all trials have names of their own.
func TestTrials(t *testing.T) {
	env := &lab.Env{Jobs: 300}
	if err := env.Settle(1); err != nil {
		t.Fatal(err)
	}
	ws, err := (&source{env: env}).workloads(1)
	if err != nil {
		t.Fatal(err)
	}
	all, names := len(ws[1].Jobs), make(map[string]bool)
	for _, x := range allTrials() {
		if names[x.String()] {
			t.Errorf("two trials are called %s", x)
		}
		names[x.String()] = true
		cfg, capped := x.federation(1, ws)
		if len(cfg.Sites) != len(capped) {
			t.Errorf("%v: %d sites, %d workloads", x, len(cfg.Sites), len(capped))
		}
		if x.limit != time.Hour {
			continue
		}
		for _, j := range capped[1].Jobs {
			if j.Estimate > time.Hour {
				t.Errorf("%v: a guest with a limit of %v", x, j.Estimate)
			}
		}
		if n := len(capped[1].Jobs); n == 0 || n >= all {
			t.Errorf("%v: %d guests of %d", x, n, all)
		}
	}
}
