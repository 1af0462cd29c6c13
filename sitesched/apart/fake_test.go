package apart

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"kith/internal/clock"
	"kith/internal/job"
	"kith/meta"
	"kith/meta/transfer"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/sitesched/runner"
	"kith/sitesched/work"
)

// fakeMachine is what a machine keeps when its daemon is restarted: what runs, and what was told of it.
type fakeMachine struct {
	t    *testing.T
	dir  string
	boot string
	// lost is the longest lease that it gives, 0 for no bound.
	lost time.Duration
	// ending is how long an attempt takes to end that is stopped.
	ending time.Duration
	// full says that its disk is; emptied are the attempts whose folders were emptied since.
	full    atomic.Bool
	emptied map[job.AttemptID]bool
	// peers are the other sites, as leaders reach them.
	peers runner.Peers
	// runs is what the tasks of bags run, nil for one job.
	runs []byte

	mu     sync.Mutex
	disk   map[job.AttemptID]bool // that it was started; forgotten with its folder
	starts map[job.AttemptID]int
	ends   map[job.AttemptID]job.Outcome
	leases map[job.AttemptID]time.Duration
	now    *fakeSystem // of the daemon that lives

	server *grpc.Server
	worker *Worker
	addr   string
}

// fakeSystem is the system of one daemon.
type fakeSystem struct {
	m      *fakeMachine
	report func(work.Event)
	mine   map[job.AttemptID]bool // was started or adopted by this daemon
}

func newFakeMachine(t *testing.T) *fakeMachine {
	m := &fakeMachine{
		t: t, dir: t.TempDir(), boot: "boot-1", disk: make(map[job.AttemptID]bool), starts: make(map[job.AttemptID]int), emptied: make(map[job.AttemptID]bool), ends: make(map[job.AttemptID]job.Outcome), leases: make(map[job.AttemptID]time.Duration),
	}
	m.open()
	t.Cleanup(func() { m.close() })
	return m
}

// open starts the daemon of the machine.
func (m *fakeMachine) open() {
	m.t.Helper()
	var err error
	m.worker, err = OpenWorker(WorkerConfig{
		Site: "alpha", Machine: "m", Cluster: [16]byte{1}, Folder: filepath.Join(m.dir, "processors"), Processors: 4, Lost: m.lost, Log: slog.New(slog.DiscardHandler),
		low: func(bool) error {
			if m.full.Load() {
				return syscall.ENOSPC
			}
			return nil
		},
		System: func(report func(work.Event)) (work.System, error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.now = &fakeSystem{m: m, report: report, mine: make(map[job.AttemptID]bool)}
			return m.now, nil
		},
	})
	if err != nil {
		m.t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		m.t.Fatal(err)
	}
	m.server = grpc.NewServer()
	kithv1.RegisterWorkServiceServer(m.server, m.worker)
	go m.server.Serve(l) //nolint:errcheck // it ends with close
	m.mu.Lock()
	m.addr = l.Addr().String()
	m.mu.Unlock()
}

func (m *fakeMachine) close() {
	m.server.Stop()
	if err := m.worker.Close(); err != nil {
		m.t.Error(err)
	}
}

func (m *fakeMachine) restart() {
	m.close()
	m.open()
}

func (m *fakeMachine) dial(ctx context.Context) (net.Conn, error) {
	m.mu.Lock()
	at := m.addr
	m.mu.Unlock()
	return (&net.Dialer{}).DialContext(ctx, "tcp", at)
}

// end ends an attempt that runs.
func (m *fakeMachine) end(a job.AttemptID, o job.Outcome) {
	m.mu.Lock()
	if m.starts[a] == 0 || m.ends[a].Kind != 0 {
		m.mu.Unlock()
		return
	}
	m.ends[a] = o
	s := m.now
	mine := s.mine[a]
	m.mu.Unlock()
	if mine {
		s.report(work.Finished{Attempt: a, Outcome: o})
	}
}

func (m *fakeMachine) count(a job.AttemptID) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.starts[a]
}

func (m *fakeMachine) ended(a job.AttemptID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ends[a].Kind != 0
}

func (m *fakeMachine) lease(a job.AttemptID) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.leases[a]
}

func (s *fakeSystem) BootID() string                  { return s.m.boot }
func (s *fakeSystem) Capabilities() []work.Capability { return nil }
func (s *fakeSystem) folder(id job.AttemptID) string  { return filepath.Join(s.m.dir, id.String()) }
func (s *fakeSystem) Files(id job.AttemptID) work.Files {
	f := s.folder(id)
	return work.Files{Work: f + "/work", Stdout: f + "/stdout", Stderr: f + "/stderr", Mark: f + "/payload"}
}

func (s *fakeSystem) Prepare(id job.AttemptID) error {
	return os.MkdirAll(s.Files(id).Work, 0o700)
}

func (s *fakeSystem) Folders() (list []job.AttemptID, err error) {
	names, err := os.ReadDir(s.m.dir)
	for _, n := range names {
		if a, err := job.ParseAttemptID(n.Name()); err == nil {
			list = append(list, a)
		}
	}
	return list, err
}

