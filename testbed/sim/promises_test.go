package sim

import (
	"testing"
	"time"

	"kith/internal/job"
)

// faulty is a scheduler that says of the first copy that waits that guests have moved the
// promise to it.
type faulty struct {
	drivenSite
	last job.AttemptID
}

func (f *faulty) Enqueue(now job.Time, c job.Copy) {
	f.last = c.ID
	f.drivenSite.Enqueue(now, c)
}

func (f *faulty) Moved() (job.AttemptID, bool) { return f.last, f.last.Number > 0 }

// A promise that guests move ends every run, also one in which nothing else is looked at and
// where no site measures what guests cost.
func TestMovedPromiseEndsTheRun(t *testing.T) {
	t.Parallel()
	for _, lies := range []bool{false, true} {
		want := ""
		w := watched(t, func(c *Config) {
			c.Check = false
			if lies {
				want, c.between = "S4", func(s drivenSite) drivenSite { return &faulty{drivenSite: s} }
			}
		}, 1, 1)
		home(w, 0, "s0", 1, time.Hour, time.Hour)
		home(w, time.Second, "s0", 1, time.Hour, time.Hour)
		if got := broken(w, time.Minute); got != want {
			t.Errorf("a scheduler that has a fault: %v; %q is broken, expected %q", lies, got, want)
		}
	}
}
