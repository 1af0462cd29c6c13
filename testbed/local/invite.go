package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	kithv1 "kith/proto/gen/kith/v1"
)

// pair is two sites of which one invites the other.
type pair struct{ inviter, joiner *Node }

// pairs returns each two sites once. Pairs that follow one another have different
// inviters, so that what goes on at a time is spread over the sites.
func (f *Federation) pairs() []pair {
	var all []pair
	for apart := 1; apart < len(f.nodes); apart++ {
		for i := range len(f.nodes) - apart {
			p := pair{inviter: f.nodes[i], joiner: f.nodes[i+apart]}
			if f.cfg.Via != nil && f.cfg.Via(p.joiner.Name, p.inviter.Name) == "" {
				p.inviter, p.joiner = p.joiner, p.inviter // the joiner dials
			}
			all = append(all, p)
		}
	}
	return all
}

// Join has two sites of the federation know each other by an invitation, anew if they do.
// Sites without keys have no invitations.
func (f *Federation) Join(ctx context.Context, a, b *Node) error {
	for _, p := range f.pairs() {
		if p.inviter == a && p.joiner == b || p.inviter == b && p.joiner == a {
			return p.redeem(ctx)
		}
	}
	return fmt.Errorf("sites %s and %s are not two of one federation", a.Name, b.Name)
}

// join has two sites know each other by an invitation, as their operators would. Sites
// that know each other already, in a folder that is used again, are left as they are.
func (p pair) join(ctx context.Context) error {
	known, err := p.joiner.Trust.ListTrustedSites(ctx, &kithv1.ListTrustedSitesRequest{})
	if err == nil && slices.ContainsFunc(known.GetSites(), func(s *kithv1.TrustedSite) bool { return s.GetSiteId() == p.inviter.Name }) {
		return nil
	}
	if err == nil {
		err = p.redeem(ctx)
	}
	if err != nil {
		return fmt.Errorf("site %s joins %s: %w", p.joiner.Name, p.inviter.Name, err)
	}
	return nil
}

// redeem carries an invitation from one site to the other, and compares what the two
// operators see.
func (p pair) redeem(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, p.inviter.f.cfg.StartTimeout)
	defer cancel()
	r := &kithv1.InviteSiteRequest{SiteId: p.joiner.Name}
	if via := p.inviter.f.cfg.Via; via != nil {
		r.Addresses = []string{via(p.joiner.Name, p.inviter.Name)}
	}
	made, err := p.inviter.Trust.InviteSite(ctx, r)
	if err != nil {
		return fmt.Errorf("invite: %w", err)
	}
	defer func() {
		if err != nil { // it shall not stay open
			p.inviter.Trust.DecideInvitation(ctx, &kithv1.DecideInvitationRequest{InvitationId: made.GetInvitationId()}) //nolint:errcheck // it expires
		}
	}()
	accept, err := p.joiner.Trust.AcceptInvitation(ctx, &kithv1.AcceptInvitationRequest{Text: made.GetText()})
	if err != nil {
		return fmt.Errorf("accept: %w", err)
	}
	for {
		at, err := accept.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return errors.New("accept: ended before the sites knew each other")
		case err != nil:
			return fmt.Errorf("accept: %w", err)
		case at.GetJoined() != nil:
			return nil
		case at.GetWaiting() != nil:
			if err := p.admit(ctx, made.GetInvitationId(), at.GetWaiting().GetOwnFingerprint()); err != nil {
				return fmt.Errorf("admit: %w", err)
			}
		}
	}
}

// admit says yes to the site that came, if it is the one that waits.
func (p pair) admit(ctx context.Context, id, fingerprint string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the watching
	watch, err := p.inviter.Trust.WatchInvitation(ctx, &kithv1.WatchInvitationRequest{InvitationId: id})
	if err != nil {
		return err
	}
	for {
		r, err := watch.Recv()
		if err != nil {
			return err
		}
		i := r.GetInvitation()
		switch {
		case i.GetState() == kithv1.Invitation_STATE_OPEN:
			continue
		case i.GetState() != kithv1.Invitation_STATE_CAME:
			return fmt.Errorf("the invitation is %v", i.GetState())
		case i.GetJoiner().GetSiteId() != p.joiner.Name || i.GetJoiner().GetFingerprint() != fingerprint:
			return fmt.Errorf("%s with %s came, %s with %s waits", i.GetJoiner().GetSiteId(), i.GetJoiner().GetFingerprint(), p.joiner.Name, fingerprint)
		}
		_, err = p.inviter.Trust.DecideInvitation(ctx, &kithv1.DecideInvitationRequest{InvitationId: id, Fingerprint: fingerprint, Admit: true})
		return err
	}
}
