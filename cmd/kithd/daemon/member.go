package daemon

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	sd "github.com/coreos/go-systemd/v22/daemon"
	"google.golang.org/grpc"

	"kith/cmd/kithd/config"
	"kith/cmd/kithd/members"
	"kith/internal/job"
	"kith/internal/pause"
	"kith/meta/trust"
	"kith/sitesched/apart"
	"kith/sitesched/runner"
	"kith/store/blobstore"
	"kith/store/boltstore"
	"kith/store/raftstore"
)

// Member is one of the machines that keep a site's facts together. It lives as long as the
// process; a [Daemon], which is the site, lives in it for as long as it leads.
//
// What runs at every member: the port and the socket, of which clients go on to the leader; raft
// and its log; a store for the chunks that the leader has copied. What the leader alone runs is
// the Daemon: engine, peers, gossip, and the files of jobs.
type Member struct {
	cfg  config.Config // what it was started with
	log  *slog.Logger
	site *slog.Logger // of the Daemon, which adds its site
	keys *trust.Keys
	name *trust.Member

	raft     *raftstore.Member
	listener net.Listener
	socket   net.Listener // nil for none
	raftPort *handoff     // connections of raft
	refuses  *leaderless
	reading  *reading
	border   *border
	copies   *members.Copies
	// What runs the jobs of the site, if that is this machine; else nil.
	worker     *apart.Worker
	workPort   *handoff
	workServer *grpc.Server

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	reload chan *Reload
	// handedOver is when this member has last handed the lead over for lack of room.
	handedOver time.Time

	mu      sync.Mutex
	next    config.Config    // with which it leads next
	doors   *doors           // of the Daemon that runs here; nil if none does
	chunks  *blobstore.Store // while none does
	tunnels map[net.Conn]raftstore.Peer
	dials   map[*context.CancelFunc]raftstore.Peer // of clients that are brought to a member that leads
}

// doors are where connections go in while this member leads.
type doors struct{ port, socket *handoff }

// errHasFacts and errHasMember are returned for a data folder of the other kind.
var (
	errHasFacts  = errors.New("the data folder has the facts of a site of one machine")
	errHasMember = errors.New("the data folder has what a member of a site of several machines keeps")
)

// fitsMembers says why a data folder does not go with a configuration, nil if it does.
func fitsMembers(cfg *config.Config) error {
	facts, folder := filepath.Join(cfg.Data, boltstore.FileName), filepath.Join(cfg.Data, config.MembersFolder)
	if cfg.Members.Self == "" {
		if _, err := os.Lstat(folder); err == nil {
			return fmt.Errorf("%s: %w, and the configuration has no members.self: give it back; or, of the last member, make one machine of the site: kithd members end", folder, errHasMember)
		}
		return nil
	}
	if _, err := os.Lstat(facts); err == nil {
		return fmt.Errorf("%s: %w, and members.self = %q would leave them aside: kithd members found makes this machine the first member of that site; or name another data folder", facts, errHasFacts, cfg.Members.Self)
	}
	return nil
}

// OpenMember starts a member. When it returns the member takes connections.
func OpenMember(cfg config.Config, log *slog.Logger) (*Member, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	log = log.With("member", cfg.Members.Self)
	site := log
	log = log.With("site_id", cfg.Site)
	m := &Member{cfg: withinDescriptors(cfg, descriptors(), log), log: log, site: site, tunnels: make(map[net.Conn]raftstore.Peer), dials: make(map[*context.CancelFunc]raftstore.Peer), reload: make(chan *Reload)}
	m.next = m.cfg
	m.ctx, m.cancel = context.WithCancel(context.Background())
	if err := m.open(); err != nil {
		return nil, errors.Join(err, m.release())
	}
	m.start()
	return m, nil
}

