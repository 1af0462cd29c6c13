package raftstore

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"kith/internal/job"
	"kith/store"
	"kith/store/boltstore"
	"kith/store/codec"
	"kith/store/raftstore/leads"
)

// machine writes committed entries into a file of facts. It is raft's state machine: raft calls
// it from one goroutine. The file is read by others.
type machine struct {
	folder string
	site   job.SiteID
	whose  snapshotHead
	// failed is told, once, that this member cannot go on.
	failed func(error)
	// much is told, now and then, that the log has grown by snapshotBytes since the last snapshot.
	much func()

	mu    sync.RWMutex // held for writing while the file is replaced
	facts *boltstore.Replica

	at      leads.Position // raft's goroutine only
	applied atomic.Uint64
	files   int
	err     error // why this member cannot go on
	bytes   int   // of entries since the last snapshot
}

var _ raft.BatchingFSM = (*machine)(nil)

// newMachine makes an empty file of facts in folder, and removes those of an earlier process.
func newMachine(folder string, site job.SiteID, whose snapshotHead, failed func(error), much func()) (*machine, error) {
	m := &machine{folder: folder, site: site, whose: whose, failed: failed, much: much}
	old, err := filepath.Glob(filepath.Join(folder, "facts.*"))
	if err != nil {
		return nil, err
	}
	for _, path := range old {
		if err := os.RemoveAll(path); err != nil {
			return nil, err
		}
	}
	m.facts, err = boltstore.NewReplica(m.nextFile(), site)
	return m, err
}

func (m *machine) nextFile() string {
	m.files++
	return filepath.Join(m.folder, fmt.Sprintf("facts.%d.db", m.files))
}

// Apply implements [raft.FSM].
func (m *machine) Apply(l *raft.Log) any { return m.ApplyBatch([]*raft.Log{l})[0] }

// ApplyBatch implements [raft.BatchingFSM]: all entries in one transaction. An answer is nil,
// [leads.Begun], or an error: [leads.ErrStale], or why this member cannot go on, which is then the answer
// to everything.
func (m *machine) ApplyBatch(logs []*raft.Log) []any {
	answers := make([]any, len(logs))
	at := m.at
	err := m.err
	if err == nil {
		err = m.facts.Update(func(tx *boltstore.ReplicaTx) error {
			for i, l := range logs {
				if l.Type != raft.LogCommand {
					continue
				}
				var err error
				if answers[i], err = at.Apply(tx, l.Index, l.Term, l.Data); err != nil {
					return fmt.Errorf("entry %d of the log of raft: %w", l.Index, err)
				}
				m.bytes += len(l.Data)
			}
			return tx.SetPosition(at.Marshal())
		})
		if err != nil {
			m.err = err
			m.failed(err)
		}
	}
	if err != nil {
		for i := range answers {
			answers[i] = err
		}
		return answers
	}
	m.at = at
	m.applied.Store(at.Index)
	if m.bytes > snapshotBytes {
		m.bytes = 0
		m.much()
	}
	return answers
}

// read has f read the file as it is now.
func (m *machine) read(f func(facts *boltstore.Replica) error) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return f(m.facts)
}

// found returns what makes a new site of a file without facts, nil if it has some.
func (m *machine) found(generation uint32) (writes []codec.Write, err error) {
	err = m.read(func(facts *boltstore.Replica) error {
		fresh, err := facts.Fresh()
		if fresh {
			writes = codec.Writes(store.NewState(m.site, generation))
		}
		return err
	})
	return writes, err
}

// Snapshot implements [raft.FSM]. It takes no time: what is copied later is the file as it is now.
func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	if m.err != nil {
		return nil, m.err
	}
	image, err := m.facts.Image()
	if err != nil {
		return nil, err
	}
	m.bytes = 0
	return &snapshot{whose: m.whose, image: image}, nil
}

// Restore implements [raft.FSM]: it takes over what a snapshot has, if all of it is as it was
// written and of this cluster.
func (m *machine) Restore(from io.ReadCloser) error {
	path := m.nextFile()
	if err := m.whose.extract(from, path); err != nil {
		return errors.Join(fmt.Errorf("snapshot: %w", err), os.RemoveAll(path))
	}
	facts, err := boltstore.OpenReplica(path, m.site)
	if err != nil {
		return errors.Join(fmt.Errorf("snapshot: %w", err), os.RemoveAll(path))
	}
	note, err := facts.Position()
	if err != nil {
		return errors.Join(err, facts.Close())
	}
	at, err := leads.ParsePosition(note)
	if err != nil {
		return errors.Join(fmt.Errorf("snapshot: %w", err), facts.Close(), os.RemoveAll(path))
	}
	m.mu.Lock()
	old := m.facts
	m.facts = facts
	m.mu.Unlock()
	m.at = at
	m.applied.Store(at.Index)
	m.bytes = 0
	gone := old.Path() // a file that is closed has none
	return errors.Join(old.Close(), os.RemoveAll(gone))
}

func (m *machine) close() error { return m.facts.Close() }
