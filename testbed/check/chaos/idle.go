package chaos

import (
	"context"
	"fmt"
	"os"
	"time"

	"kith/internal/job"
	"kith/internal/pause"
	kithv1 "kith/proto/gen/kith/v1"
)

// idleBound is how long a site may have a free processor while a job of one
// processor waits somewhere, with all sites up and connected (L4). The daemon's bound
// is 10 s; the rest is for a machine that has much to do, and for sites that pause
// after a fault.
const idleBound = 25 * time.Second

// idleWatch looks whether work is conserved once everything is healed and no more
// jobs come.
type idleWatch struct {
	*campaign
	// since is when a site was first seen with a free processor, in a row, and while
	// which job has waited all along.
	since map[string]time.Time
	with  map[string]string
	told  map[string]bool
}

func (w *idleWatch) watch(ctx context.Context) {
	w.since, w.with, w.told = make(map[string]time.Time), make(map[string]string), make(map[string]bool)
	for pause.For(ctx, time.Second) {
		waiting := w.waiting()
		for _, s := range w.sites {
			limited, cancel := context.WithTimeout(ctx, callTimeout)
			r, err := s.Sites.GetSite(limited, &kithv1.GetSiteRequest{})
			cancel()
			w.look(s.Name, err == nil && r.GetSite().GetFreeProcessors() > 0 && !r.GetSite().GetDraining(), waiting, time.Now())
		}
	}
}

// look takes in one look at a site. waiting are the jobs that could run there.
func (w *idleWatch) look(site string, free bool, waiting map[string]bool, now time.Time) {
	if !free || len(waiting) == 0 {
		delete(w.since, site)
		return
	}
	began, ok := w.since[site]
	if !ok || !waiting[w.with[site]] {
		for id := range waiting {
			w.with[site] = id
			break
		}
		w.since[site] = now
		return
	}
	if now.Sub(began) > idleBound && !w.told[site] {
		w.told[site] = true
		w.logs.problem("work is not conserved: site %s has had free processors for %.0f s while job %s, of one processor, waits",
			site, now.Sub(began).Seconds(), w.with[site])
	}
}

// waiting are the jobs of one processor that were acknowledged and have never
// signed, nor were to be cancelled.
func (w *idleWatch) waiting() map[string]bool {
	file, err := os.Open(w.folders.ledger)
	if err != nil {
		return nil
	}
	defer file.Close() //nolint:errcheck // it was only read
	l, err := readLedger(file)
	if err != nil {
		return nil // it is told at the end
	}
	found := make(map[string]bool)
	for _, u := range w.users {
		for _, j := range u.waiting() {
			id, err := job.ParseID(j.id)
			if err == nil && j.job.GetProcessors() == 1 && j.cancel == 0 && len(l.jobs[id]) == 0 {
				found[fmt.Sprint(id)] = true
			}
		}
	}
	return found
}