func (m *Member) open() (err error) {
	if err := closeFolder(m.cfg.Data, m.log); err != nil {
		return err
	}
	if err := fitsMembers(&m.cfg); err != nil {
		return err
	}
	if err := fitsKeys(&m.cfg); err != nil {
		return err
	}
	if err := writable(m.cfg.Data); err != nil {
		return err
	}
	m.keys, err = trust.Open(m.cfg.KeysPath(), job.SiteID(m.cfg.Site), time.Now())
	if errors.Is(err, trust.ErrNoKeys) {
		return fmt.Errorf("member %s of site %s has no keys in %s: copy the folder from another member", m.cfg.Members.Self, m.cfg.Site, m.cfg.KeysPath())
	}
	if err != nil {
		return err
	}
	if m.name, err = m.keys.Member(m.cfg.Members.Self, time.Now); errors.Is(err, trust.ErrOffline) {
		return fmt.Errorf("%w: members prove themselves by certificates that they make with the key of the CA, so it must be in %s", err, m.cfg.KeysPath())
	} else if err != nil {
		return err
	}
	if m.listener, err = listen("listen.address", m.cfg.Listen.Address); err != nil {
		return err
	}
	if m.socket, err = openSocket(&m.cfg, m.log); err != nil {
		return err
	}
	if err := m.openChunks(); err != nil {
		return err
	}
	if err := m.openWorker(); err != nil {
		return err
	}
	m.raftPort = newHandoff(m.listener.Addr())
	raft := raftConfig(&m.cfg, m.log)
	raft.Listener, raft.Dial = m.raftPort, func(ctx context.Context, address string) (net.Conn, error) {
		return m.dial(ctx, address, trust.ALPNRaft)
	}
	if m.raft, err = raftstore.Open(raft); err != nil {
		return fmt.Errorf("member %s: %w", m.cfg.Members.Self, err)
	}
	m.border = newBorder(defaultBounds(descriptors()), m.log)
	m.listener = m.border.listener(m.listener)
	m.copies = &members.Copies{Others: m.others, Dial: m.dialChunks, Log: m.log}
	users := &trust.Endpoint{Keys: m.keys, Trusted: new(trust.Set), Now: time.Now}
	pace := newFramePace(m.cfg.Rates.Frames, func(job.SiteID, string, bool) {})
	m.reading = newReading(m)
	m.refuses = newLeaderless(m.listener.Addr(), users.ServerTLS(), pace, m.reading)
	return nil
}

// raftConfig is the configuration of raft but for what carries it.
func raftConfig(cfg *config.Config, log *slog.Logger) raftstore.Config {
	c := raftstore.Config{
		Site: job.SiteID(cfg.Site), Peer: raftstore.Peer{Name: cfg.Members.Self, Address: cfg.MemberAddress()},
		Folder: filepath.Join(cfg.Data, config.MembersFolder), Logger: log,
	}
	id, _ := hex.DecodeString(cfg.Members.Cluster) // it was checked
	copy(c.Cluster[:], id)
	return c
}

// openChunks opens the store that the leader has chunks copied to.
func (m *Member) openChunks() error {
	chunks, err := blobstore.Open(blobstore.Config{
		Dir: filepath.Join(m.cfg.Data, runner.BlobsFolder), QuotaBytes: m.cfg.Files.QuotaBytes, LowWaterBytes: m.cfg.Files.KeepFreeBytes, Log: m.log,
	})
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.chunks = chunks
	m.mu.Unlock()
	return nil
}

// closeChunks closes it: the files of the site use the folder from now on.
func (m *Member) closeChunks() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.chunks == nil {
		return nil
	}
	err := m.chunks.Close()
	m.chunks = nil
	return err
}

