package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
)

// completionPatience is how long a shell's completion waits for the site.
const completionPatience = 2 * time.Second

// completeJobs lets a shell complete the ids of the jobs in one of states; of
// all jobs of the site if there are none. At most one is completed, or many.
func (c *client) completeJobs(many bool, states ...kithv1.JobStatus_State) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) (ids []cobra.Completion, _ cobra.ShellCompDirective) {
		if len(args) > 0 && !many {
			return nil, cobra.ShellCompDirectiveDefault // a folder, if anything
		}
		request := &kithv1.ListJobsRequest{PageSize: 1000, States: states, AllStates: len(states) == 0}
		_ = c.askForCompletion(cmd, func(ctx context.Context, s *site) error { // a shell has no place for an error
			list, err := s.jobs.ListJobs(ctx, request)
			for _, j := range list.GetJobs() {
				ids = append(ids, cobra.CompletionWithDesc(j.GetId(), cli.Clean(j.GetName()+", "+stateWord(j.GetStatus().GetState()))))
			}
			return err
		})
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeSites lets a shell complete the names of the other sites.
func (c *client) completeSites(cmd *cobra.Command, args []string, _ string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	_ = c.askForCompletion(cmd, func(ctx context.Context, s *site) error { // a shell has no place for an error
		list, err := s.sites.ListSites(ctx, &kithv1.ListSitesRequest{})
		for _, known := range list.GetSites() {
			if known.GetReachability() != kithv1.Site_REACHABILITY_SELF {
				names = append(names, known.GetId())
			}
		}
		return err
	})
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (c *client) askForCompletion(cmd *cobra.Command, request func(context.Context, *site) error) error {
	if c.address == "" {
		c.address = defaultSite()
	}
	c.timeout = min(c.timeout, completionPatience)
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	return c.ask(ctx, request)
}

// States that verbs are about, for completion.
var (
	liveStates = []kithv1.JobStatus_State{
		kithv1.JobStatus_STATE_PENDING, kithv1.JobStatus_STATE_HELD, kithv1.JobStatus_STATE_QUEUED, kithv1.JobStatus_STATE_CLAIMED,
		kithv1.JobStatus_STATE_RUNNING, kithv1.JobStatus_STATE_CANCELLING, kithv1.JobStatus_STATE_RETURNING, kithv1.JobStatus_STATE_BLOCKED,
	}
	waitingStates = []kithv1.JobStatus_State{kithv1.JobStatus_STATE_PENDING, kithv1.JobStatus_STATE_BLOCKED, kithv1.JobStatus_STATE_QUEUED}
)
