package meta_test

import (
	"bytes"
	"fmt"
	"math"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/bags"
	"kith/store"
	"kith/store/codec"
)

// What a site says about tasks that it was not given changes nothing at an origin, and what
// it was given it can end once.
func TestSiteThatLiesAboutTasks(t *testing.T) {
	w := newWorld(t, 5, nil, 2, 2, 2)
	w.takes = func(job.TaskID) outcome { return outcome{run: time.Minute} }
	alpha := w.sites[0]
	id := alpha.submit(meta.SubmitBag{Token: 1, Request: job.Request{User: "ada", Processors: 1, Walltime: time.Hour}, Indices: tasks(1000)})
	w.run(5 * time.Second)
	b := alpha.state.Bag(id)
	var betas *store.TaskBundle
	for bundle := range b.Bundles {
		if bundle.Site == "beta" {
			betas = bundle
		}
	}
	if betas == nil {
		t.Fatal("beta has no tasks")
	}
	name := job.AttemptID{Job: id, Number: betas.Number}
	shape := bags.ShapeOf(&b.Request)
	other := bags.ShapeOf(&job.Request{Processors: 64, Walltime: time.Hour})
	ended := []job.TaskResult{{Ordinal: 999, Kind: job.Success}}
	all := job.TaskRange(0, job.MaxTasks)
	for what, m := range map[string]meta.Message{
		"a claim for what is not offered":     meta.TaskClaim{Stamp: 900, Ask: bags.Ask{Shape: other, Places: 9, Want: 9}},
		"a claim for less than nothing":       meta.TaskClaim{Stamp: 901, Ask: bags.Ask{Shape: shape, Places: -9, Want: -9}},
		"the result of another's bundle":      meta.TaskResults{Bundle: name, Batch: 1, Results: ended},
		"the result of no bundle":             meta.TaskResults{Bundle: job.AttemptID{Job: id, Number: 4000}, Batch: 1, Results: ended},
		"the result of a task of no bag":      meta.TaskResults{Bundle: job.AttemptID{Job: job.ID{Origin: "alpha", Seq: 99}, Number: 1}, Batch: 1, Results: ended},
		"all tasks back of another's bundle":  meta.TaskResults{Bundle: name, Batch: 1, Returned: all.Clone()},
		"that it gives another's bundle back": meta.GiveBack{Attempt: name, Reason: job.Full, Stamp: 1},
	} {
		before := codec.Dump(alpha.state)
		alpha.feed(meta.Receive{From: "gamma", Message: m})
		if !bytes.Equal(codec.Dump(alpha.state), before) {
			t.Errorf("%s has changed something", what)
		}
	}
	// Of its own bundle a site may say how its tasks end, and of those no other.
	mine := betas.Tasks.Clone()
	first := uint32(0)
	for task := range mine.All {
		first = task
		break
	}
	sums := b.Sums.Runs
	batch := meta.TaskResults{Bundle: name, Batch: betas.Batch + 1, Results: []job.TaskResult{{Ordinal: first, Kind: job.Success, Run: time.Second}, {Ordinal: 999, Kind: job.Success}}}
	for range 2 {
		alpha.feed(meta.Receive{From: "beta", Message: batch})
	}
	if b.Done.String() != fmt.Sprint(first) || b.Sums.Runs != sums+1 {
		t.Errorf("done %v in %d runs after %d", &b.Done, b.Sums.Runs, sums)
	}
	// An ask for as many tasks as there are numbers, with a stamp of the end of time, gets what
	// one ask may get; the next one, with the same stamp, nothing else.
	alpha.feed(meta.Receive{From: "gamma", Message: meta.TaskClaim{Stamp: math.MaxUint64, Sent: w.now.Add(time.Hour), Ask: bags.Ask{
		Shape: shape, Places: math.MaxInt, Mean: 1, Want: math.MaxInt,
	}}})
	at := b.TasksAt("gamma")
	if n := at.Count(); n == 0 || n > bags.MaxAsk {
		t.Errorf("%d tasks at once", n)
	}
	alpha.feed(meta.Receive{From: "gamma", Message: meta.TaskClaim{Stamp: math.MaxUint64, Ask: bags.Ask{Shape: shape, Places: 9, Mean: 1, Want: 9}}})
	if again := b.TasksAt("gamma"); again.Count() != at.Count() {
		t.Errorf("%d tasks after the same ask again, %d before", again.Count(), at.Count())
	}
	if err := alpha.state.Check(); err != nil {
		t.Error(err)
	}
}

// When an origin is back that no host has reached for an hour, no host says more to it in a
// minute than twice what it says in other minutes.
func TestRequestsAfterAnOutage(t *testing.T) {
	hosts := 100
	if testing.Short() {
		hosts = 20
	}
	w := newWorld(t, 6, nil, 1)
	alpha := w.sites[0]
	for i := range hosts {
		p := &place{w: w, id: job.SiteID(fmt.Sprintf("host-%04d", i)), procs: 1, boot: 1, folder: 1, links: map[job.SiteID]int{}, tasks: map[job.AttemptID]*process{}, left: map[job.AttemptID]bool{}, cfg: alpha.cfg}
		p.state = store.NewState(p.id, 1)
		w.sites = append(w.sites, p)
		p.start()
		w.connect(alpha, p)
	}
	// A task a minute, more or less, and so an ask and a result a minute from each host.
	w.takes = func(id job.TaskID) outcome { return outcome{run: time.Duration(30+id.Ordinal*7%60) * time.Second} }
	id := alpha.submit(meta.SubmitBag{Token: 1, Request: job.Request{User: "ada", Processors: 1, Walltime: 5 * time.Minute, OnSiteLost: job.Rerun}, Indices: tasks(1 << 20)})
	w.run(10 * time.Minute)
	minute := func() (total int) {
		before := alpha.heard
		w.run(time.Minute)
		return alpha.heard - before
	}
	usual := 0
	for range 5 {
		usual = max(usual, minute())
	}
	for _, p := range w.sites[1:] {
		w.cut(alpha, p)
	}
	w.run(time.Hour)
	for _, p := range w.sites[1:] { // a dialler waits for some seconds between two tries
		w.after(time.Duration(w.rng.IntN(int(10*time.Second))), func() { w.connect(alpha, p) })
	}
	for n := range 5 {
		if got := minute(); got > 2*usual {
			t.Errorf("minute %d after the outage: %d messages from %d hosts, at most %d in a minute before", n+1, got, hosts, usual)
		} else {
			t.Logf("minute %d after the outage: %d messages from %d hosts, at most %d in a minute before", n+1, got, hosts, usual)
		}
	}
	if got := alpha.state.Bag(id); got.Given() < hosts {
		t.Errorf("%d tasks with %d hosts", got.Given(), hosts)
	}
}