func (m *Member) start() {
	m.wg.Go(m.acceptPort)
	if m.socket != nil {
		m.wg.Go(m.acceptSocket)
	}
	go m.refuses.server.Serve(m.refuses.in) //nolint:errcheck // it ends with stop
	if m.worker != nil {
		go m.workServer.Serve(m.workPort) //nolint:errcheck // likewise
	}
	m.wg.Go(m.watchLeader)
	m.log.Info("member ready", "address", m.listener.Addr().String(), "version", Version(), "members", len(m.raft.Members()))
	if len(m.raft.Members()) == 0 && m.worker != nil {
		m.log.Info("this machine runs the jobs of the site and keeps none of its facts", "remedy", "none is needed; kith site members add has it keep them, too")
	} else if len(m.raft.Members()) == 0 {
		m.log.Info("member waits to be added to the site", "remedy", fmt.Sprintf("kith site members add %s %s", m.cfg.Members.Self, m.cfg.MemberAddress()))
	}
	notify(sd.SdNotifyReady, m.log)
}

// Run leads whenever this member is to, until ctx is done, and closes it.
func (m *Member) Run(ctx context.Context, r *Reload) error {
	m.wg.Go(func() {
		for {
			select {
			case <-r.Signal:
				m.reread(r)
			case <-m.ctx.Done():
				return
			}
		}
	})
	err := m.leadOn(ctx)
	return errors.Join(err, m.Close())
}

// leadOn leads, again and again, until ctx is done or the member cannot go on.
func (m *Member) leadOn(ctx context.Context) error {
	for {
		lead, err := m.raft.Lead(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // it was to end
		case err != nil:
			return fmt.Errorf("member %s of site %s: %w", m.cfg.Members.Self, m.cfg.Site, err)
		}
		if err := m.leadOnce(ctx, lead); err != nil && ctx.Err() == nil {
			m.log.Error("this member could not lead the site", "error", err.Error())
			if err := m.raft.Transfer(); err != nil { // another one may be able to
				m.log.Warn("no other member took the lead", "error", err.Error())
			}
			pause.For(ctx, time.Second)
		}
	}
}

// leadOnce runs the site for as long as a lead lasts.
func (m *Member) leadOnce(ctx context.Context, lead *raftstore.Lead) error {
	if err := m.closeChunks(); err != nil {
		return err
	}
	defer func() {
		if err := m.openChunks(); err != nil {
			m.log.Error("files of the site are not kept at this member", "error", err.Error())
		}
	}()
	began := time.Now()
	in := &doors{newHandoff(m.listener.Addr()), newHandoff(m.listener.Addr())}
	parts := &leadParts{backend: lead, keys: m.keys, port: in.port, copies: m.copies, addresses: m.addresses, members: deskOfMembers{m: m}, began: began, machine: m.machineOf(lead)}
	if m.socket != nil {
		parts.socket = in.socket
	}
	host := noHost()
	if parts.machine != nil {
		host = apartHost(m.config())
	}
	d, err := OpenWith(m.config(), m.site, Options{Host: host, lead: parts})
	if err != nil {
		return errors.Join(err, lead.Close())
	}
	m.setDoors(in)
	m.log.Info("this member leads the site", "ready_after", time.Since(began).String())
	while, end := context.WithCancel(ctx)
	var room sync.WaitGroup
	room.Go(func() { m.handOverWhenFull(while, d.low.check) })
	why, patience := m.await(ctx, d, lead)
	end()
	m.setDoors(nil)
	if ctx.Err() == nil {
		m.log.Warn("this member leads the site no longer", "error", why)
	}
	if err := d.close(patience); err != nil && ctx.Err() == nil {
		m.log.Warn("the lead did not end in order", "error", err.Error())
	}
	room.Wait()
	return nil
}

// await returns when a lead is over, with why, and how long calls may take to end.
func (m *Member) await(ctx context.Context, d *Daemon, lead *raftstore.Lead) (why string, patience time.Duration) {
	var again chan string
	if l := d.options.lead.machine; l != nil {
		again = l.again
	}
	for {
		select {
		case r := <-m.reload:
			d.reload(r)
		case why := <-again:
			return why, 0
		case <-lead.Over():
			return "another one may", 0
		case <-d.loop.void:
			return d.loop.why.Error(), 0
		case err := <-d.served:
			return fmt.Sprint("its servers ended: ", err), 0
		case <-ctx.Done():
			return "it stops", 2 * time.Second
		}
	}
}

