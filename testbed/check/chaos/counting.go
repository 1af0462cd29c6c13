package chaos

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"kith/cmd/kithd/config"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/sitesched"
)

// With [Options.Demotions] most jobs count: a job adds up the numbers from 1, some in a second,
// saves how far it is and goes on elsewhere. It signs each number, where it begins and what it
// saves in a file of its own that only the checker reads.

// counter is what a job that counts is to do.
type counter struct {
	to int // the last number
	// copied says that what it saves is copied while it runs.
	copied bool
	// asks is how often its user asks it to go on elsewhere.
	asks int
}

// sum is the end of what it prints.
func (c *counter) sum() string { return fmt.Sprintf("sum %d\n", c.to*(c.to+1)/2) }

// counts counts. Its variables: stop ends each attempt after so many numbers, by itself; step saves after
// so many and goes on; deaf ignores the signal.
const counts = `cd "$KITH_CHECKPOINT_DIR" || exit 96
note() { echo "$1 $KITH_ATTEMPT $2" >>"$CHAOS_COUNTS/$KITH_JOB_ID"; }
i=0 sum=0 seq=0 n=0
if [ "${KITH_CHECKPOINT_SEQUENCE:-0}" -gt 0 ]; then read -r seq i sum <state || exit 95; fi
note from "${KITH_CHECKPOINT_SEQUENCE:-0} $seq $i $sum"
save() {
	seq=$((seq + 1))
	note save "$seq $i $sum"
	echo "$seq $i $sum" >state.new && mv state.new state && echo "$seq" >DONE.new && mv DONE.new DONE && note saved "$seq"
}
while [ "$i" -lt "$to" ]; do
	i=$((i + 1)) sum=$((sum + i)) n=$((n + 1))
	note n "$i"
	sleep 0.2
	[ "$stop" -gt 0 ] && [ "$n" -ge "$stop" ] && [ "$i" -lt "$to" ] && asked=1
	if [ "$asked" ]; then
		save && note left
		exit 85
	fi
	[ "$step" -gt 0 ] && [ $((n % step)) -eq 0 ] && save
done
`

// Of ten jobs so many count.
const countOfTen = 7

// counting makes a job one that counts: some stop by themselves, some save as they go, of which some are deaf,
// some are of a hierarchy, and all are asked.
func (m *maker) counting(t *task) {
	r := m.rng
	t.counts = &counter{to: 15 + r.IntN(25), asks: 1 + r.IntN(2)}
	if t.policy == kithv1.Job_ON_SITE_LOST_RACE { // which cannot go on from what another attempt saved
		t.policy = kithv1.Job_ON_SITE_LOST_RERUN
		delete(t.job.Environment, "CHAOS_RACE")
	}
	stop, step, trap, deaf := 0, 0, `trap 'asked=1' USR1`, false
	c := &kithv1.Checkpoint{Paths: []string{"state"}, Grace: durationpb.New(countGrace)}
	switch r.IntN(6) {
	case 0:
		stop = 5 + r.IntN(10)
	case 1, 2:
		step, t.counts.copied = 3+r.IntN(3), true
		c.Every = durationpb.New(time.Second)
	case 3:
		step, trap, deaf = 3+r.IntN(3), `trap '' USR1`, true
	}
	t.code, t.runsOut, t.duration = 0, false, time.Duration(t.counts.to)*countTime
	t.job.Processors, t.job.Checkpoint, t.job.OnSiteLost = 1, c, t.policy
	t.job.Walltime = durationpb.New(2 * time.Minute)
	if !deaf && r.IntN(3) == 0 {
		t.job.Walltime, t.job.WalltimeUnknown = nil, true
	}
	t.job.Environment["CHAOS_COUNTS"] = m.folders.counts
	t.outputs, t.job.Inputs, t.job.Outputs = nil, nil, nil
	t.job.Script = fmt.Sprintf("#!/bin/sh\nasked=\n%s\n%sto=%d stop=%d step=%d\n%s", trap, sign, t.counts.to, stop, step, counts) +
		"echo \"done $KITH_JOB_ID\"\necho \"sum $sum\"\necho \"end $KITH_ATTEMPT $KITH_SITE\" >>\"$CHAOS_LEDGER\"\n"
}

const (
	countTime  = 200 * time.Millisecond // a number takes
	countGrace = 2 * time.Second
	// meanCount is how many processor seconds a job that counts takes in the mean.
	meanCount = 5.5
	// crowd is by how much more is submitted than else: guests leave where the processors are taken.
	crowd = 1.25
)

// countLoad is as [load], for a mixture of which most jobs count.
func countLoad(others float64) float64 {
	return (countOfTen*meanCount + (10-countOfTen)*others) / 10 / crowd
}

// tuneCounting has sites be levels, and guests leave for their own jobs: one that hides guests, one that bounds
// what they cost, and one that is the last level.
func tuneCounting(i int, c *config.Config) {
	c.Checkpoint.MaxGrace = countGrace
	switch i % len(siteKinds) {
	case 0:
		c.Level.Rank, c.Level.Run, c.Level.Queue = 1, 4*time.Second, 20*time.Second
	case 1:
		c.Level.Rank, c.Level.Run, c.Level.Queue = 2, 8*time.Second, time.Minute
		c.NoHarm.Mode, c.NoHarm.Bound = meta.HarmBounded, 4*countGrace
	case 2:
		c.Scheduler.Queues = sitesched.DualPreempt
		c.NoHarm.Mode = meta.HarmInvisible
	case 3:
		c.Scheduler.Backfill, c.Scheduler.Queues = sitesched.EASY, sitesched.DualBackfill
		c.Level.Rank, c.Level.Run, c.Level.Queue = 3, time.Minute, 10*time.Hour // it rejects nobody, also with one processor
	}
}

// countsOf is the file of a job that counts.
func (f *folders) countsOf(id string) string { return filepath.Join(f.counts, id) }

// causeName says why an attempt ended with its job to go on, as people read it.
func causeName(c kithv1.Demotion_Cause) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(c.String(), "CAUSE_"), "_", "-"))
}