func (s *fakeSystem) run(spec work.Spec) {
	s.m.mu.Lock()
	id := spec.Attempt
	again := s.mine[id]
	s.mine[id] = true
	if !s.m.disk[id] {
		s.m.disk[id] = true
		s.m.starts[id]++
		s.m.leases[id] = spec.Lease.Gone
	}
	o, over := s.m.ends[id]
	s.m.mu.Unlock()
	if again {
		return
	}
	go func() {
		s.report(work.Started{Attempt: id, At: 1})
		if over {
			s.report(work.Finished{Attempt: id, Outcome: o})
		}
	}()
}

func (s *fakeSystem) Start(spec work.Spec)           { s.run(spec) }
func (s *fakeSystem) Adopt(spec work.Spec, _ string) { s.run(spec) }
func (s *fakeSystem) Ask(job.AttemptID, work.Ask)    {}
func (s *fakeSystem) Close()                         {}
func (s *fakeSystem) Extend(id job.AttemptID, l work.Lease) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.m.leases[id] = max(s.m.leases[id], l.Gone)
}

func (s *fakeSystem) Stop(id job.AttemptID, reason work.StopReason) {
	time.AfterFunc(s.m.ending, func() { s.m.end(id, job.Outcome{Kind: reason.Kind(), End: 2}) })
}

// Empty is what a runner asks for on a full disk.
func (s *fakeSystem) Empty(id job.AttemptID, _ []string) error {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.m.emptied[id] = true
	return nil
}

func (s *fakeSystem) Forget(id job.AttemptID) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	delete(s.m.disk, id)
	os.RemoveAll(s.folder(id)) //nolint:errcheck // a folder of this test
}

// fakeLeader is a driver and what its engine was told.
type fakeLeader struct {
	*Driver
	mu    sync.Mutex
	told  []meta.Event
	again chan string
	seen  int // of told, by goesBack
}

// goesBack returns the attempts that came back since it was called last, which an engine launches again.
func (l *fakeLeader) goesBack() (list []job.AttemptID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, ev := range l.told[l.seen:] {
		switch ev := ev.(type) {
		case meta.AttemptMissing:
			list = append(list, ev.Attempt)
		case meta.StartFailed:
			list = append(list, ev.Attempt)
		}
	}
	l.seen = len(l.told)
	return list
}

func lead(t *testing.T, m *fakeMachine, number uint64, lost time.Duration, first ...meta.Effect) *fakeLeader {
	t.Helper()
	l := &fakeLeader{again: make(chan string, 1)}
	log := slog.New(slog.DiscardHandler)
	files, err := runner.OpenFiles(runner.FilesConfig{Site: "alpha", Dir: t.TempDir(), Backend: payloads{runs: m.runs}, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	runs, err := runner.New(runner.Config{
		Files: files, Away: func(job.SiteID) bool { return false }, Tell: l.tell, Post: l.tell, Fetch: transfer.FetchConfig{}, Log: log,
		System: func(report func(work.Event)) (work.System, error) {
			return &fakeSystem{m: &fakeMachine{t: t, dir: t.TempDir()}, report: report}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	l.Driver = NewDriver(DriverConfig{
		Site: "alpha", Member: fmt.Sprint("lead-", number), Machine: "m", Lead: number, Processors: 4, Lost: lost, MostMessage: 4 << 20, Dial: m.dial,
		Confirm: func() error { return nil }, Tell: l.tell, Now: func() job.Time { return job.Instant(time.Now()) },
		SinceBoot: func(at job.Time) time.Duration { return clock.SinceBoot() + at.Sub(job.Instant(time.Now())) },
		Files:     files, Runs: runs, Peers: m.peers, Again: func(why string) { l.again <- why }, Log: log,
	})
	l.FirstWord()
	l.Begin(first)
	t.Cleanup(func() {
		l.Close()
		runs.Close()
		files.Close() //nolint:errcheck // a store of this test
	})
	return l
}

func (l *fakeLeader) tell(ev meta.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = append(l.told, ev)
}

// heard reports whether the engine was told something like it.
func (l *fakeLeader) heard(is func(meta.Event) bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, ev := range l.told {
		if is(ev) {
			return true
		}
	}
	return false
}

func (l *fakeLeader) hearsEnd(a job.AttemptID, kind job.OutcomeKind) bool {
	return l.heard(func(ev meta.Event) bool {
		e, is := ev.(meta.AttemptEnded)
		return is && e.Attempt == a && e.Outcome.Kind == kind
	})
}

func (l *fakeLeader) isUp() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.told) - 1; i >= 0; i-- {
		if s, is := l.told[i].(meta.MachineSeen); is {
			return s.Away == ""
		}
	}
	return false
}

// payloads has the payload of every job.
type payloads struct {
	supplies
	runs []byte // nil for one job
}

var request = job.Request{Name: "j", Processors: 1, Walltime: time.Hour}

func (p payloads) Payload(job.ID) ([]byte, error) {
	if p.runs != nil {
		return p.runs, nil
	}
	return payloadOf(&request)
}

func payloadOf(r *job.Request) ([]byte, error) {
	lost := map[job.OnSiteLost]kithv1.Job_OnSiteLost{job.Wait: kithv1.Job_ON_SITE_LOST_WAIT, job.Rerun: kithv1.Job_ON_SITE_LOST_RERUN}
	return proto.Marshal(&kithv1.Payload{Job: &kithv1.Job{
		Name: r.Name, Command: []string{"x"}, Processors: r.Processors, Walltime: durationOf(r.Walltime), OnSiteLost: lost[r.OnSiteLost],
	}})
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("never: %s", what)
}
