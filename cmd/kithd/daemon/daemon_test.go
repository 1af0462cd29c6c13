package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"kith/cmd/kithd/config"
	"kith/internal/job"
	"kith/internal/scratch"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/sitesched/executor"
	"kith/sitesched/work"
)

func TestMain(m *testing.M) {
	if isShim, code := executor.ShimMain(os.Args); isShim {
		os.Exit(code)
	}
	scratch.InMemory()
	os.Exit(m.Run())
}

// testSite is a running site with clients to it.
type testSite struct {
	t     *testing.T
	cfg   config.Config
	d     *Daemon
	jobs  kithv1.JobServiceClient
	sites kithv1.SiteServiceClient
	files kithv1.FileServiceClient
	// host is how it schedules and runs work; nil for Kith's own way.
	host func(config.Config, *slog.Logger) Host

	mu  sync.Mutex
	log []byte
}

// Write takes the log.
func (s *testSite) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, line...)
	return s.t.Output().Write(line)
}

// logged reports whether a line of the log holds all the texts.
func (s *testSite) logged(texts ...string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for line := range strings.Lines(string(s.log)) {
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
			return true
		}
	}
	return false
}

func startSite(t *testing.T, cfg config.Config) *testSite {
	t.Helper()
	return startSiteOn(t, cfg, nil)
}

func startSiteOn(t *testing.T, cfg config.Config, host func(config.Config, *slog.Logger) Host) *testSite {
	t.Helper()
	s := &testSite{t: t, cfg: cfg, host: host}
	s.open()
	t.Cleanup(func() {
		if s.d != nil {
			if err := s.d.Close(); err != nil {
				t.Errorf("close %s: %v", cfg.Site, err)
			}
		}
	})
	return s
}

// open starts the daemon; its address stays the same over restarts.
func (s *testSite) open() {
	s.t.Helper()
	host := ownHost
	if s.host != nil {
		host = s.host
	}
	log := slog.New(slog.NewTextHandler(s, nil))
	d, err := OpenOn(s.cfg, log, host(s.cfg, log))
	if err != nil {
		s.t.Fatal(err)
	}
	s.d, s.cfg.Listen.Address = d, d.Address()
	s.dial()
}

