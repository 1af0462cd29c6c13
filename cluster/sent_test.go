package cluster

import (
	"testing"
	"time"

	"kith/internal/job"
)

// offers sends copies to a site for as long as it is not full, at most a hundred.
func offers(s *Sent, now job.Time) (n int) {
	for ; !s.Full(now) && n < 100; n++ {
		s.Offered(now, 5*time.Second)
	}
	return n
}

// A site that ran dry is offered many copies, but for one that said how many it takes: it
// is offered one, and more for each that it takes. (Wide schedule 52448.)
func TestOffersToASiteThatRanDry(t *testing.T) {
	for counted, want := range map[bool]int{false: dryCredit, true: firstCredit} {
		var s Sent
		s.Refused(1, time.Hour, counted)
		if n := offers(&s, 2); n != 0 {
			t.Errorf("counted %v: %d copies for a site that is full", counted, n)
		}
		if s.RanDry(); offers(&s, 3) != want {
			t.Errorf("counted %v: want %d offers once it has run dry", counted, want)
		}
		s.Accepted()
		if n := offers(&s, 4); n != firstCredit+creditGrowth {
			t.Errorf("counted %v: %d offers once it has taken one, want %d", counted, n, firstCredit+creditGrowth)
		}
	}
}
