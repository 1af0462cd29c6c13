package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
)

// checkpointVerb is "kith checkpoint".
func checkpointVerb(c *client) *cobra.Command {
	return c.actionVerb("checkpoint", "Have jobs save what they have done and go on elsewhere", `Ask running jobs to save what they have done and to end, and have them go on in
another attempt, at whichever site starts them first. A job that was submitted with
--checkpoint gets its signal; one with --requeue begins again; others are refused.
What a job has done since it last saved is lost if it does not answer in time.
"kith show" tells what became of each attempt. With --output json it prints a line
for each job.`,
		func(ctx context.Context, s *site, id, requestID string) (fmt.Stringer, error) {
			r, err := s.jobs.CheckpointJob(ctx, &kithv1.CheckpointJobRequest{JobId: id, RequestId: requestID})
			return r.GetState(), err
		}, []kithv1.JobStatus_State{kithv1.JobStatus_STATE_RUNNING})
}

// askSignal is how a job is asked to save: --checkpoint-signal and --signal.
type askSignal struct {
	name   string // without SIG
	all    bool
	before time.Duration // before the time limit; 0 for not then
}

// parseCheckpointSignal reads [ALL:]SIG.
func parseCheckpointSignal(text string) (askSignal, error) {
	name, all := strings.CutPrefix(strings.ToUpper(text), "ALL:")
	return askSignal{name: signalName(name), all: all}, nil
}

// slurmBefore is how long before the limit Slurm signals a job if it is not told.
const slurmBefore = time.Minute

// parseSlurmSignal reads what Slurm means by --signal: [B:]SIG[@SECONDS]. B: is for the script alone.
func parseSlurmSignal(text string) (askSignal, error) {
	name, span, timed := strings.Cut(text, "@")
	name, script := strings.CutPrefix(strings.ToUpper(name), "B:")
	if name == "" || strings.Contains(name, ":") {
		return askSignal{}, errors.New("write [B:]SIG[@SECONDS], for example B:USR1@120")
	}
	s := askSignal{name: signalName(name), all: !script, before: slurmBefore}
	if timed {
		seconds, err := parseNumber(span)
		if err != nil || seconds < 1 || seconds > 65535 {
			return askSignal{}, fmt.Errorf("%q: give 1 to 65535 seconds after the @", span)
		}
		s.before = time.Duration(seconds) * time.Second
	}
	return s, nil
}

// signalName returns a signal as the site names it, whether it was given by its number or its name.
func signalName(text string) string {
	numbers := map[string]string{"1": "HUP", "2": "INT", "10": "USR1", "12": "USR2", "14": "ALRM", "15": "TERM", "18": "CONT", "26": "VTALRM", "28": "WINCH"}
	if name, ok := numbers[text]; ok {
		return name
	}
	return strings.TrimPrefix(text, "SIG")
}

// checkpointOf returns how the job saves what it has done, nil if it does not.
func (o *submission) checkpointOf() (*kithv1.Checkpoint, error) {
	if len(o.checkpoint) == 0 {
		for flag, text := range map[string]string{
			"--signal": o.signal.Text, "--checkpoint-signal": o.checkpointSignal.Text, "--checkpoint-grace": o.checkpointGrace.Text,
			"--checkpoint-every": o.checkpointEvery.Text,
		} {
			if text != "" {
				return nil, cli.Usagef("%s %s: say what the job saves with --checkpoint PATTERN, or leave it out", flag, text)
			}
		}
		return nil, nil
	}
	if o.signal.Text != "" && o.checkpointSignal.Text != "" {
		return nil, cli.Usagef("--signal and --checkpoint-signal: choose one of them")
	}
	c := &kithv1.Checkpoint{Paths: o.checkpoint, ExitCode: o.checkpointExit.Value}
	asked := o.checkpointSignal.Value
	if o.signal.Text != "" {
		asked = o.signal.Value
		c.BeforeWalltime = durationpb.New(asked.before)
	}
	c.Signal, c.SignalAll = asked.name, asked.all
	if o.checkpointGrace.Text != "" {
		c.Grace = durationpb.New(o.checkpointGrace.Value)
	}
	if o.checkpointEvery.Text != "" {
		c.Every = durationpb.New(o.checkpointEvery.Value)
	}
	return c, nil
}
