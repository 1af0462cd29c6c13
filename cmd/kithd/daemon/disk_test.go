package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kith/cmd/kithd/config"
	"kith/internal/scratch"
	kithv1 "kith/proto/gen/kith/v1"
)

// ledger is a file outside of the site's disk in which jobs sign.
type ledger struct {
	t    *testing.T
	path string
}

func newLedger(t *testing.T) ledger { return ledger{t, filepath.Join(t.TempDir(), "ledger")} }

// signed makes a job that signs and then runs text.
func (l ledger) signed(text string) *kithv1.Job {
	return shell("echo $KITH_JOB_ID >> " + l.path + "; " + text)
}

// expect demands that each of the jobs has signed once, and nobody else.
func (l ledger) expect(ids ...string) {
	l.t.Helper()
	text, err := os.ReadFile(l.path)
	if err != nil {
		l.t.Fatal(err)
	}
	times := map[string]int{}
	for line := range strings.Lines(string(text)) {
		times[strings.TrimSpace(line)]++
	}
	for _, id := range ids {
		if times[id] != 1 {
			l.t.Errorf("%s ran %d times", id, times[id])
		}
		delete(times, id)
	}
	if len(times) > 0 {
		l.t.Errorf("others ran: %v", times)
	}
}

// barrier is a file that jobs wait for.
func barrier(t *testing.T) (wait string, open func()) {
	path := filepath.Join(t.TempDir(), "barrier")
	return "while [ ! -e " + path + " ]; do sleep 0.02; done", func() {
		t.Helper()
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *testSite) expectRefusal(err error, code codes.Code, reason string, says ...string) {
	s.t.Helper()
	got, _, retry := reasonOf(err)
	if status.Code(err) != code || got != reason || !retry {
		s.t.Errorf("%v with reason %q, retry %v; want %v with %q and a time to try again", err, got, retry, code, reason)
		return
	}
	for _, want := range says {
		if !strings.Contains(err.Error(), want) {
			s.t.Errorf("%q does not say %q", err, want)
		}
	}
}

// Below the low-water mark a site takes no new job, but everything goes on for
// those that it has.
func TestDiskNearlyFull(t *testing.T) {
	t.Parallel()
	disk := scratch.NewDisk(t, 64<<20)
	c := testConfig(t, "alpha")
	c.Data, c.Files.KeepFreeBytes = filepath.Join(disk.Dir, "alpha"), 8<<20
	s := startSite(t, c)
	l := newLedger(t)
	wait, open := barrier(t)
	runs, waits, held := l.signed(wait), l.signed("true"), l.signed("true")
	runs.Processors, waits.Processors, held.Processors, held.Hold = 2, 2, 2, true
	runsID, waitsID, heldID := s.submit(runs), s.submit(waits), s.submit(held)
	s.waitState(runsID, kithv1.JobStatus_STATE_RUNNING)

	disk.Fill(4 << 20)
	for _, j := range map[string]*kithv1.Job{
		"command": shell("true"),
		"script":  {Script: "#!/bin/sh\n" + strings.Repeat("# long\n", 10000), Processors: 1, Walltime: shell("").Walltime},
	} {
		_, err := s.jobs.SubmitJob(s.ctx(), &kithv1.SubmitJobRequest{Job: j})
		s.expectRefusal(err, codes.ResourceExhausted, "DISK_FULL", disk.Dir, "must stay free", "free space")
	}
	upload, err := s.files.UploadFile(s.ctx())
	if err == nil {
		upload.Send(&kithv1.UploadFileRequest{Data: make([]byte, 1<<20)}) //nolint:errcheck // the answer tells
		_, err = upload.CloseAndRecv()
	}
	s.expectRefusal(err, codes.ResourceExhausted, "DISK_FULL")
	if site, err := s.sites.GetSite(s.ctx(), &kithv1.GetSiteRequest{}); err != nil || !strings.Contains(site.GetSite().GetDiskTrouble(), "new jobs are refused (1, ") {
		t.Errorf("the site says %q, %v", site.GetSite().GetDiskTrouble(), err)
	}

	if _, err := s.jobs.ReleaseJob(s.ctx(), &kithv1.ReleaseJobRequest{JobId: heldID}); err != nil {
		t.Error(err)
	}
	open()
	for _, id := range []string{runsID, waitsID, heldID} {
		s.waitState(id, completed)
	}
	disk.Empty()
	afterID := s.submit(l.signed("true"))
	s.waitState(afterID, completed)
	l.expect(runsID, waitsID, heldID, afterID)
}

// crowded is a site on a small disk without a low-water mark, with a job that
// runs on all its processors and two that wait, one of them with files.
type crowded struct {
	*testSite
	ledger
	disk *scratch.Disk
	open func()
	ids  []string
}

func newCrowded(t *testing.T) *crowded {
	t.Helper()
	disk := scratch.NewDisk(t, 64<<20)
	c := testConfig(t, "alpha")
	c.Data, c.Files.KeepFreeBytes, c.Files.ReserveBytes = filepath.Join(disk.Dir, "alpha"), 0, 0
	s := &crowded{testSite: startSite(t, c), ledger: newLedger(t), disk: disk}
	wait, open := barrier(t)
	s.open = open
	files := s.signed("cat in > out")
	files.Inputs = []*kithv1.InputFile{{Path: "in", Content: &kithv1.InputFile_Data{Data: []byte(strings.Repeat("data ", 20000))}}}
	files.Outputs = []*kithv1.OutputFile{{Path: "out"}}
	for _, j := range []*kithv1.Job{s.signed(wait), s.signed("echo done"), files} {
		j.Processors = 2
		s.ids = append(s.ids, s.submit(j))
	}
	s.waitState(s.ids[0], kithv1.JobStatus_STATE_RUNNING)
	return s
}

// allDone waits until all jobs have ended well, each after one start, with
// all that they wrote.
func (s *crowded) allDone() {
	s.testSite.t.Helper()
	for _, id := range s.ids {
		s.waitState(id, completed, failed)
		if j := s.get(id); j.GetStatus().GetState() != completed {
			s.testSite.t.Errorf("%s: %v", id, j.GetStatus())
		}
	}
	if out := s.output(s.ids[1], ""); out != "done\n" {
		s.testSite.t.Errorf("stdout %q", out)
	}
	if out := s.output(s.ids[2], "out"); len(out) != 100000 {
		s.testSite.t.Errorf("%d bytes of output", len(out))
	}
	s.expect(s.ids...)
}

// large is a job whose facts do not fit in between those that there are.
func (s *crowded) large(id string) *kithv1.SubmitJobRequest {
	j := s.signed("true")
	j.Processors, j.Environment = 2, map[string]string{}
	for i := range 6 {
		j.Environment[fmt.Sprint("FILLER", i)] = strings.Repeat("x", 20000)
	}
	return &kithv1.SubmitJobRequest{RequestId: id, Job: j}
}

// jam fills the disk to the last byte and submits a job whose facts do not fit
// any more; its answer comes when they do. It returns when the site has noticed.
func (s *crowded) jam() (answer chan string) {
	s.testSite.t.Helper()
	s.disk.Fill(0)
	answer = make(chan string, 1)
	go func() {
		r, err := s.jobs.SubmitJob(s.ctx(), s.large("jam"))
		if err != nil {
			answer <- err.Error()
			return
		}
		answer <- r.GetJobId()
	}()
	s.eventually("the site notices that its disk is full", func() bool {
		_, err := s.d.loop.trouble.now()
		return err != nil
	})
	return answer
}

// While facts cannot be written nothing is acknowledged, nothing is shown that
// could be gone after a crash, and everything says why. When there is room
// again all goes on by itself.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	s := newCrowded(t)
	unwanted := s.submit(shell("true"))
	answer := s.jam()
	_, err := s.jobs.SubmitJob(s.ctx(), &kithv1.SubmitJobRequest{Job: shell("true")})
	s.expectRefusal(err, codes.ResourceExhausted, "DISK_FULL", "takes nothing on", "free space on the disk")
	_, err = s.jobs.CancelJob(s.ctx(), &kithv1.CancelJobRequest{JobId: unwanted})
	s.expectRefusal(err, codes.ResourceExhausted, "DISK_FULL", "cancel again", "free space on the disk")
	_, err = s.jobs.GetJob(s.ctx(), &kithv1.GetJobRequest{JobId: s.ids[1]})
	s.expectRefusal(err, codes.Unavailable, "NOT_DURABLE", "until it can")
	if list, err := s.jobs.ListJobs(s.ctx(), &kithv1.ListJobsRequest{}); err != nil || len(list.GetJobs()) < len(s.ids) {
		t.Errorf("%d jobs are listed, %v", len(list.GetJobs()), err)
	}
	if site, err := s.sites.GetSite(s.ctx(), &kithv1.GetSiteRequest{}); err != nil || !strings.Contains(site.GetSite().GetDiskTrouble(), "disk full") {
		t.Errorf("the site says %q, %v", site.GetSite().GetDiskTrouble(), err)
	}
	s.open() // the running job ends meanwhile, and nobody can write that down
	time.Sleep(1500 * time.Millisecond)
	select {
	case text := <-answer:
		t.Errorf("acknowledged while nothing can be written: %s", text)
	default:
	}
	s.disk.Empty()
	id := <-answer
	if !strings.HasPrefix(id, "alpha.") {
		t.Fatalf("the job that waited for room: %s", id)
	}
	s.ids = append(s.ids, id)
	s.allDone()
	s.waitState(unwanted, kithv1.JobStatus_STATE_CANCELLED)
	s.restart()
	s.allDone()
}

