package raftstore

import (
	"encoding/binary"
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
)

// errStale is the answer to a batch that is not the next one of the latest lead.
var errStale = errors.New("another lead has begun")

// position is how far a member's facts have come.
type position struct {
	index  uint64 // of the last entry
	lead   uint64 // the latest lead: the index of the entry that begins it
	number uint64 // of the last whole batch of that lead
	parts  uint64 // how many parts of the next one are put aside
}

func (p position) marshal() []byte {
	b := binary.BigEndian.AppendUint64(nil, p.index)
	b = binary.BigEndian.AppendUint64(b, p.lead)
	b = binary.BigEndian.AppendUint64(b, p.number)
	return binary.BigEndian.AppendUint64(b, p.parts)
}

func parsePosition(b []byte) (position, error) {
	if len(b) == 0 {
		return position{}, nil
	}
	if len(b) != 32 {
		return position{}, fmt.Errorf("position of %d bytes: %w", len(b), store.ErrCorrupt)
	}
	at := func(i int) uint64 { return binary.BigEndian.Uint64(b[8*i:]) }
	return position{at(0), at(1), at(2), at(3)}, nil
}

// begun is the answer to an entry that begins a lead.
type begun struct{ lead, term uint64 }

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

	at      position // raft's goroutine only
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
// [begun], or an error: [errStale], or why this member cannot go on, which is then the answer
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
				if answers[i], err = at.apply(tx, l); err != nil {
					return fmt.Errorf("entry %d of the log of raft: %w", l.Index, err)
				}
				m.bytes += len(l.Data)
			}
			return tx.SetPosition(at.marshal())
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
	m.applied.Store(at.index)
	if m.bytes > snapshotBytes {
		m.bytes = 0
		m.much()
	}
	return answers
}

// apply writes one entry. An error is of the file or of an entry that cannot be read: the facts
// of this member would differ from the others'.
func (at *position) apply(tx *boltstore.ReplicaTx, l *raft.Log) (answer any, err error) {
	if l.Index <= at.index {
		return nil, fmt.Errorf("it comes after entry %d: %w", at.index, store.ErrCorrupt)
	}
	at.index = l.Index
	e, err := decodeEntry(l.Data)
	if err != nil {
		return nil, err
	}
	if e.begins {
		at.lead, at.number, at.parts = l.Index, 0, 0
		return begun{l.Index, l.Term}, tx.Forget()
	}
	p := &e.part
	if p.part == 0 && at.parts > 0 && p.lead == at.lead { // it is said again from the beginning
		at.parts = 0
		if err := tx.Forget(); err != nil {
			return nil, err
		}
	}
	if p.lead != at.lead || p.number != at.number+1 || p.part != at.parts {
		return errStale, nil
	}
	if !p.last {
		at.parts++
		return nil, tx.Keep(uint32(p.part), l.Data)
	}
	if at.parts > 0 {
		if err := tx.Kept(func(data []byte) error {
			e, err := decodeEntry(data)
			if err != nil {
				return err
			}
			return write(tx, append([]byte(nil), e.part.writes...)) // data may move
		}); err != nil {
			return nil, err
		}
		if err := tx.Forget(); err != nil {
			return nil, err
		}
	}
	at.number, at.parts = p.number, 0
	return nil, write(tx, p.writes)
}

func write(tx *boltstore.ReplicaTx, encoded []byte) error {
	writes, err := decodeWrites(encoded)
	if err != nil {
		return err
	}
	return tx.Write(writes)
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
	at, err := parsePosition(note)
	if err != nil {
		return errors.Join(fmt.Errorf("snapshot: %w", err), facts.Close(), os.RemoveAll(path))
	}
	m.mu.Lock()
	old := m.facts
	m.facts = facts
	m.mu.Unlock()
	m.at = at
	m.applied.Store(at.index)
	m.bytes = 0
	gone := old.Path() // a file that is closed has none
	return errors.Join(old.Close(), os.RemoveAll(gone))
}

func (m *machine) close() error { return m.facts.Close() }
