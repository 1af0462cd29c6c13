package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kith/internal/pause"
	kithv1 "kith/proto/gen/kith/v1"
)

// user submits the jobs of one origin, patiently: what is not answered is
// asked again, under the same name.
type user struct {
	site  *site
	maker *maker
	logs  *logs
	// picky says that the site may refuse some: it may be of an earlier version, or
	// all sites may be too small for a while.
	picky bool
	// open bounds the jobs that have not ended, so that a run can come to its end.
	open chan struct{}

	asking sync.WaitGroup

	mu   sync.Mutex
	jobs []*submitted
}

// submitted is a job with what its submitter knows of it.
type submitted struct {
	*task
	id      string // once it is acknowledged
	refused bool
	ended   *kithv1.Job // as first seen at its end
	lost    string      // why the origin does not know it
}

// Bounds of a user.
const (
	maxOpen     = 32
	callTimeout = 4 * time.Second
	retryPause  = 250 * time.Millisecond
	pollPause   = 500 * time.Millisecond
)

func newUser(s *site, m *maker, l *logs, picky bool) *user {
	return &user{site: s, maker: m, logs: l, picky: picky, open: make(chan struct{}, maxOpen)}
}

// submit submits jobs at a pace until working is done. What was begun goes on
// until all is done.
func (u *user) submit(working, all context.Context, perSecond float64) {
	for {
		gap := time.Duration(min(u.maker.rng.ExpFloat64(), 5) / perSecond * float64(time.Second))
		if !pause.For(working, gap) {
			return
		}
		select {
		case u.open <- struct{}{}:
		case <-working.Done():
			return
		}
		u.begin(all, u.maker.next())
	}
}

// add submits one more job, once as few are open as may be.
func (u *user) add(all context.Context, t *task) {
	select {
	case u.open <- struct{}{}:
		u.begin(all, t)
	case <-all.Done():
	}
}

// begin brings a job to its site, one that counts as open already.
func (u *user) begin(all context.Context, t *task) {
	j := &submitted{task: t}
	u.mu.Lock()
	u.jobs = append(u.jobs, j)
	u.mu.Unlock()
	u.asking.Go(func() { u.see(all, j) })
}

// see brings a job to its site and does with it what the task says.
func (u *user) see(ctx context.Context, j *submitted) {
	id, err := u.ask(ctx, j.task)
	u.mu.Lock()
	j.id, j.refused = id, err != nil && ctx.Err() == nil
	u.mu.Unlock()
	if err != nil {
		<-u.open
		if ctx.Err() == nil && !u.picky {
			u.logs.problem("job %s refused by %s: %v", j.request, u.site.Name, err)
		}
		return
	}
	select {
	case u.site.acked <- struct{}{}:
	default:
	}
	if j.again {
		pause.For(ctx, time.Duration(rand.N(3000))*time.Millisecond)
		if twice, err := u.ask(ctx, j.task); err == nil && twice != id {
			u.logs.problem("job %s: repeated, its submission is job %s, before it was %s", j.request, twice, id)
			u.mu.Lock()
			j.lost = "another job came of its repeated submission"
			u.mu.Unlock()
		}
	}
	if j.counts != nil {
		u.asking.Go(func() { u.demote(ctx, j) })
	}
	if j.cancel > 0 && pause.For(ctx, j.cancel) {
		u.cancel(ctx, id)
	}
}

// ask submits a job until it is acknowledged or refused for good.
func (u *user) ask(ctx context.Context, t *task) (id string, err error) {
	err = retry(ctx, func(ctx context.Context) error {
		r, err := u.site.Jobs.SubmitJob(ctx, &kithv1.SubmitJobRequest{RequestId: t.request, Job: t.job})
		id = r.GetJobId()
		return err
	})
	return id, err
}

