package chaos

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"kith/cmd/kithd/config"
	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

// stage is three sites on which one story about one job is played. The job is
// submitted at alpha, which is full, so that it runs elsewhere.
type stage struct {
	t    *testing.T
	bed  *bed
	dir  string // of what jobs write and wait for
	full string // the job that fills alpha
}

// Leases of the stories.
const (
	shortLease  = 1500 * time.Millisecond
	shortMargin = 2 * time.Second
	shortVanish = time.Second
)

func newStage(t *testing.T) *stage { return newStageWith(t, shortLease) }

func newStageWith(t *testing.T, lease time.Duration) *stage {
	t.Helper()
	if testing.Short() {
		t.Skip("left out with -short: it waits for leases to end")
	}
	t.Parallel()
	opt := &Options{Sites: 3, Dir: t.TempDir(), Duration: time.Minute}
	*opt = opt.withDefaults()
	s := &stage{t: t, dir: filepath.Join(opt.Dir, "story")}
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	b, err := openBed(t.Context(), opt, func(c *config.Config) {
		tune(c)
		c.Timing.Lease, c.Timing.LeaseMargin, c.Timing.Vanish = lease, shortMargin, shortVanish
		c.Timing.Heartbeat, c.Timing.AntiEntropy = 300*time.Millisecond, time.Second
	}, -1)
	if err != nil {
		t.Fatal(err)
	}
	s.bed = b
	t.Cleanup(s.end)
	s.full = s.submit(&kithv1.Job{
		Command: []string{"/bin/sleep", "600"}, Processors: b.sites[0].processors, Copies: 1,
	})
	s.wait(s.full, kithv1.JobStatus_STATE_RUNNING)
	return s
}

// end ends the story, and demands that nothing is left of it.
func (s *stage) end() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	in := &injector{bed: s.bed}
	in.healEverything(ctx)
	s.bed.fed.Cancel(ctx)
	if err := s.bed.close(); err != nil {
		s.t.Error(err)
	}
	if n := s.bed.sweep(5 * time.Second); n != 0 {
		s.t.Errorf("%d processes are left", n)
	}
	for _, p := range s.bed.logs.problems {
		s.t.Error(p)
	}
}

// submit submits a job at alpha and returns its id.
func (s *stage) submit(j *kithv1.Job) string {
	s.t.Helper()
	j.Walltime = durationpb.New(10 * time.Minute)
	r, err := s.bed.sites[0].Jobs.SubmitJob(s.t.Context(), &kithv1.SubmitJobRequest{Job: j})
	if err != nil {
		s.t.Fatal(err)
	}
	return r.GetJobId()
}

// job submits the job of the story. Its first attempt goes on until there is a
// file "first", later ones until there is one "later".
func (s *stage) job(policy kithv1.Job_OnSiteLost) string {
	s.t.Helper()
	script := "#!/bin/sh\n" + sign + `n=later
[ "${KITH_ATTEMPT##*-}" = 1 ] && n=first
[ "${KITH_ATTEMPT##*#}" = 1 ] && n=first
while [ ! -e "$STORY/$n" ]; do sleep 0.05; done
echo "end $KITH_ATTEMPT $KITH_SITE" >>"$CHAOS_LEDGER"
`
	return s.submit(&kithv1.Job{
		Script: script, Processors: 1, Copies: 3, OnSiteLost: policy,
		Environment: map[string]string{"CHAOS_LEDGER": s.path("ledger"), "CHAOS_LOCKS": s.dir, "CHAOS_RACE": "yes", "STORY": s.dir},
	})
}

func (s *stage) path(name string) string { return filepath.Join(s.dir, name) }

