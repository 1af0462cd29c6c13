package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

// bagWatchVerb is "kith bag watch".
func bagWatchVerb(c *client) *cobra.Command {
	return &cobra.Command{
		Use:   "watch BAG",
		Short: "Print a line whenever a bag changes, until it has ended",
		Long: `Print a line whenever a bag changes, at most four times a second, until it has
ended. With --output json a line has the whole bag. "kith wait" prints the end only,
and exits with 0 only if all tasks did.`,
		ValidArgsFunction: c.completeBags(false),
		Args:              oneBag,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.attend(cmd.Context(), func(ctx context.Context, s *site) error {
				_, err := c.watchBag(ctx, s, args[0], func(b *kithv1.Bag) error {
					if c.JSON() {
						return c.printLine(&kithv1.WatchBagResponse{Bag: b})
					}
					return c.Write(bagLine(b))
				})
				return err
			})
		},
	}
}

// bagLine is a bag in a line.
func bagLine(b *kithv1.Bag) string {
	s := b.GetStatus()
	return cli.Clean(fmt.Sprintf("%s %s %s %s", b.GetId(), bagStateWord(s.GetState()), barOf(s.GetTasks()), countsText(s.GetTasks()))) + "\n"
}

// watchBag calls see with a bag, now and whenever it changes, and returns it when it has
// ended. Once the site has answered, it outlasts its absence.
func (c *client) watchBag(ctx context.Context, s *site, id string, see func(*kithv1.Bag) error) (last *kithv1.Bag, err error) {
	p := pause{}
	var seen *kithv1.Bag
	for {
		err := c.watchBagOnce(ctx, s, id, func(b *kithv1.Bag) error {
			last, p = b, pause{}
			if seen != nil && seen.GetStatus().GetVersion() == b.GetStatus().GetVersion() {
				return nil // it was seen before the site went away
			}
			err := see(b)
			if err == nil {
				seen = b
			}
			return err
		})
		if last != nil && bagEnded(last.GetStatus().GetState()) && (err == nil || passes(err)) {
			return last, nil
		}
		if err == nil || last == nil || !passes(err) || ctx.Err() != nil || !c.again(ctx, &p, err) {
			return last, c.overtime(ctx, last != nil, err, id)
		}
	}
}

// watchBagOnce watches until the stream ends.
func (c *client) watchBagOnce(ctx context.Context, s *site, id string, see func(*kithv1.Bag) error) error {
	ctx, heard, stop := c.deadline(ctx)
	defer stop()
	stream, err := s.bags.WatchBag(ctx, &kithv1.WatchBagRequest{BagId: id})
	for err == nil {
		var r *kithv1.WatchBagResponse
		if r, err = stream.Recv(); err != nil {
			break
		}
		heard(0) // from now on silence only means that nothing happens
		if seeErr := see(r.GetBag()); seeErr != nil {
			return seeErr
		}
	}
	return silence(ctx, err)
}

// waitForBag waits for the end of a bag, tells about it, and returns the exit code that
// stands for it.
func (c *client) waitForBag(ctx context.Context, s *site, id string, quiet bool) (int, error) {
	told := false // that it is held
	b, err := c.watchBag(ctx, s, id, func(b *kithv1.Bag) error {
		held := b.GetStatus().GetState() == kithv1.BagStatus_STATE_HELD
		if held && !told {
			c.Note("bag %s is %s; \"kith bag release %s\" goes on", id, cli.Clean(orDefault(b.GetStatus().GetReason(), "held")), id)
		}
		if told = held; c.JSON() && !quiet {
			return c.printLine(&kithv1.WatchBagResponse{Bag: b})
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	if !c.JSON() && !quiet {
		text := bagLine(b)
		if table := failureTable(b); table != nil && b.GetStatus().GetState() != kithv1.BagStatus_STATE_COMPLETED {
			text += table.Render(c.Width)
		}
		if err := c.Write(text); err != nil {
			return 0, err
		}
	}
	return bagExitCode(b), nil
}

// errOver ends a watch whose end the site does not tell.
var errOver = errors.New("over")

// waitForTasks waits for the end of some tasks of a bag, prints a line for each, and returns
// the highest of their exit codes.
func (c *client) waitForTasks(ctx context.Context, s *site, name tasksName) (code int, err error) {
	open := []kithv1.Task_State{kithv1.Task_STATE_WAITING, kithv1.Task_STATE_AT_SITE, kithv1.Task_STATE_STOPPING}
	_, err = c.watchBag(ctx, s, name.bag, func(*kithv1.Bag) error {
		left, err := c.listTasks(ctx, s, &kithv1.ListTasksRequest{BagId: name.bag, Indices: name.indices, States: open}, 1)
		if err == nil && len(left.GetTasks()) == 0 {
			err = errOver
		}
		return err
	})
	if err != nil && !errors.Is(err, errOver) {
		return 0, err
	}
	list, err := c.listTasks(ctx, s, &kithv1.ListTasksRequest{BagId: name.bag, Indices: name.indices}, job.MaxTasks)
	if err != nil {
		return 0, err
	}
	for _, t := range list.GetTasks() {
		code = max(code, taskExitCode(t))
		if c.JSON() {
			err = c.printLineTogether(&kithv1.GetBagRequest{BagId: name.bag}, t)
		} else {
			err = c.Write(taskLine(name.bag, t))
		}
		if err != nil {
			return code, err
		}
	}
	return code, nil
}

// taskLine says how a task ended.
func taskLine(bag string, t *kithv1.Task) string {
	text := fmt.Sprintf("%s_%d %s", bag, t.GetIndex(), taskStateWord(t.GetState()))
	if t.GetEnding() != kithv1.Task_ENDING_UNSPECIFIED {
		text = withReason(text, taskHow(t))
	}
	if t.GetSiteId() != "" {
		text += " at " + t.GetSiteId()
	}
	return cli.Clean(text) + "\n"
}

// taskExitCode returns the exit code that stands for a task that has ended.
func taskExitCode(t *kithv1.Task) int {
	switch t.GetState() {
	case kithv1.Task_STATE_COMPLETED:
		if t.GetOutputLost() {
			return exitOutputLost
		}
		return cli.ExitOK
	case kithv1.Task_STATE_CANCELLED:
		return exitNoResult
	}
	return max(cli.ExitRefused, endingExitCode(t.GetEnding(), t.GetExitCode(), t.GetSignal()))
}

// endingExitCode returns the exit code that stands for how a run of a task failed, 0 if it
// did not fail.
func endingExitCode(e kithv1.Task_Ending, code, signal int32) int {
	switch {
	case e == kithv1.Task_ENDING_TIMEOUT:
		return exitTimeLimit
	case e == kithv1.Task_ENDING_LOSS:
		return exitNoResult
	case e == kithv1.Task_ENDING_CANCEL:
		return 0
	case signal > 0:
		return exitSignal + int(signal)
	}
	return int(code)
}

// bagExitCode returns the exit code that stands for a bag that has ended: 0 only if all
// tasks ended with 0, else the highest of those of its failures.
func bagExitCode(b *kithv1.Bag) int {
	s := b.GetStatus()
	switch s.GetState() {
	case kithv1.BagStatus_STATE_COMPLETED:
		return cli.ExitOK
	case kithv1.BagStatus_STATE_CANCELLED:
		return exitNoResult
	}
	code := cli.ExitRefused
	for _, k := range s.GetFailures() {
		code = max(code, endingExitCode(k.GetEnding(), k.GetExitCode(), k.GetSignal()))
	}
	return code
}
