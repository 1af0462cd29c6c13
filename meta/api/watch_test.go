package api

import (
	"testing"

	"google.golang.org/grpc/codes"

	kithv1 "kith/proto/gen/kith/v1"
)

// A site without jobs gives a watcher a cursor at once, and the watch goes on
// from there.
func TestWatchOfAnEmptySiteGivesACursor(t *testing.T) {
	s, _ := serve(t)
	r := watch(t, s, &kithv1.WatchJobsRequest{}).next(t)
	if r.GetJob() != nil || r.GetCursor() == "" {
		t.Fatalf("%v", r)
	}
	id := submit(t, s, nil)
	if got := watch(t, s, &kithv1.WatchJobsRequest{Cursor: r.GetCursor()}).next(t); got.GetJob().GetId() != id {
		t.Errorf("behind the cursor: %v", got)
	}
}

// A watch of named jobs ends when all have ended: after their last state, and at
// once if that was before.
func TestWatchOfEndedJobsEnds(t *testing.T) {
	s, m := serve(t)
	one, two := submit(t, s, nil), submit(t, s, nil)
	other := submit(t, s, nil)
	w := watch(t, s, &kithv1.WatchJobsRequest{JobIds: []string{one, two}})
	states := map[string]kithv1.JobStatus_State{}
	cursor := ""
	for range 3 { // both, and the cursor
		r := w.next(t)
		states[r.GetJob().GetId()] = r.GetJob().GetStatus().GetState()
		cursor = r.GetCursor()
	}
	m.end()
	for r := w.next(t); r != nil; r = w.next(t) {
		if r.GetJob().GetId() == other {
			t.Errorf("job %s was not asked for", other)
		}
		states[r.GetJob().GetId()] = r.GetJob().GetStatus().GetState()
	}
	for _, id := range []string{one, two} {
		if states[id] != kithv1.JobStatus_STATE_COMPLETED {
			t.Errorf("the last of %s was %v", id, states[id])
		}
	}
	again := watch(t, s, &kithv1.WatchJobsRequest{JobIds: []string{one}})
	n := 0
	for r := again.next(t); r != nil; r = again.next(t) {
		n++
	}
	if n != 2 { // its state, and the cursor
		t.Errorf("%d responses about a job that had ended", n)
	}
	// A watcher that comes back with a cursor gets what is behind it first.
	back, last := watch(t, s, &kithv1.WatchJobsRequest{JobIds: []string{one}, Cursor: cursor}), kithv1.JobStatus_STATE_UNSPECIFIED
	for r := back.next(t); r != nil; r = back.next(t) {
		last = r.GetJob().GetStatus().GetState()
	}
	if last != kithv1.JobStatus_STATE_COMPLETED {
		t.Errorf("behind the cursor: %v", last)
	}
	gone := watch(t, s, &kithv1.WatchJobsRequest{JobIds: []string{"alpha.1.99"}})
	if w := onWire(t, <-gone.err); w.code != codes.NotFound {
		t.Errorf("a job that does not exist: %+v", w)
	}
}
