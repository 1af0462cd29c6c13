package main

import (
	"context"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
)

// drainVerb is "kith drain".
func drainVerb(c *client) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "drain [--reason TEXT]",
		Short: "Let the site's running jobs end and start nothing new there",
		Long: `Let the site's running jobs end and start nothing new there. Copies of other
sites' jobs go back to their origins; the site's own jobs start elsewhere. It
outlasts a restart of kithd, until "kith resume".`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.ask(cmd.Context(), func(ctx context.Context, s *site) error {
				r, err := s.sites.DrainSite(ctx, &kithv1.DrainSiteRequest{Reason: reason, RequestId: newUUID()})
				if err != nil {
					return err
				}
				return c.printMessage(r, func() string {
					if r.GetRunningAttempts() == 0 {
						return "The site drains; nothing runs there.\n"
					}
					return "The site drains; still running: " + cli.Plural(r.GetRunningAttempts(), "attempt", "attempts") + ".\n"
				})
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for people")
	return cmd
}
