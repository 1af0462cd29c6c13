package raftstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"kith/store"
	"kith/store/raftstore/raftlog"
)

// callTime is how long a call of another member may take; a snapshot that time for each 256 KiB.
const callTime = 3 * time.Second

// Member is one of the machines that keep a site's facts. It is safe for use by several goroutines.
type Member struct {
	cfg     Config
	raft    *raft.Raft
	log     *raftlog.Log
	vote    *raftlog.Vote
	machine *machine
	streams *streams
	answers *answers

	started chan struct{} // closed when there is a raft
	once    sync.Once     // raft ends
	stopped chan struct{} // closed when raft has ended
	much    chan struct{}
	wait    sync.WaitGroup
	commits sync.WaitGroup // under way

	mu      sync.Mutex
	over    chan struct{} // closed when this member stops leading; nil while it does not lead
	changed chan struct{} // closed when over changes
	closing bool
	err     error // why it has failed
}

// files are those of a member that outlast its process.
type files struct {
	log       *raftlog.Log
	vote      *raftlog.Vote
	snapshots evenSnapshots
}

func openFiles(cfg *Config) (f files, err error) {
	if err := os.MkdirAll(cfg.Folder, 0o700); err != nil {
		return f, err
	}
	if f.log, err = raftlog.Open(filepath.Join(cfg.Folder, raftlog.FileName), cfg.identity()); err != nil {
		return f, err
	}
	if f.vote, err = raftlog.OpenVote(filepath.Join(cfg.Folder, raftlog.VoteName), cfg.identity()); err != nil {
		return f, errors.Join(err, f.log.Close())
	}
	snapshots, err := raft.NewFileSnapshotStoreWithLogger(cfg.Folder, 2, newLogger(cfg.Logger))
	if err != nil {
		return f, errors.Join(err, f.close())
	}
	f.snapshots = newEvenSnapshots(snapshots, cfg.Folder)
	return f, nil
}

func (f *files) close() error { return errors.Join(f.log.Close(), f.vote.Close()) }

// Found makes the folder of a member of a new site, whose first members are given, this one
// among them. Each of them is founded alike, or one is founded alone and the others are added
// later. It returns [ErrFounded] if the folder is in use.
func Found(cfg Config, members []Peer) error {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return err
	}
	var servers []raft.Server
	self := false
	for _, p := range members {
		if err := p.validate(); err != nil {
			return err
		}
		self = self || p == cfg.Peer
		servers = append(servers, raft.Server{ID: raft.ServerID(p.Name), Address: p.serverAddress()})
	}
	if !self || len(members) > MaxMembers {
		return fmt.Errorf("a site of %d members, of at most %d, which must include %s at %s: %w", len(members), MaxMembers, cfg.Name, cfg.Address, ErrMembership)
	}
	f, err := openFiles(&cfg)
	if err != nil {
		return err
	}
	err = raft.BootstrapCluster(cfg.raftConfig(), f.log, f.vote, f.snapshots, nil, raft.Configuration{Servers: servers})
	if errors.Is(err, raft.ErrCantBootstrap) {
		err = fmt.Errorf("folder %s: %w", cfg.Folder, ErrFounded)
	}
	return errors.Join(err, f.close())
}

// Open starts a member: one that was founded, one that was here before, or, with an empty folder,
// one that waits to be added by the member that leads.
//
// It returns the errors of [raftlog.Open], and [store.ErrCorrupt] if the log and the snapshots
// do not go together. Each names the file or folder.
func Open(cfg Config) (*Member, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	f, err := openFiles(&cfg)
	if err != nil {
		return nil, err
	}
	whose := snapshotHead{site: cfg.Site, cluster: cfg.Cluster}
	if err := f.agree(&cfg, whose); err != nil {
		return nil, errors.Join(fmt.Errorf("member folder %s: %w", cfg.Folder, err), f.close())
	}
	m := &Member{
		cfg: cfg, log: f.log, vote: f.vote,
		started: make(chan struct{}), stopped: make(chan struct{}), much: make(chan struct{}, 1), changed: make(chan struct{}),
	}
	if m.machine, err = newMachine(cfg.Folder, cfg.Site, whose, m.failed, m.muchLogged); err != nil {
		return nil, errors.Join(err, f.close())
	}
	if err := m.start(&f, whose); err != nil {
		return nil, errors.Join(fmt.Errorf("member folder %s: %w", cfg.Folder, err), m.machine.close(), f.close())
	}
	return m, nil
}

