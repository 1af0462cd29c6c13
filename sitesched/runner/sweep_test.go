package runner

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// A put that waits for the pause after a sweep keeps no other waiting: one that came before
// the sweep is told of it at once, and all are when the store closes.
func TestWaitingForASweepHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &Files{cfg: FilesConfig{Log: slog.New(slog.DiscardHandler)}, blobs: emptyStore(t), garbage: newGarbage()}
		g := &f.garbage
		g.rest = time.Now().Add(sweepPause)
		f.changed()
		waiting := make(chan bool, 1)
		go func() { waiting <- f.reclaim() }()
		synctest.Wait()
		if !g.sweeping.TryLock() {
			g.stop()
			t.Fatal("whoever waits for the pause after a sweep holds the lock for sweeping")
		}
		g.sweeping.Unlock()
		const before = 0
		g.sweeps.Add(1) // by another put
		began := time.Now()
		if helped, wait := f.tryReclaim(before); !helped || wait != 0 || time.Since(began) != 0 {
			t.Errorf("a put is not told of the sweep that another had done: %t, %v", helped, wait)
		}
		if !<-waiting || time.Since(began) != sweepPause {
			t.Errorf("the one that waited was not told of it when the pause was over")
		}
		f.changed()
		g.rest = time.Now().Add(sweepPause)
		go func() { waiting <- f.reclaim() }()
		synctest.Wait()
		g.stop()
		if <-waiting {
			t.Error("a store that closes says that a sweep has helped")
		}
	})
}
