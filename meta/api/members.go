package api

import (
	"context"
	"errors"

	"kith/internal/identity"
	kithv1 "kith/proto/gen/kith/v1"
)

// Errors of members of a site.
var (
	// ErrNoMembers is returned when a site is one machine.
	ErrNoMembers = errors.New("the site is one machine; several that keep its facts together are configured by members.self")
	// ErrMembership is returned when the members cannot be changed so.
	ErrMembership = errors.New("the members cannot be changed so")
	// ErrMemberName is returned when a name or an address of a member cannot be one.
	ErrMemberName = errors.New("a member is a name of letters, digits and dashes, and host:port")
	// ErrMemberAway is returned when a machine that is to be a member cannot be reached.
	ErrMemberAway = errors.New("the machine cannot be reached")
	// ErrNoLeader is returned while no member leads.
	ErrNoLeader = errors.New("the site has no leader at present")
)

// Member is one of the machines that keep a site's facts together.
type Member struct {
	Name, Address string
	// Votes is false for one that is still catching up; Leads is whether it leads.
	Votes, Leads bool
	// RunsJobs is whether it has the processors of the site, and Away why it cannot be driven now;
	// empty if it can.
	RunsJobs bool
	Away     string
	// Unreached is why the one that leads cannot use it; empty if it can.
	Unreached string
	// NoFacts is whether it only has the processors.
	NoFacts bool
}

// Members are the machines of a site.
type Members interface {
	// List asks each of them whether it answers.
	List(ctx context.Context) []Member
	// Add takes a member in that waits for it, and returns when it has all that the others have.
	Add(ctx context.Context, name, address string) error
	// Remove takes one out, once the others have what it has.
	Remove(ctx context.Context, name string) error
}

// ListMembers implements kithv1.SiteServiceServer.
func (s *Server) ListMembers(ctx context.Context, _ *kithv1.ListMembersRequest) (*kithv1.ListMembersResponse, error) {
	if s.Members == nil {
		return nil, ErrNoMembers
	}
	r := &kithv1.ListMembersResponse{}
	for _, m := range s.Members.List(ctx) {
		r.Members = append(r.Members, &kithv1.SiteMember{Name: m.Name, Address: m.Address, Votes: m.Votes, Leads: m.Leads, RunsJobs: m.RunsJobs, Away: m.Away, KeepsFacts: !m.NoFacts, Unreached: m.Unreached})
	}
	return r, nil
}

// AddMember implements kithv1.SiteServiceServer.
func (s *Server) AddMember(ctx context.Context, r *kithv1.AddMemberRequest) (*kithv1.AddMemberResponse, error) {
	if err := s.changesMembers(ctx); err != nil {
		return nil, err
	}
	if err := s.Members.Add(ctx, r.GetName(), r.GetAddress()); err != nil {
		return nil, err
	}
	s.told(ctx, "member added", "member_name", r.GetName(), "address", r.GetAddress())
	return &kithv1.AddMemberResponse{}, nil
}

// RemoveMember implements kithv1.SiteServiceServer.
func (s *Server) RemoveMember(ctx context.Context, r *kithv1.RemoveMemberRequest) (*kithv1.RemoveMemberResponse, error) {
	if err := s.changesMembers(ctx); err != nil {
		return nil, err
	}
	if err := s.Members.Remove(ctx, r.GetName()); err != nil {
		return nil, err
	}
	s.told(ctx, "member removed", "member_name", r.GetName())
	return &kithv1.RemoveMemberResponse{}, nil
}

// changesMembers says why a caller may not change the members, nil if it may: operators at the
// socket may, as with trust.
func (s *Server) changesMembers(ctx context.Context) error {
	if identity.From(ctx).Proof != identity.PeerCredential {
		return ErrNotOperator
	}
	if s.Members == nil {
		return ErrNoMembers
	}
	return nil
}