// agree checks that a snapshot can be read, that the log goes on where it ends, and does away with
// what a crash has left between both.
func (f *files) agree(cfg *Config, whose snapshotHead) error {
	metas, err := f.snapshots.List()
	if err != nil {
		return err
	}
	var end uint64 // of the latest good snapshot
	var bad error
	for _, meta := range metas {
		err := f.readable(meta.ID, whose)
		if err == nil {
			end = meta.Index
			break
		}
		bad = errors.Join(bad, fmt.Errorf("snapshot %s: %w", meta.ID, err))
		if !errors.Is(err, store.ErrCorrupt) {
			return bad
		}
	}
	first, err := f.log.FirstIndex()
	if err != nil {
		return err
	}
	last, err := f.log.LastIndex()
	if err != nil {
		return err
	}
	remedy := "remove this member and have it join anew with an empty folder"
	switch {
	case bad != nil && end == 0 && (last == 0 || first > 1):
		return fmt.Errorf("%w; %s", bad, remedy)
	case last != 0 && first > end+1:
		return errors.Join(fmt.Errorf("the log begins at entry %d and the latest good snapshot ends at %d, what is between them is missing: %w; %s", first, end, store.ErrCorrupt, remedy), bad)
	case last != 0 && last < end: // the snapshot came from the leader, and the crash before the rest
		if err := f.log.DeleteRange(first, last); err != nil {
			return err
		}
	}
	// A bad snapshot that is not needed would be sent to others.
	for _, meta := range metas {
		if bad == nil || meta.Index <= end {
			break
		}
		cfg.Logger.Warn("a damaged snapshot is removed; an earlier one and the log have all of it", "snapshot", meta.ID, "error", bad)
		if err := os.RemoveAll(filepath.Join(cfg.Folder, "snapshots", meta.ID)); err != nil {
			return err
		}
	}
	return nil
}

// readable checks a snapshot: its checksum and whose it is.
func (f *files) readable(id string, whose snapshotHead) error {
	_, from, err := f.snapshots.Open(id)
	if err != nil {
		return fmt.Errorf("%w: %w", err, store.ErrCorrupt)
	}
	_, err = whose.read(from)
	return errors.Join(err, from.Close())
}

func (m *Member) start(f *files, whose snapshotHead) error {
	m.streams = newStreams(&m.cfg, whose, m)
	m.answers = &answers{taken: make(map[raft.ServerID]question)}
	transport := &transport{raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: m.streams, MaxPool: 3, Timeout: callTime, Logger: newLogger(m.cfg.Logger),
	}), m.answers}
	notify := make(chan bool, 16)
	rc := m.cfg.raftConfig()
	rc.NotifyCh = notify
	space := &room{LogStore: f.log, free: m.cfg.free, folder: m.cfg.Folder}
	if m.cfg.wrapLog != nil {
		space.LogStore = m.cfg.wrapLog(f.log)
	}
	var err error
	m.raft, err = raft.NewRaft(rc, m.machine, space, &candidate{m.vote, space, m.empty, string(m.cfg.serverAddress())}, f.snapshots, transport)
	if err != nil {
		return errors.Join(err, transport.Close())
	}
	close(m.started)
	m.wait.Go(func() { m.watch(notify) })
	m.wait.Go(m.snapshots)
	return nil
}

// watch follows whether this member leads.
func (m *Member) watch(notify <-chan bool) {
	for {
		select {
		case leads := <-notify:
			m.lead(leads)
		case <-m.stopped:
			m.lead(false)
			return
		}
	}
}

func (m *Member) lead(leads bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over != nil {
		close(m.over)
		m.over = nil
	}
	if leads {
		m.over = make(chan struct{})
	}
	close(m.changed)
	m.changed = make(chan struct{})
}

// muchLogged asks for a snapshot.
func (m *Member) muchLogged() {
	select {
	case m.much <- struct{}{}:
	default:
	}
}

// snapshots makes a snapshot when the log has grown by much.
func (m *Member) snapshots() {
	for {
		select {
		case <-m.much:
			m.Snapshot() //nolint:errcheck // raft logs it, and there is a next time
		case <-m.stopped:
			return
		}
	}
}

// Snapshot makes a snapshot now and shortens the log. There is one every so often by itself.
func (m *Member) Snapshot() error {
	err := m.raft.Snapshot().Error()
	if errors.Is(err, raft.ErrNothingNewToSnapshot) {
		return nil
	}
	return err
}

// failed says that this member cannot go on. It is called by raft's goroutine, whose end raft's
// end waits for.
func (m *Member) failed(err error) {
	m.mu.Lock()
	if m.err == nil {
		m.err = err
	}
	m.mu.Unlock()
	m.cfg.Logger.Error("this member has ended: its facts cannot be written", "error", err)
	m.wait.Go(func() {
		<-m.started
		m.endRaft() //nolint:errcheck // Close ends it again
	})
}

