package raftstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"kith/store"
	"kith/store/raftstore/leads"
)

// Status is what is known of a member of the site.
type Status struct {
	Peer
	// Votes is false for one that is still catching up.
	Votes bool
	// Leads is whether it leads, as far as this member knows.
	Leads bool
}

// Members returns the members of the site as this one knows them.
func (m *Member) Members() []Status {
	leader := m.Leader()
	var list []Status
	for _, s := range m.raft.GetConfiguration().Configuration().Servers {
		p := parseAddress(s.Address)
		list = append(list, Status{Peer: p, Votes: s.Suffrage == raft.Voter, Leads: p == leader})
	}
	return list
}

// leads returns an error that names who leads unless this member does.
func (m *Member) leads() error {
	if m.raft.State() == raft.Leader {
		return nil
	}
	if leader := m.Leader(); leader != (Peer{}) {
		return fmt.Errorf("%w: that is %s at %s", ErrNotLeading, leader.Name, leader.Address)
	}
	return fmt.Errorf("%w: none is known", ErrNotLeading)
}

// Add takes a member in, which must be open with an empty folder. It gets what the others have
// first and its vote then, so that one that never comes up costs the site nothing. If ctx ends
// before, it stays without a vote, and Add may be called again.
func (m *Member) Add(ctx context.Context, p Peer) error {
	if err := p.validate(); err != nil {
		return err
	}
	if err := m.leads(); err != nil {
		return err
	}
	members := m.Members()
	for _, have := range members {
		switch {
		case have.Peer == p && have.Votes:
			return m.keepsItsVote(ctx, p)
		case have.Name == p.Name && have.Peer != p:
			return fmt.Errorf("a member %s is at %s, remove it first: %w", p.Name, have.Address, ErrMembership)
		case have.Address == p.Address && have.Peer != p:
			return fmt.Errorf("address %s is member %s's, remove it first: %w", p.Address, have.Name, ErrMembership)
		case have.Peer == p:
			members = nil // it is counted already
		}
	}
	if len(members) >= MaxMembers {
		return fmt.Errorf("there are %d members, at most %d: %w", len(members), MaxMembers, ErrMembership)
	}
	far, err := m.streams.ask(ctx, p) // before anything changes
	if err != nil {
		return fmt.Errorf("add member %s at %s: %w", p.Name, p.Address, err)
	}
	if far.applied > 0 && members != nil { // what it has may be of another founding of this site
		return fmt.Errorf("member %s at %s has a log already; stop it, remove the folder that it is in and start it again: %w", p.Name, p.Address, ErrMembership)
	}
	target := m.machine.applied.Load()
	if err := m.change(func() raft.IndexFuture {
		return m.raft.AddNonvoter(raft.ServerID(p.Name), p.serverAddress(), 0, enqueue)
	}); err != nil {
		return fmt.Errorf("add member %s: %w", p.Name, err)
	}
	if err := m.caughtUp(ctx, p, target); err != nil {
		return fmt.Errorf("member %s at %s is in the site without a vote: %w; add it again once it is up, or remove it", p.Name, p.Address, err)
	}
	if err := m.change(func() raft.IndexFuture {
		return m.raft.AddVoter(raft.ServerID(p.Name), p.serverAddress(), 0, enqueue)
	}); err != nil {
		return fmt.Errorf("vote for member %s: %w", p.Name, err)
	}
	return nil
}

// keepsItsVote returns an error if a member that has a vote lost its disk.
func (m *Member) keepsItsVote(ctx context.Context, p Peer) error {
	if err := m.Reach(ctx, p); errors.Is(err, errEmptied) {
		return fmt.Errorf("member %s at %s: %w; remove it and add it again: %w", p.Name, p.Address, err, ErrMembership)
	}
	return nil
}

// Reach asks a member whether it is there. It returns an error if that does not answer before ctx
// ends, or has lost its disk and is left out.
func (m *Member) Reach(ctx context.Context, p Peer) error {
	a, err := m.streams.ask(ctx, p)
	switch {
	case err != nil && ctx.Err() != nil:
		return errors.New("it does not answer")
	case err != nil:
		return err
	case a.text == nothing && m.votes(ctx, p.Name):
		return errEmptied
	}
	return nil
}

// caughtUp waits until a member has all that was there when it was added.
func (m *Member) caughtUp(ctx context.Context, p Peer, target uint64) error {
	for {
		far, err := m.streams.ask(ctx, p)
		if err == nil && far.applied >= target {
			return nil
		}
		pause := time.NewTimer(m.cfg.Heartbeat / 5)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return errors.Join(context.Cause(ctx), err)
		}
		if err := m.leads(); err != nil {
			return err
		}
	}
}

// Removed reports whether this member is none of the site's any more, as far as it has heard. It
// never leads again, and should be closed.
func (m *Member) Removed() bool {
	members := m.Members()
	for _, have := range members {
		if have.Peer == m.cfg.Peer {
			return false
		}
	}
	return len(members) > 0
}

// Remove takes a member out of the site. The last one with a vote stays. A member that leads may
// remove itself: the others choose another one.
func (m *Member) Remove(name string) error {
	if err := m.leads(); err != nil {
		return err
	}
	found, votes := false, 0
	for _, have := range m.Members() {
		if have.Name == name {
			found = true
		} else if have.Votes {
			votes++
		}
	}
	switch {
	case !found:
		return nil
	case votes == 0:
		return fmt.Errorf("%s is the last member with a vote: %w", name, ErrMembership)
	}
	if err := m.change(func() raft.IndexFuture { return m.raft.RemoveServer(raft.ServerID(name), 0, enqueue) }); err != nil {
		return fmt.Errorf("remove member %s: %w", name, err)
	}
	return nil
}

// Replace takes a member in and another one out then, in this order.
func (m *Member) Replace(ctx context.Context, old string, by Peer) error {
	if err := m.Add(ctx, by); err != nil {
		return err
	}
	return m.Remove(old)
}

// Transfer hands the lead over to another member. It returns when that one leads or nothing
// has come of it.
func (m *Member) Transfer() error {
	if err := m.leads(); err != nil {
		return err
	}
	return m.await(m.raft.LeadershipTransfer())
}

func (m *Member) change(f func() raft.IndexFuture) error {
	if err := m.begins(); err != nil {
		return err
	}
	defer m.commits.Done()
	err := m.await(f())
	if errors.Is(err, raft.ErrNotLeader) || errors.Is(err, raft.ErrLeadershipLost) {
		return fmt.Errorf("%w: %w", ErrNotLeading, err)
	}
	return err
}

// Reading is a [store.Backend] of the facts as this member has them, which may be earlier than what the
// members have agreed on. Nothing is committed by it.
func (m *Member) Reading() store.Backend {
	over := leads.NewAnswers("member "+m.cfg.Name, 0)
	over.End(fmt.Errorf("a member that does not lead: %w", store.ErrDeposed)) //nolint:errcheck // it is the answer to come
	return &Lead{m: m, answers: over}
}

// Applied counts the entries of the log that are in the facts of this member: they have changed
// when it has.
func (m *Member) Applied() uint64 { return m.machine.applied.Load() }

// HeardLeader returns when this member has last heard of one that leads, or has led itself; the zero time
// if that was not in this process.
func (m *Member) HeardLeader() time.Time { return m.raft.LastContact() }
