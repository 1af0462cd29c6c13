package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
)

// siteVerb is "kith site", what operators do about other sites.
func siteVerb(c *client) *cobra.Command {
	cmd := &cobra.Command{Use: "site", Short: "Deal with another site of the federation"}
	cmd.AddCommand(siteForgetVerb(c))
	return cmd
}

func siteForgetVerb(c *client) *cobra.Command {
	var requeue bool
	cmd := &cobra.Command{
		Use:   "forget SITE [--requeue]",
		Short: "Give up a site that will never return",
		Long: `Give up a site that will never return. Copies of this site's jobs that wait
there are placed elsewhere. Jobs that it was running end as LOST, or, with
--requeue, are run again elsewhere, whatever their on_site_lost says. Copies of
the lost site's own jobs leave the queue here.

A site that is connected cannot be forgotten. If it does come back one day, its
results for these jobs are not accepted and what it still runs of them is
stopped; between --requeue and that day such a job may have run twice.`,
		ValidArgsFunction: c.completeSites,
		Args:              cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.ask(cmd.Context(), func(ctx context.Context, s *site) error {
				r, err := s.sites.ForgetSite(ctx, &kithv1.ForgetSiteRequest{SiteId: args[0], Requeue: requeue})
				if err != nil {
					return err
				}
				return c.printMessage(r, func() string {
					fate := "lost"
					if requeue {
						fate = "queued again"
					}
					return fmt.Sprintf("%s is given up: %s %s, %s placed elsewhere, %s dropped here.\n", args[0],
						cli.Plural(r.GetJobsRevoked(), "job", "jobs"), fate,
						cli.Plural(r.GetCopiesReplaced(), "copy", "copies"), cli.Plural(r.GetCopiesDropped(), "copy", "copies"))
				})
			})
		},
	}
	cmd.Flags().BoolVar(&requeue, "requeue", false, "run the jobs that it held again")
	return cmd
}
