package main

import (
	"fmt"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/sitesched"
	"kith/testbed/check/mutants"
	"kith/testbed/sim"
)

// The world of a black hole: among so many good sites of two processors one at which
// everything fails in a second, and a bag of so many tasks of a minute.
const (
	goodSites  = 10
	holeTasks  = 600
	holeSpoils = 20 + holeTasks/100 // at most: what it may, and a hundredth of the tasks
)

// blackHole looks whether a site that spoils all its tasks is kept from them.
func blackHole() (*mutants.Find, error) {
	cfg := sim.Config{Seed: 1}
	cfg.Network.LinkConfig = sim.LinkConfig{Latency: 10 * time.Millisecond}
	for i := range goodSites + 1 {
		cfg.Sites = append(cfg.Sites, sim.SiteConfig{
			ID: job.SiteID(fmt.Sprint("s", i)), Meta: meta.Default(),
			Scheduler: sitesched.Config{Processors: 2, Backfill: sitesched.EASY, Queues: sitesched.DualBackfill, Scope: sitesched.ScopeAll},
		})
	}
	w, err := sim.New(cfg)
	if err != nil {
		return nil, err
	}
	spoilt, bad := 0, cfg.Sites[goodSites].ID
	w.SubmitBag(sim.Start, "s0", sim.BagSubmission{
		Request: job.Request{Name: "bag", User: "ada", Processors: 1, Walltime: time.Hour}, Indices: job.FirstIndices(holeTasks), RequestID: "bag", Retries: 20,
		RunTime: func(uint32) time.Duration { return time.Minute },
		At: func(site job.SiteID, _ uint32) (time.Duration, bool, bool) {
			if site == bad {
				spoilt++
			}
			return time.Second, true, site == bad
		},
	})
	if err := w.Run(sim.Start.Add(time.Hour)); err != nil {
		return nil, err
	}
	find := &mutants.Find{}
	if spoilt > holeSpoils {
		find.Violation = fmt.Sprintf("black hole: it got %d tasks of %d", spoilt, holeTasks)
	}
	return find, nil
}
