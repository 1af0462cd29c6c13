// Package memstore keeps a site's facts in memory: for the simulator, whose
// disks forget what was not synced, and for tests.
package memstore

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"kith/internal/job"
	"kith/store"
	"kith/store/codec"
)

// Disk holds what was committed. It outlasts the stores that are opened on it,
// as a file outlasts a process. The zero Disk is empty. It is safe for use by
// several goroutines.
type Disk struct {
	mu     sync.Mutex
	tables map[codec.Table]map[string][]byte
}

// Bytes returns all that is on the disk in one piece, the same for the same content.
func (d *Disk) Bytes() []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	var b bytes.Buffer
	for _, t := range codec.AllTables() {
		for _, k := range slices.Sorted(maps.Keys(d.tables[t])) {
			fmt.Fprintf(&b, "%s %x %x\n", t, k, d.tables[t][k])
		}
	}
	return b.Bytes()
}

// Clone returns a disk of the same content.
func (d *Disk) Clone() *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := &Disk{tables: make(map[codec.Table]map[string][]byte, len(d.tables))}
	for t, table := range d.tables {
		c.tables[t] = maps.Clone(table) // values are never changed in place
	}
	return c
}

func (d *Disk) get(t codec.Table, key []byte) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.tables[t][string(key)]
}

// Write writes records, as a commit does.
func (d *Disk) Write(writes []codec.Write) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tables == nil {
		d.tables = make(map[codec.Table]map[string][]byte)
	}
	for _, w := range writes {
		table := d.tables[w.Table]
		if table == nil {
			table = make(map[string][]byte)
			d.tables[w.Table] = table
		}
		switch {
		case w.Prefix:
			maps.DeleteFunc(table, func(key string, _ []byte) bool { return strings.HasPrefix(key, string(w.Key)) })
		case w.Merge:
			block, err := codec.MergeResults(table[string(w.Key)], w.Value)
			if err != nil {
				return fmt.Errorf("write to %s: %w", w.Table, err)
			}
			table[string(w.Key)] = block
		case w.Value == nil:
			delete(table, string(w.Key))
		default:
			table[string(w.Key)] = w.Value
		}
	}
	return nil
}

// Store is a [store.Backend] on a [Disk].
type Store struct {
	disk *Disk
	site job.SiteID
}

var _ store.Backend = (*Store)(nil)

// Open opens the facts of a site on disk. A disk without facts gets those of
// a new site with the given generation.
func Open(disk *Disk, site job.SiteID, generation uint32) (*Store, error) {
	s := &Store{disk: disk, site: site}
	if len(disk.sorted(codec.Sites)) == 0 {
		return s, disk.Write(codec.Writes(store.NewState(site, generation)))
	}
	return s, nil
}

func (d *Disk) sorted(t codec.Table) [][]byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	values := make([][]byte, 0, len(d.tables[t]))
	for _, k := range slices.Sorted(maps.Keys(d.tables[t])) {
		values = append(values, d.tables[t][k])
	}
	return values
}

// Load implements [store.Backend].
func (s *Store) Load() (*store.State, error) {
	var r codec.Reader
	for _, v := range s.disk.sorted(codec.Sites) {
		if err := r.Site(v, s.site); err != nil {
			return nil, err
		}
	}
	for _, v := range s.disk.sorted(codec.Jobs) {
		if err := r.Job(v); err != nil {
			return nil, err
		}
	}
	for _, v := range s.disk.sorted(codec.Copies) {
		if err := r.Copy(v); err != nil {
			return nil, err
		}
	}
	read := r.TrustReaders()
	for _, t := range codec.TrustTables() {
		for _, v := range s.disk.sorted(t) {
			if err := read[t](v); err != nil {
				return nil, err
			}
		}
	}
	for _, t := range r.BagReaders() {
		for _, v := range s.disk.sorted(t.Table) {
			if err := t.Read(v); err != nil {
				return nil, err
			}
		}
	}
	for _, v := range s.disk.sorted(codec.Calibration) {
		if err := r.Calibration(v); err != nil {
			return nil, err
		}
	}
	if keys := s.disk.pastKeys(); len(keys) > 0 {
		if err := r.PastNumbers([]byte(keys[0]), []byte(keys[len(keys)-1])); err != nil {
			return nil, err
		}
	}
	return r.State()
}

