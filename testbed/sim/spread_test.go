package sim_test

import (
	"fmt"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/testbed/sim"
)

// spread is a federation as daemons make it, over a network that takes time.
func spread(seed uint64, widths ...int32) sim.Config {
	cfg := federation(seed, widths...)
	cfg.Network.LinkConfig = sim.LinkConfig{Latency: 2 * time.Millisecond}
	return cfg
}

// everySecond calls look each second until all jobs have ended.
func everySecond(t *testing.T, w *sim.World, ended func() bool, look func()) time.Duration {
	t.Helper()
	for after := time.Second; after < 2*time.Hour; after += time.Second {
		if err := w.Run(sim.Start.Add(after)); err != nil {
			t.Fatal(err)
		}
		if ended() {
			return after
		}
		look()
	}
	t.Fatal("the jobs do not come to an end")
	return 0
}

// H4: a burst goes to all sites that are idle, not to K of them.
func TestBurstSpreadsOverIdleSites(t *testing.T) {
	const sites, jobs, run = 6, 60, 2 * time.Second
	for _, copies := range []int32{1, 2, 3, 6} {
		cfg := spread(uint64(copies), 1, 1, 1, 1, 1, 1)
		ran := make(map[job.SiteID]int)
		cfg.Began = func(host job.SiteID, _ job.AttemptID, _ int) { ran[host]++ }
		w := newWorld(t, cfg)
		begin := sim.Start.Add(20 * time.Second)
		for i := range jobs {
			r := request(1, time.Minute)
			r.Copies = copies
			w.Submit(begin.Add(time.Duration(i)*50*time.Millisecond/jobs), "s0", sim.Submission{Request: r, RunTime: run})
		}
		var last job.Time
		if err := w.RunWhile(begin.Add(time.Hour), func() bool { last = w.Now(); return len(w.Acknowledged()) < jobs || !drained(w) }); err != nil {
			t.Fatal(err)
		}
		took := last.Sub(begin)
		t.Logf("K=%d: %v, jobs by site %v", copies, took, ran)
		const most = 24 * time.Second
		if len(ran) != sites || took > most {
			t.Errorf("K=%d: %d of %d sites ran jobs, which took %v; want all and at most %v", copies, len(ran), sites, took, most)
		}
	}
}

// H3: where sites were full, they get more copies once there is room.
func TestFullSitesAreAskedAgain(t *testing.T) {
	jobs, most := 20_000, 10_000
	if testing.Short() {
		jobs, most = 2_000, 1_000
	}
	cfg := spread(1, 2, 2, 2)
	cfg.Check = jobs <= 2_000
	for i := range cfg.Sites {
		cfg.Sites[i].Meta.Limits.CopiesPerOrigin = most
	}
	ran, ends := make(map[job.SiteID]int), 0
	cfg.Began = func(host job.SiteID, _ job.AttemptID, _ int) { ran[host]++ }
	cfg.Ended = func(job.SiteID, job.AttemptID, int, *job.Outcome) { ends++ }
	w := newWorld(t, cfg)
	begin := sim.Start.Add(20 * time.Second)
	for i := range jobs {
		w.Submit(begin.Add(time.Duration(i)*500*time.Microsecond), "s0", sim.Submission{Request: request(1, time.Minute), RunTime: 30 * time.Millisecond})
	}
	idle, seen, longest := map[job.SiteID]int{}, map[job.SiteID]int{}, 0
	took := everySecond(t, w, func() bool { return ends == jobs }, func() {
		for i := range 3 {
			s := w.Site(job.SiteID(fmt.Sprint("s", i)))
			waits := int32(0)
			for k := range 3 {
				if k != i {
					waits = max(waits, w.Site(job.SiteID(fmt.Sprint("s", k))).Load().Queued)
				}
			}
			began := ran[s.ID()] > seen[s.ID()]
			seen[s.ID()] = ran[s.ID()]
			if l := s.Load(); began || l.Running > 0 || l.Queued > 0 || waits <= 100 {
				idle[s.ID()] = 0
				continue
			}
			idle[s.ID()]++
			longest = max(longest, idle[s.ID()])
		}
	})
	t.Logf("%v, jobs by site %v, idle for %d s in a row", took-20*time.Second, ran, longest)
	if longest > 5 {
		t.Errorf("a site was idle for %d s in a row while others had over 100 queued", longest)
	}
}

// H3: sites that drained for a moment get copies back.
func TestCopiesComeBackAfterADrain(t *testing.T) {
	const jobs = 30
	cfg := spread(1, 2, 2, 2)
	w := newWorld(t, cfg)
	begin := sim.Start.Add(20 * time.Second)
	for range jobs {
		r := request(1, time.Minute)
		r.Copies = 3
		w.Submit(begin, "s0", sim.Submission{Request: r, RunTime: 10 * time.Second})
	}
	drain := func(after time.Duration, on bool) {
		w.At(begin.Add(after), func() {
			for _, s := range []job.SiteID{"s1", "s2"} {
				w.Ask(s, func(token uint64) meta.Event { return meta.SetDrain{Token: token, On: on} }, func(meta.Reply) {})
			}
		})
	}
	drain(time.Second, true)
	drain(2*time.Second, false)
	if err := w.Run(begin.Add(12 * time.Second)); err != nil {
		t.Fatal(err)
	}
	for _, s := range []job.SiteID{"s0", "s1", "s2"} {
		if l := w.Site(s).Load(); l.Running == 0 || l.Free > 0 {
			t.Errorf("10 s after the resume %s has %d running and %d free", s, l.Running, l.Free)
		}
	}
	if err := w.RunWhile(begin.Add(time.Hour), func() bool { return len(w.Acknowledged()) < jobs || !drained(w) }); err != nil {
		t.Fatal(err)
	}
}
