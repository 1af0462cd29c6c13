package main

import (
	"context"

	"github.com/spf13/cobra"

	kithv1 "kith/proto/gen/kith/v1"
)

// cancelVerb is "kith cancel".
func cancelVerb(c *client) *cobra.Command {
	return c.wishVerb("cancel", "End jobs", `End jobs. A job that waits is CANCELLED at once; one that runs is CANCELLING
until its site has confirmed the end. With --output json it prints a line for
each job.`,
		func(ctx context.Context, s *site, jobID, requestID string) (kithv1.JobStatus_State, error) {
			r, err := s.jobs.CancelJob(ctx, &kithv1.CancelJobRequest{JobId: jobID, RequestId: requestID})
			return r.GetState(), err
		})
}
