package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
)

// longestInvitation is more than the text of any invitation has, with blanks.
const longestInvitation = 1024

// siteInviteVerb is "kith site invite".
func siteInviteVerb(c *client) *cobra.Command {
	var expires time.Duration
	var addresses []string
	var anyone, detach bool
	cmd := &cobra.Command{
		Use:   "invite SITE [--detach]",
		Short: "Invite another site: print a text for its operator, and admit who comes by it",
		Long: `Invite another site. One text is printed, for the operator of that site to give
to "kith site accept" there; who has it can ask to join under this name, once.
Then invite waits, shows the name and fingerprint of the site that came, and
asks whether it is admitted. Compare the fingerprint with the other operator by
another way than the text took: "kithd init" printed it there.

With --detach it only prints the text; "kith site admit" decides later.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r := &kithv1.InviteSiteRequest{SiteId: args[0], Addresses: addresses}
			if cmd.Flags().Changed("expires") {
				r.Lifetime = durationpb.New(expires)
			}
			return c.attend(cmd.Context(), func(ctx context.Context, s *site) error {
				made, err := s.trust.InviteSite(ctx, r)
				if err != nil {
					return err
				}
				if err := c.tellInvitation(made, args[0], detach); err != nil || detach {
					return err
				}
				return c.decide(ctx, s, made.GetInvitationId(), "", anyone)
			})
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.DurationVar(&expires, "expires", 30*time.Minute, "how long the text can be used, as `D`: 1m to 24h")
	flags.StringArrayVar(&addresses, "address", nil, "`HOST:PORT` where the other site can dial this one; repeatable, at most 4 (default the advertised one)")
	flags.BoolVar(&anyone, "yes", false, "admit the site that comes without asking")
	flags.BoolVar(&detach, "detach", false, "print the text and do not wait")
	return cmd
}

// tellInvitation prints a new invitation. The text alone is on stdout, for pipes.
func (c *client) tellInvitation(made *kithv1.InviteSiteResponse, name string, detach bool) error {
	if c.JSON() {
		return c.printLine(made)
	}
	until := made.GetExpireTime().AsTime().Local().Format("15:04")
	c.Note("invitation %s for site %s, until %s. Give this text to its operator, for: kith site accept TEXT", made.GetInvitationId(), name, until)
	c.Note("this site's fingerprint is %s", made.GetFingerprint())
	if made.GetDoubt() != "" {
		c.Note("warning: %s", made.GetDoubt())
	}
	if err := c.Write(made.GetText() + "\n"); err != nil {
		return err
	}
	if detach {
		c.Note("decide with: kith site admit %s", made.GetInvitationId())
	} else {
		c.Note("waiting for site %s; after Ctrl-C decide with: kith site admit %s", name, made.GetInvitationId())
	}
	return nil
}

// siteAdmitVerb is "kith site admit".
func siteAdmitVerb(c *client) *cobra.Command {
	var fingerprint string
	var anyone, refuse bool
	cmd := &cobra.Command{
		Use:   "admit [INVITATION]",
		Short: "Decide about the site that comes by an invitation",
		Long: `Decide about the site that comes by an invitation, which "kith site invite"
named; it need not be named where only one is open. It waits until one has come,
shows its name and fingerprint and asks.
With --fingerprint that site alone is admitted, without a question. With --refuse
the invitation ends at once, also before anybody has come by it: its text is void.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if refuse && (anyone || fingerprint != "") {
				return cli.Usagef("site admit: --refuse admits nobody, and goes without --yes and --fingerprint")
			}
			return c.attend(cmd.Context(), func(ctx context.Context, s *site) error {
				id, err := c.namedInvitation(ctx, s, args)
				if err != nil {
					return err
				}
				if refuse {
					return c.refuseInvitation(ctx, s, id)
				}
				return c.decide(ctx, s, id, fingerprint, anyone)
			})
		},
	}
	cmd.Flags().StringVar(&fingerprint, "fingerprint", "", "admit the site with this `FINGERPRINT` and no other")
	cmd.Flags().BoolVar(&anyone, "yes", false, "admit the site that comes without asking")
	cmd.Flags().BoolVar(&refuse, "refuse", false, "end the invitation: nobody is admitted by it")
	return cmd
}

