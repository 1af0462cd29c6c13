package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
)

// bagCancelVerb is "kith bag cancel".
func bagCancelVerb(c *client) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "cancel BAG [flags]",
		Short: "End a bag, or some of its tasks",
		Long: `End a bag, or with --index some of its tasks. Tasks that wait end at once, those
that run when their sites have stopped them. "kith cancel BAG_INDEX" ends a task,
too.`,
		ValidArgsFunction: c.completeBags(false),
		Args:              oneBag,
	}
	indices := indexFlag(cmd, "only these tasks")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for people; at most 256 bytes")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.ask(cmd.Context(), func(ctx context.Context, s *site) error {
			return c.cancelBag(ctx, s, tasksName{args[0], indices.Value}, reason)
		})
	}
	return cmd
}

// cancelBag ends a bag, or some of its tasks.
func (c *client) cancelBag(ctx context.Context, s *site, name tasksName, reason string) error {
	r, err := s.bags.CancelBag(ctx, &kithv1.CancelBagRequest{BagId: name.bag, Indices: name.indices, RequestId: newUUID(), Reason: reason})
	if err != nil {
		return err
	}
	return c.printMessage(r, func() string {
		if name.indices != "" {
			return fmt.Sprintf("tasks %s of %s CANCELLED, or stopped by their sites; the bag is %s\n", name.indices, name.bag, bagStateWord(r.GetState()))
		}
		return name.bag + " " + bagStateWord(r.GetState()) + "\n"
	})
}

// bagRetryVerb is "kith bag retry".
func bagRetryVerb(c *client) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "retry BAG [flags]",
		Short: "Run the tasks of a bag again that failed",
		Long: `Run the tasks of a bag again that failed, or with --index those tasks, however
they ended. The bag may have ended; it is open again then.`,
		ValidArgsFunction: c.completeBags(true),
		Args:              oneBag,
	}
	indices := indexFlag(cmd, "these tasks, however they ended")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.ask(cmd.Context(), func(ctx context.Context, s *site) error {
			r, err := s.bags.RetryTasks(ctx, &kithv1.RetryTasksRequest{BagId: args[0], Indices: indices.Value, RequestId: newUUID()})
			if err != nil {
				return err
			}
			return c.printMessage(r, func() string {
				verb := "run"
				if r.GetTaskCount() == 1 {
					verb = "runs"
				}
				return fmt.Sprintf("%s of %s %s again; the bag is %s\n", cli.Plural(r.GetTaskCount(), "task", "tasks"), args[0], verb, bagStateWord(r.GetState()))
			})
		})
	}
	return cmd
}

// bagHoldVerb is "kith bag hold".
func bagHoldVerb(c *client) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:               "hold BAG",
		Short:             "Keep tasks of a bag from being given to sites; those that run go on",
		ValidArgsFunction: c.completeBags(false),
		Args:              oneBag,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.ask(cmd.Context(), func(ctx context.Context, s *site) error { return c.holdBag(ctx, s, args[0], reason) })
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for people; at most 256 bytes")
	return cmd
}

func (c *client) holdBag(ctx context.Context, s *site, id, reason string) error {
	r, err := s.bags.HoldBag(ctx, &kithv1.HoldBagRequest{BagId: id, RequestId: newUUID(), Reason: reason})
	if err != nil {
		return err
	}
	return c.printMessage(r, func() string { return id + " " + bagStateWord(r.GetState()) + "\n" })
}

// bagReleaseVerb is "kith bag release".
func bagReleaseVerb(c *client) *cobra.Command {
	return &cobra.Command{
		Use:               "release BAG",
		Short:             "Let tasks of a held bag be given to sites",
		ValidArgsFunction: c.completeBags(false),
		Args:              oneBag,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.ask(cmd.Context(), func(ctx context.Context, s *site) error { return c.releaseBag(ctx, s, args[0]) })
		},
	}
}

func (c *client) releaseBag(ctx context.Context, s *site, id string) error {
	r, err := s.bags.ReleaseBag(ctx, &kithv1.ReleaseBagRequest{BagId: id, RequestId: newUUID()})
	if err != nil {
		return err
	}
	return c.printMessage(r, func() string { return id + " " + bagStateWord(r.GetState()) + "\n" })
}

// cancelTasks ends some tasks of a bag and returns where they are then: all in one state,
// or some of them still to be stopped.
func (c *client) cancelTasks(ctx context.Context, s *site, name tasksName, requestID, reason string) (fmt.Stringer, error) {
	if _, err := s.bags.CancelBag(ctx, &kithv1.CancelBagRequest{BagId: name.bag, Indices: name.indices, RequestId: requestID, Reason: reason}); err != nil {
		return nil, err
	}
	list, err := s.bags.ListTasks(ctx, &kithv1.ListTasksRequest{BagId: name.bag, Indices: name.indices, PageSize: 1000})
	if err != nil {
		return nil, err
	}
	state := kithv1.Task_STATE_CANCELLED
	for i, t := range list.GetTasks() {
		if i == 0 {
			state = t.GetState()
		} else if state != t.GetState() {
			return kithv1.Task_STATE_STOPPING, nil
		}
	}
	return state, nil
}
