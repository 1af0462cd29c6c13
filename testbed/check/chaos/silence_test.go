package chaos

import (
	"strings"
	"testing"
	"time"

	kithv1 "kith/proto/gen/kith/v1"
)

// A job that waits for its host may be lost with the machine that ran it only if that was silent for
// longer than its site waits, while the job was there, and the site says so.
func TestLostWithNode(t *testing.T) {
	long := window{began, began.Add(executorLost + time.Second)}
	const said = "node lost: nothing was heard of machine four for 6s"
	for name, c := range map[string]struct {
		silent []window
		host   string
		reason string
		policy kithv1.Job_OnSiteLost
		right  bool
	}{
		"as it should":                    {[]window{long}, "b", said, onWait, true},
		"not silent for so long":          {[]window{{began, began.Add(executorLost - time.Second)}}, "b", said, onWait, false},
		"silent an hour before":           {[]window{{began.Add(-time.Hour), began.Add(-time.Minute)}}, "b", said, onWait, false},
		"at another site":                 {[]window{long}, "c", said, onWait, false},
		"for another reason":              {[]window{long}, "b", "attempt lost", onWait, false},
		"one that should have run again":  {[]window{long}, "b", said, onRerun, false},
		"one that runs elsewhere at once": {[]window{long}, "b", said, onRace, false},
	} {
		g := goodJob()
		st := g.now.GetStatus()
		st.State, st.HostSiteId, st.Reason = kithv1.JobStatus_STATE_LOST, c.host, c.reason
		g.job.ended, g.job.policy, g.ledger = g.now, c.policy, "start a.1.7#1 b\n"
		l, err := readLedger(strings.NewReader(g.ledger))
		if err != nil {
			t.Fatal(err)
		}
		k := &checker{result: &Result{}, ledger: l, killed: g.killed, lost: g.lost, apart: "b", silent: longerThan(executorLost, c.silent)}
		k.check(g.job, g.now, nil)
		if got := k.result.Jobs.LostWithNode == 1 && k.result.LostJobs == 0; got != c.right {
			t.Errorf("%s: right %v, want %v: %v", name, got, c.right, k.result.Problems)
		}
	}
}

// A silence that lost nothing, or after which nothing ran again, has not been one.
func TestSilencesReach(t *testing.T) {
	const once, twice = "start a.1.7#1 b\n", "start a.1.7#1 b\nstart a.1.7#2 b\n"
	for name, c := range map[string]struct {
		ledger         string
		silences, lost int
		fine           bool
	}{
		"both":              {twice, 1, 1, true},
		"no silence":        {once, 0, 0, true},
		"nothing lost":      {twice, 1, 0, false},
		"nothing ran again": {once, 1, 1, false},
	} {
		l, err := readLedger(strings.NewReader(c.ledger))
		if err != nil {
			t.Fatal(err)
		}
		k := &checker{result: &Result{Jobs: Jobs{LostWithNode: c.lost}}, ledger: l}
		k.reached([]string{"a.1.7"}, c.silences)
		if got := k.result.Sound(); got != c.fine {
			t.Errorf("%s: sound %v, want %v: %v", name, got, c.fine, k.result.Problems)
		}
	}
}
