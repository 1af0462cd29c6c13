package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	sd "github.com/coreos/go-systemd/v22/daemon"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"

	"kith/cluster"
	"kith/cluster/gossip"
	"kith/cmd/kithd/config"
	"kith/internal/job"
	"kith/meta"
	"kith/meta/api"
	"kith/meta/commit"
	"kith/meta/peer"
	"kith/meta/transfer"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/sitesched/runner"
	"kith/store"
	"kith/store/boltstore"
)

// Daemon is a running site. Open starts it, Close stops it and leaves its jobs running.
type Daemon struct {
	cfg     config.Config // what it was started with
	running config.Config // and what it has taken up since, see reload
	// peers are those of running, for every goroutine.
	peers   atomic.Pointer[[]config.Peer]
	host    Host
	log     *slog.Logger
	backend *boltstore.Store
	state   *store.State // the loop's, once it runs
	self    store.Site   // as this life began
	engine  *meta.Engine
	loop    *loop
	runs    *runner.Runner
	room    *room
	files   *runner.Files
	effects *effects
	links   *peer.Links
	gossip  *gossip.Gossip

	// background ends with cancel; wg waits for it.
	background context.Context
	cancel     context.CancelFunc
	wg         sync.WaitGroup

	border   *border
	listener net.Listener
	server   *grpc.Server
	health   *health.Server
	served   chan error
}

// Open starts a site. When it returns the site takes jobs.
func Open(cfg config.Config, log *slog.Logger) (*Daemon, error) {
	cfg = withinDescriptors(cfg, descriptors(), log.With("site_id", cfg.Site))
	return OpenOn(cfg, log, ownHost(cfg, log))
}

// OpenOn starts a site that schedules and runs work in a way of its own.
func OpenOn(cfg config.Config, log *slog.Logger, host Host) (*Daemon, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	d := newDaemon(cfg, log, host)
	err := d.open()
	if err == nil {
		err = d.start()
	}
	if err != nil {
		d.abandon()
		return nil, err
	}
	return d, nil
}

func newDaemon(cfg config.Config, log *slog.Logger, host Host) *Daemon {
	d := &Daemon{cfg: cfg, host: host, log: log.With("site_id", cfg.Site), served: make(chan error, 1)}
	d.background, d.cancel = context.WithCancel(context.Background())
	return d
}

// open does all that comes before [Daemon.start].
func (d *Daemon) open() error {
	d.running = d.cfg
	d.peers.Store(&d.cfg.Peers)
	if err := closeFolder(d.cfg.Data, d.log); err != nil {
		return err
	}
	if err := writable(d.cfg.Data); err != nil {
		return err
	}
	var err error
	if d.backend, err = boltstore.Open(filepath.Join(d.cfg.Data, boltstore.FileName), job.SiteID(d.cfg.Site)); err != nil {
		return err
	}
	if d.state, err = d.backend.Load(); err != nil {
		return err
	}
	// Listening comes early: a port in use must be known before jobs are touched.
	if d.listener, err = listen(d.cfg.Listen.Address); err != nil {
		return err
	}
	d.border = newBorder(defaultBounds(openFiles()), d.log)
	d.listener = d.border.listener(d.listener)
	return d.assemble()
}

// writable tells early and clearly what would fail later in odd places.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		remedy := "give the folder to the user that runs kithd"
		if !errors.Is(err, fs.ErrPermission) {
			remedy = "check the disk and the path"
		}
		return fmt.Errorf("data folder %s cannot be written to: %w; %s", dir, err, remedy)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// assemble makes all parts and connects them; nothing runs yet but idle workers.
