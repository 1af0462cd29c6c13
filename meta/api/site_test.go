package api

import (
	"context"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/policy"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/sitesched"
	"kith/store"
	"kith/store/memstore"
)

// memorySite is a site in memory behind the services: what is asked of it is
// durable at once, and jobs run until the test ends them.
type memorySite struct {
	*memstore.Store
	mu       sync.Mutex
	now      job.Time
	state    *store.State
	engine   *meta.Engine
	changes  *Changes
	launched []job.AttemptID
}

// serve returns a server of a site with two processors.
func serve(t testing.TB) (*Server, *memorySite) {
	t.Helper()
	s := testServer()
	m := &memorySite{now: job.Instant(time.Unix(1_800_000_000, 0)), changes: NewChanges(7)}
	var err error
	if m.Store, err = memstore.Open(&memstore.Disk{}, "alpha", 1); err != nil {
		t.Fatal(err)
	}
	if m.state, err = m.Load(); err != nil {
		t.Fatal(err)
	}
	sc := sitesched.Config{Processors: 2, Backfill: sitesched.EASY, Queues: sitesched.Single}
	sched, err := sitesched.New(sc)
	if err != nil {
		t.Fatal(err)
	}
	c := meta.Default()
	c.Self.Processors, c.BootID, c.Policies = 2, "boot", policy.New()
	if m.engine, err = meta.New(c, m.state, sched); err != nil {
		t.Fatal(err)
	}
	m.settle(m.engine.Restore(m.now, nil))
	s.Node, s.Changes, s.User = m, m.changes, "ada"
	return s, m
}

// settle makes durable what was decided and carries it out; it returns the reply.
func (m *memorySite) settle(effects []meta.Effect) (reply meta.Reply) {
	all := append([]meta.Effect(nil), effects...)
	all = append(all, m.engine.Step(m.now, meta.Pass{})...)
	if err := m.Seal(m.state).Commit(); err != nil {
		panic(err)
	}
	for _, f := range all {
		switch f := f.(type) {
		case meta.Reply:
			reply = f
		case meta.Changed:
			m.changes.Add(f.Job)
		case meta.Launch:
			m.launched = append(m.launched, f.Attempt)
		}
	}
	return reply
}

func (m *memorySite) Ask(_ context.Context, event func(uint64) meta.Event) (meta.Reply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = m.now.Add(time.Second)
	r := m.settle(m.engine.Step(m.now, event(1)))
	return r, r.Err
}

func (m *memorySite) Look(_ context.Context, look func(job.Time, meta.Views)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	look(m.now, m.engine.Views())
	return nil
}

func (m *memorySite) Glance(ctx context.Context, look func(job.Time, meta.Views)) error {
	return m.Look(ctx, look)
}

func (m *memorySite) Describe() Description { return Description{} }

func (m *memorySite) Plan() (sitesched.Config, bool) { return sitesched.Config{Processors: 4}, true }

func (m *memorySite) Salt() ([]byte, error) { return []byte("sixteen bytes of"), nil }

// end ends whatever runs.
func (m *memorySite) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	running := m.launched
	m.launched = nil
	for _, a := range running {
		start := m.now
		m.now = m.now.Add(time.Second)
		m.settle(m.engine.Step(m.now, meta.AttemptStarted{Attempt: a, At: start}))
		m.settle(m.engine.Step(m.now, meta.AttemptEnded{Attempt: a, Outcome: job.Outcome{Kind: job.Success, Start: start, End: m.now}}))
	}
}

func submit(t *testing.T, s *Server, tune func(*kithv1.Job)) string {
	t.Helper()
	j := &kithv1.Job{Command: []string{"/bin/true", "x"}, Processors: 1, Walltime: durationpb.New(time.Minute)}
	if tune != nil {
		tune(j)
	}
	r, err := s.SubmitJob(t.Context(), &kithv1.SubmitJobRequest{Job: j})
	if err != nil {
		t.Fatal(err)
	}
	return r.GetJobId()
}

// watching is a stream of WatchJobs.
type watching struct {
	grpc.ServerStream
	ctx  context.Context
	sent chan *kithv1.WatchJobsResponse
	err  chan error
}

func (w *watching) Context() context.Context { return w.ctx }

func (w *watching) Send(r *kithv1.WatchJobsResponse) error {
	select {
	case w.sent <- r:
		return nil
	case <-w.ctx.Done():
		return w.ctx.Err()
	}
}

func watch(t *testing.T, s *Server, r *kithv1.WatchJobsRequest) *watching {
	t.Helper()
	w := &watching{ctx: t.Context(), sent: make(chan *kithv1.WatchJobsResponse, 100), err: make(chan error, 1)}
	go func() { w.err <- s.WatchJobs(r, w) }()
	return w
}

// next returns the next response, nil when the watch ended without an error.
func (w *watching) next(t *testing.T) *kithv1.WatchJobsResponse {
	t.Helper()
	select {
	case r := <-w.sent:
		return r
	case err := <-w.err:
		select {
		case r := <-w.sent: // sent before it ended
			w.err <- err
			return r
		default:
		}
		if err != nil {
			t.Fatalf("the watch ended: %v", err)
		}
		return nil
	case <-time.After(time.Minute):
		t.Fatal("nothing comes")
		return nil
	}
}
