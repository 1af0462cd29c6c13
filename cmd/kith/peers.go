package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
)

// sitePeersVerb is "kith site peers".
func sitePeersVerb(c *client) *cobra.Command {
	return &cobra.Command{
		Use:   "peers",
		Short: "List the sites that this site trusts, and those that it revoked",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.ask(cmd.Context(), func(ctx context.Context, s *site) error {
				list, err := s.trust.ListTrustedSites(ctx, &kithv1.ListTrustedSitesRequest{})
				if err != nil {
					return err
				}
				return c.printMessage(list, func() string {
					g := cli.Grid{Columns: []cli.Column{
						{Title: "SITE"}, {Title: "STATE"}, {Title: "STREAM"}, {Title: "SINCE"}, {Title: "BY", Elastic: true}, {Title: "ADDRESS", Elastic: true}, {Title: "CA UNTIL"},
					}}
					for _, t := range list.GetSites() {
						g.Add(t.GetSiteId(), trustState(t), streamText(t), day(t.GetSinceTime()), orDefault(t.GetActor(), cli.Nothing),
							orDefault(strings.Join(dialled(t), " "), cli.Nothing), day(t.GetExpireTime()))
					}
					return g.Render(c.Width)
				})
			})
		},
	}
}

// dialled returns all addresses of a site.
func dialled(t *kithv1.TrustedSite) []string {
	all := slices.Clone(t.GetAddresses())
	for _, a := range t.GetToldAddresses() {
		if !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	return all
}

func trustState(t *kithv1.TrustedSite) string {
	return strings.ToLower(strings.TrimPrefix(t.GetState().String(), "STATE_"))
}

func streamText(t *kithv1.TrustedSite) string {
	switch {
	case t.GetConnected():
		return "up"
	case t.GetState() == kithv1.TrustedSite_STATE_KNOWN:
		return "down"
	}
	return cli.Nothing
}

func day(t *timestamppb.Timestamp) string {
	if t == nil {
		return cli.Nothing
	}
	return t.AsTime().Local().Format("2006-01-02")
}

// siteShowVerb is "kith site show".
func siteShowVerb(c *client) *cobra.Command {
	return &cobra.Command{
		Use:   "show [SITE]",
		Short: "Show what is known of a site that is or was trusted, or the fingerprint of this one",
		Long: `Show what is known of a site that is or was trusted. Without a name show this site: the
fingerprint that other operators compare, where other sites reach it, and when its
certificate and its CA end.`,
		ValidArgsFunction: c.completeSites,
		Args:              cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.ask(cmd.Context(), func(ctx context.Context, s *site) error {
				if len(args) == 0 {
					return c.showOwn(ctx, s, "", nil)
				}
				r, err := s.trust.GetTrustedSite(ctx, &kithv1.GetTrustedSiteRequest{SiteId: args[0]})
				if err != nil {
					return c.showOwn(ctx, s, args[0], err)
				}
				return c.printMessage(r, func() string { return trustedText(r.GetSite()) })
			})
		},
	}
}

// showOwn shows the site that answers. If it is not the one that is asked for, it returns why
// that one is not shown.
func (c *client) showOwn(ctx context.Context, s *site, asked string, why error) error {
	r, err := s.sites.GetSite(ctx, &kithv1.GetSiteRequest{})
	switch {
	case asked != "" && (err != nil || r.GetSite().GetId() != asked):
		return why
	case err != nil:
		return err
	}
	return c.printMessage(r, func() string { return ownText(r.GetSite()) })
}

// ownText is what operators look for at their own site.
func ownText(s *kithv1.Site) string {
	var b strings.Builder
	row := func(name, text string) { fmt.Fprintf(&b, "%-17s  %s\n", name, orDefault(text, cli.Nothing)) }
	row("site", s.GetId()+" (this one)")
	for _, f := range s.GetFingerprints() {
		row("fingerprint", f)
	}
	if s.GetBundleSequence() > 0 {
		row("bundle", fmt.Sprint(s.GetBundleSequence()))
	}
	row("address", s.GetAddress())
	row("certificate until", minute(s.GetCertificateExpireTime()))
	row("CA until", minute(s.GetCaExpireTime()))
	if s.GetKeyTrouble() != "" {
		row("trouble", s.GetKeyTrouble())
	}
	return b.String()
}

