package main

import (
	"context"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
)

// resumeVerb is "kith resume".
func resumeVerb(c *client) *cobra.Command {
	return &cobra.Command{
		Use:   "resume",
		Short: "End a drain: let the site work again",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.ask(cmd.Context(), func(ctx context.Context, s *site) error {
				r, err := s.sites.ResumeSite(ctx, &kithv1.ResumeSiteRequest{RequestId: newUUID()})
				if err != nil {
					return err
				}
				return c.printMessage(r, func() string { return "The site takes jobs again.\n" })
			})
		},
	}
}
