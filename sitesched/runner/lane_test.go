package runner

import (
	"context"
	"testing"
	"testing/synctest"

	"kith/internal/job"
)

// Those that wait are let in by their origins in turn, and who goes away leaves no gap.
func TestLaneTakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLane(1)
		if !l.enter(t.Context(), "first") {
			t.Fatal("a free place is refused")
		}
		var order []job.SiteID
		wait := func(ctx context.Context, origin job.SiteID) {
			go func() {
				if l.enter(ctx, origin) {
					order = append(order, origin)
					l.leave()
				}
			}()
			synctest.Wait()
		}
		gone, leave := context.WithCancel(t.Context())
		for range 3 {
			wait(t.Context(), "many")
		}
		wait(gone, "gone")
		wait(t.Context(), "one")
		wait(t.Context(), "two")
		leave()
		synctest.Wait()
		l.leave()
		synctest.Wait()
		want := []job.SiteID{"many", "one", "two", "many", "many"}
		if len(order) != len(want) {
			t.Fatalf("let in: %v", order)
		}
		for i := range want {
			if order[i] != want[i] {
				t.Fatalf("let in: %v, want %v", order, want)
			}
		}
		if l.free != 1 || len(l.turn) > 0 || len(l.waiting) > 0 {
			t.Errorf("left behind: %+v", l)
		}
	})
}
