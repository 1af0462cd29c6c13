package daemon

import (
	"testing"
	"time"

	"kith/internal/job"
)

// Whoever sets the wall's clock back, the engines' goes on where it was.
func TestClockNeverGoesBack(t *testing.T) {
	latest := job.Instant(time.Now().Add(time.Hour))
	if now := newClock(latest).now(); now < latest {
		t.Errorf("it is %v before the time of an earlier life", latest.Sub(now))
	}
	if ahead := newClock(0).now().Sub(job.Instant(time.Now())); ahead > time.Minute || ahead < -time.Minute {
		t.Errorf("a new site is %v ahead of the wall's clock", ahead)
	}
}
