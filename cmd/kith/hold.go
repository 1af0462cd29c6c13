package main

import (
	"context"

	"github.com/spf13/cobra"

	kithv1 "kith/proto/gen/kith/v1"
)

// holdVerb is "kith hold".
func holdVerb(c *client) *cobra.Command {
	return c.actionVerb("hold", "Keep jobs from starting", `Keep jobs that have not started from starting. "kith release" lets them go. With
--output json it prints a line for each job.`,
		func(ctx context.Context, s *site, jobID, requestID string) (kithv1.JobStatus_State, error) {
			r, err := s.jobs.HoldJob(ctx, &kithv1.HoldJobRequest{JobId: jobID, RequestId: requestID})
			return r.GetState(), err
		}, waitingStates)
}
