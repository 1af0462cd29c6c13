package raftstore

import (
	"sync"

	"github.com/hashicorp/raft"
)

// answers remembers which members have taken what this one sent as their leader, and since when.
// The library's own check that this member leads also counts answers to what it sent before it was
// asked: they may have been on their way, or this process frozen, while the others chose another one.
type answers struct {
	mu sync.Mutex
	// asked counts the questions.
	asked uint64
	// taken has, of each member, the last question that stood before something was sent that it has taken.
	taken map[raft.ServerID]question
}

// question is one of a leader, by the term it leads and its number.
type question struct{ term, asked uint64 }

// ask begins a question and returns its number.
func (a *answers) ask() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	return a.asked
}

// now returns the number of the latest question.
func (a *answers) now() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked
}

// take notes that a member has taken what the leader of a term sent after a question.
func (a *answers) take(of raft.ServerID, term, asked uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if was := a.taken[of]; was.term < term || was.term == term && was.asked < asked {
		a.taken[of] = question{term, asked}
	}
}

// majority reports whether a majority of the servers with a vote, self among them, has taken what
// the leader of a term sent after a question.
func (a *answers) majority(servers []raft.Server, self raft.ServerID, term, asked uint64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	votes, have := 0, 0
	for _, s := range servers {
		if s.Suffrage != raft.Voter {
			continue
		}
		votes++
		if t := a.taken[s.ID]; s.ID == self || t.term == term && t.asked >= asked {
			have++
		}
	}
	return have > votes/2
}

// transport is the library's, which tells answers of what members have taken. Heartbeats are among
// it, the entries that are sent without waiting for answers are not.
type transport struct {
	*raft.NetworkTransport
	answers *answers
}

var (
	_ raft.Transport   = (*transport)(nil)
	_ raft.WithPreVote = (*transport)(nil)
	_ raft.WithClose   = (*transport)(nil)
)

// AppendEntries implements [raft.Transport].
func (t *transport) AppendEntries(id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	asked := t.answers.now()
	err := t.NetworkTransport.AppendEntries(id, target, args, resp)
	if err == nil && resp.Success {
		t.answers.take(id, args.Term, asked)
	}
	return err
}