// dial connects clients to the daemon.
func (s *testSite) dial() {
	s.t.Helper()
	conn, err := grpc.NewClient(s.d.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	s.jobs, s.sites, s.files = kithv1.NewJobServiceClient(conn), kithv1.NewSiteServiceClient(conn), kithv1.NewFileServiceClient(conn)
}

func (s *testSite) restart() {
	s.t.Helper()
	if err := s.d.Close(); err != nil {
		s.t.Fatal(err)
	}
	s.open()
}

// federation starts sites that know each other, with 2 processors each.
func federation(t *testing.T, tune func(*config.Config), names ...string) []*testSite {
	t.Helper()
	return federationOn(t, tune, nil, names...)
}

// federationOn starts sites of which those in hosts have a way of their own to
// schedule and run work.
func federationOn(t *testing.T, tune func(*config.Config), hosts map[string]func(config.Config, *slog.Logger) Host, names ...string) []*testSite {
	t.Helper()
	var sites []*testSite
	for i, name := range names {
		c := testConfig(t, name)
		for _, s := range sites {
			c.Peers = append(c.Peers, config.Peer{Site: s.cfg.Site, Address: s.d.Address()})
		}
		for _, later := range names[i+1:] {
			c.Peers = append(c.Peers, config.Peer{Site: later})
		}
		if tune != nil {
			tune(&c)
		}
		sites = append(sites, startSiteOn(t, c, hosts[name]))
	}
	for _, s := range sites {
		s.eventually("all sites connected", func() bool {
			r, err := s.sites.ListSites(s.ctx(), &kithv1.ListSitesRequest{})
			if err != nil {
				return false
			}
			for _, site := range r.GetSites() {
				if site.GetReachability() == kithv1.Site_REACHABILITY_UNREACHABLE || site.GetProcessors() == 0 {
					return false
				}
			}
			return len(r.GetSites()) == len(names)
		})
	}
	return sites
}

func (s *testSite) ctx() context.Context {
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	s.t.Cleanup(cancel)
	return ctx
}

func (s *testSite) eventually(what string, ok func() bool) {
	s.t.Helper()
	for stop := time.Now().Add(time.Minute); time.Now().Before(stop); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	s.t.Fatalf("%s: never: %s", s.cfg.Site, what)
}

func shell(text string) *kithv1.Job {
	return &kithv1.Job{Command: []string{"/bin/sh", "-c", text}, Processors: 1, Walltime: durationpb.New(time.Minute)}
}

func (s *testSite) submit(j *kithv1.Job) string {
	s.t.Helper()
	r, err := s.jobs.SubmitJob(s.ctx(), &kithv1.SubmitJobRequest{Job: j})
	if err != nil {
		s.t.Fatalf("submit: %v", err)
	}
	return r.GetJobId()
}

func (s *testSite) get(id string) *kithv1.Job {
	s.t.Helper()
	r, err := s.jobs.GetJob(s.ctx(), &kithv1.GetJobRequest{JobId: id})
	if err != nil {
		s.t.Fatalf("get %s: %v", id, err)
	}
	return r.GetJob()
}

func (s *testSite) waitState(id string, want ...kithv1.JobStatus_State) *kithv1.Job {
	s.t.Helper()
	var j *kithv1.Job
	s.eventually(fmt.Sprintf("job %s is %v", id, want), func() bool {
		j = s.get(id)
		for _, w := range want {
			if j.GetStatus().GetState() == w {
				return true
			}
		}
		return false
	})
	return j
}

func (s *testSite) output(id, path string) string {
	s.t.Helper()
	text, err := s.readOutput(id, path, false)
	if err != nil {
		s.t.Fatalf("output %q of %s: %v", path, id, err)
	}
	return text
}

func (s *testSite) readOutput(id, path string, follow bool) (string, error) {
	g, err := s.jobs.GetJobOutput(s.ctx(), &kithv1.GetJobOutputRequest{JobId: id, Path: path, Follow: follow})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for {
		r, err := g.Recv()
		if errors.Is(err, io.EOF) {
			return b.String(), nil
		}
		if err != nil {
			return b.String(), err
		}
		if r.GetOffset() != int64(b.Len()) {
			return "", fmt.Errorf("offset %d behind %d bytes", r.GetOffset(), b.Len())
		}
		b.Write(r.GetData())
	}
}

const completed, failed = kithv1.JobStatus_STATE_COMPLETED, kithv1.JobStatus_STATE_FAILED

func TestOneSite(t *testing.T) {
	s := startSite(t, testConfig(t, "alpha"))
	id := s.submit(shell("echo out; echo err >&2; exit 3"))
	j := s.waitState(id, failed)
	if o := j.GetStatus().GetOutcome(); o.GetExitCode() != 3 || o.GetReason() != "exit code 3" || len(o.GetOutputs()) != 2 {
		t.Errorf("outcome %v", o)
	}
	if out, errText := s.output(id, ""), s.output(id, "stderr"); out != "out\n" || errText != "err\n" {
		t.Errorf("stdout %q, stderr %q", out, errText)
	}
	if d := j.GetStatus().GetDecisions(); len(d) != 1 || !d[0].GetChosen() || d[0].GetSiteId() != "alpha" {
		t.Errorf("decisions %v", d)
	}
	if len(j.GetStatus().GetClaimEvents()) != 3 || j.GetStatus().GetStartTime() == nil || j.GetStatus().GetEndTime() == nil {
		t.Errorf("status %v", j.GetStatus())
	}
	if _, err := s.readOutput(id, "no-such-file", false); status.Code(err) != codes.NotFound {
		t.Errorf("an output that is not there: %v", err)
	}
}

// busy fills the processors of a site until the returned function is called.
func (s *testSite) busy() (release func()) {
	s.t.Helper()
	j := shell("sleep 600")
	j.Processors, j.Copies = 2, 1
	id := s.submit(j)
	s.waitState(id, kithv1.JobStatus_STATE_RUNNING)
	return func() {
		if _, err := s.jobs.CancelJob(s.ctx(), &kithv1.CancelJobRequest{JobId: id}); err != nil {
			s.t.Error(err)
		}
		s.waitState(id, kithv1.JobStatus_STATE_CANCELLED)
	}
}

// A job that its busy origin cannot start runs at the other site, with its
// script and inputs, and its outputs come home; large and small.
func TestJobRunsElsewhere(t *testing.T) {
	t.Parallel()
	sites := federation(t, nil, "alpha", "beta")
	a, b := sites[0], sites[1]
	release := a.busy()
	defer release()
	large := make([]byte, 6<<20) // more than a chunk
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range large {
		large[i] = byte(rng.Uint32())
	}
	upload, err := a.files.UploadFile(a.ctx())
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(large); at += 256 << 10 {
		if err := upload.Send(&kithv1.UploadFileRequest{Data: large[at:min(len(large), at+256<<10)]}); err != nil {
			t.Fatal(err)
		}
	}
	up, err := upload.CloseAndRecv()
	if err != nil {
		t.Fatal(err)
	}
	j := &kithv1.Job{
		Name: "elsewhere", Processors: 1, Walltime: durationpb.New(time.Minute), Arguments: []string{"one", "two words"},
		Script: "#!/bin/sh -e\n" +
			"echo \"$KITH_SITE $SLURM_JOB_NAME $COLOUR $2\"; cat sub/small.txt; sha256sum < large.bin\n" +
			"mkdir -p results; cp large.bin results/copy.bin; echo done > results/note.txt\n" + strings.Repeat("# padding\n", 400),
		Environment: map[string]string{"COLOUR": "green"},
		Inputs: []*kithv1.InputFile{
			{Path: "sub/small.txt", Content: &kithv1.InputFile_Data{Data: []byte("small\n")}},
			{Path: "large.bin", Content: &kithv1.InputFile_UploadId{UploadId: up.GetUploadId()}},
		},
		Outputs: []*kithv1.OutputFile{{Path: "results/*"}, {Path: "missing.txt"}},
	}
	id := a.submit(j)
	got := a.waitState(id, completed, failed)
	if got.GetStatus().GetState() != completed || got.GetStatus().GetHostSiteId() != "beta" {
		t.Fatalf("%v", got.GetStatus())
	}
	sum := sha256.Sum256(large)
	if want := "beta elsewhere green two words\nsmall\n" + hex.EncodeToString(sum[:]) + "  -\n"; a.output(id, "stdout") != want {
		t.Errorf("stdout %q, want %q", a.output(id, "stdout"), want)
	}
	if a.output(id, "results/copy.bin") != string(large) || a.output(id, "results/note.txt") != "done\n" {
		t.Error("outputs differ")
	}
	if r := got.GetStatus().GetOutcome().GetReason(); !strings.Contains(r, "missing.txt") {
		t.Errorf("the missing output is not mentioned: %q", r)
	}
	// The host forgets the attempt and clears its folder.
	b.eventually("attempt forgotten", func() bool {
		entries, err := os.ReadDir(filepath.Join(b.cfg.Data, "attempts"))
		if err != nil {
			return false
		}
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), ".") {
				return false
			}
		}
		return true
	})
	r, err := b.jobs.ListJobs(b.ctx(), &kithv1.ListJobsRequest{IncludeRemote: true})
	if err != nil || len(r.GetRemoteCopies()) != 0 {
		t.Errorf("copies left at beta: %v, %v", r.GetRemoteCopies(), err)
	}
	if _, err := b.jobs.GetJob(b.ctx(), &kithv1.GetJobRequest{JobId: id}); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "ask site alpha") {
		t.Errorf("a foreign job: %v", err)
	}
}