func (d *Daemon) assemble() error {
	site, err := d.host.Site()
	if err != nil {
		return err
	}
	streams := &streams{up: make(map[job.SiteID]bool)}
	room := func() error { return runner.CheckRoom(d.cfg.Data, 0, d.cfg.Files.KeepFreeBytes) }
	in := newInbox(d.state.Site().Latest, room, d.log)
	in.clock.warn(d.state.Site().Latest, d.log)
	if d.room, err = openRoom(d.cfg.Data, d.cfg.Files.ReserveBytes, d.backend, in.trouble, d.log); err != nil {
		return err
	}
	if err := beginLife(d.state, d.backend); err != nil {
		return fmt.Errorf("data folder %s: %w", d.cfg.Data, err)
	}
	d.self = d.state.Site()
	if err := d.openFiles(in); err != nil {
		return err
	}
	d.links = peer.New(peer.Config{
		Site: d.siteID(), Generation: d.self.Generation, Folder: d.self.Folder, Incarnation: d.self.Incarnation, Version: Version(),
		Admit: d.admits, Heartbeat: d.cfg.Timing.Heartbeat, DialOptions: dialOptions(), Logger: d.log,
		Payload: func(g meta.Grant) ([]byte, error) { return d.effects.payload(g) },
	}, handler{in, streams, d.files, new(turns), &aheadLines{log: d.log}, d.log}, d.files)
	d.runs, err = runner.New(runner.Config{
		Files: d.files, System: d.host.System, Peers: d.links, Away: streams.away, Tell: in.tell, Post: in.post,
		SinceBoot: in.clock.sinceBoot,
		Grace:     d.cfg.Executor.Grace, Staging: d.cfg.Timing.Staging, Fetch: transfer.FetchConfig{Patience: fetchPatience}, Log: d.log,
	})
	if err != nil {
		return err
	}
	if err := checkHost(site, d.runs); err != nil {
		return err
	}
	if d.engine, err = meta.New(d.engineConfig(), d.state, site); err != nil {
		return err
	}
	spread, err := d.startGossip(in)
	if err != nil {
		return err
	}
	d.effects = &effects{
		links: d.links, runs: d.runs, backend: d.backend, log: d.log, changes: api.NewChanges(d.self.Incarnation), streams: streams, spread: spread,
	}
	barrier := commit.New(d.state, d.backend, d.runs.Launched)
	d.loop = newLoop(in, d.engine, barrier, d.effects.carry)
	users := api.New(api.Config{
		Node: node{d.loop, d.backend, d}, Files: d.files, Output: d.runs, Changes: d.effects.changes, User: userName(), Logger: d.log,
	})
	d.server, d.health = newServer(users, d.links, d.border, d.log)
	return nil
}

func (d *Daemon) siteID() job.SiteID { return job.SiteID(d.cfg.Site) }

func (d *Daemon) engineConfig() meta.Config {
	mc, sc := d.cfg.MetaConfig(), d.cfg.SchedulerConfig()
	mc.BootID = d.runs.BootID()
	mc.Self = meta.Self{
		Address: d.advertised(), Processors: sc.Processors, MemoryBytes: sc.MemoryBytes, HomeJobs: cluster.HomeJobsOf(sc.HomeFirst()),
		Policy: sc.Policy(), Speed: d.cfg.Scheduler.Speed, Version: Version(),
	}
	return mc
}

// advertised is the address that other sites are told.
func (d *Daemon) advertised() string {
	switch d.cfg.Listen.Advertise {
	case "":
		return d.listener.Addr().String()
	case "none":
		return ""
	}
	return d.cfg.Listen.Advertise
}

// fetchPatience is how long files may fail to come until their fetch gives up.
const fetchPatience = 20 * time.Second

func (d *Daemon) openFiles(in *inbox) (err error) {
	d.files, err = runner.OpenFiles(runner.FilesConfig{
		Site: d.siteID(), Dir: d.cfg.Data, Backend: d.backend, InputRoots: d.cfg.Files.InputRoots,
		QuotaBytes: d.cfg.Files.QuotaBytes, KeepFreeBytes: d.cfg.Files.KeepFreeBytes, MaxFileBytes: d.cfg.Files.MaxFileBytes,
		Look: in.Look, Log: d.log,
	})
	return err
}

// admits says whether a site may connect: configured peers, and with gossip
// whoever is a member.
func (d *Daemon) admits(site job.SiteID) bool {
	return d.cfg.Gossip.Listen != "" || d.isPeer(site)
}

// isPeer reports whether the configuration names a site.
func (d *Daemon) isPeer(site job.SiteID) bool {
	return slices.ContainsFunc(*d.peers.Load(), func(p config.Peer) bool { return p.Site == string(site) })
}

// start sets everything going.
func (d *Daemon) start() error {
	known := make(map[job.AttemptID]bool)
	for c := range d.state.Copies() {
		known[c.ID] = true
	}
	d.runs.RemoveStrays(func(a job.AttemptID) bool { return known[a] })
	first := append([]meta.Effect(nil), d.engine.Restore(d.loop.clock.now(), sitesOf(d.cfg.Peers))...)
	// The facts are the loop's from here on.
	ready := []any{
		"address", d.Address(), "generation", job.GenerationText(d.state.Site().Generation), "version", Version(),
		"jobs", d.state.JobCount(), "copies", d.state.CopyCount(),
	}
	go d.loop.run(first)
	d.wg.Go(func() { d.files.KeepSweeping(d.background) })
	d.wg.Go(func() { d.room.keep(d.background, d.runs) })
	go func() { d.served <- d.server.Serve(d.listener) }()
	for _, p := range d.cfg.Peers {
		d.links.Dial(job.SiteID(p.Site), p.Address)
	}
	d.log.Info("site ready", ready...)
	for _, c := range d.runs.Capabilities() {
		d.log.Info("executor capability", "capability", c.Name, "available", c.Available, "detail", c.Detail)
	}
	d.warn()
	// Without systemd there is nothing to notify, and that is no error.
	if _, err := sd.SdNotify(false, sd.SdNotifyReady); err != nil {
		d.log.Warn("service manager not notified", "error", err.Error())
	}
	return nil
}

