package daemon

import (
	"context"
	"errors"
	"sync"
	"time"

	"kith/meta/api"
	"kith/store/raftstore"
)

// deskOfMembers is what operators ask of the members of a site.
type deskOfMembers struct {
	m *Member
	// machine tells of the machine with the processors; nil if the site has none.
	machine func() (name, away string)
}

var _ api.Members = deskOfMembers{}

// answerTime is how long a member may take to say that it is there.
const answerTime = time.Second

// List implements api.Members.
func (k deskOfMembers) List(ctx context.Context) []api.Member {
	var list []api.Member
	var name, away string
	if k.machine != nil {
		name, away = k.machine()
	}
	for _, s := range k.m.raft.Members() {
		m := api.Member{Name: s.Name, Address: s.Address, Votes: s.Votes, Leads: s.Leads}
		if s.Name == name {
			m.RunsJobs, m.Away, name = true, away, ""
		}
		list = append(list, m)
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var asked sync.WaitGroup
	for i := range list {
		if m := &list[i]; !m.Leads {
			asked.Go(func() {
				if err := k.m.raft.Reach(ctx, raftstore.Peer{Name: m.Name, Address: m.Address}); err != nil {
					m.Unreached = err.Error()
				}
			})
		}
	}
	asked.Wait()
	if name != "" {
		list = append(list, api.Member{Name: name, Address: k.m.cfg.Members.ExecutorAddress, RunsJobs: true, Away: away, NoFacts: true})
	}
	return list
}

// Add implements api.Members.
func (k deskOfMembers) Add(ctx context.Context, name, address string) error {
	if err := k.m.raft.Add(ctx, raftstore.Peer{Name: name, Address: address}); err != nil {
		if err = memberError(err); ctx.Err() != nil || known(err) {
			return err
		}
		return &asError{err, api.ErrMemberAway}
	}
	return k.m.copies.Level(ctx, name, "")
}

// Remove implements api.Members. What a member has that goes, the others have first: files that
// a majority had may be in the hands of fewer of them then.
func (k deskOfMembers) Remove(ctx context.Context, name string) error {
	if err := k.m.copies.Level(ctx, "", name); err != nil {
		return err
	}
	return memberError(k.m.raft.Remove(name))
}

// memberError returns an error as [api] knows it.
func memberError(err error) error {
	for _, m := range [][2]error{
		{raftstore.ErrMembership, api.ErrMembership}, {raftstore.ErrRefused, api.ErrMembership},
		{raftstore.ErrName, api.ErrMemberName}, {raftstore.ErrNotLeading, api.ErrNoLeader},
	} {
		if errors.Is(err, m[0]) {
			return &asError{err, m[1]}
		}
	}
	return err
}

// known reports whether an error is one of [api].
func known(err error) bool {
	_, is := errors.AsType[*asError](err)
	return is
}

// asError is an error that is one of [api], too.
type asError struct {
	error
	as error
}

// Is implements what [errors.Is] asks for.
func (e *asError) Is(target error) bool { return target == e.as }

// Unwrap returns the error without it.
func (e *asError) Unwrap() error { return e.error }