func (u *user) cancel(ctx context.Context, id string) {
	err := retry(ctx, func(ctx context.Context) error {
		_, err := u.site.Jobs.CancelJob(ctx, &kithv1.CancelJobRequest{JobId: id})
		return err
	})
	if err != nil && ctx.Err() == nil && status.Code(err) != codes.FailedPrecondition {
		u.logs.problem("cancel %s: %v", id, err)
	}
}

// retry calls until there is an answer that another try would not change.
func retry(ctx context.Context, call func(context.Context) error) error {
	for {
		one, cancel := context.WithTimeout(ctx, callTimeout)
		err := call(one)
		cancel()
		switch status.Code(err) {
		case codes.Unavailable, codes.DeadlineExceeded, codes.ResourceExhausted, codes.Canceled, codes.Aborted:
			if !pause.For(ctx, retryPause) {
				return ctx.Err()
			}
		default:
			return err
		}
	}
}

// follow notes how jobs end until ctx is done.
func (u *user) follow(ctx context.Context) {
	for pause.For(ctx, pollPause) {
		waiting := u.waiting()
		if len(waiting) == 0 {
			continue
		}
		open, err := u.openJobs(ctx)
		if err != nil {
			continue
		}
		for _, j := range waiting {
			if !open[j.id] {
				u.note(ctx, j)
			}
		}
	}
}

// waiting are the acknowledged jobs that were not seen to end.
func (u *user) waiting() []*submitted {
	u.mu.Lock()
	defer u.mu.Unlock()
	var list []*submitted
	for _, j := range u.jobs {
		if j.id != "" && j.ended == nil && j.lost == "" {
			list = append(list, j)
		}
	}
	return list
}

// unsettled counts jobs that were neither refused nor seen to end.
func (u *user) unsettled() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := 0
	for _, j := range u.jobs {
		if !j.refused && j.ended == nil && j.lost == "" {
			n++
		}
	}
	return n
}

// openJobs are the jobs that have not ended as their origin says.
func (u *user) openJobs(ctx context.Context) (map[string]bool, error) {
	jobs, _, err := listJobs(ctx, u.site, false)
	open := make(map[string]bool, len(jobs))
	for _, j := range jobs {
		open[j.GetId()] = true
	}
	return open, err
}

// listJobs returns all jobs of a site that have not ended, and the copies it
// holds of others'; with all, also the jobs that have ended.
func listJobs(ctx context.Context, s *site, all bool) ([]*kithv1.Job, []*kithv1.HostedCopy, error) {
	var jobs []*kithv1.Job
	var copies []*kithv1.HostedCopy
	for token := ""; ; {
		one, cancel := context.WithTimeout(ctx, callTimeout)
		r, err := s.Jobs.ListJobs(one, &kithv1.ListJobsRequest{PageSize: 1000, PageToken: token, IncludeRemote: true, AllStates: all})
		cancel()
		if err != nil {
			return nil, nil, fmt.Errorf("list jobs of %s: %w", s.Name, err)
		}
		jobs, copies = append(jobs, r.GetJobs()...), append(copies, r.GetRemoteCopies()...)
		if token = r.GetNextPageToken(); token == "" {
			return jobs, copies, nil
		}
	}
}

// note looks at a job that its origin no longer counts among the open ones.
func (u *user) note(ctx context.Context, j *submitted) {
	got, err := getJob(ctx, u.site, j.id)
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case status.Code(err) == codes.NotFound:
		j.lost = "its origin does not know it"
	case err != nil || !ended(got):
		return
	default:
		j.ended = got
	}
	<-u.open
}

func getJob(ctx context.Context, s *site, id string) (*kithv1.Job, error) {
	one, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	r, err := s.Jobs.GetJob(one, &kithv1.GetJobRequest{JobId: id})
	return r.GetJob(), err
}

func ended(j *kithv1.Job) bool { return j.GetStatus().GetState() >= kithv1.JobStatus_STATE_COMPLETED }

// all returns the jobs so far.
func (u *user) all() []*submitted {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]*submitted(nil), u.jobs...)
}