// config returns the configuration with which this member leads next.
func (m *Member) config() config.Config {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.next
}

// setDoors says where connections go in; nil if this member does not lead.
func (m *Member) setDoors(in *doors) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.doors = in
}

// reread takes the configuration up as far as that goes: what the site has, now if it runs here,
// else when it does.
func (m *Member) reread(r *Reload) {
	if err := m.keys.Reload(); err != nil {
		m.log.Error("keys not reloaded", "error", err.Error())
	}
	next, err := config.Load(r.Path)
	if err != nil {
		m.log.Warn("configuration not reloaded", "path", r.Path, "mistakes", mistakesOf(err))
		return
	}
	m.mu.Lock()
	if taken := config.Reloaded(&m.next, &next); taken.Validate() == nil {
		m.next = taken
	}
	leads := m.doors != nil
	m.mu.Unlock()
	if !leads {
		m.log.Info("configuration read again; what of it belongs to the site counts once this member leads")
		return
	}
	select {
	case m.reload <- r:
	case <-time.After(keysEvery): // the lead is over
	case <-m.ctx.Done():
	}
}

// Address returns host:port where the member listens.
func (m *Member) Address() string { return m.listener.Addr().String() }

// Close ends the member; one that leads hands over to another one first.
func (m *Member) Close() error {
	notify(sd.SdNotifyStopping, m.log)
	err := m.release()
	m.log.Info("member stopped")
	return err
}

// release ends what open and start have come to.
func (m *Member) release() error {
	var errs []error
	if m.raft != nil {
		errs = append(errs, m.raft.Close()) // which closes raftPort
	} else if m.raftPort != nil {
		m.raftPort.Close() //nolint:errcheck // it has no error
	}
	m.cancel() // now only: until then the others may have to be heard
	for _, l := range []net.Listener{m.listener, m.socket} {
		if l != nil {
			l.Close()
		}
	}
	if m.refuses != nil {
		m.refuses.server.Stop()
	}
	if m.copies != nil {
		m.copies.Close()
	}
	m.dropTunnels(raftstore.Peer{})
	errs = append(errs, m.closeWorker())
	m.wg.Wait()
	return errors.Join(append(errs, m.closeChunks())...)
}

// others are the other members, those with a vote first, for the copies of chunks.
func (m *Member) others() (voters, rest []string) {
	for _, s := range m.raft.Members() {
		switch {
		case s.Name == m.cfg.Members.Self:
		case s.Votes:
			voters = append(voters, s.Name)
		default:
			rest = append(rest, s.Name)
		}
	}
	return voters, rest
}

// addresses are where other sites find a member, this one first.
func (m *Member) addresses() []string {
	var list []string
	if a := advertised(m.cfg.Listen, m.listener.Addr()); a != "" {
		list = append(list, a)
	}
	if m.cfg.Listen.Advertise == "none" {
		return list
	}
	for _, s := range m.raft.Members() {
		if s.Name != m.cfg.Members.Self {
			list = append(list, s.Address)
		}
	}
	return list
}

// leaderlessText says, for clients, why they are refused.
func (m *Member) leaderlessText() string {
	text := fmt.Sprintf("no member of site %s that leads can be reached from member %s", m.cfg.Site, m.cfg.Members.Self)
	switch list := m.raft.Members(); {
	case len(list) == 0:
		text += ", which waits to be added to the site"
	case m.raft.Leader() == raftstore.Peer{}:
		text += fmt.Sprintf(": more than half of its %d members must be up, and agree on one", len(list))
	}
	text += "; jobs that run go on"
	if e := m.cfg.Members; e.Executor != "" {
		text += fmt.Sprintf(", at machine %s those that would run again for %v", e.Executor, e.ExecutorLost)
	}
	return text
}
