package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
)

// siteTrustVerb is "kith site trust".
func siteTrustVerb(c *client) *cobra.Command {
	return &cobra.Command{
		Use:   "trust SITE [NODE]",
		Short: "Give tasks of bags again to a host that is held back",
		Long: `Give tasks of bags again to a host that is held back, or to all hosts of a site:
what this site has seen of them is forgotten. Do so when what was wrong there is
mended. "kith sites" shows which hosts are held back, and why. Without this they
come back by doing the tasks well that they get now and then.`,
		ValidArgsFunction: c.completeSites,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return cli.Usagef("site trust: give a site and, if it has several, a node")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.ask(cmd.Context(), func(ctx context.Context, s *site) error {
				r := &kithv1.TrustHostRequest{SiteId: args[0]}
				if len(args) > 1 {
					r.Node = args[1]
				}
				resp, err := s.sites.TrustHost(ctx, r)
				if err != nil {
					return err
				}
				return c.printMessage(resp, func() string {
					return fmt.Sprintf("%s gets tasks again like a host that is new.\n", strings.Join(args, "/"))
				})
			})
		},
	}
}

// heldNotes says which hosts of a site are held back, and why.
func heldNotes(s *kithv1.Site) (notes []string) {
	for _, h := range s.GetHosts() {
		if h.GetHeldBack() {
			notes = append(notes, heldText(h))
		}
	}
	return notes
}

func heldText(h *kithv1.HostStanding) string {
	text := "held back"
	if h.GetNode() != "" {
		text = cli.Clean(h.GetNode()) + " is held back"
	}
	text += fmt.Sprintf(": error rate %.2f, %.0f done and %.0f failed of late", h.GetErrorRate(), h.GetRecentDone(), h.GetRecentFailed())
	if h.GetNextProbeTime() != nil {
		return text + ", gets a task now and then"
	}
	return text + fmt.Sprintf(", gets %.0f at once", h.GetQuota())
}

// whyHeld says which hosts are held back from tasks of the site's bags, "" if none is or the
// site does not say.
func (c *client) whyHeld(ctx context.Context, s *site) string {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	list, err := s.sites.ListSites(ctx, &kithv1.ListSitesRequest{})
	if err != nil {
		return ""
	}
	var text strings.Builder
	for _, site := range list.GetSites() {
		for _, note := range heldNotes(site) {
			fmt.Fprintf(&text, "%s: %s.\n", cli.Clean(site.GetId()), note)
		}
	}
	return text.String()
}
