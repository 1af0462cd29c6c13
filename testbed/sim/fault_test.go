package sim_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/testbed/sim"
)

var (
	firstSeed = flag.Uint64("first-seed", 0, "first seed of the random fault runs")
	seeds     = flag.Int("seeds", 60, "how many random fault runs")
	story     = flag.String("story", "", "file to write the story of a single run to")
)

// faulty is a federation whose network and disks are as bad as they get.
func faulty(seed uint64) sim.Config {
	cfg := federation(seed, 3, 4, 2, 6)
	cfg.Disk = sim.DiskConfig{Keep: true, Sync: 2 * time.Millisecond, SyncJitter: 20 * time.Millisecond}
	cfg.Network.LinkConfig = sim.LinkConfig{
		Latency: 10 * time.Millisecond, Jitter: 100 * time.Millisecond, Loss: 0.05, Duplication: 0.05, Reorder: 0.1,
	}
	for i := range cfg.Sites {
		cfg.Sites[i].Meta.Placement.Copies = 3
	}
	return cfg
}

// TestRandomFaults lets sites crash and links fail at random under load, then
// heals everything and demands that every job has ended exactly once.
func TestRandomFaults(t *testing.T) {
	n := *seeds
	if testing.Short() {
		n = min(n, 10)
	}
	for i := range n {
		seed := *firstSeed + uint64(i)
		if err := randomFaults(seed, nil); err != nil {
			t.Errorf("%v\nstory: go test ./testbed/sim -run TestRandomFaults -seeds 1 -first-seed %d -story FILE", err, seed)
		}
	}
	if *story != "" {
		f, err := os.Create(*story)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close() //nolint:errcheck // a story that is cut short is seen
		t.Log(randomFaults(*firstSeed, func(line string) { fmt.Fprintln(f, line) }))
	}
}

func randomFaults(seed uint64, trace func(string)) error {
	cfg := faulty(seed)
	cfg.Trace = trace
	faultsEnd := sim.Start.Add(30 * time.Minute)
	cfg.CrashBefore = func(w *sim.World, s *sim.Site, _ meta.Effect) bool {
		if w.Now() >= faultsEnd || w.Rand().IntN(150) != 0 {
			return false
		}
		w.At(w.Now().Add(time.Duration(1+w.Rand().Int64N(int64(time.Minute)))), func() { s.Restart() }) //nolint:errcheck // it is up then
		return true
	}
	w, err := sim.New(cfg)
	if err != nil {
		return err
	}
	const jobs = 60
	site := func() job.SiteID { return cfg.Sites[w.Rand().IntN(len(cfg.Sites))].ID }
	soon := func(most time.Duration) job.Time { return w.Now().Add(time.Duration(w.Rand().Int64N(int64(most)))) }
	var ids []job.ID
	for range jobs {
		run := time.Duration(1+w.Rand().IntN(200)) * time.Second
		r := request(1+w.Rand().Int32N(3), run+time.Minute)
		r.OnSiteLost = job.OnSiteLost(w.Rand().IntN(3))
		w.Submit(soon(25*time.Minute), site(), sim.Submission{
			Request: r, RunTime: run,
			Done: func(id job.ID, err error) {
				if err == nil {
					ids = append(ids, id)
				}
			},
		})
	}
	for range 12 { // wishes of users
		w.At(soon(29*time.Minute), func() {
			if len(ids) == 0 {
				return
			}
			id := ids[w.Rand().IntN(len(ids))]
			kind := w.Rand().IntN(3)
			w.Wish(id.Origin, func(token uint64) meta.Event {
				switch kind {
				case 0:
					return meta.Cancel{Token: token, Job: id}
				case 1:
					return meta.Hold{Token: token, Job: id}
				}
				return meta.Release{Token: token, Job: id}
			}, func(meta.Reply) {})
		})
	}
	for range 14 {
		at := soon(28 * time.Minute)
		w.At(at, func() { oneFault(w, site(), site(), faultsEnd) })
	}
	w.At(faultsEnd, func() { mend(w, cfg, ids) })
	w.At(faultsEnd.Add(time.Minute), func() { mend(w, cfg, ids) })
	deadline := faultsEnd.Add(4 * time.Hour)
	if err := w.RunWhile(deadline, func() bool { return w.Now() <= faultsEnd.Add(time.Minute) || !drained(w) }); err != nil {
		return err
	}
	return w.CheckEnded()
}

// oneFault does something bad that lasts for a while.
func oneFault(w *sim.World, a, b job.SiteID, end job.Time) {
	length := time.Duration(w.Rand().Int64N(int64(6 * time.Minute)))
	until := min(w.Now().Add(length), end)
	switch w.Rand().IntN(4) {
	case 0:
		w.Site(a).Crash()
		w.At(until, func() { w.Site(a).Restart() }) //nolint:errcheck // it is up then
	case 1: // at once
		w.Site(a).Crash()
		w.At(w.Now().Add(time.Millisecond), func() { w.Site(a).Restart() }) //nolint:errcheck // it is up then
	case 2:
		if a != b {
			w.Cut(a, b)
			if w.Rand().IntN(2) == 0 {
				w.Cut(b, a)
			}
			w.At(until, func() { w.Heal(a, b) })
		}
	case 3:
		w.Site(a).PowerLoss()
		w.At(until, func() { w.Site(a).Restart() }) //nolint:errcheck // it is up then
	}
}

// mend ends all faults and lets held jobs go.
func mend(w *sim.World, cfg sim.Config, ids []job.ID) {
	for _, s := range cfg.Sites {
		w.Site(s.ID).Restart() //nolint:errcheck // it is up then
		for _, o := range cfg.Sites {
			if s.ID < o.ID {
				w.Heal(s.ID, o.ID)
			}
		}
	}
	for _, id := range ids {
		w.Wish(id.Origin, func(token uint64) meta.Event { return meta.Release{Token: token, Job: id} }, func(meta.Reply) {})
	}
}
