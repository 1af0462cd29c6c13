package api

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/grpc"

	"kith/internal/job"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
)

// keptChanges is how many changes a watcher may fall behind.
const keptChanges = 1 << 16

// Changes remembers which jobs changed last, in a ring of fixed size, so that
// any number of watchers costs nothing but their own reading.
type Changes struct {
	incarnation uint64

	mu   sync.Mutex
	ring []job.ID
	next uint64 // number of the next change, from 1
	wake chan struct{}
}

// NewChanges returns an empty ring. Cursors of another incarnation are too old.
func NewChanges(incarnation uint64) *Changes {
	return &Changes{incarnation: incarnation, next: 1, wake: make(chan struct{})}
}

// Add records that a job has changed.
func (c *Changes) Add(id job.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.ring) < keptChanges {
		c.ring = append(c.ring, id)
	} else {
		c.ring[(c.next-1)%keptChanges] = id
	}
	c.next++
	close(c.wake)
	c.wake = make(chan struct{})
}

// change is a job that changed, and the position behind the change.
type change struct {
	job  job.ID
	next uint64
}

// after returns the jobs that changed behind position at, each once, and the
// position behind them all, or a channel to wait on if there are none. It
// returns [ErrCursor] if they are not all remembered.
func (c *Changes) after(at uint64) (changes []change, next uint64, wake <-chan struct{}, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at >= c.next {
		return nil, c.next, c.wake, nil
	}
	if c.next-at > keptChanges {
		return nil, 0, nil, ErrCursor
	}
	seen := make(map[job.ID]bool)
	for n := at; n < c.next && len(changes) < largestPage; n++ {
		id := c.ring[(n-1)%keptChanges]
		at = n + 1
		if !seen[id] {
			seen[id] = true
			changes = append(changes, change{job: id, next: at})
		}
	}
	return changes, at, nil, nil
}

func (c *Changes) cursor(next uint64) string { return fmt.Sprintf("%d-%d", c.incarnation, next) }

func (c *Changes) parse(cursor string) (uint64, error) {
	incarnation, n, ok := strings.Cut(cursor, "-")
	i, err1 := strconv.ParseUint(incarnation, 10, 64)
	next, err2 := strconv.ParseUint(n, 10, 64)
	if !ok || err1 != nil || err2 != nil || next == 0 {
		return 0, &FieldError{Field: "cursor", Reason: "is not one that WatchJobs returned"}
	}
	if i != c.incarnation {
		return 0, fmt.Errorf("site was restarted since: %w", ErrCursor)
	}
	return next, nil
}

// WatchJobs implements kithv1.JobServiceServer.
func (s *Server) WatchJobs(r *kithv1.WatchJobsRequest, g grpc.ServerStreamingServer[kithv1.WatchJobsResponse]) error {
	wanted, err := wantedJobs(r)
	if err != nil {
		return err
	}
	_, at, _, _ := s.Changes.after(^uint64(0) >> 1)
	if r.GetCursor() != "" {
		if at, err = s.Changes.parse(r.GetCursor()); err != nil {
			return err
		}
	} else if err := s.watchPresent(wanted, at, g); err != nil {
		return err
	}
	named := len(wanted) > 0
	// A watch of named jobs ends with them. Whether all have ended is looked at
	// first, and after each end; a change that came meanwhile is sent before.
	look, ending := named, false
	for {
		changes, next, wake, err := s.Changes.after(at)
		if err != nil {
			return err
		}
		if wake != nil {
			if ending {
				return nil
			}
			if look {
				if ending, err = s.allEnded(g.Context(), wanted); err != nil {
					return err
				}
				look = false
				continue
			}
			select {
			case <-wake:
				continue
			case <-g.Context().Done():
				return g.Context().Err()
			}
		}
		at = next
		for _, ch := range changes {
			if named && !wanted[ch.job] {
				continue
			}
			ended, err := s.watchSend(ch.job, ch.next, g)
			if err != nil {
				return err
			}
			look = look || (named && ended)
		}
	}
}

// allEnded reports whether no change of any of the jobs will come.
func (s *Server) allEnded(ctx context.Context, wanted map[job.ID]bool) (all bool, err error) {
	err = s.Node.Look(ctx, func(_ job.Time, v meta.Views) {
		for id := range wanted {
			if view, err := v.JobView(id); err == nil && !view.Record.State.Terminal() {
				return
			}
		}
		all = true
	})
	return all, err
}

func wantedJobs(r *kithv1.WatchJobsRequest) (map[job.ID]bool, error) {
	if len(r.GetJobIds()) > largestPage {
		return nil, &FieldError{Field: "job_ids", Reason: fmt.Sprintf("%d of them, at most %d", len(r.GetJobIds()), largestPage)}
	}
	wanted := make(map[job.ID]bool, len(r.GetJobIds()))
	for i, text := range r.GetJobIds() {
		id, err := job.ParseID(text)
		if err != nil {
			return nil, &FieldError{Field: fmt.Sprintf("job_ids[%d]", i), Reason: err.Error(), Err: err}
		}
		wanted[id] = true
	}
	return wanted, nil
}

// watchPresent sends the jobs as they are now, the wanted ones or all that have
// not ended, and a cursor that stands for them all.
func (s *Server) watchPresent(wanted map[job.ID]bool, at uint64, g grpc.ServerStreamingServer[kithv1.WatchJobsResponse]) error {
	for id := range wanted {
		if _, err := s.view(g.Context(), id); err != nil {
			return err
		}
		if _, err := s.watchSend(id, at, g); err != nil {
			return err
		}
	}
	var after job.ID
	for more := len(wanted) == 0; more; {
		var page []meta.JobView
		err := s.Node.Look(g.Context(), func(_ job.Time, v meta.Views) {
			page, more = v.ListJobs(after, largestPage, func(j *store.Job) bool { return !j.State.Terminal() })
		})
		if err != nil {
			return err
		}
		for i := range page {
			after = page[i].Record.ID
			j := briefJob(&page[i])
			j.LeftOut = leftOutOfPresent
			if err := g.Send(&kithv1.WatchJobsResponse{Job: j, Cursor: s.Changes.cursor(at)}); err != nil {
				return err
			}
		}
	}
	return g.Send(&kithv1.WatchJobsResponse{Cursor: s.Changes.cursor(at)})
}

// watchSend sends a job as it is now, and reports whether it has ended.
func (s *Server) watchSend(id job.ID, at uint64, g grpc.ServerStreamingServer[kithv1.WatchJobsResponse]) (ended bool, err error) {
	view, err := s.view(g.Context(), id)
	if errors.Is(err, meta.ErrUnknownJob) {
		return true, nil // purged
	}
	if err != nil {
		return false, err
	}
	j := briefJob(&view)
	fullStatus(j.Status, &view, nil)
	j.LeftOut = leftOutOfWatch
	return view.Record.State.Terminal(), g.Send(&kithv1.WatchJobsResponse{Job: j, Cursor: s.Changes.cursor(at)})
}
