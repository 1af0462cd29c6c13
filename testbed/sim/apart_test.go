package sim

import (
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/sitesched"
)

// Sites that are apart have no stream and hear nothing of each other, whatever is cut, broken
// and healed.
func TestApart(t *testing.T) {
	cfg := Config{Seed: 1, Network: NetworkConfig{Apart: func(a, b job.SiteID) bool { return a != "a" && b != "a" }}}
	cfg.Disk.Keep = true
	for _, name := range []job.SiteID{"a", "b", "c"} {
		cfg.Sites = append(cfg.Sites, SiteConfig{ID: name, Meta: meta.Default(), Scheduler: sitesched.Config{Processors: 1, Backfill: sitesched.EASY}})
	}
	heard := make(map[[2]job.SiteID]bool)
	cfg.Tap = func(from, to job.SiteID, _ meta.Message) { heard[[2]job.SiteID{from, to}] = true }
	w, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w.Partition("b")
	w.Break("b", "c")
	w.SetLink("b", "c", nil)
	w.Site("c").Crash()
	if err := w.Site("c").Restart(); err != nil {
		t.Fatal(err)
	}
	w.HealAll()
	w.Heal("b", "c")
	if err := w.Run(Start.Add(10 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	if heard[[2]job.SiteID{"b", "c"}] || heard[[2]job.SiteID{"c", "b"}] || !heard[[2]job.SiteID{"a", "b"}] || !heard[[2]job.SiteID{"c", "a"}] {
		t.Errorf("%v", heard)
	}
}
