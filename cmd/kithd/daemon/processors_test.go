package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"kith/cmd/kithd/config"
	"kith/internal/scratch"
	"kith/meta/trust"
	kithv1 "kith/proto/gen/kith/v1"
)

// killedMember is the variable by which this program is told to be a member of a site that a test
// kills: the path of its configuration.
const killedMember = "KITH_TEST_MEMBER"

// runKilledMember is the member until it is killed.
func runKilledMember(path string) int {
	cfg, err := config.Load(path)
	if err == nil {
		var m *Member
		if m, err = OpenMember(cfg, slog.New(slog.NewTextHandler(os.Stderr, nil))); err == nil {
			err = m.Run(context.Background(), &Reload{})
		}
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// apartSite is a site of members, each a process, one of which has the processors.
type apartSite struct {
	t         *testing.T
	dir       string
	addresses map[string]string
	up        map[string]*exec.Cmd
}

// newApartSite starts members one, two and three, and executor if that is another one.
func newApartSite(t *testing.T, executor string) *apartSite {
	t.Helper()
	return newApartSiteOn(t, executor, func(string) {})
}

// newApartSiteOn is newApartSite with data folders that were prepared.
func newApartSiteOn(t *testing.T, executor string, prepare func(data string)) *apartSite {
	t.Helper()
	dir, err := os.MkdirTemp("", "kith-p-") //nolint:usetesting // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) }) //nolint:errcheck // a temporary folder
	s := &apartSite{t: t, dir: dir, addresses: make(map[string]string), up: make(map[string]*exec.Cmd)}
	t.Cleanup(func() {
		for name := range s.up {
			s.signal(name, syscall.SIGCONT)
			s.kill(name)
		}
	})
	names := []string{"one", "two", "three"}
	if !slices.Contains(names, executor) {
		names = append(names, executor)
	}
	for _, name := range names {
		s.addresses[name] = scratch.Address(t)
	}
	for _, name := range names {
		s.configure(name, executor)
	}
	one, err := config.Load(s.path("one"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(one.Data, 0o700); err != nil {
		t.Fatal(err)
	}
	prepare(one.Data)
	if _, err := trust.Init(one.KeysPath(), "alpha", trust.Options{}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := FoundMember(one); err != nil {
		t.Fatal(err)
	}
	for _, name := range names[1:] {
		data := filepath.Join(dir, name)
		if err := os.Mkdir(data, 0o700); err != nil {
			t.Fatal(err)
		}
		prepare(data)
		if out, err := exec.Command("cp", "-a", filepath.Join(one.Data, "keys"), filepath.Join(one.Data, saltName), data).CombinedOutput(); err != nil { //nolint:gosec // the test's own
			t.Fatalf("%v: %s", err, out)
		}
	}
	for _, name := range names {
		s.start(name)
	}
	for _, name := range []string{"two", "three"} {
		s.try("member "+name+" is added", func(c *grpc.ClientConn) error {
			_, err := kithv1.NewSiteServiceClient(c).AddMember(t.Context(), &kithv1.AddMemberRequest{Name: name, Address: s.addresses[name]})
			return err
		})
	}
	return s
}

func (s *apartSite) path(name string) string { return filepath.Join(s.dir, name+".toml") }

func (s *apartSite) configure(name, executor string) {
	s.t.Helper()
	text := fmt.Sprintf(`site = "alpha"
data = %q
[listen]
address = %q
allow_own_uid = true
[members]
self = %q
cluster = %q
executor = %q
executor_address = %q
executor_lost = "5s"
[scheduler]
processors = 2
[executor]
pin = false
grace = "200ms"
[files]
keep_free = "1MiB"
reserve = "0B"
`, filepath.Join(s.dir, name), s.addresses[name], name, strings.Repeat("a1", 16), executor, s.addresses[executor])
	if err := os.WriteFile(s.path(name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *apartSite) start(name string) {
	s.t.Helper()
	c := exec.Command(os.Args[0]) //nolint:gosec // this program
	c.Env = append(os.Environ(), killedMember+"="+s.path(name))
	c.Stderr = s.t.Output()
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.up[name] = c
}

func (s *apartSite) signal(name string, what syscall.Signal) {
	s.t.Helper()
	if err := s.up[name].Process.Signal(what); err != nil {
		s.t.Errorf("%v of %s: %v", what, name, err)
	}
}

// kill kills a member at once.
func (s *apartSite) kill(name string) {
	s.t.Helper()
	s.signal(name, syscall.SIGKILL)
	s.up[name].Wait() //nolint:errcheck // it was killed
	delete(s.up, name)
}

// try asks the members at their sockets, one after another, until one has done it.
func (s *apartSite) try(what string, f func(*grpc.ClientConn) error) {
	s.t.Helper()
	err := errors.New("nobody is up")
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		for name := range s.up {
			var c *grpc.ClientConn
			c, err = grpc.NewClient("unix:"+filepath.Join(s.dir, name, "kith.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"))
			if err != nil {
				s.t.Fatal(err)
			}
			err = f(c)
			c.Close()
			if err == nil {
				return
			}
		}
	}
	s.t.Fatalf("never: %s: %v", what, err)
}

// brief bounds one try: a member may be paused.
func (s *apartSite) brief() context.Context {
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Second)
	s.t.Cleanup(cancel)
	return ctx
}

// leader returns the member that leads.
func (s *apartSite) leader() (leads string) {
	s.t.Helper()
	s.try("a member leads", func(c *grpc.ClientConn) error {
		r, err := kithv1.NewSiteServiceClient(c).ListMembers(s.brief(), &kithv1.ListMembersRequest{})
		if err != nil {
			return err
		}
		for _, m := range r.GetMembers() {
			if m.GetLeads() {
				leads = m.GetName()
				return nil
			}
		}
		return errors.New("none leads")
	})
	return leads
}

// gated is a job that notes its starts, and ends when its gate is opened.
type gated struct{ id, starts, gate, beats string }

// runs reports whether a job runs.
func (g *gated) runs() bool {
	size := func() int64 {
		i, err := os.Stat(g.beats)
		if err != nil {
			return 0
		}
		return i.Size()
	}
	before := size()
	time.Sleep(500 * time.Millisecond)
	return size() > before
}

func (s *apartSite) submit(name string, lost kithv1.Job_OnSiteLost) gated {
	s.t.Helper()
	g := gated{starts: filepath.Join(s.dir, name+".starts"), gate: filepath.Join(s.dir, name+".gate"), beats: filepath.Join(s.dir, name+".beats")}
	j := shell(fmt.Sprintf("echo start >>%s; while [ ! -e %s ]; do echo >>%s; sleep 0.05; done; echo result of %s; head -c 9000000 /dev/zero >out", g.starts, g.gate, g.beats, name))
	j.OnSiteLost = lost
	j.Outputs = []*kithv1.OutputFile{{Path: "out"}}
	s.try("job "+name+" is submitted", func(c *grpc.ClientConn) error {
		r, err := kithv1.NewJobServiceClient(c).SubmitJob(s.brief(), &kithv1.SubmitJobRequest{Job: j, RequestId: name})
		g.id = r.GetJobId()
		return err
	})
	return g
}

func (s *apartSite) open(g gated) {
	s.t.Helper()
	if err := os.WriteFile(g.gate, nil, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// started returns how often a job was started, and waits until it is so many times at least.
func (s *apartSite) started(g gated, least int) int {
	s.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		b, _ := os.ReadFile(g.starts)
		if n := len(strings.Fields(string(b))); n >= least {
			return n
		}
	}
	s.t.Fatalf("job %s is never started %d times", g.id, least)
	return 0
}

// becomes waits until a job has a state.
func (s *apartSite) becomes(g gated, want kithv1.JobStatus_State) (j *kithv1.Job) {
	s.t.Helper()
	s.try(fmt.Sprintf("job %s is %v", g.id, want), func(c *grpc.ClientConn) error {
		r, err := kithv1.NewJobServiceClient(c).GetJob(s.brief(), &kithv1.GetJobRequest{JobId: g.id})
		if j = r.GetJob(); err == nil && j.GetStatus().GetState() != want {
			err = fmt.Errorf("it is %v, %s", j.GetStatus().GetState(), j.GetStatus().GetReason())
		}
		return err
	})
	return j
}

// completes opens the gate of a job and wants its result, and that it was started so many times.
func (s *apartSite) completes(g gated, starts int) {
	s.t.Helper()
	s.open(g)
	s.becomes(g, completed)
	s.try("its output is here", func(c *grpc.ClientConn) error {
		if text, err := outputFrom(s.brief(), kithv1.NewJobServiceClient(c), &kithv1.GetJobOutputRequest{JobId: g.id}); err != nil || !strings.HasPrefix(text, "result of") {
			return fmt.Errorf("stdout is %q, %w", text, err)
		}
		if text, err := outputFrom(s.brief(), kithv1.NewJobServiceClient(c), &kithv1.GetJobOutputRequest{JobId: g.id, Path: "out"}); err != nil || len(text) != 9000000 {
			return fmt.Errorf("out has %d bytes, %w", len(text), err)
		}
		return nil
	})
	if n := s.started(g, 1); n != starts {
		s.t.Errorf("job %s was started %d times, want %d", g.id, n, starts)
	}
}

// A job runs on while the leader is killed, while the daemon of the machine that runs it is, and while
// both are. Its result arrives, and it was started once.
func TestProcessorsOutliveLeaders(t *testing.T) {
	t.Parallel()
	s := newApartSite(t, "two")
	a := s.submit("a", kithv1.Job_ON_SITE_LOST_WAIT)
	b := s.submit("b", kithv1.Job_ON_SITE_LOST_RERUN)
	s.started(a, 1)
	s.started(b, 1)
	leads := s.leader()
	s.kill(leads)
	if next := s.leader(); next == leads {
		t.Fatalf("%s leads, which was killed", next)
	}
	s.completes(a, 1)
	s.start(leads)
	if s.up["two"] != nil {
		s.kill("two") // whether or not it leads
	}
	s.start("two")
	s.becomes(b, kithv1.JobStatus_STATE_RUNNING)
	s.completes(b, 1)
	// The next one runs as if nothing had been.
	c := s.submit("c", kithv1.Job_ON_SITE_LOST_WAIT)
	s.completes(c, 1)
}

// The processors are at a fourth machine, which keeps no facts. A leader that is paused is not heard any
// more once another one leads; and when the machine does not answer its jobs are lost by their on_site_lost:
// one that runs again never runs twice at a time.
func TestProcessorsAtAFourthMachine(t *testing.T) {
	t.Parallel()
	s := newApartSite(t, "four")
	a := s.submit("a", kithv1.Job_ON_SITE_LOST_WAIT)
	s.started(a, 1)
	leads := s.leader()
	s.signal(leads, syscall.SIGSTOP)
	paused := s.up[leads]
	delete(s.up, leads) // it is not asked
	if next := s.leader(); next == leads {
		t.Fatalf("%s leads, which is paused", next)
	}
	s.completes(a, 1)
	s.up[leads] = paused
	s.signal(leads, syscall.SIGCONT)
	b := s.submit("b", kithv1.Job_ON_SITE_LOST_WAIT)
	c := s.submit("c", kithv1.Job_ON_SITE_LOST_RERUN)
	s.started(b, 1)
	s.started(c, 1)
	if !b.runs() || !c.runs() {
		t.Error("a job that runs does not seem to")
	}
	s.signal("four", syscall.SIGSTOP)
	machine := s.up["four"]
	delete(s.up, "four")
	s.try("the site says that it has no processors", func(conn *grpc.ClientConn) error {
		r, err := kithv1.NewSiteServiceClient(conn).ListMembers(s.brief(), &kithv1.ListMembersRequest{})
		if err != nil {
			return err
		}
		last := r.GetMembers()[len(r.GetMembers())-1]
		if last.GetName() != "four" || last.GetKeepsFacts() || !last.GetRunsJobs() || !strings.Contains(last.GetAway(), "cannot be reached") {
			return fmt.Errorf("%v", last)
		}
		return nil
	})
	lost := s.becomes(b, kithv1.JobStatus_STATE_LOST)
	if reason := lost.GetStatus().GetReason(); !strings.Contains(reason, "node lost") {
		t.Errorf("job %s is lost: %q", b.id, reason)
	}
	if c.runs() {
		t.Errorf("job %s runs on while it may run elsewhere", c.id)
	}
	s.up["four"] = machine
	s.signal("four", syscall.SIGCONT)
	s.started(c, 2)
	if b.runs() {
		t.Errorf("job %s runs on after it was lost", b.id)
	}
	s.completes(c, 2)
	if n := s.started(b, 1); n != 1 {
		t.Errorf("job %s was started %d times", b.id, n)
	}
}

// The data folder of the machine with the processors is emptied while its daemon is down. What ran there is
// lost, and ended: nothing tells how far it came. A job with rerun is started once more, any other never again.
func TestProcessorsWhoseFolderIsEmptied(t *testing.T) {
	t.Parallel()
	s := newApartSite(t, "four")
	a := s.submit("a", kithv1.Job_ON_SITE_LOST_WAIT)
	b := s.submit("b", kithv1.Job_ON_SITE_LOST_RERUN)
	s.started(a, 1)
	s.started(b, 1)
	s.kill("four")
	for _, folder := range []string{AttemptsFolder, ProcessorsFolder} {
		if err := os.RemoveAll(filepath.Join(s.dir, "four", folder)); err != nil {
			t.Fatal(err)
		}
	}
	s.start("four")
	lost := s.becomes(a, kithv1.JobStatus_STATE_LOST)
	if reason := lost.GetStatus().GetReason(); !strings.Contains(reason, "emptied or replaced") {
		t.Errorf("job %s is lost: %q", a.id, reason)
	}
	if a.runs() {
		t.Errorf("job %s runs on after it was lost", a.id)
	}
	s.started(b, 2)
	s.completes(b, 2)
	if n := s.started(a, 1); n != 1 {
		t.Errorf("job %s was started %d times", a.id, n)
	}
}
