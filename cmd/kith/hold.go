package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	kithv1 "kith/proto/gen/kith/v1"
)

// holdVerb is "kith hold".
func holdVerb(c *client) *cobra.Command {
	return c.actionVerb("hold", "Keep jobs from starting", `Keep jobs that have not started from starting. "kith release" lets them go. With
--output json it prints a line for each job.`,
		orBag(func(ctx context.Context, s *site, id, requestID string) (fmt.Stringer, error) {
			r, err := s.jobs.HoldJob(ctx, &kithv1.HoldJobRequest{JobId: id, RequestId: requestID})
			return r.GetState(), err
		}, func(ctx context.Context, s *site, id, requestID string) (fmt.Stringer, error) {
			r, err := s.bags.HoldBag(ctx, &kithv1.HoldBagRequest{BagId: id, RequestId: requestID})
			return r.GetState(), err
		}), waitingStates)
}
