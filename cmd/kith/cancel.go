package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
)

// cancelVerb is "kith cancel".
func cancelVerb(c *client) *cobra.Command {
	var reason string
	var filter jobFilter
	var labels pairs
	states := cli.Parsed[[]kithv1.JobStatus_State]{Kind: "STATE[,STATE...]", Parse: parseStates}
	ofJob := orBag(func(ctx context.Context, s *site, id, requestID string) (fmt.Stringer, error) {
		r, err := s.jobs.CancelJob(ctx, &kithv1.CancelJobRequest{JobId: id, RequestId: requestID, Reason: reason})
		return r.GetState(), err
	}, func(ctx context.Context, s *site, id, requestID string) (fmt.Stringer, error) {
		r, err := s.bags.CancelBag(ctx, &kithv1.CancelBagRequest{BagId: id, RequestId: requestID, Reason: reason})
		return r.GetState(), err
	})
	w := func(ctx context.Context, s *site, id, requestID string) (fmt.Stringer, error) {
		if name, ok := parseTasksName(id); ok {
			return c.cancelTasks(ctx, s, name, requestID, reason)
		}
		return ofJob(ctx, s, id, requestID)
	}
	cmd := c.actionVerb("cancel", "End jobs", `End jobs: those named, or with --user, --name, --state and --label every job of
this site that has not ended and fits all of them, without asking again; "kith
queue" with the same flags lists them. With --user and --name alone that is every
bag, too, with all its tasks.

A job that waits is CANCELLED at once; one that runs is CANCELLING until its
site has confirmed the end. "kith show" and "kith why" tell who cancelled a job,
and the reason. With --output json it prints a line for each job.`, w, liveStates)
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&reason, "reason", "", "why, for people; at most 256 bytes")
	filter.register(flags)
	flags.VarP(&states, "state", "t", "only jobs in one of these states")
	flags.Var(&labels, "label", "only jobs with this label; repeatable")
	cli.Complete(cmd, "state", stateNames()...)
	selects := func() bool {
		return slices.ContainsFunc([]string{"user", "name", "state", "label"}, flags.Changed)
	}
	byName := cmd.RunE
	cmd.Use = "cancel (JOB... | [--user U] [--name N] [--state S] [--label NAME=VALUE])"
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		switch {
		case !selects():
			return someJobsOrTasks(cmd, args)
		case slices.ContainsFunc(states.Value, ended):
			return cli.Usagef("--state %s: a job in that state has ended and cannot be cancelled", states.Text)
		case len(args) > 0:
			return cli.Usagef("%s %s: name jobs or select them with flags, not both", cmd.Name(), args[0])
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !selects() {
			return byName(cmd, args)
		}
		request := &kithv1.ListJobsRequest{PageSize: 1000, States: states.Value, Labels: labels.values}
		filter.ask(request)
		return c.dial(cmd.Context(), func(ctx context.Context, s *site) error {
			limited, cancel := context.WithTimeout(ctx, c.timeout)
			defer cancel()
			list, err := listJobs(limited, s, request)
			if err != nil {
				return err
			}
			var ids []string
			for _, j := range filter.keep(list.Jobs) {
				ids = append(ids, j.GetId())
			}
			if len(states.Value) == 0 && len(labels.values) == 0 {
				bags, err := queuedBags(limited, s, request, time.Time{}, time.Time{})
				if err != nil {
					return err
				}
				for _, b := range filter.keepBags(bags) {
					ids = append(ids, b.GetId())
				}
			}
			if len(ids) == 0 {
				c.Note("no job or bag that has not ended fits; nothing is cancelled")
			}
			return c.actAll(ctx, s, ids, w)
		})
	}
	return cmd
}
