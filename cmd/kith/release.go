package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	kithv1 "kith/proto/gen/kith/v1"
)

// releaseVerb is "kith release".
func releaseVerb(c *client) *cobra.Command {
	return c.actionVerb("release", "Let held jobs start", `Let jobs start that "kith hold" or "kith submit --hold" keeps from it. With
--output json it prints a line for each job.`,
		orBag(func(ctx context.Context, s *site, id, requestID string) (fmt.Stringer, error) {
			r, err := s.jobs.ReleaseJob(ctx, &kithv1.ReleaseJobRequest{JobId: id, RequestId: requestID})
			return r.GetState(), err
		}, func(ctx context.Context, s *site, id, requestID string) (fmt.Stringer, error) {
			r, err := s.bags.ReleaseBag(ctx, &kithv1.ReleaseBagRequest{BagId: id, RequestId: requestID})
			return r.GetState(), err
		}), []kithv1.JobStatus_State{kithv1.JobStatus_STATE_HELD})
}