// pastKeys returns the keys of what is past, in order.
func (d *Disk) pastKeys() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.tables[codec.Past]))
}

// Past implements [store.Backend].
func (s *Store) Past(from uint64) (list []store.Past, err error) {
	keys := s.disk.pastKeys()
	first, _ := slices.BinarySearch(keys, string(codec.PastKey(from)))
	for _, k := range keys[first:min(first+store.PastStretch, len(keys))] {
		number, err := codec.PastNumber([]byte(k))
		if err != nil {
			return nil, err
		}
		p, err := codec.PastRecord(number, s.disk.get(codec.Past, []byte(k)))
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

// Seal implements [store.Backend].
func (s *Store) Seal(state *store.State) store.Batch {
	return &batch{disk: s.disk, writes: codec.Writes(state)}
}

type batch struct {
	disk   *Disk
	writes []codec.Write
}

func (b *batch) Empty() bool { return len(b.writes) == 0 }

func (b *batch) Commit() error {
	return b.disk.Write(b.writes)
}

// Payload implements [store.Backend].
func (s *Store) Payload(id job.ID) ([]byte, error) {
	v := s.disk.get(codec.Payloads, codec.JobKey(id))
	if v == nil {
		return nil, fmt.Errorf("payload of job %v: %w", id, store.ErrUnknown)
	}
	return codec.SideRecord(v)
}

// Outputs implements [store.Backend].
func (s *Store) Outputs(id job.ID) ([]byte, error) {
	v := s.disk.get(codec.Outputs, codec.JobKey(id))
	if v == nil {
		return nil, nil
	}
	return codec.SideRecord(v)
}

// AttemptFiles implements [store.Backend].
func (s *Store) AttemptFiles(a job.AttemptID) ([]byte, error) {
	v := s.disk.get(codec.AttemptFiles, codec.AttemptKey(a))
	if v == nil {
		return nil, nil
	}
	return codec.SideRecord(v)
}

// Decision implements [store.Backend].
func (s *Store) Decision(id job.ID) (*store.Decision, error) {
	v := s.disk.get(codec.Decisions, codec.JobKey(id))
	if v == nil {
		return nil, nil
	}
	return codec.Decision(v)
}

// TaskResults implements [store.Backend].
func (s *Store) TaskResults(bag job.ID, block uint32) ([]store.TaskRecord, error) {
	v := s.disk.get(codec.Results, codec.ResultsKey(bag, block))
	if v == nil {
		return nil, nil
	}
	return codec.TaskRecords(v, block*store.ResultBlock)
}

// TaskFiles implements [store.Backend].
func (s *Store) TaskFiles(bag job.ID, task uint32) ([]byte, error) {
	v := s.disk.get(codec.TaskFiles, codec.TaskFilesKey(bag, task))
	if v == nil {
		return nil, nil
	}
	return codec.SideRecord(v)
}

// TaskFilesFrom implements [store.Backend].
func (s *Store) TaskFilesFrom(bag job.ID, task uint32) ([]store.TaskFiles, error) {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	table := s.disk.tables[codec.TaskFiles]
	of, from := string(codec.JobKey(bag)), string(codec.TaskFilesKey(bag, task))
	var files codec.FilesStretch
	for _, k := range slices.Sorted(maps.Keys(table)) {
		if k < from || !strings.HasPrefix(k, of) {
			continue
		}
		if more, err := files.Add([]byte(k), table[k]); err != nil || !more {
			return files.Files, err
		}
	}
	return files.Files, nil
}

// HeldPayload implements [store.Backend].
func (s *Store) HeldPayload(bundle job.AttemptID) ([]byte, error) {
	v := s.disk.get(codec.HeldPayloads, codec.HeldKey(bundle))
	if v == nil {
		return nil, fmt.Errorf("payload of bundle %v: %w", bundle, store.ErrUnknown)
	}
	return codec.SideRecord(v)
}

// Close implements [store.Backend]; the disk keeps what was committed.
func (s *Store) Close() error { return nil }
