package api

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"

	"kith/internal/job"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
)

// WatchJobs implements kithv1.JobServiceServer.
func (s *Server) WatchJobs(r *kithv1.WatchJobsRequest, g grpc.ServerStreamingServer[kithv1.WatchJobsResponse]) error {
	wanted, err := wantedJobs(r)
	if err != nil {
		return err
	}
	w, at, err := s.Changes.follow(wanted, r.GetCursor())
	if err != nil {
		return err
	}
	defer w.close()
	if r.GetCursor() == "" {
		if err := s.watchPresent(wanted, at, g); err != nil {
			return err
		}
	}
	named := len(wanted) > 0
	// A watch of named jobs ends with them. Whether all have ended is looked at
	// first, and after each end; a change that came meanwhile is sent before.
	look, ending := named, false
	for {
		changes, err := w.next()
		if err != nil {
			return err
		}
		for _, ch := range changes {
			ended, err := s.watchSend(ch.job, ch.next, g)
			if err != nil {
				return err
			}
			look = look || (named && ended)
		}
		switch {
		case len(changes) > 0:
		case ending:
			return nil
		case look:
			if ending, err = s.allEnded(g.Context(), wanted); err != nil {
				return err
			}
			look = false
		default:
			select {
			case <-w.wake:
			case <-g.Context().Done():
				return g.Context().Err()
			}
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
	list := meta.JobList{More: len(wanted) == 0}
	for list.More {
		err := s.Node.Look(g.Context(), func(_ job.Time, v meta.Views) {
			list = v.ListJobs(meta.JobQuery{
				After: list.Through, Limit: lookedAtOnce, Look: lookedAtOnce, Keep: func(*store.Job) bool { return true },
			})
		})
		if err != nil {
			return err
		}
		for i := range list.Jobs {
			j := briefJob(&list.Jobs[i])
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
