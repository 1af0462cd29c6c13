package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"kith/cluster/wire"
	"kith/internal/identity"
	"kith/internal/job"
	"kith/meta"
	"kith/meta/trust/audit"
	"kith/meta/trust/token"
	kithv1 "kith/proto/gen/kith/v1"
)

var _ kithv1.TrustServiceServer = (*Server)(nil)

// Errors of TrustService.
var (
	// ErrNoKeys is returned by a site that serves without keys.
	ErrNoKeys = errors.New("this site has no keys and knows others by [[peers]] in its configuration; make keys with kithd init to join by invitation")
	// ErrNotOperator is returned to callers that are not at the unix socket, where they must be.
	ErrNotOperator = errors.New("only an operator may do this: a user that may open the site's unix socket; call there with --site unix:PATH")
	// ErrNoTrustedSite is returned for a site that is not in the trust table.
	ErrNoTrustedSite = errors.New("no such site in the trust table")
	// ErrNoInvitation is returned for an invitation that is not known any more.
	ErrNoInvitation = errors.New("no such invitation")
	// ErrInviter is returned when the inviter did not admit this site.
	ErrInviter = errors.New("not admitted")
	// ErrInviterAway is returned when the inviter cannot be reached.
	ErrInviterAway = errors.New("the inviter cannot be reached")
)

// Trust is what a site with keys does beside its facts.
type Trust interface {
	// Invite makes an invitation, durably. Without addresses it has those that the site
	// advertises; without a lifetime that is the usual one.
	Invite(ctx context.Context, site job.SiteID, addresses []string, lifetime time.Duration) (Invited, error)
	// Decide says yes or no to the site with the fingerprint that came by an invitation.
	Decide(ctx context.Context, id, fingerprint string, admit bool) error
	// Changed returns what is closed when an invitation changes.
	Changed() <-chan struct{}
	// Accept joins the site that made the invitation, durably, and returns its name. tell
	// is called with how far it is, by one goroutine; its error ends the call.
	Accept(ctx context.Context, text string, tell func(*kithv1.AcceptInvitationResponse) error) (job.SiteID, error)
	// Rotate voids the certificates of before (now), begins to replace the CA (ca), or both.
	Rotate(ctx context.Context, now, ca bool) (*kithv1.RotateKeysResponse, error)
	// Told returns what a site has told of its audit log, false if nothing.
	Told(site job.SiteID) (audit.Told, bool)
	// CreateToken makes a token.
	CreateToken(ctx context.Context, user string, lifetime time.Duration) (text string, t token.Token, err error)
}

// Invited is a new invitation.
type Invited struct {
	// Text is the secret one, ID the public name.
	Text, ID string
	Expires  time.Time
	// Fingerprint is of the inviter's CA.
	Fingerprint string
	// Doubt says why the other site may not be able to use it, empty if nothing speaks against it.
	Doubt string
}

// operator returns what decides about trust, if the caller may.
func (s *Server) operator(ctx context.Context) (Trust, error) {
	if s.Trust == nil {
		return nil, ErrNoKeys
	}
	if identity.From(ctx).Proof != identity.PeerCredential {
		return nil, ErrNotOperator
	}
	return s.Trust, nil
}

// ListTrustedSites implements kithv1.TrustServiceServer.
func (s *Server) ListTrustedSites(ctx context.Context, _ *kithv1.ListTrustedSitesRequest) (*kithv1.ListTrustedSitesResponse, error) {
	if _, err := s.operator(ctx); err != nil {
		return nil, err
	}
	sites, err := s.trustedSites(ctx)
	return &kithv1.ListTrustedSitesResponse{Sites: sites}, err
}

// GetTrustedSite implements kithv1.TrustServiceServer.
func (s *Server) GetTrustedSite(ctx context.Context, r *kithv1.GetTrustedSiteRequest) (*kithv1.GetTrustedSiteResponse, error) {
	if _, err := s.operator(ctx); err != nil {
		return nil, err
	}
	t, err := s.trustedSite(ctx, r.GetSiteId())
	return &kithv1.GetTrustedSiteResponse{Site: t}, err
}

