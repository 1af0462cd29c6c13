package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
)

// siteVerb is "kith site", what operators do about other sites.
func siteVerb(c *client) *cobra.Command {
	cmd := &cobra.Command{Use: "site", Short: "Deal with another site of the federation"}
	cmd.AddCommand(siteInviteVerb(c), siteAcceptVerb(c), siteAdmitVerb(c), sitePeersVerb(c), siteShowVerb(c),
		siteAddressVerb(c), siteRevokeVerb(c), siteRotateVerb(c), siteLeaveVerb(c), siteForgetVerb(c), siteTrustVerb(c), siteMembersVerb(c), siteBackupVerb(c))
	return cmd
}

func siteForgetVerb(c *client) *cobra.Command {
	var requeue, revoked, sure bool
	cmd := &cobra.Command{
		Use:   "forget SITE [--requeue | --revoked]",
		Short: "Give up a site that will never return, or take a revoked one out of the trust table",
		Long: `Give up a site that will never return. Copies of this site's jobs that wait
there are placed elsewhere. Jobs that it was running end as LOST, or, with
--requeue, are run again elsewhere, whatever their on_site_lost says. Copies of
the lost site's own jobs leave the queue here.

A site that is connected cannot be forgotten. If it does come back one day, its
results for these jobs are not accepted and what it still runs of them is
stopped; between --requeue and that day such a job may have run twice.

With --revoked it takes a site that was revoked out of the trust table, which
holds 1,024 sites. The name of the site is free then, and nothing binds it to its
CA any more: whoever is invited under it can be admitted, whatever its CA. It
asks first, without --yes, and is refused while something of the site may still
run.`,
		ValidArgsFunction: c.completeSites,
		Args:              cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case revoked && requeue:
				return cli.Usagef("site forget: --requeue is for a site that is lost, --revoked for one whose jobs were given up when it was revoked; leave one out")
			case sure && !revoked:
				return cli.Usagef("site forget: --yes answers the question of --revoked; leave it out")
			case revoked:
				return c.attend(cmd.Context(), func(ctx context.Context, s *site) error { return c.forgetRevoked(ctx, s, args[0], sure) })
			}
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
	cmd.Flags().BoolVar(&revoked, "revoked", false, "take a site that was revoked out of the trust table: its name is free then, for any CA")
	cmd.Flags().BoolVar(&sure, "yes", false, "do so without asking")
	return cmd
}

// forgetRevoked takes a revoked site out of the trust table, after a yes.
func (c *client) forgetRevoked(ctx context.Context, s *site, name string, sure bool) error {
	known, err := s.trust.GetTrustedSite(ctx, &kithv1.GetTrustedSiteRequest{SiteId: name})
	if err != nil {
		return err
	}
	bound := strings.Join(known.GetSite().GetFingerprints(), " ")
	if !sure && known.GetSite().GetState() == kithv1.TrustedSite_STATE_REVOKED { // the site says why another one is not forgotten
		switch c.confirm(fmt.Sprintf("Forget site %s, which was bound to the CA %s? Its name is free then: any CA can be admitted under it. [y/N] ", name, bound)) {
		case noAnswer:
			return cli.Refusedf("no answer was given, and site %s is not forgotten; to do it without a question: --yes", name)
		case no:
			return cli.Refusedf("site %s is not forgotten", name)
		}
	}
	r, err := s.trust.ForgetTrustedSite(ctx, &kithv1.ForgetTrustedSiteRequest{SiteId: name})
	if err != nil {
		return err
	}
	return c.printMessage(r, func() string {
		return fmt.Sprintf("Site %s is forgotten: its name is free, and nothing binds it to the CA %s.\n", name, bound)
	})
}
