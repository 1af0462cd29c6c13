package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/sitesched/work"
)

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
	d, err := OpenWith(s.cfg, slog.New(slog.NewTextHandler(t.Output(), nil)), Options{Host: host})
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
