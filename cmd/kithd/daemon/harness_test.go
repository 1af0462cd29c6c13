package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"

	"kith/cmd/kithd/config"
	"kith/internal/scratch"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/sitesched/executor"
)

func TestMain(m *testing.M) {
	if isShim, code := executor.ShimMain(os.Args); isShim {
		os.Exit(code)
	}
	if socket := os.Getenv(callerSocket); socket != "" {
		os.Exit(runCaller(socket))
	}
	if name := os.Getenv(killedSite); name != "" {
		os.Exit(runKilledSite(name))
	}
	if path := os.Getenv(killedMember); path != "" {
		os.Exit(runKilledMember(path))
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
	bags  kithv1.BagServiceClient
	sites kithv1.SiteServiceClient
	files kithv1.FileServiceClient
	// host is how it schedules and runs work; nil for Kith's own way.
	host func(config.Config, *slog.Logger) Host
	// logger is what it logs to; nil for this.
	logger *slog.Logger

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
	s.start()
	return s
}

// start opens the daemon, and closes it at the end of the test.
func (s *testSite) start() {
	s.t.Helper()
	s.open()
	s.t.Cleanup(func() {
		if s.d != nil {
			if err := s.d.Close(); err != nil {
				s.t.Errorf("close %s: %v", s.cfg.Site, err)
			}
		}
	})
}

// open starts the daemon; its address stays the same over restarts.
func (s *testSite) open() {
	s.t.Helper()
	host := ownHost
	if s.host != nil {
		host = s.host
	}
	log := s.logger
	if log == nil {
		log = slog.New(slog.NewTextHandler(s, nil))
	}
	d, err := OpenWith(s.cfg, log, Options{Host: host(s.cfg, log)})
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
	s.bags = kithv1.NewBagServiceClient(conn)
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
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	s.t.Cleanup(cancel)
	return ctx
}

// patience is how long a test waits for what will be. Where a guard was taken out, see
// testbed/check/mutants, it will not.
var patience = map[bool]time.Duration{true: 20 * time.Second, false: time.Minute}[os.Getenv("KITH_GUARD_OUT") != ""]

func (s *testSite) eventually(what string, ok func() bool) {
	s.t.Helper()
	for stop := time.Now().Add(patience); time.Now().Before(stop); time.Sleep(5 * time.Millisecond) {
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

// attemptOutput is what an attempt wrote to stdout.
func (s *testSite) attemptOutput(id string, attempt int32) string {
	s.t.Helper()
	text, err := s.read(&kithv1.GetJobOutputRequest{JobId: id, Attempt: attempt})
	if err != nil {
		s.t.Fatalf("output of attempt %d of %s: %v", attempt, id, err)
	}
	return text
}

func (s *testSite) readOutput(id, path string, follow bool) (string, error) {
	return s.read(&kithv1.GetJobOutputRequest{JobId: id, Path: path, Follow: follow})
}

func (s *testSite) read(r *kithv1.GetJobOutputRequest) (string, error) {
	return outputFrom(s.ctx(), s.jobs, r)
}

// outputFrom reads an output to its end.
func outputFrom(ctx context.Context, jobs kithv1.JobServiceClient, r *kithv1.GetJobOutputRequest) (string, error) {
	g, err := jobs.GetJobOutput(ctx, r)
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
