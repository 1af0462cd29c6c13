package main

import (
	"context"

	"github.com/spf13/cobra"

	kithv1 "kith/proto/gen/kith/v1"
)

// cancelVerb is "kith cancel".
func cancelVerb(c *client) *cobra.Command {
	var reason string
	cmd := c.wishVerb("cancel", "End jobs", `End jobs. A job that waits is CANCELLED at once; one that runs is CANCELLING
until its site has confirmed the end. "kith show" and "kith why" tell who
cancelled a job, and the reason. With --output json it prints a line for each
job.`,
		func(ctx context.Context, s *site, jobID, requestID string) (kithv1.JobStatus_State, error) {
			r, err := s.jobs.CancelJob(ctx, &kithv1.CancelJobRequest{JobId: jobID, RequestId: requestID, Reason: reason})
			return r.GetState(), err
		})
	cmd.Flags().StringVar(&reason, "reason", "", "why, for people; at most 256 bytes")
	return cmd
}
