package chaos

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// testSlack is by what factor the targets of time may be missed in tests, whose
// machine may have other tests to run at the same time. "kith-lab chaos" knows none.
const testSlack = 3

// TestRun is a short run with faults of all kinds that can be had here.
func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: it takes some seconds")
	}
	t.Parallel()
	r, err := Run(t.Context(), Options{
		Duration: 5 * time.Second, Sites: 3, Seed: 1, Dir: t.TempDir(), Observe: func(line string) { t.Log(line) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", r)
	for _, p := range r.Problems {
		t.Error(p)
	}
	if !r.Sound() {
		t.Error("not everything is as it should be")
	}
	for _, m := range r.Misses(testSlack) {
		t.Error(m)
	}
	if r.FaultCount == 0 || r.Jobs.Acknowledged == 0 || r.Jobs.Completed == 0 || r.Jobs.Attempts < r.Jobs.Completed || r.Heals.Count == 0 || r.Bags.Completed == 0 || r.Bags.Runs < r.Bags.Completed || r.Bags.OutputsRead == 0 {
		t.Error("nothing happened")
	}
}

// A run that is interrupted in the midst of faults ends all it has started: a second after
// the first fault, however long the sites took to find each other.
func TestRunInterrupted(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: it takes some seconds")
	}
	t.Parallel()
	dir := t.TempDir()
	ctx, end := context.WithTimeout(t.Context(), 2*time.Minute) // a run without a fault fails
	defer end()
	ctx, interrupt := context.WithCancel(ctx)
	defer interrupt()
	var first sync.Once
	_, err := Run(ctx, Options{
		Duration: time.Hour, Sites: 2, Seed: 3, Dir: dir, Kinds: []string{string(KillAll), string(FreezeDaemon), string(FreezeShim), string(CutAll)},
		Observe: func(string) { first.Do(func() { time.AfterFunc(time.Second, interrupt) }) },
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	if left := processesUnder(dir); len(left) > 0 {
		t.Errorf("%d processes are left", len(left))
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil || strings.Contains(string(mounts), dir) {
		t.Errorf("a disk is still mounted below %s: %v", dir, err)
	}
}
