package daemon

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"kith/cmd/kithd/config"
	"kith/internal/scratch"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store/boltstore/reserve"
)

// filling fills the disk, and each byte that comes free later.
const filling = "while :; do cat /dev/zero >> fill; sleep 0.1; done"

// hog is a job that fills the disk and goes on.
func hog(outputs ...string) *kithv1.Job {
	j := shell("echo kept > kept; " + filling)
	for _, o := range outputs {
		j.Outputs = append(j.Outputs, &kithv1.OutputFile{Path: o})
	}
	return j
}

// onSmallDisk is a site on a disk of its own, without a low-water mark.
func onSmallDisk(t *testing.T, reserve int64) *crowded {
	t.Helper()
	disk := scratch.NewDisk(t, 64<<20)
	c := testConfig(t, "alpha")
	c.Data, c.Files.KeepFreeBytes, c.Files.ReserveBytes = filepath.Join(disk.Dir, "alpha"), 0, reserve
	return &crowded{testSite: startSite(t, c), ledger: newLedger(t), disk: disk}
}

// fills waits until a job has filled the disk, and submits one whose facts do not
// fit any more.
func (s *crowded) fills(id string) (answer chan string) {
	s.testSite.t.Helper()
	s.waitState(id, kithv1.JobStatus_STATE_RUNNING)
	s.eventually("the job has filled the disk", func() bool { return s.disk.Free() == 0 })
	return s.jam()
}

// A job that fills the host's disk, so that nothing can be written down, can be
// cancelled: its end leaves before the commit, and its folder is emptied before the
// end is written down. After that the site is as before, without a restart.
func TestCancelOfAJobThatFillsTheDisk(t *testing.T) {
	t.Parallel()
	s := onSmallDisk(t, 0)
	id := s.submit(hog("kept"))
	answer := s.fills(id)
	if _, err := s.jobs.CancelJob(s.ctx(), &kithv1.CancelJobRequest{JobId: id}); err != nil {
		t.Error(err)
	}
	s.waitState(id, kithv1.JobStatus_STATE_CANCELLED)
	if out := s.output(id, "kept"); out != "kept\n" {
		t.Errorf("the declared output of the job is %q", out)
	}
	other := <-answer
	s.waitState(other, completed)
	s.waitState(s.submit(s.signed("true")), completed)
	if site, err := s.sites.GetSite(s.ctx(), &kithv1.GetSiteRequest{}); err != nil || site.GetSite().GetDiskTrouble() != "" {
		t.Errorf("the site says %q, %v", site.GetSite().GetDiskTrouble(), err)
	}
}

// The same for a task of a bag, by its index or with all of the bag: it is stopped before the
// commit. The others run.
func TestCancelOfABagThatFillsTheDisk(t *testing.T) {
	for name, indices := range map[string]string{"one of its tasks": "1", "all": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := onSmallDisk(t, 0)
			task := shell("echo kept > kept; [ $KITH_TASK_INDEX = 1 ] || exit 0; " + filling)
			task.Outputs = []*kithv1.OutputFile{{Path: "kept"}}
			id := s.submitBag(&kithv1.Bag{Job: task, Parameters: &kithv1.Bag_Matrix{Matrix: "x=0..2"}})
			s.eventually("the task has filled the disk", func() bool { return s.disk.Free() == 0 })
			answer := s.jam()
			if _, err := s.bags.CancelBag(s.ctx(), &kithv1.CancelBagRequest{BagId: id, Indices: indices}); err != nil {
				t.Error(err)
			}
			s.eventually("the bag ends", func() bool {
				r, err := s.bags.GetBag(s.ctx(), &kithv1.GetBagRequest{BagId: id})
				return err == nil && r.GetBag().GetStatus().GetState() == kithv1.BagStatus_STATE_CANCELLED
			})
			s.waitState(<-answer, completed)
			s.waitState(s.submit(s.signed("true")), completed)
			if site, err := s.sites.GetSite(s.ctx(), &kithv1.GetSiteRequest{}); err != nil || site.GetSite().GetDiskTrouble() != "" {
				t.Errorf("the site says %q, %v", site.GetSite().GetDiskTrouble(), err)
			}
		})
	}
}

// The same at a host, for a job of another site.
func TestCancelOfAForeignJobThatFillsTheDisk(t *testing.T) {
	t.Parallel()
	disk := scratch.NewDisk(t, 64<<20)
	sites := federation(t, func(c *config.Config) {
		if c.Site == "beta" {
			c.Data, c.Files.KeepFreeBytes, c.Files.ReserveBytes = filepath.Join(disk.Dir, "beta"), 0, 0
		}
	}, "alpha", "beta")
	release := sites[0].busy()
	defer release()
	j := hog()
	j.Copies = 2
	id := sites[0].submit(j)
	host := &crowded{testSite: sites[1], ledger: newLedger(t), disk: disk}
	sites[0].waitState(id, kithv1.JobStatus_STATE_RUNNING)
	host.eventually("the job has filled the disk", func() bool { return disk.Free() == 0 })
	answer := host.jam()
	if _, err := sites[0].jobs.CancelJob(sites[0].ctx(), &kithv1.CancelJobRequest{JobId: id}); err != nil {
		t.Error(err)
	}
	sites[0].waitState(id, kithv1.JobStatus_STATE_CANCELLED)
	host.waitState(<-answer, completed)
}

// With a reserve what happens is written down although a job has filled the disk,
// and new jobs are refused with what to do. When the job is gone the reserve is taken
// again and the site takes jobs, without a restart.
func TestReserve(t *testing.T) {
	t.Parallel()
	s := onSmallDisk(t, 4<<20)
	path := filepath.Join(s.d.cfg.Data, reserve.Name)
	if _, err := os.Lstat(path); err != nil {
		t.Fatal(err)
	}
	id := s.submit(hog())
	s.waitState(id, kithv1.JobStatus_STATE_RUNNING)
	s.eventually("the job has filled the disk", func() bool { return s.disk.Free() == 0 })
	r, err := s.jobs.SubmitJob(s.ctx(), s.large("fits into the reserve"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the reserve is there on a full disk: %v", err)
	}
	_, err = s.jobs.SubmitJob(s.ctx(), &kithv1.SubmitJobRequest{Job: shell("true")})
	s.expectRefusal(err, codes.ResourceExhausted, "DISK_FULL", "takes nothing new on", "cancel the job that fills it")
	if site, err := s.sites.GetSite(s.ctx(), &kithv1.GetSiteRequest{}); err != nil || !strings.Contains(site.GetSite().GetDiskTrouble(), "disk full") {
		t.Errorf("the site says %q, %v", site.GetSite().GetDiskTrouble(), err)
	}
	if _, err := s.jobs.CancelJob(s.ctx(), &kithv1.CancelJobRequest{JobId: id}); err != nil {
		t.Error(err)
	}
	s.waitState(id, kithv1.JobStatus_STATE_CANCELLED)
	s.waitState(r.GetJobId(), completed)
	s.eventually("the reserve is there again", func() bool {
		_, err := os.Lstat(path)
		return err == nil
	})
	s.eventually("the site takes jobs", func() bool {
		_, err := s.jobs.SubmitJob(s.ctx(), &kithv1.SubmitJobRequest{Job: shell("true")})
		return err == nil
	})
}
