package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kith/cmd/kithd/config"
	kithv1 "kith/proto/gen/kith/v1"
)

// onlyAt is a federation in which jobs of two processors run at beta alone.
func onlyAt(t *testing.T, tune func(*config.Config)) (a, b *testSite) {
	t.Helper()
	sites := federation(t, func(c *config.Config) {
		if c.Site == "alpha" {
			c.Scheduler.Processors = 1
		}
		if tune != nil {
			tune(c)
		}
	}, "alpha", "beta")
	return sites[0], sites[1]
}

// noise is a job that prints n random bytes at beta.
func noise(n int) *kithv1.Job {
	j := shell(fmt.Sprintf("head -c %d /dev/urandom", n))
	j.Processors = 2
	return j
}

// What nobody needs any more refuses no output: a host with room for two runs job after
// job, and after a restart too.
func TestGarbageRefusesNoOutput(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	a, b := onlyAt(t, func(c *config.Config) {
		if c.Site == "beta" {
			c.Files.QuotaBytes = 2*size + 100_000
		}
	})
	for i := range 8 {
		if i == 4 {
			b.restart()
		}
		j := a.waitState(a.submit(noise(size)), completed, failed)
		if o := j.GetStatus().GetOutcome(); len(o.GetOutputs()) != 1 || o.GetOutputLost() {
			t.Fatalf("job %d: %v", i+1, j.GetStatus())
		}
	}
}

// An output that meets a full store waits in its folder, and its processors serve
// others; when its job is cancelled it is given up, and the job says so.
func TestOutputWaitsForRoom(t *testing.T) {
	t.Parallel()
	a, b := onlyAt(t, func(c *config.Config) {
		if c.Site == "beta" {
			c.Files.QuotaBytes = 2 << 20
		}
	})
	// Beta's own job keeps most of the room: its output is at home there.
	keeper := b.waitState(b.submit(noise(3<<19)), completed)
	if len(keeper.GetStatus().GetOutcome().GetOutputs()) != 1 {
		t.Fatal(keeper)
	}
	waits := a.submit(noise(1 << 20))
	b.eventually("the output waits", func() bool { return b.logged("output not collected", "quota") })
	// One of two processors can only run there if the first has given its own back.
	small := noise(0)
	small.Command = []string{"true"}
	a.waitState(a.submit(small), completed)
	if st := a.get(waits).GetStatus(); st.GetState() != kithv1.JobStatus_STATE_RUNNING {
		t.Fatal(st)
	}
	if _, err := a.jobs.CancelJob(a.ctx(), &kithv1.CancelJobRequest{JobId: waits}); err != nil {
		t.Fatal(err)
	}
	st := a.waitState(waits, completed, failed, kithv1.JobStatus_STATE_CANCELLED).GetStatus()
	if !st.GetOutcome().GetOutputLost() {
		t.Errorf("%v does not say that its output is lost", st)
	}
	b.eventually("its folder is gone", func() bool {
		entries, err := os.ReadDir(filepath.Join(b.cfg.Data, AttemptsFolder))
		n := 0
		for _, e := range entries {
			if e.IsDir() && e.Name()[0] != '.' {
				n++
			}
		}
		return err == nil && n == 0
	})
}

// Fifteen inputs of one upload do not pass the quota that one of them fits.
func TestInputsOfOneUploadPassNoQuota(t *testing.T) {
	t.Parallel()
	c := testConfig(t, "alpha")
	c.Files.QuotaBytes = 4 << 20
	s := startSite(t, c)
	upload, err := s.files.UploadFile(s.ctx())
	if err != nil {
		t.Fatal(err)
	}
	if err := upload.Send(&kithv1.UploadFileRequest{Data: make([]byte, 1<<20)}); err != nil {
		t.Fatal(err)
	}
	up, err := upload.CloseAndRecv()
	if err != nil {
		t.Fatal(err)
	}
	inputs := func(n int) *kithv1.Job {
		j := shell("du -sk . >&2; cat in* | wc -c")
		for i := range n {
			j.Inputs = append(j.Inputs, &kithv1.InputFile{Path: fmt.Sprintf("in%d", i), Content: &kithv1.InputFile_UploadId{UploadId: up.GetUploadId()}})
		}
		return j
	}
	_, err = s.jobs.SubmitJob(s.ctx(), &kithv1.SubmitJobRequest{Job: inputs(15)})
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "larger than allowed") {
		t.Errorf("15 MiB of inputs under a quota of 4 MiB: %v", err)
	}
	if id := s.submit(inputs(2)); s.waitState(id, completed, failed).GetStatus().GetState() != completed {
		t.Errorf("2 MiB of inputs: %v", s.get(id).GetStatus())
	}
	// It passes the submission, and its folder does not fit beside the upload.
	id := s.submit(inputs(4))
	if st := s.waitState(id, completed, failed).GetStatus(); st.GetState() != failed || !strings.Contains(st.GetOutcome().GetReason(), "all files together") {
		t.Errorf("4 MiB of inputs and the upload: %v", st)
	}
}

// An output for which its origin has no room stays at its host: the job says so, and its
// user reads it there.
func TestOutputWithoutRoomIsReadAtItsHost(t *testing.T) {
	t.Parallel()
	const size = 5 << 20 // more than a chunk
	a, _ := onlyAt(t, func(c *config.Config) {
		if c.Site == "alpha" {
			c.Files.QuotaBytes = size + 1<<20
		}
	})
	a.waitState(a.submit(shell("head -c 2000000 /dev/urandom")), completed) // it keeps room
	id := a.submit(noise(size))
	a.eventually("the job says why its output waits", func() bool {
		return strings.Contains(a.get(id).GetStatus().GetReason(), "quota of the file store is used up")
	})
	j := a.get(id)
	if out := j.GetStatus().GetOutcome().GetOutputs(); j.GetStatus().GetState() != kithv1.JobStatus_STATE_RETURNING || len(out) != 1 || out[0].GetSizeBytes() != size {
		t.Fatalf("%v", j.GetStatus())
	}
	if text := a.output(id, "stdout"); len(text) != size {
		t.Errorf("%d of %d bytes were read", len(text), size)
	}
}
