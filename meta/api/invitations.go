package api

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/trust"
	"kith/meta/trust/audit"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
)

// InviteSite implements kithv1.TrustServiceServer.
func (s *Server) InviteSite(ctx context.Context, r *kithv1.InviteSiteRequest) (*kithv1.InviteSiteResponse, error) {
	trust, err := s.operator(ctx)
	if err != nil {
		return nil, err
	}
	site, err := job.ParseSiteID(r.GetSiteId())
	if err != nil {
		return nil, &FieldError{Field: "site_id", Reason: err.Error(), Err: err}
	}
	i, err := trust.Invite(ctx, site, r.GetAddresses(), r.GetLifetime().AsDuration())
	if err != nil {
		return nil, err
	}
	s.told(ctx, "site invited", "site", site, "invitation", i.ID, "until", i.Expires)
	return &kithv1.InviteSiteResponse{Text: i.Text, InvitationId: i.ID, ExpireTime: timestamppb.New(i.Expires), Fingerprint: i.Fingerprint, Doubt: i.Doubt}, nil
}

// WatchInvitation implements kithv1.TrustServiceServer.
func (s *Server) WatchInvitation(r *kithv1.WatchInvitationRequest, g grpc.ServerStreamingServer[kithv1.WatchInvitationResponse]) error {
	trust, err := s.operator(g.Context())
	if err != nil {
		return err
	}
	var last *kithv1.Invitation
	for {
		changed := trust.Changed()
		i, err := s.invitation(g.Context(), r.GetInvitationId())
		if err != nil {
			return err
		}
		if !proto.Equal(i, last) {
			if err := g.Send(&kithv1.WatchInvitationResponse{Invitation: i}); err != nil {
				return err
			}
			last = i
		}
		if i.GetState() > kithv1.Invitation_STATE_CAME {
			return nil
		}
		select {
		case <-changed:
		case <-g.Context().Done():
			return g.Context().Err()
		}
	}
}

// ListInvitations implements kithv1.TrustServiceServer.
func (s *Server) ListInvitations(ctx context.Context, _ *kithv1.ListInvitationsRequest) (*kithv1.ListInvitationsResponse, error) {
	if _, err := s.operator(ctx); err != nil {
		return nil, err
	}
	resp := &kithv1.ListInvitationsResponse{}
	err := s.Node.Look(ctx, func(_ job.Time, v meta.Views) {
		for _, i := range v.Invitations() {
			resp.Invitations = append(resp.Invitations, invitationMessage(i))
		}
	})
	return resp, err
}

// DecideInvitation implements kithv1.TrustServiceServer.
func (s *Server) DecideInvitation(ctx context.Context, r *kithv1.DecideInvitationRequest) (*kithv1.DecideInvitationResponse, error) {
	trust, err := s.operator(ctx)
	if err != nil {
		return nil, err
	}
	if err := trust.Decide(ctx, r.GetInvitationId(), r.GetFingerprint(), r.GetAdmit()); err != nil {
		return nil, err
	}
	i, err := s.invitation(ctx, r.GetInvitationId())
	if err != nil {
		return nil, err
	}
	s.told(ctx, "invitation decided", "invitation", i.GetId(), "site", i.GetSiteId(), "admitted", r.GetAdmit(), "fingerprint", r.GetFingerprint())
	return &kithv1.DecideInvitationResponse{Invitation: i}, nil
}

// AcceptInvitation implements kithv1.TrustServiceServer.
func (s *Server) AcceptInvitation(r *kithv1.AcceptInvitationRequest, g grpc.ServerStreamingServer[kithv1.AcceptInvitationResponse]) error {
	trust, err := s.operator(g.Context())
	if err != nil {
		return err
	}
	site, err := trust.Accept(g.Context(), r.GetText(), g.Send)
	if err != nil {
		return err
	}
	t, err := s.trustedSite(g.Context(), string(site))
	if err != nil {
		return err
	}
	s.told(g.Context(), "site joined", "site", site, "fingerprints", strings.Join(t.GetFingerprints(), " "))
	return g.Send(&kithv1.AcceptInvitationResponse{Progress: &kithv1.AcceptInvitationResponse_Joined{Joined: &kithv1.AcceptJoined{Site: t}}})
}

// invitation returns one as the facts have it.
func (s *Server) invitation(ctx context.Context, id string) (i *kithv1.Invitation, err error) {
	err = s.Node.Look(ctx, func(_ job.Time, v meta.Views) {
		if rec := v.Invitation(strings.ToUpper(id)); rec != nil {
			i = invitationMessage(rec)
		}
	})
	if err == nil && i == nil {
		err = fmt.Errorf("invitation %.64q: %w; it has expired and is forgotten, or another site made it", id, ErrNoInvitation)
	}
	return i, err
}