// endRaft ends raft and its connections.
func (m *Member) endRaft() (err error) {
	m.once.Do(func() {
		err = m.raft.Shutdown().Error()
		close(m.stopped)
	})
	return err
}

// Leader returns the member that leads, as far as this one knows, the zero Peer if it does not.
func (m *Member) Leader() Peer {
	address, _ := m.raft.LeaderWithID()
	if address == "" {
		return Peer{}
	}
	return parseAddress(address)
}

// await waits for what raft has promised. It does not hang if raft ends meanwhile.
func (m *Member) await(f raft.Future) error { return m.awaitUntil(context.Background(), f) }

// awaitUntil is await until ctx ends: what was promised may come true all the same.
func (m *Member) awaitUntil(ctx context.Context, f raft.Future) error {
	done := make(chan error, 1)
	go func() { done <- f.Error() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-m.stopped:
		select {
		case err := <-done:
			return err
		default:
			return raft.ErrRaftShutdown
		}
	}
}

// begins counts a commit that is under way. Close waits for those.
func (m *Member) begins() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closing {
		return ErrClosed
	}
	m.commits.Add(1)
	return nil
}

// Close hands the lead over to another member, if this one leads and there is one, and ends it.
func (m *Member) Close() error {
	m.mu.Lock()
	if m.closing {
		m.mu.Unlock()
		return nil
	}
	m.closing = true
	m.mu.Unlock()
	m.commits.Wait() // raft forgets to answer some if it ends meanwhile
	if m.raft.State() == raft.Leader && len(m.raft.GetConfiguration().Configuration().Servers) > 1 {
		if err := m.Transfer(); err != nil {
			m.cfg.Logger.Warn("no other member took the lead", "error", err)
		}
	}
	err := m.endRaft()
	m.wait.Wait()
	return errors.Join(err, m.machine.close(), m.log.Close(), m.vote.Close())
}

// candidate keeps term and vote. There are two votes that it does not give: for this member while
// its disk is full, and any before this member has anything of the site: it may have had a disk
// before, with entries that a majority with it made stand.
type candidate struct {
	*raftlog.Vote
	room  *room
	empty func() bool
	self  string
}

// lastCandidate is the library's key of whom it voted for last.
const lastCandidate = "LastVoteCand"

// Set implements [raft.StableStore].
func (c *candidate) Set(key, value []byte) error {
	if string(key) == lastCandidate {
		if c.empty() {
			return errors.New("this member has nothing of its site yet and does not vote")
		}
		if err := c.room.check(); err != nil && string(value) == c.self {
			return fmt.Errorf("this member does not stand for election: %w", err)
		}
	}
	return c.Vote.Set(key, value)
}

// empty reports whether this member has nothing of its site.
func (m *Member) empty() bool {
	last, err := m.log.LastIndex()
	return err != nil || last == 0 && m.machine.applied.Load() == 0
}

// votes reports whether a member has a vote, as far as this one knows.
func (m *Member) votes(ctx context.Context, name string) bool {
	select {
	case <-m.started:
	case <-ctx.Done():
		return false
	}
	return slices.ContainsFunc(m.raft.GetConfiguration().Configuration().Servers, func(s raft.Server) bool {
		return string(s.ID) == name && s.Suffrage == raft.Voter
	})
}

// Done is closed when this member has ended: it was closed or cannot go on, see [Member.Err].
func (m *Member) Done() <-chan struct{} { return m.stopped }

// Err returns why this member cannot go on, nil if it can. It must be closed then.
func (m *Member) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil && m.closing {
		return ErrClosed
	}
	return m.err
}

// Lead waits until this member leads, and begins a lead: all that was ever committed is in the
// file then, and batches of earlier leads are refused everywhere. It returns early with what
// [Member.Err] says, or when ctx ends. A lead that was begun before at this member is over.
func (m *Member) Lead(ctx context.Context) (*Lead, error) {
	for {
		if err := m.Err(); err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		m.mu.Lock()
		over, changed := m.over, m.changed
		m.mu.Unlock()
		if over != nil {
			lead, err := m.begin(ctx, over)
			if err == nil {
				return lead, nil
			}
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if err := m.Err(); err != nil {
				return nil, err
			}
			m.cfg.Logger.Warn("no lead was begun", "error", err)
		}
		pause := time.NewTimer(m.cfg.Heartbeat / 5)
		select {
		case <-pause.C:
		case <-changed:
		case <-m.stopped:
		case <-ctx.Done():
			pause.Stop()
			return nil, context.Cause(ctx)
		}
		pause.Stop()
	}
}