// SetSiteAddresses implements kithv1.TrustServiceServer.
func (s *Server) SetSiteAddresses(ctx context.Context, r *kithv1.SetSiteAddressesRequest) (*kithv1.SetSiteAddressesResponse, error) {
	if _, err := s.operator(ctx); err != nil {
		return nil, err
	}
	if len(r.GetAddresses()) == 0 {
		return nil, &FieldError{Field: "addresses", Reason: "none is given; give 1 to 8 of HOST:PORT"}
	}
	for _, a := range r.GetAddresses() {
		if err := wire.CheckAddress(a); err != nil {
			return nil, &FieldError{Field: "addresses", Reason: fmt.Sprintf("%.64q %v; give where other machines reach the site", a, err)}
		}
	}
	known, err := s.trustedSite(ctx, r.GetSiteId())
	if err != nil {
		return nil, err
	}
	site := job.SiteID(known.GetSiteId())
	_, err = s.Node.Ask(ctx, func(token uint64) meta.Event {
		return meta.SetAddresses{Token: token, Site: site, Addresses: r.GetAddresses(), Actor: identity.From(ctx).Actor}
	})
	if err != nil {
		return nil, err
	}
	s.told(ctx, "site address set", "site", site, "addresses", r.GetAddresses())
	known, err = s.trustedSite(ctx, r.GetSiteId())
	return &kithv1.SetSiteAddressesResponse{Site: known}, err
}

// RevokeSite implements kithv1.TrustServiceServer.
func (s *Server) RevokeSite(ctx context.Context, r *kithv1.RevokeSiteRequest) (*kithv1.RevokeSiteResponse, error) {
	if _, err := s.operator(ctx); err != nil {
		return nil, err
	}
	if err := checkReason(r.GetReason()); err != nil {
		return nil, err
	}
	known, err := s.trustedSite(ctx, r.GetSiteId())
	if err != nil {
		return nil, err
	}
	site := job.SiteID(known.GetSiteId())
	reply, err := s.Node.Ask(ctx, func(token uint64) meta.Event {
		return meta.RevokeSite{Token: token, Site: site, LetRun: r.GetLetRun(), Reason: r.GetReason(), Actor: identity.From(ctx).Actor}
	})
	if err != nil {
		return nil, err
	}
	s.told(ctx, "site revoked", "site", site, "let_run", r.GetLetRun(), "reason", r.GetReason())
	return &kithv1.RevokeSiteResponse{Severed: severed(reply.Revoked)}, nil
}

// ForgetTrustedSite implements kithv1.TrustServiceServer.
func (s *Server) ForgetTrustedSite(ctx context.Context, r *kithv1.ForgetTrustedSiteRequest) (*kithv1.ForgetTrustedSiteResponse, error) {
	if _, err := s.operator(ctx); err != nil {
		return nil, err
	}
	known, err := s.trustedSite(ctx, r.GetSiteId())
	if err != nil {
		return nil, err
	}
	site := job.SiteID(known.GetSiteId())
	_, err = s.Node.Ask(ctx, func(token uint64) meta.Event {
		return meta.ForgetTrust{Token: token, Site: site, Fingerprints: known.GetFingerprints(), Actor: identity.From(ctx).Actor}
	})
	if err != nil {
		return nil, err
	}
	s.told(ctx, "revoked site forgotten", "site", site, "fingerprints", strings.Join(known.GetFingerprints(), " "))
	return &kithv1.ForgetTrustedSiteResponse{Site: known}, nil
}

// LeaveFederation implements kithv1.TrustServiceServer.
func (s *Server) LeaveFederation(ctx context.Context, r *kithv1.LeaveFederationRequest) (*kithv1.LeaveFederationResponse, error) {
	if _, err := s.operator(ctx); err != nil {
		return nil, err
	}
	if err := checkReason(r.GetReason()); err != nil {
		return nil, err
	}
	reply, err := s.Node.Ask(ctx, func(token uint64) meta.Event {
		return meta.Leave{Token: token, LetRun: r.GetLetRun(), Reason: r.GetReason(), Actor: identity.From(ctx).Actor}
	})
	if err != nil {
		return nil, err
	}
	s.told(ctx, "site left the federation", "let_run", r.GetLetRun(), "reason", r.GetReason())
	return &kithv1.LeaveFederationResponse{Severed: severed(reply.Revoked)}, nil
}

func severed(r *meta.Revoked) *kithv1.Severed {
	if r == nil {
		return &kithv1.Severed{}
	}
	return &kithv1.Severed{
		AttemptsStopped: int64(r.Stopped), CopiesDropped: int64(r.Dropped), CopiesReplaced: int64(r.Replaced),
		JobsRevoked: int64(r.Revoked), JobsLeased: int64(r.Leased),
	}
}

