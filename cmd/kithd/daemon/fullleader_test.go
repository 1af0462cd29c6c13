package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"google.golang.org/grpc"

	kithv1 "kith/proto/gen/kith/v1"
)

// The disk of the machine that leads fills up. What was acknowledged stands, the site takes jobs at another
// one, and a job that runs goes on; when there is room again that machine has all that the others have.
func TestTheDiskOfALeaderFillsUp(t *testing.T) {
	t.Parallel()
	disk := func(data string) {
		if err := syscall.Mount("tmpfs", data, "tmpfs", 0, "size=96m,mode=700"); err != nil {
			t.Skipf("cannot mount a tmpfs here: %v", err)
		}
		t.Cleanup(func() { syscall.Unmount(data, syscall.MNT_DETACH) }) //nolint:errcheck // it is gone with the test
	}
	s := newApartSiteOn(t, "four", disk)
	a := s.submit("a", kithv1.Job_ON_SITE_LOST_WAIT)
	s.started(a, 1)
	full := s.leader()
	filler := filepath.Join(s.dir, full, "filler")
	if err := os.WriteFile(filler, make([]byte, 96<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk of %s is not full: %v", full, err)
	}
	b := s.submit("b", kithv1.Job_ON_SITE_LOST_WAIT)
	if leads := s.leader(); leads == full {
		t.Errorf("%s leads, whose disk is full", full)
	}
	s.completes(a, 1)
	s.started(b, 1)
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	for name := range s.up { // all but that one and another are gone
		if name != full && name != "four" && len(s.up) > 3 {
			s.kill(name)
		}
	}
	s.try("both jobs are known", func(c *grpc.ClientConn) error {
		r, err := kithv1.NewJobServiceClient(c).ListJobs(s.brief(), &kithv1.ListJobsRequest{AllStates: true})
		if err == nil && len(r.GetJobs()) != 2 {
			err = fmt.Errorf("%d jobs", len(r.GetJobs()))
		}
		return err
	})
	s.completes(b, 1)
}
