package api

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	kithv1 "kith/proto/gen/kith/v1"
)

// How a job wants to be asked to save is refused by field, with what to give.
func TestCheckAsk(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		with func(c *kithv1.Checkpoint)
		want string
	}{
		"nothing": {func(*kithv1.Checkpoint) {}, ""},
		"all": {func(c *kithv1.Checkpoint) {
			c.Signal, c.SignalAll, c.Grace, c.BeforeWalltime = "HUP", true, durationpb.New(time.Hour), durationpb.New(time.Minute)
		}, ""},
		"KILL":           {func(c *kithv1.Checkpoint) { c.Signal = "KILL" }, `job.checkpoint.signal: "KILL": choose one of ALRM, CONT`},
		"SIGUSR1":        {func(c *kithv1.Checkpoint) { c.Signal = "SIGUSR1" }, "choose one of"},
		"grace below 0":  {func(c *kithv1.Checkpoint) { c.Grace = durationpb.New(-1) }, "job.checkpoint.grace: -1ns: must be 0 or 1ms to 24h"},
		"grace too long": {func(c *kithv1.Checkpoint) { c.Grace = durationpb.New(25 * time.Hour) }, "job.checkpoint.grace"},
		"grace no time":  {func(c *kithv1.Checkpoint) { c.Grace = &durationpb.Duration{Nanos: -5, Seconds: 5} }, "job.checkpoint.grace"},
		"before = limit": {func(c *kithv1.Checkpoint) { c.BeforeWalltime = durationpb.New(time.Hour) }, "job.checkpoint.before_walltime: 1h0m0s"},
		"every":          {func(c *kithv1.Checkpoint) { c.Every = durationpb.New(1500 * time.Millisecond) }, "job.checkpoint.every: 1.5s: give whole seconds"},
		"every too long": {func(c *kithv1.Checkpoint) { c.Every = durationpb.New(11 * 366 * 24 * time.Hour) }, "job.checkpoint.every: 96624h0m0s: must be 0 or 1s to 87840h0m0s"},
	} {
		j := &kithv1.Job{Walltime: durationpb.New(time.Hour), Checkpoint: &kithv1.Checkpoint{Paths: []string{"a"}}}
		c.with(j.Checkpoint)
		var f fieldErrors
		checkCheckpoint(&f, j)
		if c.want == "" && len(f) > 0 || c.want != "" && (len(f) != 1 || !strings.Contains(f.Error(), c.want)) {
			t.Errorf("%s: %v", name, []*FieldError(f))
		}
	}
}

// An estimator is for a job that goes from level to level, and what a site runs is what it has accepted.
func TestEstimatorOfAJob(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		with func(*kithv1.Job)
		want string
	}{
		"right":           {func(*kithv1.Job) {}, ""},
		"of a level":      {func(j *kithv1.Job) { j.WalltimeUnknown, j.Level, j.Walltime = false, 2, durationpb.New(time.Hour) }, ""},
		"of no hierarchy": {func(j *kithv1.Job) { j.WalltimeUnknown = false }, "job.estimate: an estimator is for a job that goes from level to level"},
		"too long":        {func(j *kithv1.Job) { j.Estimate = strings.Repeat("x", 4097) }, "job.estimate: 4097 bytes: must be at most 4096"},
		"blank":           {func(j *kithv1.Job) { j.Estimate = " \n" }, "job.estimate: must be a command"},
		"NUL":             {func(j *kithv1.Job) { j.Estimate = "a\x00b" }, "job.estimate: must be a command"},
	} {
		j := &kithv1.Job{WalltimeUnknown: true, Estimate: "./est.sh", OnSiteLost: kithv1.Job_ON_SITE_LOST_RERUN}
		c.with(j)
		var f fieldErrors
		checkLevel(&f, j)
		if c.want == "" && len(f) > 0 || c.want != "" && (len(f) == 0 || !strings.Contains(f.Error(), c.want)) {
			t.Errorf("%s: %v", name, f)
		}
		if !requestOf(j, "mira").Estimate {
			t.Errorf("%s: the request says nothing of it", name)
		}
	}
	j := &kithv1.Job{Command: []string{"true"}, Processors: 1, WalltimeUnknown: true, Estimate: "true", OnSiteLost: kithv1.Job_ON_SITE_LOST_RERUN}
	accepted := requestOf(j, "mira")
	if err := CheckPayload(&kithv1.Payload{Job: j}, &accepted); err != nil {
		t.Error(err)
	}
	accepted.Estimate = false
	if err := CheckPayload(&kithv1.Payload{Job: j}, &accepted); err == nil || !strings.Contains(err.Error(), "job.estimate") {
		t.Errorf("an estimator that the site did not accept: %v", err)
	}
}