func trustedText(t *kithv1.TrustedSite) string {
	var b strings.Builder
	row := func(name, text string) { fmt.Fprintf(&b, "%-12s  %s\n", name, orDefault(text, cli.Nothing)) }
	row("site", t.GetSiteId())
	state := trustState(t) + " since " + t.GetSinceTime().AsTime().Local().Format(time.DateTime) + " by " + t.GetActor()
	if t.GetLetRun() {
		state += "; attempts of its jobs run on"
	}
	row("state", state)
	for _, f := range t.GetFingerprints() {
		row("fingerprint", f)
	}
	row("bundle", fmt.Sprint(t.GetBundleSequence()))
	row("CA until", day(t.GetExpireTime()))
	if t.GetCertificateExpireTime() != nil {
		row("certificate", "until "+minute(t.GetCertificateExpireTime()))
	}
	row("addresses", strings.Join(t.GetAddresses(), " "))
	row("told address", strings.Join(t.GetToldAddresses(), " "))
	row("version", t.GetVersion())
	row("stream", streamText(t))
	if t.GetConnectionError() != "" {
		row("error", t.GetConnectionError())
	}
	row("copies here", cli.Plural(t.GetCopiesHere(), "copy of its jobs", "copies of its jobs"))
	holds := cli.Plural(t.GetHeldJobs(), "job of this site", "jobs of this site")
	if at := t.GetOldestClaimTime(); at != nil {
		holds += ", the oldest since " + at.AsTime().Local().Format(time.DateTime)
	}
	row("holds", holds)
	if n := t.GetOverdueJobs(); n > 0 {
		row("OVERDUE", fmt.Sprintf("%d of these should have ended; they are given up after timing.overdue, or now: kith site forget %s, or revoke while it is connected", n, t.GetSiteId()))
	}
	if n := t.GetGivenUpJobs(); n > 0 {
		row("GIVEN UP", cli.Plural(n, "job that it", "jobs that it")+" did not end in time, since kithd was started")
	}
	if h := t.GetAuditHead(); h != nil {
		row("audit head", headText(h))
	}
	if h := t.GetAuditHeadBroken(); h != nil {
		row("AUDIT LOG", "rewritten or lost: what it told later cannot have come after "+headText(h))
	}
	return b.String()
}

// headText is a head as kith audit verify --head takes it, and when it was signed.
func headText(h *kithv1.AuditHead) string {
	return fmt.Sprintf("%d:%x of %s", h.GetNumber(), h.GetHash(), time.Unix(0, h.GetTimeNs()).Local().Format(time.DateTime))
}

// siteAddressVerb is "kith site address".
func siteAddressVerb(c *client) *cobra.Command {
	return &cobra.Command{
		Use:   "address SITE HOST:PORT...",
		Short: "Say where a site can be dialled",
		Long: `Say where a site can be dialled, when it has moved and this site has, too: neither
finds the other then. The addresses take the place of all that were known; the
site says by itself where it is once it is connected, and that is tried, too. A
stream that is up stays.`,
		ValidArgsFunction: c.completeSites,
		Args:              cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.ask(cmd.Context(), func(ctx context.Context, s *site) error {
				r, err := s.trust.SetSiteAddresses(ctx, &kithv1.SetSiteAddressesRequest{SiteId: args[0], Addresses: args[1:]})
				if err != nil {
					return err
				}
				return c.printMessage(r, func() string { return "Site " + args[0] + " is dialled at " + strings.Join(args[1:], " ") + ".\n" })
			})
		},
	}
}

