package explore

import (
	"context"
	"flag"
	"testing"
)

var (
	fSites    = flag.Int("sites", 2, "")
	fJobs     = flag.Int("jobs", 1, "")
	fCopies   = flag.Int("copies", 2, "")
	fCrashes  = flag.Int("crashes", 0, "")
	fReboots  = flag.Int("reboots", 0, "")
	fLosses   = flag.Int("losses", 0, "")
	fDups     = flag.Int("duplicates", 0, "")
	fCuts     = flag.Int("cuts", 0, "")
	fTimeouts = flag.Int("timeouts", 0, "")
	fCancels  = flag.Int("cancels", 0, "")
	fBusy     = flag.Bool("busy", true, "")
	fFull     = flag.Bool("full", false, "")
)

func TestOne(t *testing.T) {
	c := Config{Sites: *fSites, Jobs: *fJobs, Copies: *fCopies, Crashes: *fCrashes, Reboots: *fReboots, Losses: *fLosses, Duplicates: *fDups, Cuts: *fCuts, Timeouts: *fTimeouts, Cancels: *fCancels, Busy: *fBusy, Full: *fFull}
	c.Progress = func(n, d int) {
		if d%10 == 0 {
			t.Log(n, d)
		}
	}
	r, err := Run(context.Background(), c)
	story := r.Story
	r.Story = nil
	t.Logf("%+v %v", *r, err)
	for _, l := range story {
		t.Log(l)
	}
}
