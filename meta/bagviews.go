package meta

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"kith/internal/job"
	"kith/store"
)

// BagView is what is known of a bag submitted here.
type BagView struct {
	// Record is without the sets of tasks, their tries and the bundles.
	Record store.Bag
	// After is what it waits for, or waited for.
	After []job.Dependency
	// Waiting, AtSites, Done, Failed and Cancelled are how many tasks are where; of those at
	// sites, Stopping are to be ended.
	Waiting, AtSites, Done, Failed, Cancelled, Stopping int
	// Missed are runs that sites did not end by their deadline since this engine began.
	Missed int
	// Sites are those that have tasks now, by name.
	Sites []SiteTasks
	// Run and Queue are the limits of the level that it is at, 0 if no site of it is in reach, and
	// for a bag that has ended or is of no hierarchy.
	Run, Queue time.Duration
}

// SiteTasks is how many tasks of a bag a site has.
type SiteTasks struct {
	Site  job.SiteID
	Tasks int
}

// BagView returns what is known of a bag submitted here, or an error that wraps
// [ErrUnknownBag] or [ErrForeignJob].
func (v Views) BagView(id job.ID) (BagView, error) {
	b, err := v.bag(id)
	if err != nil {
		return BagView{}, err
	}
	view := v.viewOf(b)
	at := make(map[job.SiteID]int)
	for _, t := range b.Live {
		if !t.Late {
			at[t.Site] += t.Tasks.Count()
		}
	}
	for _, site := range slices.Sorted(maps.Keys(at)) {
		view.Sites = append(view.Sites, SiteTasks{site, at[site]})
	}
	return view, nil
}

// Submitted returns the job or bag that was submitted under a request id, the zero id for
// none. The error wraps [ErrRequestReused] if it is not of the kind that is meant, or the body
// of the request was another one.
func (v Views) Submitted(requestID string, bodyHash [32]byte, bag bool) (job.ID, error) {
	return v.origin.submitted(requestID, bodyHash, bag)
}

func (v Views) bag(id job.ID) (*store.Bag, error) {
	switch b := v.origin.st.Bag(id); {
	case b != nil:
		return b, nil
	case id.Origin != v.origin.self:
		return nil, fmt.Errorf("bag %v: %w, %s", id, ErrForeignJob, id.Origin)
	}
	return nil, fmt.Errorf("bag %v: %w", id, ErrUnknownBag)
}

// viewOf is what costs next to nothing to tell of a bag: all but where its tasks are.
func (v Views) viewOf(b *store.Bag) BagView {
	view := BagView{
		Record: *b, After: v.origin.st.After(b.ID), Waiting: b.Waiting(), AtSites: b.Given(),
		Done: b.Done.Count(), Failed: b.Failed.Count(), Cancelled: b.Cancelled.Count(), Stopping: b.Stopping.Count(),
	}
	if o := v.origin.bags.byID[b.ID]; o != nil {
		view.Missed, view.Run, view.Queue = o.missed, o.level.run, o.level.queue
	}
	r := &view.Record
	for _, set := range []*job.TaskSet{&r.Again, &r.Done, &r.Failed, &r.Cancelled, &r.Stopping} {
		set.Clear() // they are the bag's
	}
	r.Tries, r.Live = nil, nil
	r.Demotions = slices.Clone(r.Demotions)
	r.Sums.Sites = slices.Clone(r.Sums.Sites)
	r.Sums.Failures = slices.Clone(r.Sums.Failures)
	for i := range r.Sums.Failures {
		r.Sums.Failures[i].Tasks = slices.Clone(r.Sums.Failures[i].Tasks)
	}
	return view
}

// BagQuery says which bags a list is to have, and how much it may cost.
type BagQuery struct {
	// After is the id behind which the list begins; zero for the first.
	After job.ID
	// Limit is how many bags the list may have, at least 1.
	Limit int
	// Keep says which bags the list has.
	Keep func(*store.Bag) bool
}

// BagList is the answer to a [BagQuery].
type BagList struct {
	// Bags are in the order of ids, without their sites.
	Bags []BagView
	// More says that there may be others behind the last one.
	More bool
}

// ListBags looks through the bags submitted here.
func (v Views) ListBags(q BagQuery) BagList {
	var list BagList
	for b := range v.origin.st.Bags {
		switch {
		case b.ID.Compare(q.After) <= 0 || !q.Keep(b):
		case len(list.Bags) == q.Limit:
			list.More = true
			return list
		default:
			list.Bags = append(list.Bags, v.viewOf(b))
		}
	}
	return list
}

// FailedTasks returns the tasks of a bag that failed, by ordinals. The errors are those of
// [Views.BagView].
func (v Views) FailedTasks(id job.ID) (job.TaskSet, error) {
	b, err := v.bag(id)
	if err != nil {
		return job.TaskSet{}, err
	}
	return b.Failed.Clone(), nil
}
