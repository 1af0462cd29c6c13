package meta_test

import (
	"fmt"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
)

func tasks(n uint32) job.Indices {
	x, _, err := job.ParseIndices(fmt.Sprintf("0-%d", n-1))
	if err != nil {
		panic(err)
	}
	return x
}

// A bag runs at its origin and at the other sites, each of its tasks once.
func TestBagRuns(t *testing.T) {
	w := newWorld(t, 1, nil, 4, 8, 3)
	id := w.sites[0].submit(meta.SubmitBag{Token: 1, Request: job.Request{User: "ada", Processors: 1, Walltime: time.Minute}, Indices: tasks(1000)})
	if !w.run(time.Hour) {
		w.story()
		t.Fatalf("the bag has not ended: %v", w.twice)
	}
	b := w.sites[0].state.Bag(id)
	if b.State != job.BagCompleted || b.Done.Count() != 1000 || b.Sums.Runs != 1000 || b.Sums.Wasted != 0 {
		t.Errorf("%v with %d done in %d runs", b.State, b.Done.Count(), b.Sums.Runs)
	}
	if len(b.Sums.Sites) != 3 {
		t.Errorf("it ran at %+v", b.Sums.Sites)
	}
	if took := b.Closed.Sub(b.Submitted); took > 80*time.Second {
		t.Errorf("1,000 tasks of 1 s took %v on 15 processors", took)
	}
	w.settle()
}

// Whatever happens to sites, streams and messages, every task of a bag ends, none runs
// twice at once, and nothing of them is left. Of what runs on through it all none runs
// twice at all.
func TestBagsSurvive(t *testing.T) {
	seeds := uint64(2)
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		for name, c := range map[string]struct {
			lost     job.OnSiteLost
			machines bool
		}{"wait": {job.Wait, false}, "wait, machines": {job.Wait, true}, "rerun": {job.Rerun, true}} {
			if !t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) { survive(t, seed, c.lost, c.machines) }) {
				return
			}
		}
	}
}

func survive(t *testing.T, seed uint64, lost job.OnSiteLost, machines bool) {
	procs := []int32{4, 8, 3}
	if machines {
		procs = append(procs, 4) // of a site that loses its disk
	}
	w := newWorld(t, seed, nil, procs...)
	w.lost, w.twist = 0.1, 0.1
	w.takes = func(id job.TaskID) outcome {
		n := (uint64(id.Ordinal)*2654435761 + id.Bag.Seq) % 4000
		o := outcome{run: time.Duration(n+1) * time.Millisecond}
		if n%31 == 0 {
			o.code = 1
		}
		return o
	}
	var bags []job.ID
	for i, p := range w.sites[:3] {
		for k := range 2 {
			bags = append(bags, p.submit(meta.SubmitBag{
				Token: 1, Indices: tasks(uint32(400 * (i + 1))), Retries: uint8(k),
				Request: job.Request{User: []string{"ada", "bob"}[k], Processors: int32(1 + k), Walltime: time.Minute, OnSiteLost: lost},
			}))
		}
	}
	var trouble func()
	trouble = func() {
		p, q := w.sites[w.rng.IntN(len(procs))], w.sites[w.rng.IntN(len(procs))]
		switch n := w.rng.IntN(9); {
		case n < 3 && p != q:
			w.cut(p, q)
			w.after(time.Duration(w.rng.IntN(100))*time.Second, func() { w.connect(p, q) })
		case n == 3 && p.engine != nil:
			p.stop(false, time.Duration(w.rng.IntN(30))*time.Second)
		case n == 4 && p.engine != nil && machines:
			p.stop(true, time.Duration(w.rng.IntN(200))*time.Second)
		case n == 5 && machines && w.sites[3].engine != nil:
			w.sites[3].wiped = true
			w.sites[3].stop(true, time.Duration(w.rng.IntN(200))*time.Second)
		case n == 6:
			p.feed(meta.SetDrain{Token: 9, On: true})
			w.after(time.Duration(w.rng.IntN(60))*time.Second, func() { p.feed(meta.SetDrain{Token: 9}) })
		case n == 7:
			p.feed(meta.Submit{Token: 9, Request: job.Request{Processors: 1 + w.rng.Int32N(3), Copies: 2, Walltime: time.Minute}})
		}
		if w.now < job.Time(time.Hour+10*time.Minute) {
			w.after(time.Duration(w.rng.IntN(30_000))*time.Millisecond, trouble)
		}
	}
	w.after(time.Second, trouble)
	if !w.run(3*time.Hour) || len(w.twice) > 0 {
		w.story()
		t.Fatalf("the bags have not ended: %v", w.twice)
	}
	for _, id := range bags {
		b := w.place(id.Origin).state.Bag(id)
		if ended := b.Done.Count() + b.Failed.Count(); ended != int(b.Tasks()) {
			t.Errorf("bag %v: %d of %d tasks ended", id, ended, b.Tasks())
		}
		if lost == job.Wait {
			for n := range b.Tasks() {
				task := job.TaskID{Bag: id, Ordinal: n}
				most := 1
				if w.takes(task).code != 0 {
					most += int(b.Retries)
				}
				if got := w.starts[task]; got > most || got == 0 && !machines {
					t.Errorf("task %v began %d times", task, got)
				}
			}
		}
	}
	w.settle()
	if t.Failed() {
		w.story()
	}
}
