package daemon

import (
	"testing"
	"time"
)

// serve simulates calls that are answered one after the other, each after some
// time, when as many come as are let in, and returns how long the last answers took.
func serve(g *gate, each, length time.Duration) (slowest time.Duration) {
	now := time.Unix(1_800_000_000, 0)
	var inHand []time.Time
	for end := now.Add(length); now.Before(end); {
		for g.enter(now) {
			inHand = append(inHand, now)
		}
		now = now.Add(each)
		if end.Sub(now) < length/2 {
			slowest = max(slowest, now.Sub(inHand[0]))
		}
		g.leave(inHand[0], now)
		inHand = inHand[1:]
	}
	return slowest
}

// However slow a site is, the gate finds how many calls it can have in hand,
// and lets more in again once it is faster.
func TestGateFindsItsBound(t *testing.T) {
	for _, each := range []time.Duration{50 * time.Microsecond, 200 * time.Microsecond, time.Millisecond, 5 * time.Millisecond, 18 * time.Millisecond} {
		g := newGate()
		if slowest := serve(g, each, time.Minute); slowest > 2*soonAnswer {
			t.Errorf("an answer each %v: the slowest took %v, with %v calls in hand", each, slowest, g.bound)
		}
		if inTime := soonAnswer.Seconds() / each.Seconds(); g.bound < min(inTime/2, mostCalls)-1 {
			t.Errorf("an answer each %v: only %.0f calls are let in, of %.0f that could be", each, g.bound, inTime)
		}
	}
	g := newGate()
	serve(g, 50*time.Millisecond, time.Minute)
	if g.bound > 2*fewestCalls {
		t.Errorf("a site that is far too slow lets %v calls in", g.bound)
	}
	serve(g, time.Millisecond, time.Minute)
	if g.bound < 150 || g.late != soonAnswer {
		t.Errorf("once it is fast again it lets only %v in, and %v is late", g.bound, g.late)
	}
}

// Where every answer takes long, however few the calls, refusing calls would
// help nobody.
func TestGateBeforeASlowDisk(t *testing.T) {
	g := newGate()
	now := time.Unix(1_800_000_000, 0)
	for range 2000 { // batches that are written one after the other
		n := 0
		for g.enter(now) {
			n++
		}
		began := now
		now = now.Add(2 * soonAnswer)
		for range n {
			g.leave(began, now)
		}
		now = now.Add(time.Millisecond)
	}
	if g.bound < firstCalls || g.late > 8*soonAnswer {
		t.Errorf("only %.0f calls are let in, and %v is late", g.bound, g.late)
	}
}

// A gate that is not full learns nothing from fast answers.
func TestGateAtRest(t *testing.T) {
	g := newGate()
	now := time.Unix(1_800_000_000, 0)
	for range 100_000 {
		if !g.enter(now) {
			t.Fatal("refused")
		}
		g.leave(now, now)
	}
	if g.bound != firstCalls {
		t.Errorf("the bound is %v", g.bound)
	}
}

// What an operator needs is always let in.
func TestGates(t *testing.T) {
	g := newGates()
	for method, want := range map[string]*gate{
		"/kith.v1.JobService/SubmitJob":     g.changes,
		"/kith.v1.JobService/HoldJob":       g.changes,
		"/kith.v1.JobService/GetJob":        g.looks,
		"/kith.v1.JobService/ListJobs":      g.looks,
		"/kith.v1.JobService/CancelJob":     nil,
		"/kith.v1.BagService/SubmitBag":     g.changes,
		"/kith.v1.BagService/RetryTasks":    g.changes,
		"/kith.v1.BagService/ListTasks":     g.looks,
		"/kith.v1.BagService/CheckPolicies": g.looks,
		"/kith.v1.BagService/CancelBag":     nil,
		"/kith.v1.JobService/ForecastJob":   nil, // it waits for other sites
		"/kith.v1.SiteService/GetSite":      nil,
		"/kith.v1.SiteService/DrainSite":    nil,
		"/grpc.health.v1.Health/Check":      nil,
	} {
		if got := g.of(method); got != want {
			t.Errorf("%s has another gate than it should", method)
		}
	}
}
