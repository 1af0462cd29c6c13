package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"kith/internal/cli"
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
	for {
		err := c.watchBagOnce(ctx, s, id, func(b *kithv1.Bag) error {
			again := last != nil && last.GetStatus().GetVersion() == b.GetStatus().GetVersion()
			if last, p = b, (pause{}); again {
				return nil // it was seen before the site went away
			}
			return see(b)
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
func (c *client) waitForBag(ctx context.Context, s *site, id string) (int, error) {
	told := false // that it is held
	b, err := c.watchBag(ctx, s, id, func(b *kithv1.Bag) error {
		held := b.GetStatus().GetState() == kithv1.BagStatus_STATE_HELD
		if held && !told {
			c.Note("bag %s is %s; \"kith bag release %s\" goes on", id, cli.Clean(orDefault(b.GetStatus().GetReason(), "held")), id)
		}
		if told = held; c.JSON() {
			return c.printLine(&kithv1.WatchBagResponse{Bag: b})
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	if !c.JSON() {
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
		switch {
		case k.GetEnding() == kithv1.Task_ENDING_TIMEOUT:
			code = max(code, exitTimeLimit)
		case k.GetEnding() == kithv1.Task_ENDING_LOSS:
			code = max(code, exitNoResult)
		case k.GetEnding() == kithv1.Task_ENDING_CANCEL:
		case k.GetSignal() > 0:
			code = max(code, exitSignal+int(k.GetSignal()))
		default:
			code = max(code, int(k.GetExitCode()))
		}
	}
	return code
}