// startGossip joins those who gossip, if this site does, and returns what
// spreads its load there. What gossip brings goes to the engine; the sites that it
// makes known are dialled.
func (d *Daemon) startGossip(in *inbox) (spread func(meta.Advertise), err error) {
	if d.cfg.Gossip.Listen == "" {
		return nil, nil
	}
	d.gossip, err = gossip.Start(gossip.Config{
		Site: d.siteID(), Listen: d.cfg.Gossip.Listen, Join: d.cfg.Gossip.Join, Logger: d.log,
		Seen: func(g cluster.Digest) {
			in.post(meta.LoadSeen{Digest: g})
			if !d.isPeer(g.Site) && g.Address != "" {
				d.links.Dial(g.Site, g.Address)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	return func(a meta.Advertise) { d.gossip.Advertise(a.Digest) }, nil
}

// Address returns host:port where the daemon listens.
func (d *Daemon) Address() string { return d.listener.Addr().String() }

// Run waits until ctx is done or the server fails, and closes the daemon. It
// reads the configuration again when r says so.
func (d *Daemon) Run(ctx context.Context, r *Reload) error {
	for {
		select {
		case <-r.Signal:
			d.reload(r)
		case <-ctx.Done():
			return d.Close()
		case err := <-d.served:
			return errors.Join(err, d.Close())
		}
	}
}

// Close stops the site: no new requests, what was decided becomes durable,
// jobs run on.
func (d *Daemon) Close() error {
	d.log.Info("site stopping")
	if _, err := sd.SdNotify(false, sd.SdNotifyStopping); err != nil {
		d.log.Warn("service manager not notified", "error", err.Error())
	}
	d.health.Shutdown()
	close(d.loop.closing)
	if d.gossip != nil {
		if err := d.gossip.Close(); err != nil {
			d.log.Warn("gossip", "error", err.Error())
		}
	}
	// Streams of peers and watchers never end by themselves.
	stopped := make(chan struct{})
	go func() {
		d.server.GracefulStop()
		close(stopped)
	}()
	d.links.Close()
	select {
	case <-stopped:
	case <-time.After(2 * time.Second):
		d.server.Stop()
		<-stopped
	}
	d.cancel()
	d.runs.Close()
	d.wg.Wait()
	d.loop.close()
	err := errors.Join(d.files.Close(), d.backend.Close())
	d.log.Info("site stopped")
	return err
}

// abandon releases what open had come to.
func (d *Daemon) abandon() {
	d.cancel()
	if d.gossip != nil {
		d.gossip.Close() //nolint:errcheck // why the site was not opened is told
	}
	if d.links != nil {
		d.links.Close()
	}
	if d.runs != nil {
		d.runs.Close()
	}
	if d.listener != nil {
		d.listener.Close()
	}
	if d.files != nil {
		d.files.Close() //nolint:errcheck // why it was not opened is told
	}
	if d.backend != nil {
		d.backend.Close() //nolint:errcheck // why it was not opened is told
	}
}

// node is the site as the API sees it.
type node struct {
	*loop
	store.Backend
	d *Daemon
}

var _ api.Node = node{}

// Ask implements api.Node. A site that was forgotten may come back on any folder.
func (n node) Ask(ctx context.Context, make func(token uint64) meta.Event) (meta.Reply, error) {
	var forget *meta.ForgetSite
	r, err := n.loop.Ask(ctx, func(token uint64) meta.Event {
		ev := make(token)
		if f, ok := ev.(meta.ForgetSite); ok {
			forget = &f
		}
		return ev
	})
	if err == nil && forget != nil {
		n.d.links.Forget(forget.Site)
	}
	return r, err
}

// Describe implements api.Node.
func (n node) Describe() api.Description {
	peers := *n.d.peers.Load()
	sent, received := n.d.files.Moved()
	desc := api.Description{
		FileBytesSent: sent, FileBytesReceived: received,
		Addresses: make(map[job.SiteID]string, len(peers)), Trouble: make(map[job.SiteID]api.Trouble),
		DiskTrouble: cmp.Or(n.trouble.tells(), n.d.runs.Scarcity()),
	}
	for site, t := range n.d.links.Trouble() {
		trouble := api.Trouble{Why: t.Why, Clash: t.Clash, Load: t.Load}
		if t.Why != "" {
			trouble.Since = job.Instant(t.Since)
		}
		desc.Trouble[site] = trouble
	}
	for _, c := range n.d.runs.Capabilities() {
		desc.Capabilities = append(desc.Capabilities, &kithv1.Capability{Name: c.Name, Available: c.Available, Detail: c.Detail})
	}
	for _, p := range peers {
		desc.Addresses[job.SiteID(p.Site)] = p.Address
	}
	return desc
}

func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return fmt.Sprint("uid-", os.Getuid())
}

// Version returns the version of this build.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}