// RotateKeys implements kithv1.TrustServiceServer.
func (s *Server) RotateKeys(ctx context.Context, r *kithv1.RotateKeysRequest) (*kithv1.RotateKeysResponse, error) {
	t, err := s.operator(ctx)
	if err != nil {
		return nil, err
	}
	if !r.GetNow() && !r.GetCa() {
		return nil, &FieldError{Field: "now", Reason: "nothing is to be replaced; set now, ca or both"}
	}
	return t.Rotate(ctx, r.GetNow(), r.GetCa())
}

// CreateToken implements kithv1.TrustServiceServer.
func (s *Server) CreateToken(ctx context.Context, r *kithv1.CreateTokenRequest) (*kithv1.CreateTokenResponse, error) {
	trust, err := s.operator(ctx)
	if err != nil {
		return nil, err
	}
	text, t, err := trust.CreateToken(ctx, r.GetUser(), r.GetLifetime().AsDuration())
	switch {
	case errors.Is(err, token.ErrBadUser):
		return nil, &FieldError{Field: "user", Reason: err.Error(), Err: err}
	case errors.Is(err, token.ErrBadLifetime):
		return nil, &FieldError{Field: "lifetime", Reason: err.Error(), Err: err}
	case err != nil:
		return nil, err
	}
	s.told(ctx, "token created", "token", t.ID, "user", t.User, "until", t.Expires)
	return &kithv1.CreateTokenResponse{Token: text, TokenId: t.ID, User: t.User, ExpireTime: timestamppb.New(t.Expires)}, nil
}

// RevokeToken implements kithv1.TrustServiceServer.
func (s *Server) RevokeToken(ctx context.Context, r *kithv1.RevokeTokenRequest) (*kithv1.RevokeTokenResponse, error) {
	if _, err := s.operator(ctx); err != nil {
		return nil, err
	}
	// Of a token that is not recorded nothing says when it ends: no later than the longest-lived one made now.
	until := job.Instant(time.Now().Add(token.MaxLifetime))
	_, err := s.Node.Ask(ctx, func(ask uint64) meta.Event {
		return meta.RevokeToken{Token: ask, ID: r.GetTokenId(), Unlisted: r.GetUnlisted(), Expires: until, Actor: identity.From(ctx).Actor}
	})
	if err != nil {
		return nil, err
	}
	s.told(ctx, "token revoked", "token", r.GetTokenId())
	return &kithv1.RevokeTokenResponse{}, nil
}

// ListRevokedTokens implements kithv1.TrustServiceServer.
func (s *Server) ListRevokedTokens(ctx context.Context, _ *kithv1.ListRevokedTokensRequest) (*kithv1.ListRevokedTokensResponse, error) {
	resp := &kithv1.ListRevokedTokensResponse{}
	all, err := s.ListTokens(ctx, &kithv1.ListTokensRequest{})
	for _, t := range all.GetTokens() {
		if t.GetRevokeTime() != nil {
			resp.Tokens = append(resp.Tokens, &kithv1.RevokedToken{
				TokenId: t.GetTokenId(), ExpireTime: t.GetExpireTime(), RevokeTime: t.GetRevokeTime(), Actor: t.GetRevokeActor(),
			})
		}
	}
	return resp, err
}

// ListTokens implements kithv1.TrustServiceServer.
func (s *Server) ListTokens(ctx context.Context, _ *kithv1.ListTokensRequest) (*kithv1.ListTokensResponse, error) {
	if _, err := s.operator(ctx); err != nil {
		return nil, err
	}
	resp := &kithv1.ListTokensResponse{}
	err := s.Node.Look(ctx, func(_ job.Time, v meta.Views) {
		for _, t := range v.Tokens() {
			m := &kithv1.IssuedToken{TokenId: t.ID, User: t.User, ExpireTime: timestamppb.New(t.Expires.Wall())}
			if t.Made != 0 {
				m.MakeTime, m.MakeActor = timestamppb.New(t.Made.Wall()), t.Maker.String()
			}
			if t.Revoked != 0 {
				m.RevokeTime, m.RevokeActor = timestamppb.New(t.Revoked.Wall()), t.Actor.String()
			}
			resp.Tokens = append(resp.Tokens, m)
		}
	})
	return resp, err
}
