package daemon

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kith/cmd/kithd/config"
	"kith/internal/scratch"
	kithv1 "kith/proto/gen/kith/v1"
)

// A site whose disk has less than is to stay free takes no job of another site, tells the
// others so, and says why here. With room it takes such jobs again.
func TestLowDiskTakesNoGuests(t *testing.T) {
	t.Parallel()
	disk := scratch.NewDisk(t, 64<<20)
	sites := federation(t, func(c *config.Config) {
		if c.Site == "alpha" {
			c.Data, c.Files.KeepFreeBytes = filepath.Join(disk.Dir, c.Site), 8<<20
		}
	}, "alpha", "beta")
	alpha, beta := sites[0], sites[1]
	disk.Fill(4 << 20)
	seen := func(s *testSite, not bool) func() bool {
		return func() bool {
			r, err := s.sites.ListSites(s.ctx(), &kithv1.ListSitesRequest{})
			for _, at := range r.GetSites() {
				if at.GetId() == "alpha" {
					return err == nil && (at.GetNotStarting() || strings.Contains(at.GetStartTrouble(), "no jobs of other sites")) == not
				}
			}
			return false
		}
	}
	beta.eventually("beta hears that alpha has no room", seen(beta, true))
	alpha.eventually("alpha says so", seen(alpha, true))
	wait, open := barrier(t)
	l := newLedger(t)
	busy, next := l.signed(wait), l.signed("true")
	busy.Processors, next.Processors = 2, 2
	busyID := beta.submit(busy)
	beta.waitState(busyID, kithv1.JobStatus_STATE_RUNNING)
	nextID := beta.submit(next)
	time.Sleep(time.Second) // with room it would have started long since
	beta.waitState(nextID, kithv1.JobStatus_STATE_QUEUED)
	disk.Empty()
	beta.waitState(nextID, completed) // while beta is busy
	if at := beta.get(nextID).GetStatus().GetHostSiteId(); at != "alpha" {
		t.Errorf("the second job ran at %s", at)
	}
	open()
	beta.waitState(busyID, completed)
	l.expect(busyID, nextID)
}