// siteRevokeVerb is "kith site revoke".
func siteRevokeVerb(c *client) *cobra.Command {
	r := &kithv1.RevokeSiteRequest{}
	cmd := &cobra.Command{
		Use:   "revoke SITE [--reason TEXT]",
		Short: "Trust a site no more, at once",
		Long: `Trust a site no more. It is durable first, then the streams of the site are
closed, its copies leave the queue here and its attempts are stopped. Jobs of
this site that wait there are placed elsewhere; those that run there run again
or are lost, as with "kith site forget". The name is kept with its CA until it
is invited again, or forgotten by "kith site forget SITE --revoked".`,
		ValidArgsFunction: c.completeSites,
		Args:              cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.SiteId = args[0]
			return c.ask(cmd.Context(), func(ctx context.Context, s *site) error {
				done, err := s.trust.RevokeSite(ctx, r)
				if err != nil {
					return err
				}
				return c.printMessage(done, func() string { return "Site " + args[0] + " is revoked: " + severedText(done.GetSevered()) })
			})
		},
	}
	cmd.Flags().BoolVar(&r.LetRun, "let-run", false, "let attempts of its jobs that run here go on")
	cmd.Flags().StringVar(&r.Reason, "reason", "", "why, for the audit log")
	return cmd
}

func severedText(s *kithv1.Severed) string {
	return fmt.Sprintf("%s of its jobs stopped and %s dropped here; of this site's jobs %s placed elsewhere, %s taken back, %s left to their leases.\n",
		cli.Plural(s.GetAttemptsStopped(), "attempt", "attempts"), cli.Plural(s.GetCopiesDropped(), "copy", "copies"),
		cli.Plural(s.GetCopiesReplaced(), "copy", "copies"), cli.Plural(s.GetJobsRevoked(), "job or bag", "jobs and bags"), cli.Plural(s.GetJobsLeased(), "job or bag", "jobs and bags"))
}

// siteLeaveVerb is "kith site leave".
func siteLeaveVerb(c *client) *cobra.Command {
	r := &kithv1.LeaveFederationRequest{}
	cmd := &cobra.Command{
		Use:   "leave [--reason TEXT]",
		Short: "Trust no other site any more",
		Long: `Trust no other site any more: all are revoked, and all invitations end. The other
sites are not told; they see that this one refuses them.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.ask(cmd.Context(), func(ctx context.Context, s *site) error {
				done, err := s.trust.LeaveFederation(ctx, r)
				if err != nil {
					return err
				}
				return c.printMessage(done, func() string { return "This site stands alone: " + severedText(done.GetSevered()) })
			})
		},
	}
	cmd.Flags().BoolVar(&r.LetRun, "let-run", false, "let attempts of their jobs that run here go on")
	cmd.Flags().StringVar(&r.Reason, "reason", "", "why, for the audit log")
	return cmd
}

// siteRotateVerb is "kith site rotate".
func siteRotateVerb(c *client) *cobra.Command {
	r := &kithv1.RotateKeysRequest{}
	cmd := &cobra.Command{
		Use:   "rotate --now | --ca",
		Short: "Replace the certificates of this site",
		Long: `Replace the certificates by which other sites know this one. With --now the site
makes a new certificate at once and voids all of before: for a stolen key. With
--ca it begins to replace its CA; the old one is dropped when all other sites have
confirmed the new one, or after 30 days. Jobs do not notice.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !r.GetNow() && !r.GetCa() {
				return cli.Usagef("site rotate: say what to replace, --now or --ca")
			}
			return c.ask(cmd.Context(), func(ctx context.Context, s *site) error {
				done, err := s.trust.RotateKeys(ctx, r)
				if err != nil {
					return err
				}
				return c.printMessage(done, func() string {
					return fmt.Sprintf("Bundle %d is valid here; %s told and not confirmed yet.\n", done.GetBundleSequence(),
						cli.Plural(int64(len(done.GetUnconfirmedSiteIds())), "site is", "sites are"))
				})
			})
		},
	}
	cmd.Flags().BoolVar(&r.Now, "now", false, "a new certificate at once; those of before are void")
	cmd.Flags().BoolVar(&r.Ca, "ca", false, "begin to replace the CA")
	return cmd
}