// Output is read from the origin while the job runs at another site.
func TestFollowOutputFromAfar(t *testing.T) {
	t.Parallel()
	sites := federation(t, nil, "alpha", "beta")
	a := sites[0]
	release := a.busy()
	defer release()
	go_ := filepath.Join(t.TempDir(), "go")
	id := a.submit(shell("echo first; while [ ! -e " + go_ + " ]; do sleep 0.05; done; echo second"))
	a.waitState(id, kithv1.JobStatus_STATE_RUNNING)
	g, err := a.jobs.GetJobOutput(a.ctx(), &kithv1.GetJobOutputRequest{JobId: id, Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	r, err := g.Recv()
	if err != nil || string(r.GetData()) != "first\n" {
		t.Fatalf("while it runs: %q, %v", r.GetData(), err)
	}
	if text, err := a.readOutput(id, "stdout", false); text != "first\n" || err != nil {
		t.Errorf("without following: %q, %v", text, err)
	}
	if err := os.WriteFile(go_, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err = g.Recv()
	if err != nil || string(r.GetData()) != "second\n" || r.GetOffset() != 6 {
		t.Errorf("later: %q at %d, %v", r.GetData(), r.GetOffset(), err)
	}
	if _, err := g.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v", err)
	}
}

// A declared output that does not come back is told, and is a failure for a job
// that requires its outputs; folders come back (D5).
func TestDeclaredOutputs(t *testing.T) {
	t.Parallel()
	s := startSite(t, testConfig(t, "alpha"))
	j := shell("mkdir -p out/deep; echo 1 >out/deep/f; echo 2 >out/g")
	j.Outputs = []*kithv1.OutputFile{{Path: "out/"}, {Path: "o*/deep/f"}, {Path: "none"}}
	lenient := s.submit(proto.CloneOf(j))
	j.RequireOutputs = true
	strict := s.submit(proto.CloneOf(j))
	j.Outputs = j.Outputs[:1]
	good := s.submit(j)
	for id, want := range map[string]kithv1.JobStatus_State{lenient: completed, strict: failed, good: completed} {
		st := s.waitState(id, completed, failed).GetStatus()
		missing, reason := st.GetOutcome().GetMissingOutputs(), st.GetOutcome().GetReason()
		if st.GetState() != want || st.GetOutcome().GetExitCode() != 0 {
			t.Errorf("%s: %v, want %v", id, st, want)
		}
		if id == good {
			if len(missing) > 0 || reason != "" {
				t.Errorf("%s: %q is missing, %q", id, missing, reason)
			}
		} else if fmt.Sprint(missing) != "[o*/deep/f none]" || !strings.Contains(reason, `"none": not found`) {
			t.Errorf("%s: %q is missing, %q", id, missing, reason)
		}
		if text := s.output(id, "out/deep/f") + s.output(id, "out/g"); text != "1\n2\n" {
			t.Errorf("%s: %q came back", id, text)
		}
	}
}

// Without following, a reader gets what is there, also of a job that goes on
// writing: it does not wait for a moment of silence (D1).
func TestOutputWithoutFollowingEnds(t *testing.T) {
	t.Parallel()
	sites := federation(t, nil, "alpha", "beta")
	a, b := sites[0], sites[1]
	j := shell("while :; do echo tick; echo tock >&2; sleep 0.1; done")
	j.Walltime = durationpb.New(10 * time.Minute)
	release := a.busy()
	remote := a.submit(j)
	defer release()
	local := b.submit(proto.CloneOf(j))
	for _, tc := range []struct {
		site *testSite
		id   string
	}{{a, remote}, {b, local}} {
		tc.site.waitState(tc.id, kithv1.JobStatus_STATE_RUNNING)
		tc.site.eventually("it has written something", func() bool {
			for _, name := range []string{"", "stderr"} {
				text, err := tc.site.readOutput(tc.id, name, false)
				if err != nil {
					t.Fatalf("output %q of %s: %d bytes, %v", name, tc.id, len(text), err)
				}
				if text == "" {
					return false
				}
			}
			return true
		})
		if _, err := tc.site.jobs.CancelJob(tc.site.ctx(), &kithv1.CancelJobRequest{JobId: tc.id}); err != nil {
			t.Error(err)
		}
	}
}

// Restarting the daemon neither kills nor forgets what runs, here and elsewhere.
func TestRestartWhileJobsRun(t *testing.T) {
	t.Parallel()
	sites := federation(t, nil, "alpha", "beta")
	a, b := sites[0], sites[1]
	dir := t.TempDir()
	script := func(name string) string {
		return fmt.Sprintf("echo $$ >> %s/%s; while [ ! -e %s/go ]; do sleep 0.05; done; echo done", dir, name, dir)
	}
	here := shell(script("here"))
	here.Processors = 2
	hereID := a.submit(here)
	a.waitState(hereID, kithv1.JobStatus_STATE_RUNNING)
	awayID := a.submit(shell(script("away")))
	if j := a.waitState(awayID, kithv1.JobStatus_STATE_RUNNING); j.GetStatus().GetHostSiteId() != "beta" {
		t.Fatalf("runs at %s", j.GetStatus().GetHostSiteId())
	}
	waiting := shell("true")
	waiting.Processors = 2
	waitingID := a.submit(waiting)
	a.restart()
	b.restart()
	for _, id := range []string{hereID, awayID} {
		if s := a.get(id).GetStatus(); s.GetState() != kithv1.JobStatus_STATE_RUNNING {
			t.Errorf("after the restart %s is %v: %s", id, s.GetState(), s.GetReason())
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{hereID, awayID, waitingID} {
		a.waitState(id, completed)
	}
	if a.output(hereID, "") != "done\n" || a.output(awayID, "") != "done\n" {
		t.Error("output is lost")
	}
	for _, name := range []string{"here", "away"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || strings.Count(string(b), "\n") != 1 {
			t.Errorf("%s was started other than once: %q, %v", name, b, err)
		}
	}
}

// What is left of an earlier daemon is looked for before anything begins: the
// folder of an attempt that was launched meanwhile would be taken for a stray.
func TestStraysAreRemovedFirst(t *testing.T) {
	s := startSite(t, testConfig(t, "alpha"))
	wait, open := barrier(t)
	id := s.submit(shell(wait))
	s.waitState(id, kithv1.JobStatus_STATE_RUNNING)
	if err := s.d.Close(); err != nil {
		t.Fatal(err)
	}
	s.d = nil
	stray := filepath.Join(s.cfg.Data, "attempts", "beta.1.5-1")
	if err := os.Mkdir(stray, 0o700); err != nil {
		t.Fatal(err)
	}
	host := ownHost(s.cfg, slog.New(slog.NewTextHandler(t.Output(), nil)))
	system := host.System
	host.System = func(report func(work.Event)) (work.System, error) {
		x, err := system(report)
		return &listing{System: x, t: t}, err
	}
	d, err := OpenOn(s.cfg, slog.New(slog.NewTextHandler(t.Output(), nil)), host)
	if err != nil {
		t.Fatal(err)
	}
	s.d = d
	open()
	s.waitState(id, completed)
	s.eventually("the stray is gone", func() bool {
		_, err := os.Stat(stray)
		return errors.Is(err, os.ErrNotExist)
	})
}

// listing lists folders slowly, and nothing may begin before it has.
type listing struct {
	work.System
	t      *testing.T
	listed atomic.Bool
}

// Folders implements work.System.
func (l *listing) Folders() ([]job.AttemptID, error) {
	time.Sleep(300 * time.Millisecond) // for whatever is under way
	l.listed.Store(true)
	return l.System.Folders()
}

// Adopt implements work.System.
func (l *listing) Adopt(s work.Spec, boot string) {
	if !l.listed.Load() {
		l.t.Errorf("attempt %v is under way", s.Attempt)
	}
	l.System.Adopt(s, boot)
}

func TestCancelHoldRelease(t *testing.T) {
	t.Parallel()
	sites := federation(t, nil, "alpha", "beta")
	a := sites[0]
	release := a.busy()
	away := a.submit(shell("trap '' TERM; sleep 600")) // ignores SIGTERM
	a.waitState(away, kithv1.JobStatus_STATE_RUNNING)
	cancel := func(id string) error {
		_, err := a.jobs.CancelJob(a.ctx(), &kithv1.CancelJobRequest{JobId: id})
		return err
	}
	if err := cancel(away); err != nil {
		t.Error(err)
	}
	if s := a.waitState(away, kithv1.JobStatus_STATE_CANCELLED).GetStatus(); s.GetHostSiteId() != "beta" || s.GetOutcome().GetReason() == "" {
		t.Errorf("cancelled away: %v", s)
	}
	wide := shell("true")
	wide.Processors, wide.Hold = 2, true
	id := a.submit(wide)
	if s := a.get(id).GetStatus().GetState(); s != kithv1.JobStatus_STATE_HELD {
		t.Errorf("submitted on hold: %v", s)
	}
	if _, err := a.jobs.ReleaseJob(a.ctx(), &kithv1.ReleaseJobRequest{JobId: id}); err != nil {
		t.Error(err)
	}
	a.waitState(id, completed)
	release()
	for what, err := range map[string]error{
		"cancel an ended job":    cancel(id),
		"cancel an unknown job":  cancel(strings.TrimRight(id, "0123456789") + "999"),
		"cancel a foreign job":   cancel("beta.1.1"),
		"cancel without a job":   cancel(""),
		"release what runs free": func() error { _, err := a.jobs.ReleaseJob(a.ctx(), &kithv1.ReleaseJobRequest{JobId: id}); return err }(),
	} {
		want := map[string]codes.Code{
			"cancel an unknown job": codes.NotFound, "cancel without a job": codes.InvalidArgument,
		}[what]
		if want == codes.OK {
			want = codes.FailedPrecondition
		}
		if status.Code(err) != want {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
}

func TestWalltime(t *testing.T) {
	t.Parallel()
	s := startSite(t, testConfig(t, "alpha"))
	j := shell("sleep 600")
	j.Walltime = durationpb.New(300 * time.Millisecond)
	got := s.waitState(s.submit(j), kithv1.JobStatus_STATE_TIMEOUT, failed)
	if o := got.GetStatus().GetOutcome(); got.GetStatus().GetState() != kithv1.JobStatus_STATE_TIMEOUT || o.GetReason() == "" {
		t.Errorf("%v", got.GetStatus())
	}
}

// reasonOf returns the ErrorInfo reason and the named fields of an error.
func reasonOf(err error) (reason string, fields []string, retry bool) {
	for _, d := range status.Convert(err).Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			reason = d.GetReason()
		case *errdetails.BadRequest:
			for _, f := range d.GetFieldViolations() {
				fields = append(fields, f.GetField())
			}
		case *errdetails.RetryInfo:
			retry = d.GetRetryDelay().AsDuration() > 0
		}
	}
	return reason, fields, retry
}

// Bad submissions name field, value and remedy, and leave nothing behind.
func TestBadSubmissions(t *testing.T) {
	root := t.TempDir()
	outside := filepath.Join(t.TempDir(), "secret")
	for path, content := range map[string]string{filepath.Join(root, "good.txt"): "x", outside: "secret"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	c := testConfig(t, "alpha")
	c.Files.InputRoots = []string{root}
	s := startSite(t, c)
	source := func(path string) []*kithv1.InputFile {
		return []*kithv1.InputFile{{Path: "in", Content: &kithv1.InputFile_Source{Source: path}}}
	}
	good := func() *kithv1.Job { return shell("true") }
	for name, c := range map[string]struct {
		spoil  func(*kithv1.Job)
		code   codes.Code
		reason string
		field  string
		says   string
	}{
		"no processors":       {func(j *kithv1.Job) { j.Processors = 0 }, codes.InvalidArgument, "INVALID_ARGUMENT", "job.processors", "at least 1"},
		"negative processors": {func(j *kithv1.Job) { j.Processors = -4 }, codes.InvalidArgument, "INVALID_ARGUMENT", "job.processors", "-4"},
		"no walltime":         {func(j *kithv1.Job) { j.Walltime = nil }, codes.InvalidArgument, "INVALID_ARGUMENT", "job.walltime", "missing"},
		"zero walltime":       {func(j *kithv1.Job) { j.Walltime = durationpb.New(0) }, codes.InvalidArgument, "INVALID_ARGUMENT", "job.walltime", "positive"},
		"negative walltime":   {func(j *kithv1.Job) { j.Walltime = durationpb.New(-1) }, codes.InvalidArgument, "INVALID_ARGUMENT", "job.walltime", "positive"},
		"too wide":            {func(j *kithv1.Job) { j.Processors = 99 }, codes.FailedPrecondition, "NO_SITE_LARGE_ENOUGH", "", "alpha, has 2"},
		"empty command":       {func(j *kithv1.Job) { j.Command = nil }, codes.InvalidArgument, "INVALID_ARGUMENT", "job.command", "empty"},
		"empty program":       {func(j *kithv1.Job) { j.Command = []string{""} }, codes.InvalidArgument, "INVALID_ARGUMENT", "job.command[0]", "program"},
		"command and script":  {func(j *kithv1.Job) { j.Script = "#!/bin/sh\n" }, codes.InvalidArgument, "INVALID_ARGUMENT", "job.command", "one of them"},
		"long script": {
			func(j *kithv1.Job) { j.Command, j.Script = nil, "#!/bin/sh\n"+strings.Repeat("x", 1<<20) },
			codes.InvalidArgument, "INVALID_ARGUMENT", "job.script", "1048576",
		},
		"script without interpreter": {func(j *kithv1.Job) { j.Command, j.Script = nil, "echo" }, codes.InvalidArgument, "INVALID_ARGUMENT", "job.script", "#!"},
		"unknown field": {
			func(j *kithv1.Job) { j.ProtoReflect().SetUnknown([]byte{0xfa, 0x3f, 0x01, 'x'}) },
			codes.InvalidArgument, "INVALID_ARGUMENT", "request.job", "1023",
		},
		"unknown nested field": {
			func(j *kithv1.Job) {
				in := &kithv1.InputFile{Path: "x", Content: &kithv1.InputFile_Data{}}
				in.ProtoReflect().SetUnknown([]byte{0xf8, 0x3f, 0x01})
				j.Inputs = []*kithv1.InputFile{in}
			},
			codes.InvalidArgument, "INVALID_ARGUMENT", "request.job.inputs[0]", "1023",
		},
		"sets the id":          {func(j *kithv1.Job) { j.Id = "alpha.1.1" }, codes.InvalidArgument, "INVALID_ARGUMENT", "job.id", "set by Kith"},
		"no such input":        {func(j *kithv1.Job) { j.Inputs = source(root + "/nothing") }, codes.InvalidArgument, "INPUT_NOT_FOUND", "job.inputs[0].source", "nothing"},
		"input outside":        {func(j *kithv1.Job) { j.Inputs = source(outside) }, codes.InvalidArgument, "INPUT_OUTSIDE_ROOTS", "job.inputs[0].source", "outside"},
		"input escapes":        {func(j *kithv1.Job) { j.Inputs = source(root + "/../x") }, codes.InvalidArgument, "", "job.inputs[0].source", ""},
		"input by a link":      {func(j *kithv1.Job) { j.Inputs = source(root + "/link") }, codes.InvalidArgument, "INPUT_OUTSIDE_ROOTS", "job.inputs[0].source", "link"},
		"input is a folder":    {func(j *kithv1.Job) { j.Inputs = source(root) }, codes.InvalidArgument, "", "job.inputs[0].source", ""},
		"input leaves folder":  {func(j *kithv1.Job) { j.Inputs = source(root + "/good.txt"); j.Inputs[0].Path = "../up" }, codes.InvalidArgument, "INVALID_ARGUMENT", "job.inputs[0].path", "leaves"},
		"input without bytes":  {func(j *kithv1.Job) { j.Inputs = []*kithv1.InputFile{{Path: "x"}} }, codes.InvalidArgument, "INVALID_ARGUMENT", "job.inputs[0]", "content"},
		"output leaves folder": {func(j *kithv1.Job) { j.Outputs = []*kithv1.OutputFile{{Path: "/etc/passwd"}} }, codes.InvalidArgument, "INVALID_ARGUMENT", "job.outputs[0].path", "leaves"},
		"tasks do not divide":  {func(j *kithv1.Job) { j.Processors, j.Tasks = 2, 3 }, codes.InvalidArgument, "INVALID_ARGUMENT", "job.tasks", "multiple"},
		"absurd copies":        {func(j *kithv1.Job) { j.Copies = 1000 }, codes.InvalidArgument, "INVALID_ARGUMENT", "job.copies", "64"},
		"bad variable":         {func(j *kithv1.Job) { j.Environment = map[string]string{"A=B": "x"} }, codes.InvalidArgument, "INVALID_ARGUMENT", "job.environment", "="},
	} {
		t.Run(name, func(t *testing.T) {
			j := good()
			c.spoil(j)
			_, err := s.jobs.SubmitJob(s.ctx(), &kithv1.SubmitJobRequest{Job: j})
			reason, fields, _ := reasonOf(err)
			if status.Code(err) != c.code || (c.reason != "" && reason != c.reason) {
				t.Errorf("%v with reason %q; want %v with %q", err, reason, c.code, c.reason)
			}
			if c.field != "" && (len(fields) == 0 || fields[0] != c.field) {
				t.Errorf("fields %v, want %s", fields, c.field)
			}
			if err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%q does not say %q", err, c.says)
			}
		})
	}
	r, err := s.jobs.ListJobs(s.ctx(), &kithv1.ListJobsRequest{AllStates: true})
	if err != nil || len(r.GetJobs()) != 0 {
		t.Errorf("%d jobs were made, %v", len(r.GetJobs()), err)
	}
	if _, err := s.jobs.SubmitJob(s.ctx(), &kithv1.SubmitJobRequest{}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("no job at all: %v", err)
	}
	ok := good()
	ok.Inputs = source(root + "/good.txt")
	ok.Command = []string{"/bin/cat", "in"}
	if id := s.submit(ok); s.waitState(id, completed) == nil || s.output(id, "") != "x" {
		t.Error("the good input did not arrive")
	}
}

func TestRequestID(t *testing.T) {
	t.Parallel()
	c := testConfig(t, "alpha")
	c.Limits.Jobs = 2
	s := startSite(t, c)
	release := s.busy()
	defer release()
	j := shell("true")
	submit := func(id string, j *kithv1.Job) (string, error) {
		r, err := s.jobs.SubmitJob(s.ctx(), &kithv1.SubmitJobRequest{RequestId: id, Job: proto.CloneOf(j)})
		return r.GetJobId(), err
	}
	first, err := submit("r-1", j)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := submit("r-1", j); again != first || err != nil {
		t.Errorf("repeated: %q, %v; want %q", again, err, first)
	}
	s.restart()
	if again, err := submit("r-1", j); again != first || err != nil {
		t.Errorf("repeated after a restart: %q, %v; want %q", again, err, first)
	}
	_, err = submit("r-1", shell("false"))
	if reason, _, _ := reasonOf(err); status.Code(err) != codes.AlreadyExists || reason != "REQUEST_ID_REUSED" {
		t.Errorf("with another job: %v", err)
	}
	_, err = submit("r-2", j)
	if reason, _, retry := reasonOf(err); status.Code(err) != codes.ResourceExhausted || reason != "SITE_FULL" || !retry {
		t.Errorf("a full site: %v", err)
	}
}

func TestDrainAndWatch(t *testing.T) {
	t.Parallel()
	sites := federation(t, nil, "alpha", "beta")
	a, b := sites[0], sites[1]
	watch, err := a.jobs.WatchJobs(a.ctx(), &kithv1.WatchJobsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.sites.DrainSite(a.ctx(), &kithv1.DrainSiteRequest{Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	id := a.submit(shell("true"))
	seen := map[kithv1.JobStatus_State]bool{}
	cursor := ""
	for !seen[completed] {
		r, err := watch.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if r.GetJob().GetId() == id {
			seen[r.GetJob().GetStatus().GetState()] = true
			cursor = r.GetCursor()
			if h := r.GetJob().GetStatus().GetHostSiteId(); h == "alpha" {
				t.Errorf("a draining site runs the job")
			}
		}
	}
	r, err := b.sites.ListSites(b.ctx(), &kithv1.ListSitesRequest{})
	if err != nil || len(r.GetSites()) != 2 || !r.GetSites()[1].GetDraining() {
		t.Errorf("beta does not see the drain: %v, %v", r.GetSites(), err)
	}
	if _, err := a.sites.ResumeSite(a.ctx(), &kithv1.ResumeSiteRequest{}); err != nil {
		t.Fatal(err)
	}
	// A watcher that comes back goes on where it was.
	second := a.submit(shell("true"))
	again, err := a.jobs.WatchJobs(a.ctx(), &kithv1.WatchJobsRequest{Cursor: cursor, JobIds: []string{second}})
	if err != nil {
		t.Fatal(err)
	}
	for {
		r, err := again.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if r.GetJob().GetId() != second {
			t.Errorf("watching %s, got %s", second, r.GetJob().GetId())
		}
		if r.GetJob().GetStatus().GetState() == completed {
			break
		}
	}
	old, err := a.jobs.WatchJobs(a.ctx(), &kithv1.WatchJobsRequest{Cursor: "1-1"})
	if err == nil {
		_, err = old.Recv()
	}
	if status.Code(err) != codes.OutOfRange {
		t.Errorf("a cursor of another life: %v", err)
	}
}

func TestListJobsPages(t *testing.T) {
	t.Parallel()
	s := startSite(t, testConfig(t, "alpha"))
	release := s.busy()
	want := map[string]bool{}
	for i := range 25 {
		j := shell("true")
		j.Labels = map[string]string{"parity": fmt.Sprint(i % 2)}
		want[s.submit(j)] = i%2 == 0
	}
	count := func(labels map[string]string) int {
		n, token := 0, ""
		for {
			r, err := s.jobs.ListJobs(s.ctx(), &kithv1.ListJobsRequest{PageSize: 4, PageToken: token, Labels: labels})
			if err != nil {
				t.Fatal(err)
			}
			if len(r.GetJobs()) > 4 {
				t.Fatalf("page of %d", len(r.GetJobs()))
			}
			n += len(r.GetJobs())
			if token = r.GetNextPageToken(); token == "" {
				return n
			}
		}
	}
	if n := count(nil); n != 26 {
		t.Errorf("%d jobs, want 26", n)
	}
	if n := count(map[string]string{"parity": "0"}); n != 13 {
		t.Errorf("%d even jobs, want 13", n)
	}
	for name, r := range map[string]*kithv1.ListJobsRequest{"page size": {PageSize: 5000}, "token": {PageToken: "nonsense"}} {
		if _, err := s.jobs.ListJobs(s.ctx(), r); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	release()
	for id := range want {
		s.waitState(id, completed)
	}
}
