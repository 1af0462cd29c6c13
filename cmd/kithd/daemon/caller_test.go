package daemon

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	kithv1 "kith/proto/gen/kith/v1"
)

// logText is a log that can be read while it is written.
type logText struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// openLogged starts a site whose log can be read.
func openLogged(t *testing.T, name string) (*testSite, *logText) {
	t.Helper()
	log := &logText{}
	s := &testSite{t: t, cfg: testConfig(t, name)}
	d, err := Open(s.cfg, slog.New(slog.NewTextHandler(io.MultiWriter(log, t.Output()), nil)))
	if err != nil {
		t.Fatal(err)
	}
	s.d, s.cfg.Listen.Address = d, d.Address()
	s.dial()
	t.Cleanup(func() {
		if err := s.d.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, log
}

// acts writes what people did to a job as "kind actor reason" words.
func acts(j *kithv1.Job) string {
	var words []string
	for _, a := range j.GetStatus().GetActs() {
		words = append(words, strings.TrimSpace(strings.ToLower(strings.TrimPrefix(a.GetKind().String(), "KIND_"))+" "+a.GetActor()+" "+a.GetReason()))
	}
	return strings.Join(words, ", ")
}

// Who did what to a job or the site, and why, is recorded, outlasts a restart,
// is shown, and is in the log.
func TestActsAreRecordedShownAndLogged(t *testing.T) {
	t.Parallel()
	s, log := openLogged(t, "alpha")
	j := shell("true")
	j.Hold = true
	id := s.submit(j)
	if _, err := s.jobs.ReleaseJob(s.ctx(), &kithv1.ReleaseJobRequest{JobId: id}); err != nil {
		t.Fatal(err)
	}
	s.waitState(id, completed)
	j.Hold = true
	second := s.submit(j)
	for range 2 { // the second time changes nothing
		if _, err := s.jobs.CancelJob(s.ctx(), &kithv1.CancelJobRequest{JobId: second, Reason: "wrong input"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.sites.DrainSite(s.ctx(), &kithv1.DrainSiteRequest{Reason: "new kernel"}); err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"before", "after a restart"} {
		if got, want := acts(s.get(id)), "submit anonymous, hold anonymous, release anonymous"; got != want {
			t.Errorf("%s: acts %q, want %q", when, got, want)
		}
		got := s.get(second)
		if got, want := acts(got), "submit anonymous, hold anonymous, cancel anonymous wrong input"; got != want {
			t.Errorf("%s: acts %q, want %q", when, got, want)
		}
		if why := got.GetStatus().GetReason(); why != "cancelled by anonymous: wrong input" {
			t.Errorf("%s: reason of the cancelled job %q", when, why)
		}
		r, err := s.sites.GetSite(s.ctx(), &kithv1.GetSiteRequest{})
		if site := r.GetSite(); err != nil || !site.GetDraining() || site.GetDrainReason() != "new kernel" ||
			site.GetDrainActor() != "anonymous" || site.GetDrainChangedTime() == nil {
			t.Errorf("%s: drain of %v, %v", when, site, err)
		}
		if when == "before" {
			s.restart()
		}
	}
	if _, err := s.sites.ResumeSite(s.ctx(), &kithv1.ResumeSiteRequest{}); err != nil {
		t.Fatal(err)
	}
	text := log.String()
	for _, want := range []string{
		`msg="job submitted" site_id=alpha actor=anonymous from=127.0.0.1:`, `job_id=` + id, `msg="job released" site_id=alpha actor=anonymous`,
		`msg="job cancelled" site_id=alpha actor=anonymous`, `job_id=` + second + ` reason="wrong input"`,
		`msg="site drains" site_id=alpha actor=anonymous`, `reason="new kernel"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the log lacks %s", want)
		}
	}
}

// The version of a job grows with every change, in all three calls that show it,
// and over a restart.
func TestVersionGrows(t *testing.T) {
	t.Parallel()
	s := startSite(t, testConfig(t, "alpha"))
	j := shell("true")
	j.Hold = true
	id := s.submit(j)
	watch, err := s.jobs.WatchJobs(s.ctx(), &kithv1.WatchJobsRequest{JobIds: []string{id}})
	if err != nil {
		t.Fatal(err)
	}
	seen := int64(0)
	grows := func(what string, version int64) {
		t.Helper()
		if version <= seen {
			t.Errorf("%s: version %d after %d", what, version, seen)
		}
		seen = version
	}
	first, err := watch.Recv()
	if err != nil {
		t.Fatal(err)
	}
	grows("held, watched", first.GetJob().GetStatus().GetVersion())
	if v := s.get(id).GetStatus().GetVersion(); v != seen {
		t.Errorf("GetJob says version %d, WatchJobs %d", v, seen)
	}
	if _, err := s.jobs.ReleaseJob(s.ctx(), &kithv1.ReleaseJobRequest{JobId: id}); err != nil {
		t.Fatal(err)
	}
	for state := first.GetJob().GetStatus().GetState(); state != completed; {
		r, err := watch.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if next := r.GetJob().GetStatus().GetState(); r.GetJob() != nil && next != state {
			state = next
			grows(state.String(), r.GetJob().GetStatus().GetVersion())
		}
	}
	s.restart()
	for _, list := range []bool{false, true} {
		got := s.get(id).GetStatus().GetVersion()
		if list {
			r, err := s.jobs.ListJobs(s.ctx(), &kithv1.ListJobsRequest{AllStates: true})
			if err != nil || len(r.GetJobs()) != 1 {
				t.Fatalf("%v, %v", r, err)
			}
			got = r.GetJobs()[0].GetStatus().GetVersion()
		}
		if got < seen {
			t.Errorf("after a restart, list %v: version %d, it was %d", list, got, seen)
		}
	}
}

// The kernel says who is at the other end of a local socket, and the caller is
// then the submitter and the user.
func TestPeerCredentialNamesTheCaller(t *testing.T) {
	t.Parallel()
	c := testConfig(t, "alpha")
	c.Listen.AllowOwnUID = true // the test runs under the account of the daemon
	s := startSite(t, c)
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	go s.d.server.Serve(l) //nolint:errcheck // ends with the site
	conn, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	r, err := kithv1.NewJobServiceClient(conn).SubmitJob(s.ctx(), &kithv1.SubmitJobRequest{Job: shell("true")})
	if err != nil {
		t.Fatal(err)
	}
	me := fmt.Sprint("uid-", os.Getuid())
	if u, err := user.Current(); err == nil {
		me = u.Username
	}
	got := s.get(r.GetJobId())
	if a := acts(got); a != "submit "+me || got.GetStatus().GetUser() != me {
		t.Errorf("acts %q, user %q, want %q", a, got.GetStatus().GetUser(), me)
	}
}
