package sim

import (
	"testing"
	"time"

	"kith/cluster"
	"kith/internal/job"
	"kith/meta"
	"kith/meta/bags"
	"kith/sitesched"
)

// An outsider is offered tasks, asks for one, and ends it: the bag is done without any
// process in the world.
func TestOutside(t *testing.T) {
	request := job.Request{Name: "outside", User: "u", Processors: 2, Walltime: time.Hour, OnSiteLost: job.Race}
	var w *World
	words := ""
	cfg := Config{Outside: func(from, to job.SiteID, m meta.Message) {
		if from != "home" || to != "away" {
			t.Errorf("%s tells %s", from, to)
		}
		words += m.Word() + " "
		switch m := m.(type) {
		case meta.Offer:
			if m.Tasks > 0 {
				w.Hear("home", "away", meta.TaskClaim{Stamp: 7, Sent: w.Now(), Ask: bags.Ask{Shape: m.Shape, Places: 1, Want: 1}})
			}
		case meta.TaskVerdict:
			w.At(w.Now().Add(time.Minute), func() {
				w.Hear("home", "away", meta.TaskResults{Bundle: m.Bundles[0].Bundle, Batch: 1, Results: []job.TaskResult{{Kind: job.Success, Start: 1, Run: time.Minute}}})
			})
		}
	}}
	mc := meta.Default()
	mc.Timing.Load = 1000 * time.Hour
	cfg.Sites = []SiteConfig{{ID: "home", Meta: mc, Scheduler: sitesched.Config{Processors: 1, Backfill: sitesched.EASY, Queues: sitesched.DualBackfill}}}
	w, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w.Meet("home", meta.PeerUp{Site: "away", Generation: 1, Incarnation: 1})
	w.Hear("home", "away", meta.LoadDigest{Digest: cluster.Digest{Site: "away", Incarnation: 1, Sequence: 1, Processors: 2, Speed: 1, Load: job.Load{Free: 2}}})
	var bag job.ID
	w.SubmitBag(Start.Add(time.Second), "home", BagSubmission{Request: request, Indices: job.FirstIndices(1), Done: func(id job.ID, err error) {
		if bag = id; err != nil {
			t.Error(err)
		}
	}})
	if err := w.Run(Start.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if b := w.Site("home").State().Bag(bag); b == nil || !b.Done.Has(0) || b.State != job.BagCompleted {
		t.Errorf("the bag is %+v; the outsider heard %s", b, words)
	}
}

// The watch knows no site outside, and says so.
func TestOutsideIsNotWatched(t *testing.T) {
	if _, err := New(Config{Check: true, Outside: func(job.SiteID, job.SiteID, meta.Message) {}}); err == nil {
		t.Error("a world with sites outside is watched")
	}
}
