package job

import "testing"

// bagLifeCycle repeats the transition table in words, so that a slip in either is seen.
// Every pair that is not named here must be impossible.
const bagLifeCycle = `
OPEN       hold            HELD
OPEN       request cancel  CANCELLING
OPEN       resolve         RETURNING
OPEN       retry           OPEN
OPEN       block           BLOCKED
BLOCKED    unblock         OPEN
BLOCKED    hold            HELD
BLOCKED    request cancel  CANCELLING
BLOCKED    resolve         RETURNING
BLOCKED    retry           BLOCKED
BLOCKED    refuse          CANCELLING
HELD       release         OPEN
HELD       request cancel  CANCELLING
HELD       resolve         RETURNING
HELD       retry           HELD
HELD       refuse          CANCELLING
CANCELLING request cancel  CANCELLING
CANCELLING resolve         RETURNING
RETURNING  request cancel  RETURNING
RETURNING  retry           OPEN
RETURNING  close: success  COMPLETED
RETURNING  close: failure  FAILED
RETURNING  close: cancel   CANCELLED
COMPLETED  retry           OPEN
FAILED     retry           OPEN
CANCELLED  retry           OPEN
`

func TestBagLifeCycleExhaustively(t *testing.T) {
	checkTable(t, bagLifeCycle, BagState(bagStateCount), bagEventCount, BagState.Next)
}

func TestBagLifeCycleEnds(t *testing.T) {
	// From every state an end can be reached without a retry, and only a retry leaves an end.
	reaches := map[BagState]bool{}
	for s := BagCompleted; s <= BagCancelled; s++ {
		reaches[s] = true
		for ev := range BagEvent(bagEventCount) { //nolint:unconvert // it gives ev its type
			if to, ok := s.Next(ev); ok != (ev == BagRetry) || ok && to != BagOpen {
				t.Errorf("%v is an end, and %v leads to %v, %v", s, ev, to, ok)
			}
		}
	}
	for range bagStateCount {
		for s := range BagState(bagStateCount) {
			for ev := range BagEvent(bagEventCount) { //nolint:unconvert // it gives ev its type
				if to, ok := s.Next(ev); ok && ev != BagRetry && reaches[to] {
					reaches[s] = true
				}
			}
		}
	}
	for s := BagOpen; s < bagStateCount; s++ {
		if !reaches[s] {
			t.Errorf("no end can be reached from %v", s)
		}
		if s.Terminal() != (s >= BagCompleted && s != BagBlocked) {
			t.Errorf("%v.Terminal() = %v", s, s.Terminal())
		}
		if s.Resolved() != (s.Terminal() || s == BagReturning) {
			t.Errorf("%v.Resolved() = %v", s, s.Resolved())
		}
		if s.Gives() != (s == BagOpen) {
			t.Errorf("%v.Gives() = %v", s, s.Gives())
		}
	}
}

// A cancelled bag gives out no task any more, whatever happens but a retry after its end.
func TestCancelledBagGivesNothing(t *testing.T) {
	may := map[BagState]bool{BagCancelling: true}
	for range bagStateCount {
		for s := range may {
			for ev := range BagEvent(bagEventCount) { //nolint:unconvert // it gives ev its type
				if to, ok := s.Next(ev); ok && ev != BagRetry {
					may[to] = true
				}
			}
		}
	}
	for s := range may {
		if s.Gives() {
			t.Errorf("a cancelled bag may be %v", s)
		}
	}
	if _, ok := BagCancelling.Next(BagRetry); ok {
		t.Error("a retry undoes a cancellation that goes on")
	}
}
