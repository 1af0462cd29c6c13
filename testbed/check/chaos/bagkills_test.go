package chaos

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	kithv1 "kith/proto/gen/kith/v1"
)

// Tasks run once each although every daemon is killed again and again.
func TestBagKills(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: it takes a quarter of a minute")
	}
	t.Parallel()
	r, err := RunBagKills(t.Context(), BagOptions{Dir: t.TempDir(), Sites: 2, Tasks: 2000, Kills: 5, Observe: func(line string) { t.Log(line) }})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Sound() || r.Kills < 3 || r.Kills > 6 { // a fast bag may end before the last ones
		t.Errorf("%+v", *r)
	}
}

func TestBagOptions(t *testing.T) {
	bad := BagOptions{Sites: 0, Tasks: 1, Kills: -1}
	err := bad.Validate()
	for _, want := range []string{"sites 0: choose 1 to 16", "tasks 1: choose 100 to 16777216", "kills -1: choose 0 to"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	if good := DefaultBagOptions(); good.Validate() != nil {
		t.Error(good.Validate())
	}
}

// Each way in which a bag can be wrong is seen.
func TestBagKillsCount(t *testing.T) {
	for text, want := range map[string]BagKills{
		"0\n1\n2\n":    {Signed: 3},
		"0\n2\n":       {Signed: 2, Missing: 1},
		"0\n1\n1\n2\n": {Signed: 4, DoubleStarts: 1},
	} {
		r := &bagKillsRun{opt: BagOptions{Tasks: 3}, ledger: filepath.Join(t.TempDir(), "ledger"), report: BagKills{Tasks: 3, Completed: 3, Runs: 3}}
		if err := os.WriteFile(r.ledger, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := r.count()
		if got := r.report; err != nil || got.Signed != want.Signed || got.Missing != want.Missing || got.DoubleStarts != want.DoubleStarts || got.Sound() != (want.Signed == 3) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, r := range []BagKills{
		{Tasks: 3, Completed: 2, Runs: 3, Signed: 3}, {Tasks: 3, Completed: 3, Runs: 4, Signed: 3}, {Tasks: 3, Completed: 3, Runs: 3, Signed: 3, Failed: 1},
	} {
		if r.Sound() {
			t.Errorf("%+v", r)
		}
	}
}

// What the origin counts as failed or lost is counted, though its tasks completed later.
func TestBagKillsTake(t *testing.T) {
	var r BagKills
	for range 2 { // again and again
		r.take(&kithv1.BagStatus{
			Tasks: &kithv1.TaskCounts{Completed: 8}, RunCount: 10, Sites: []*kithv1.BagSite{{Completed: 5, Failed: 1}, {Completed: 3, Failed: 1, Lost: 4}},
		})
	}
	if r.Completed != 8 || r.Runs != 10 || r.Failed != 6 {
		t.Errorf("%+v", r)
	}
}

// A run that goes on when its site has ended is counted, and what is known is told though
// the run was broken off.
func TestBagKillsBrokenOff(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: it starts a site")
	}
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := RunBagKills(ctx, BagOptions{Dir: t.TempDir(), Sites: 1, Tasks: 100_000, Kills: 100, Observe: func(string) { cancel() }})
	if !errors.Is(err, context.Canceled) || r == nil {
		t.Fatalf("%+v, %v", r, err)
	}
	if r.Signed == 0 || r.Signed < r.Completed || r.Sound() {
		t.Errorf("signed %d, completed %d, sound %v", r.Signed, r.Completed, r.Sound())
	}
}