// A site whose disk is full can be stopped, and loses nothing by that.
func TestStopOnFullDisk(t *testing.T) {
	t.Parallel()
	s := newCrowded(t)
	answer := s.jam()
	stopped := make(chan error, 1)
	go func() { stopped <- s.d.Close() }()
	select {
	case err := <-stopped:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the site does not stop")
	}
	if text := <-answer; strings.HasPrefix(text, "alpha.") {
		t.Errorf("acknowledged while nothing can be written: %s", text)
	}
	s.disk.Empty()
	s.testSite.open()
	// Whoever got no answer asks again, and it is one job whatever happened.
	r, err := s.jobs.SubmitJob(s.ctx(), s.large("jam"))
	if err != nil {
		t.Fatal(err)
	}
	s.ids = append(s.ids, r.GetJobId())
	s.open()
	s.allDone()
}

// A lease is renewed although the disk of the host, or of the origin, takes
// nothing for longer than it lasts: the job goes on, and runs once.
func TestLeaseOnFullDisk(t *testing.T) {
	for _, full := range []string{"beta", "alpha"} {
		t.Run(map[string]string{"beta": "host", "alpha": "origin"}[full], func(t *testing.T) {
			t.Parallel()
			const lease = 3 * time.Second
			disk := scratch.NewDisk(t, 64<<20)
			sites := federation(t, func(c *config.Config) {
				c.Timing.Lease, c.Timing.LeaseMargin = lease, lease/4
				if c.Site == full {
					c.Data, c.Files.KeepFreeBytes, c.Files.ReserveBytes = filepath.Join(disk.Dir, full), 0, 0
				}
			}, "alpha", "beta")
			release := sites[0].busy()
			defer release()
			l := newLedger(t)
			wait, open := barrier(t)
			j := l.signed(wait)
			j.OnSiteLost, j.Copies = kithv1.Job_ON_SITE_LOST_RERUN, 2
			id := sites[0].submit(j)
			sites[0].waitState(id, kithv1.JobStatus_STATE_RUNNING)
			jammed := &crowded{testSite: sites[0], ledger: l, disk: disk}
			if full == "beta" {
				jammed.testSite = sites[1]
			}
			answer := jammed.jam()
			time.Sleep(3 * lease)
			disk.Empty()
			other := <-answer
			open()
			got := sites[0].waitState(id, completed, failed, kithv1.JobStatus_STATE_LOST)
			if st := got.GetStatus(); st.GetState() != completed || st.GetAttempt() != 1 || st.GetHostSiteId() != "beta" {
				t.Errorf("%v", st)
			}
			jammed.waitState(other, kithv1.JobStatus_STATE_QUEUED, kithv1.JobStatus_STATE_RUNNING, completed)
			if _, err := jammed.jobs.CancelJob(jammed.ctx(), &kithv1.CancelJobRequest{JobId: other}); err == nil {
				jammed.waitState(other, kithv1.JobStatus_STATE_CANCELLED, completed)
			}
			text, err := os.ReadFile(l.path)
			if err != nil || strings.Count(string(text), id+"\n") != 1 {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
}

// Jobs whose turn comes while the disk has no room for them wait for it; they
// can be cancelled meanwhile.
func TestStartOnFullDisk(t *testing.T) {
	t.Parallel()
	s := newCrowded(t)
	for _, id := range s.ids[1:] {
		if _, err := s.jobs.HoldJob(s.ctx(), &kithv1.HoldJobRequest{JobId: id}); err != nil {
			t.Fatal(err)
		}
	}
	unwanted := s.submit(s.signed("true"))
	s.disk.Fill(1 << 19) // half of what the start of an attempt takes
	s.open()
	s.eventually("the first of the queue waits for room", s.waitsForRoom(unwanted))
	if j := s.get(unwanted); j.GetStatus().GetState() != kithv1.JobStatus_STATE_CLAIMED {
		t.Errorf("%v", j.GetStatus())
	}
	if _, err := s.jobs.CancelJob(s.ctx(), &kithv1.CancelJobRequest{JobId: unwanted}); err != nil {
		t.Error(err)
	}
	s.waitState(unwanted, kithv1.JobStatus_STATE_CANCELLED)
	for _, id := range s.ids[1:] {
		if _, err := s.jobs.ReleaseJob(s.ctx(), &kithv1.ReleaseJobRequest{JobId: id}); err != nil {
			t.Fatal(err)
		}
	}
	s.eventually("the next one waits for room", s.waitsForRoom(s.ids[1]))
	s.disk.Empty()
	s.allDone()
}

// waitsForRoom reports whether an attempt of the job was launched and waits.
func (s *crowded) waitsForRoom(id string) func() bool {
	return func() bool {
		return s.logged("attempt waits for room on the disk", "attempt_id="+id+"#")
	}
}