// refuseInvitation ends an invitation, whoever has come by it.
func (c *client) refuseInvitation(ctx context.Context, s *site, id string) error {
	r, err := s.trust.DecideInvitation(ctx, &kithv1.DecideInvitationRequest{InvitationId: id})
	if err != nil {
		return err
	}
	i := r.GetInvitation()
	return c.printMessage(i, func() string {
		return fmt.Sprintf("Invitation %s for site %s is over; nobody is admitted by it.\n", i.GetId(), i.GetSiteId())
	})
}

// namedInvitation returns the id of the invitation that the arguments name, or the only one.
func (c *client) namedInvitation(ctx context.Context, s *site, args []string) (string, error) {
	if len(args) > 0 {
		return args[0], nil
	}
	return c.onlyInvitation(ctx, s)
}

// onlyInvitation returns the id of the invitation that is open, if there is one alone.
func (c *client) onlyInvitation(ctx context.Context, s *site) (string, error) {
	r, err := s.trust.ListInvitations(ctx, &kithv1.ListInvitationsRequest{})
	if err != nil {
		return "", err
	}
	var open []*kithv1.Invitation
	for _, i := range r.GetInvitations() {
		if i.GetState() == kithv1.Invitation_STATE_OPEN || i.GetState() == kithv1.Invitation_STATE_CAME {
			open = append(open, i)
		}
	}
	switch len(open) {
	case 0:
		return "", cli.Refusedf("no invitation is open; make one with: kith site invite SITE")
	case 1:
		return open[0].GetId(), nil
	}
	f := cli.Usagef("site admit: several invitations are open; name one of them:")
	for _, i := range open {
		came := "nobody has come by it yet"
		if j := i.GetJoiner(); j != nil {
			came = "a site has come with fingerprint " + j.GetFingerprint()
		}
		f.Problems = append(f.Problems, fmt.Sprintf("%s for site %s, until %s: %s", i.GetId(), i.GetSiteId(), i.GetExpireTime().AsTime().Local().Format("15:04"), came))
	}
	return "", f
}

// decide waits for the site that comes by an invitation and asks about it.
func (c *client) decide(ctx context.Context, s *site, id, fingerprint string, anyone bool) error {
	stream, err := s.trust.WatchInvitation(ctx, &kithv1.WatchInvitationRequest{InvitationId: id})
	if err != nil {
		return err
	}
	asked := make(chan answer, 1)
	updates := make(chan *kithv1.Invitation, 1)
	failed := make(chan error, 1)
	go func() {
		for {
			r, err := stream.Recv()
			if err != nil {
				failed <- err
				return
			}
			updates <- r.GetInvitation()
		}
	}()
	var came *kithv1.JoiningSite
	for {
		select {
		case i := <-updates:
			if done, err := c.sawInvitation(i, came); done {
				return err
			}
			if i.GetState() != kithv1.Invitation_STATE_CAME || came != nil {
				continue
			}
			came = i.GetJoiner()
			c.tellJoiner(came)
			switch {
			case fingerprint != "" && came.GetFingerprint() != fingerprint:
				return cli.Refusedf("the site that came has fingerprint %s and is not admitted; to refuse it: kith site admit %s --refuse", came.GetFingerprint(), id)
			case fingerprint != "" || anyone:
				asked <- yes
			default:
				go func() { asked <- c.confirm(fmt.Sprintf("Admit site %s? [y/N] ", came.GetSiteId())) }()
			}
		case said := <-asked:
			if said == noAnswer {
				return cli.Refusedf("no answer was given, and site %s waits; decide with: kith site admit %s", came.GetSiteId(), id)
			}
			r, err := s.trust.DecideInvitation(ctx, &kithv1.DecideInvitationRequest{InvitationId: id, Fingerprint: came.GetFingerprint(), Admit: said == yes})
			if err != nil {
				return err
			}
			_, err = c.sawInvitation(r.GetInvitation(), came)
			return err
		case err := <-failed:
			return err
		}
	}
}

