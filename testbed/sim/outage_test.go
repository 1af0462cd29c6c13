package sim

import (
	"fmt"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/bags"
	"kith/sitesched"
)

// Hosts that reach their origin again after an hour ask at most twice as often as they do
// usually where they ask often, as each stock has one ask under way (spec 002, acceptance 10).
// Where tasks take long they ask seldom; then each asks twice at most. None of it hangs on how
// many hosts there are.
func TestHostsAfterAnOutage(t *testing.T) {
	t.Parallel()
	const hosts = 1000
	for _, run := range []time.Duration{time.Second, 10 * time.Minute} {
		cfg := Config{Seed: 10, Network: NetworkConfig{LinkConfig: LinkConfig{Latency: 10 * time.Millisecond}}}
		cfg.Network.Apart = func(a, b job.SiteID) bool { return a != "origin" && b != "origin" && a != b } // hosts know the origin alone
		names := []job.SiteID{"origin"}
		for i := range hosts {
			names = append(names, job.SiteID(fmt.Sprint("h", i)))
		}
		for _, name := range names {
			m := meta.Default()
			m.Timing.Load, m.Timing.AntiEntropy = 10*time.Minute, 2*time.Hour
			sc := SiteConfig{ID: name, Meta: m, Scheduler: sitesched.Config{Processors: 1, Backfill: sitesched.EASY}}
			cfg.Sites = append(cfg.Sites, sc)
		}
		var w *World
		asks := make(map[int64]int)
		cfg.Tap = func(_, to job.SiteID, m meta.Message) {
			if c, ok := m.(meta.TaskClaim); ok && to == "origin" && c.Ask.Shape != (bags.Shape{}) {
				asks[int64(w.Now().Sub(Start)/time.Second)]++
			}
		}
		var err error
		w, err = New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		w.SubmitBag(Start, "origin", BagSubmission{
			Request: job.Request{Name: "bag", User: "ada", Processors: 1, Walltime: time.Hour, OnSiteLost: job.Rerun}, Indices: job.FirstIndices(10_000_000), RequestID: "bag",
			RunTime: func(uint32) time.Duration { return run },
		})
		until := func(d time.Duration) {
			if err := w.Run(Start.Add(d)); err != nil {
				t.Fatal(err)
			}
		}
		most := func(from, to time.Duration) (n int) {
			for s := int64(from / time.Second); s < int64(to/time.Second); s++ {
				n = max(n, asks[s])
			}
			return n
		}
		warm := 20 * time.Second
		until(warm + 20*time.Second)
		w.Partition("origin")
		back := warm + 20*time.Second + time.Hour
		until(back)
		w.HealAll()
		until(back + time.Minute)
		usual, after, all := most(warm, warm+20*time.Second), most(back, back+time.Minute), 0
		for s := range 60 {
			all += asks[int64(back/time.Second)+int64(s)]
		}
		often := run < time.Minute
		if after == 0 || often && after > 2*usual || !often && all > 2*hosts {
			t.Errorf("tasks of %v: at most %d asks a second before the outage, %d after it, %d in the first minute", run, usual, after, all)
		}
		t.Logf("tasks of %v: at most %d asks a second before, %d after; %d in the first minute", run, usual, after, all)
	}
}