// let makes the file that attempts wait for.
func (s *stage) let(name string) {
	s.t.Helper()
	if err := os.WriteFile(s.path(name), nil, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) eventually(what string, ok func() bool) {
	s.t.Helper()
	for stop := time.Now().Add(40 * time.Second); time.Now().Before(stop); time.Sleep(10 * time.Millisecond) {
		if ok() {
			return
		}
	}
	s.t.Fatalf("never: %s", what)
}

func (s *stage) get(id string) *kithv1.JobStatus {
	j, err := getJob(s.t.Context(), s.bed.sites[0], id)
	if err != nil {
		s.t.Fatal(err)
	}
	return j.GetStatus()
}

func (s *stage) wait(id string, state kithv1.JobStatus_State) *kithv1.JobStatus {
	s.t.Helper()
	var st *kithv1.JobStatus
	for stop := time.Now().Add(40 * time.Second); time.Now().Before(stop); time.Sleep(10 * time.Millisecond) {
		if st = s.get(id); st.GetState() == state {
			return st
		}
	}
	s.t.Fatalf("%s is never %s, but %s; %v", id, state, brief(st), st.GetClaimEvents())
	return nil
}

// running waits until the job runs, and returns where.
func (s *stage) running(id string) *site {
	s.t.Helper()
	st := s.wait(id, kithv1.JobStatus_STATE_RUNNING)
	for _, n := range s.bed.sites {
		if n.Name == st.GetHostSiteId() {
			s.eventually("the first attempt signs", func() bool { return len(s.ledger().entries) > 0 })
			return n
		}
	}
	s.t.Fatalf("the job runs at %q", st.GetHostSiteId())
	return nil
}

func (s *stage) ledger() *ledger {
	s.t.Helper()
	f, err := os.Open(s.path("ledger"))
	if os.IsNotExist(err) {
		return &ledger{}
	}
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	l, err := readLedger(f)
	if err != nil {
		s.t.Fatal(err)
	}
	return l
}

// starts waits until the n-th attempt has signed, and returns where it runs.
func (s *stage) starts(id string, n uint32) string {
	s.t.Helper()
	var at string
	s.eventually("a later attempt starts", func() bool {
		r := s.ledger().runs(jobID(s.t, id))[n]
		at = r.site
		return r.starts > 0
	})
	return at
}

func jobID(t *testing.T, id string) job.ID {
	t.Helper()
	parsed, err := job.ParseID(id)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// apart demands that no two attempts overlapped and none started twice.
func (s *stage) apart(id string) {
	s.t.Helper()
	l := s.ledger()
	for _, text := range append(l.overlaps(jobID(s.t, id)), l.doubleStarts(jobID(s.t, id))...) {
		s.t.Error(text)
	}
}

// event waits until something has happened to the claim at a site.
func (s *stage) event(id string, kind kithv1.ClaimEvent_Kind, attempt int32, at string) {
	s.t.Helper()
	s.eventually(strings.Join([]string{kind.String(), "at", at}, " "), func() bool {
		for _, e := range s.get(id).GetClaimEvents() {
			if e.GetKind() == kind && e.GetAttempt() == attempt && e.GetSiteId() == at {
				return true
			}
		}
		return false
	})
}

// completed lets the job end in an attempt, and demands that it stays so.
func (s *stage) completed(id string, attempt int32, at string) {
	s.t.Helper()
	st := s.wait(id, kithv1.JobStatus_STATE_COMPLETED)
	for st.GetAttempt() > attempt && s.lost(st, attempt) {
		s.t.Logf("attempt %d was lost, too: the machine stood still for longer than a lease", attempt)
		attempt, at = attempt+1, st.GetHostSiteId()
	}
	if st.GetAttempt() != attempt || st.GetHostSiteId() != at {
		s.t.Errorf("the job %s, want attempt %d at %s; %v", brief(st), attempt, at, st.GetClaimEvents())
	}
}

// lost reports whether an attempt was given up as its host was not heard of.
func (s *stage) lost(st *kithv1.JobStatus, attempt int32) bool {
	return slices.ContainsFunc(st.GetClaimEvents(), func(e *kithv1.ClaimEvent) bool {
		return e.GetAttempt() == attempt && e.GetKind() == kithv1.ClaimEvent_KIND_REVOKED
	})
}

// nothingHeld waits until no site but alpha holds anything.
func (s *stage) nothingHeld() {
	s.t.Helper()
	s.eventually("no site holds a copy", func() bool {
		for _, n := range s.bed.sites {
			_, copies, err := listJobs(s.t.Context(), n, false)
			if err != nil || len(copies) > 0 {
				return false
			}
		}
		return true
	})
}
