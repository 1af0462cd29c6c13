package meta

import (
	"slices"

	"kith/internal/job"
	"kith/store"
)

// JobQuery says which jobs a list is to have, and how much it may cost.
type JobQuery struct {
	// After is the id behind which the list begins; zero for the first.
	After job.ID
	// Limit is how many jobs the list may have, Look how many records may be looked
	// at for them. Both are at least 1.
	Limit, Look int
	// Ended asks for jobs that have ended, too. Without it they are not looked at.
	Ended bool
	// Keep says which of the jobs that are looked at the list has.
	Keep func(*store.Job) bool
}

// JobList is the answer to a [JobQuery].
type JobList struct {
	// Jobs are in the order of ids, without claim events, copies and decisions.
	Jobs []JobView
	// Looked is how many records were looked at, Through the id of the last of them.
	Looked  int
	Through job.ID
	// More says that there are records behind Through.
	More bool
}

// ListJobs looks through the jobs submitted here.
func (v Views) ListJobs(q JobQuery) JobList {
	list := JobList{Through: q.After}
	records, most := v.origin.st.OpenJobs, v.origin.open.Len()
	if q.Ended {
		records, most = v.origin.st.Jobs, v.origin.st.JobCount()
	}
	for j := range records(q.After) {
		if list.Looked == q.Look || len(list.Jobs) == q.Limit {
			list.More = true
			return list
		}
		list.Looked++
		list.Through = j.ID
		if q.Keep(j) {
			if list.Jobs == nil { // while it grows, the site waits
				list.Jobs = make([]JobView, 0, min(q.Limit, q.Look, most))
			}
			list.Jobs = append(list.Jobs, v.brief(j))
		}
	}
	return list
}

// HostedCopy is a copy that this site holds for another origin.
type HostedCopy struct {
	Attempt job.AttemptID
	Request job.Request
	// State is "queued", "claiming", "staging", "running" or "ended".
	State string
}

// HostedCopies returns up to limit copies behind after (the zero attempt: all) that
// this site holds for other origins, in the order of attempts, and whether there are
// more. It looks once at every copy, of which a site has a bounded number.
func (v Views) HostedCopies(after job.AttemptID, limit int) (list []HostedCopy, more bool) {
	var found []*hostCopy
	first := func() {
		slices.SortFunc(found, func(a, b *hostCopy) int { return a.rec.ID.Compare(b.rec.ID) })
		if len(found) > limit {
			found, more = found[:limit], true
		}
	}
	for c := range v.host.copies.All {
		if c.rec.ID.Job.Origin == v.host.self || c.rec.ID.Compare(after) <= 0 {
			continue
		}
		if found = append(found, c); len(found) > 2*limit {
			first() // what is left costs no more than a page
		}
	}
	first()
	list = make([]HostedCopy, len(found))
	for i, c := range found {
		list[i] = HostedCopy{Attempt: c.rec.ID, Request: *c.rec.Request, State: c.word()}
	}
	return list, more
}
