package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kithv1 "kith/proto/gen/kith/v1"
)

// watch calls see with each of the jobs, now and whenever it changes, until
// see has returned true for each of them. Once the site has answered, watch
// outlasts its absence: it connects again and begins anew, because the
// present state of every job then says all that was missed.
func (c *client) watch(ctx context.Context, s *site, jobs []string, see func(*kithv1.WatchJobsResponse) (done bool, err error)) error {
	left := slices.Clone(jobs)
	reached := false
	p := pause{}
	for {
		err := c.watchOnce(ctx, s, slices.Clone(left), func(r *kithv1.WatchJobsResponse) (bool, error) {
			reached, p = true, pause{}
			id := r.GetJob().GetId()
			if !slices.Contains(left, id) {
				return len(left) == 0, nil
			}
			done, err := see(r)
			if done {
				left = slices.DeleteFunc(left, func(l string) bool { return l == id })
			}
			return len(left) == 0, err
		})
		if err == nil || !reached || !passes(err) || ctx.Err() != nil || !c.again(ctx, &p, err) {
			return c.overtime(ctx, reached, err, left...)
		}
	}
}

// watchOnce watches until see returns true or the stream breaks.
func (c *client) watchOnce(ctx context.Context, s *site, jobs []string, see func(*kithv1.WatchJobsResponse) (bool, error)) error {
	ctx, heard, stop := c.deadline(ctx)
	defer stop()
	stream, err := s.jobs.WatchJobs(ctx, &kithv1.WatchJobsRequest{JobIds: jobs})
	for err == nil {
		var r *kithv1.WatchJobsResponse
		if r, err = stream.Recv(); err != nil {
			break
		}
		heard(0) // from now on silence only means that nothing happens
		done, seeErr := see(r)
		if done || seeErr != nil {
			return seeErr
		}
	}
	return silence(ctx, err)
}

// again waits before the next try to reach a site that answered before, and
// tells the user the first time. It returns false when ctx ends.
func (c *client) again(ctx context.Context, p *pause, err error) bool {
	if p.tries == 0 {
		text := "lost the connection to site " + c.address
		if reason(err) != "" {
			text = c.explain(err).Error()
		}
		c.Note("%s; trying again", text)
	}
	return p.wait(ctx, retryAfter(err))
}

// passes reports whether an error of a stream is of the kind that passes.
func passes(err error) bool {
	if errors.Is(err, io.EOF) || errors.Is(err, errSilent) {
		return true
	}
	switch status.Code(err) {
	case codes.Unavailable, codes.OutOfRange:
		return true
	}
	return false
}

// errSilent is the cause of a context that ended because a site said nothing
// for --timeout.
var errSilent = errors.New("site is silent")

// deadline returns a context that ends when the site is silent for --timeout.
// heard is to be called with how long it may be silent from now on, 0 for any
// time.
func (c *client) deadline(ctx context.Context) (_ context.Context, heard func(time.Duration), stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(c.timeout, func() { cancel(errSilent) })
	heard = func(d time.Duration) {
		if timer.Stop() && d > 0 {
			timer.Reset(d)
		}
	}
	return ctx, heard, func() {
		timer.Stop()
		cancel(nil)
	}
}

// silence returns errSilent instead of err if that is why ctx ended.
func silence(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errSilent) {
		return errSilent
	}
	return err
}