// sawInvitation ends a wait for an invitation that is over, with what became of it.
func (c *client) sawInvitation(i *kithv1.Invitation, came *kithv1.JoiningSite) (done bool, err error) {
	name := i.GetSiteId()
	switch i.GetState() {
	case kithv1.Invitation_STATE_ADMITTED:
		if c.JSON() {
			return true, c.printLine(i)
		}
		return true, c.Write("Site " + name + " is admitted: both sites trust each other once it has been told.\n")
	case kithv1.Invitation_STATE_REFUSED:
		return true, cli.Refusedf("site %s was not admitted; the invitation is over", name)
	case kithv1.Invitation_STATE_EXPIRED:
		if came == nil {
			return true, cli.Refusedf("no site came by invitation %s until it expired; invite %s again", i.GetId(), name)
		}
		return true, cli.Refusedf("invitation %s expired before site %s was admitted; invite it again", i.GetId(), name)
	case kithv1.Invitation_STATE_BURNT:
		return true, cli.Refusedf("invitation %s is void: wrong proofs were given, or two sites have its text; invite %s again, over a way that others cannot read", i.GetId(), name)
	}
	return false, nil
}

func (c *client) tellJoiner(j *kithv1.JoiningSite) {
	c.Note("site         %s", j.GetSiteId())
	c.Note("fingerprint  %s", j.GetFingerprint())
	c.Note("addresses    %s", orDefault(strings.Join(j.GetAddresses(), " "), "none: it dials this site"))
	c.Note("version      %s", orDefault(j.GetVersion(), cli.Nothing))
}

// An answer is what a person says to a question.
type answer uint8

// The answers. An end of stdin is none.
const (
	noAnswer answer = iota
	yes
	no
)

// confirm asks a question on stderr; every line but y and yes is no.
func (c *client) confirm(question string) answer {
	fmt.Fprint(c.Stderr, question)
	line, err := bufio.NewReader(io.LimitReader(c.Stdin, 256)).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return yes
	case "":
		if err != nil {
			return noAnswer
		}
	}
	return no
}

// siteAcceptVerb is "kith site accept".
func siteAcceptVerb(c *client) *cobra.Command {
	return &cobra.Command{
		Use:   "accept TEXT|-",
		Short: "Join the site that made an invitation",
		Long: `Join the site that made an invitation, by the text that "kith site invite"
printed there; with - it is read from stdin. The site that answers must have the
CA that the text names. Then accept waits until the operator there has decided.
If it is interrupted, the same text can be accepted again until it expires.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			text := args[0]
			if text == "-" {
				raw, err := io.ReadAll(io.LimitReader(c.Stdin, longestInvitation+1))
				if err != nil {
					return cli.Refusedf("read the invitation from stdin: %v", err)
				}
				text = string(raw)
			}
			if len(text) > longestInvitation {
				return cli.Usagef("the invitation has more than %d characters; give the one text that kith site invite printed", longestInvitation)
			}
			return c.attend(cmd.Context(), func(ctx context.Context, s *site) error { return c.accept(ctx, s, text) })
		},
	}
}

func (c *client) accept(ctx context.Context, s *site, text string) error {
	stream, err := s.trust.AcceptInvitation(ctx, &kithv1.AcceptInvitationRequest{Text: text})
	if err != nil {
		return err
	}
	waiting := false
	for {
		r, err := stream.Recv()
		if err != nil {
			return err
		}
		if c.JSON() {
			if err := c.printLine(r); err != nil {
				return err
			}
		}
		switch p := r.GetProgress().(type) {
		case *kithv1.AcceptInvitationResponse_Connecting:
			if m := p.Connecting; m.GetError() != "" && !waiting {
				c.Note("%s; trying %s", m.GetError(), m.GetAddress())
			}
		case *kithv1.AcceptInvitationResponse_Waiting:
			if !waiting {
				c.Note("waiting for the operator of site %s, who is shown this site's fingerprint %s", p.Waiting.GetSiteId(), p.Waiting.GetOwnFingerprint())
			}
			waiting = true
		case *kithv1.AcceptInvitationResponse_Joined:
			t := p.Joined.GetSite()
			if c.JSON() {
				return nil
			}
			return c.Write(fmt.Sprintf("Joined site %s, fingerprint %s.\n", t.GetSiteId(), strings.Join(t.GetFingerprints(), " ")))
		}
	}
}
