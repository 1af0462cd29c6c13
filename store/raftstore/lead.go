package raftstore

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/hashicorp/raft"

	"kith/internal/job"
	"kith/store"
	"kith/store/boltstore"
	"kith/store/codec"
	"kith/store/raftstore/leads"
	"kith/store/raftstore/raftlog"
)

// Lead is the [store.Backend] of a site while this member leads it. Once that is over, it
// commits nothing any more; what it reads may be later than what it wrote.
type Lead struct {
	m    *Member
	term uint64 // of raft, when it began
	over <-chan struct{}

	mu      sync.Mutex // held during a commit
	answers *leads.Answers
}

var _ store.Replicated = (*Lead)(nil)

// begin begins a lead. If ctx ends before, one may have begun of which nobody will make use.
func (m *Member) begin(ctx context.Context, over <-chan struct{}) (*Lead, error) {
	if err := m.begins(); err != nil {
		return nil, err
	}
	defer m.commits.Done()
	f := m.raft.Apply(leads.Begin(m.cfg.Name), enqueue)
	if err := m.awaitUntil(ctx, f); err != nil {
		return nil, err
	}
	b, ok := f.Response().(leads.Begun)
	if !ok {
		return nil, fmt.Errorf("begin a lead: %v", f.Response())
	}
	whose := fmt.Sprintf("member %s of site %s", m.cfg.Name, m.cfg.Site)
	l := &Lead{m: m, term: b.Term, over: over, answers: leads.NewAnswers(whose, b.Lead)}
	writes, err := m.machine.found(boltstore.NewGeneration(m.cfg.Now()))
	if err != nil {
		return nil, err
	}
	if len(writes) > 0 { // a new site
		if err := l.commit(writes); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// Number is the number of the lead: later leads of the site have higher ones.
func (l *Lead) Number() uint64 { return l.answers.Lead() }

// Confirm asks a majority whether this member leads. After an error it does not, or nobody knows.
func (l *Lead) Confirm() error {
	if err := l.m.begins(); err != nil {
		return err
	}
	defer l.m.commits.Done()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.commit(nil)
}

// Over is closed when this member stops leading. Whoever uses the lead should stop then.
func (l *Lead) Over() <-chan struct{} { return l.over }

// Replicated implements [store.Replicated].
func (l *Lead) Replicated() {}

// commit makes a batch stand, or says that it does not, or that nobody knows. It is called with
// mu held, or before anybody else has the lead.
func (l *Lead) commit(writes []codec.Write) error {
	if err := l.answers.Void(); err != nil {
		return err
	}
	select {
	case <-l.over:
		return l.answers.End(fmt.Errorf("it has stopped leading: %w", store.ErrDeposed))
	default:
	}
	if len(writes) == 0 {
		return l.confirm()
	}
	parts := l.answers.Next(writes)
	for _, p := range parts {
		if len(p) > raftlog.MaxEntry { // raft would have this member step down for it
			return fmt.Errorf("member %s: a record of %d bytes, the log of raft takes at most %d", l.m.cfg.Name, len(p), raftlog.MaxEntry)
		}
	}
	for i, p := range parts {
		f := l.m.raft.Apply(p, enqueue)
		err := l.m.await(f)
		if err == nil {
			if answer, _ := f.Response().(error); answer != nil {
				err = answer
			}
		}
		if err != nil {
			return l.answers.Refused(saidBy(err), i == len(parts)-1, err)
		}
	}
	l.answers.Stands()
	return nil
}

// saidBy says what an error of raft means for an entry.
func saidBy(err error) leads.Said {
	switch {
	case errors.Is(err, raft.ErrLeadershipTransferInProgress), errors.Is(err, raft.ErrEnqueueTimeout):
		return leads.Again
	case errors.Is(err, leads.ErrStale), errors.Is(err, raft.ErrNotLeader):
		return leads.Never
	}
	return leads.Lost
}

// confirm asks a majority whether this member leads. It has led ever since if raft's term is
// still the one of this lead. The library takes any answer for one, those to what was sent before,
// too; it is asked until a majority has answered what was sent after.
func (l *Lead) confirm() error {
	asked, self := l.m.answers.ask(), raft.ServerID(l.m.cfg.Name)
	for {
		err := l.m.await(l.m.raft.VerifyLeader())
		answered := l.m.answers.majority(l.m.raft.GetConfiguration().Configuration().Servers, self, l.term, asked)
		if term := l.m.raft.CurrentTerm(); err == nil && term != l.term {
			err = fmt.Errorf("term %d is over, it is %d", l.term, term)
		}
		if err != nil {
			return l.answers.End(fmt.Errorf("%w: %w", err, store.ErrDeposed))
		}
		if answered {
			return nil
		}
	}
}

type batch struct {
	lead   *Lead
	writes []codec.Write
}

// Seal implements [store.Backend].
func (l *Lead) Seal(state *store.State) store.Batch {
	return &batch{lead: l, writes: codec.Writes(state)}
}

func (b *batch) Empty() bool { return len(b.writes) == 0 }

// Commit implements [store.Batch].
func (b *batch) Commit() error {
	if err := b.lead.m.begins(); err != nil {
		return fmt.Errorf("%w: %w", err, store.ErrDeposed)
	}
	defer b.lead.m.commits.Done()
	b.lead.mu.Lock()
	defer b.lead.mu.Unlock()
	return b.lead.commit(b.writes)
}

// Load implements [store.Backend].
func (l *Lead) Load() (state *store.State, err error) {
	err = l.m.machine.read(func(facts *boltstore.Replica) (err error) {
		state, err = facts.Load()
		return err
	})
	return state, err
}

// Payload implements [store.Backend].
func (l *Lead) Payload(id job.ID) (data []byte, err error) {
	err = l.m.machine.read(func(facts *boltstore.Replica) (err error) {
		data, err = facts.Payload(id)
		return err
	})
	return data, err
}

// Outputs implements [store.Backend].
func (l *Lead) Outputs(id job.ID) (data []byte, err error) {
	err = l.m.machine.read(func(facts *boltstore.Replica) (err error) {
		data, err = facts.Outputs(id)
		return err
	})
	return data, err
}

// AttemptFiles implements [store.Backend].
func (l *Lead) AttemptFiles(a job.AttemptID) (data []byte, err error) {
	err = l.m.machine.read(func(facts *boltstore.Replica) (err error) {
		data, err = facts.AttemptFiles(a)
		return err
	})
	return data, err
}

// Decision implements [store.Backend].
func (l *Lead) Decision(id job.ID) (d *store.Decision, err error) {
	err = l.m.machine.read(func(facts *boltstore.Replica) (err error) {
		d, err = facts.Decision(id)
		return err
	})
	return d, err
}

// TaskResults implements [store.Backend].
func (l *Lead) TaskResults(bag job.ID, block uint32) (records []store.TaskRecord, err error) {
	err = l.m.machine.read(func(facts *boltstore.Replica) (err error) {
		records, err = facts.TaskResults(bag, block)
		return err
	})
	return records, err
}

// TaskFiles implements [store.Backend].
func (l *Lead) TaskFiles(bag job.ID, task uint32) (set []byte, err error) {
	err = l.m.machine.read(func(facts *boltstore.Replica) (err error) {
		set, err = facts.TaskFiles(bag, task)
		return err
	})
	return set, err
}

// TaskFilesFrom implements [store.Backend].
func (l *Lead) TaskFilesFrom(bag job.ID, task uint32) (files []store.TaskFiles, err error) {
	err = l.m.machine.read(func(facts *boltstore.Replica) (err error) {
		files, err = facts.TaskFilesFrom(bag, task)
		return err
	})
	return files, err
}

// HeldPayload implements [store.Backend].
func (l *Lead) HeldPayload(bundle job.AttemptID) (data []byte, err error) {
	err = l.m.machine.read(func(facts *boltstore.Replica) (err error) {
		data, err = facts.HeldPayload(bundle)
		return err
	})
	return data, err
}

// Past implements [store.Backend].
func (l *Lead) Past(from uint64) (list []store.Past, err error) {
	err = l.m.machine.read(func(facts *boltstore.Replica) (err error) {
		list, err = facts.Past(from)
		return err
	})
	return list, err
}

// Close implements [store.Backend]: nothing is committed by this lead any more. The member goes
// on, and leads until it is closed.
func (l *Lead) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.answers.Void() == nil {
		l.answers.End(fmt.Errorf("the lead is closed: %w", store.ErrDeposed)) //nolint:errcheck // it is the answer to come
	}
	return nil
}