func invitationMessage(i *store.Invitation) *kithv1.Invitation {
	m := &kithv1.Invitation{
		Id: i.ID, SiteId: string(i.Name), State: kithv1.Invitation_State(i.State),
		ExpireTime: timestamppb.New(i.Expires.Wall()), WrongTries: int32(i.Tries), Actor: i.Actor.String(), //nolint:gosec // at most MaxTries
	}
	if i.Joiner.Site != "" {
		m.Joiner = &kithv1.JoiningSite{SiteId: string(i.Joiner.Site), Addresses: i.Joiner.Addresses, Version: i.Joiner.Version}
		// The first key is the CA that the joiner's connection proved.
		if b, err := trust.ParseBundle(i.Joiner.Bundle.Data); err == nil {
			if ca := b.CA(i.Joiner.Bundle.Keys[0]); ca != nil {
				m.Joiner.Fingerprint = trust.Fingerprint(ca)
			}
		}
	}
	return m
}

func (s *Server) trustedSite(ctx context.Context, site string) (*kithv1.TrustedSite, error) {
	if _, err := job.ParseSiteID(site); err != nil {
		return nil, &FieldError{Field: "site_id", Reason: err.Error(), Err: err}
	}
	sites, err := s.trustedSites(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range sites {
		if t.GetSiteId() == site {
			return t, nil
		}
	}
	return nil, fmt.Errorf("site %s: %w; kith site peers lists those that are", site, ErrNoTrustedSite)
}

func (s *Server) trustedSites(ctx context.Context) (sites []*kithv1.TrustedSite, err error) {
	var table []*store.TrustedSite
	connected := make(map[job.SiteID]bool)
	var dealings map[job.SiteID]meta.Dealings
	err = s.Node.Look(ctx, func(now job.Time, v meta.Views) {
		table, dealings = v.TrustedSites(), v.Dealings(now)
		for _, site := range v.Sites(now) {
			connected[site.Site] = site.Connected
		}
	})
	if err != nil {
		return nil, err
	}
	d := s.Node.Describe()
	for _, t := range table {
		m := trustedMessage(t)
		if m.Connected = connected[t.Site] && t.State == store.SiteKnown; !m.Connected && t.State == store.SiteKnown {
			m.ConnectionError = d.Trouble[t.Site].Why
		}
		if end, ok := d.Shown[t.Site]; ok && m.GetConnected() {
			m.CertificateExpireTime = timestamppb.New(end)
		}
		d := dealings[t.Site]
		m.HeldJobs, m.OverdueJobs, m.CopiesHere = int64(d.Held), int64(d.Overdue), int64(d.Copies)
		m.GivenUpJobs = int64(d.GivenUp)
		if d.Oldest != 0 {
			m.OldestClaimTime = timestamppb.New(d.Oldest.Wall())
		}
		if told, ok := s.Trust.Told(t.Site); ok {
			m.AuditHead = headMessage(&told.Head)
			if told.Broken != nil {
				m.AuditHeadBroken = headMessage(told.Broken)
			}
		}
		sites = append(sites, m)
	}
	return sites, nil
}

func headMessage(h *audit.Head) *kithv1.AuditHead {
	return &kithv1.AuditHead{Number: h.Number, Hash: h.Hash[:], TimeNs: h.Time.UnixNano(), Signature: h.Signature}
}

func trustedMessage(t *store.TrustedSite) *kithv1.TrustedSite {
	m := &kithv1.TrustedSite{
		SiteId: string(t.Site), State: kithv1.TrustedSite_State(t.State), BundleSequence: int64(t.Bundle.Sequence), //nolint:gosec // at most 2^62
		Addresses: t.Addresses, ToldAddresses: t.Told.Addresses, Version: t.Version, SinceTime: timestamppb.New(t.Since.Wall()), Actor: t.Actor.String(), LetRun: t.LetRun,
	}
	if t.Bundle.Floor != 0 {
		m.FloorTime = timestamppb.New(t.Bundle.Floor.Wall())
	}
	if b, err := trust.ParseBundle(t.Bundle.Data); err == nil {
		m.ExpireTime = timestamppb.New(b.Expires())
		for _, ca := range b.CAs {
			m.Fingerprints = append(m.Fingerprints, trust.Fingerprint(ca))
		}
	}
	return m
}
