package daemon

import (
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
	"kith/sitesched"
	"kith/sitesched/executor"
	"kith/store"
	"kith/store/blobstore"
	"kith/store/boltstore"
)

// Daemon is a running site. Open starts it, Close stops it and leaves its jobs running.
type Daemon struct {
	cfg     config.Config // what it was started with
	running config.Config // and what it has taken up since, see reload
	// peers are those of running, for every goroutine.
	peers   atomic.Pointer[[]config.Peer]
	log     *slog.Logger
	backend *boltstore.Store
	state   *store.State
	engine  *meta.Engine
	loop    *loop
	runs    *attempts
	files   *files
	effects *effects
	links   *peer.Links
	gossip  *gossip.Gossip
	exec    *executor.Executor

	listener net.Listener
	server   *grpc.Server
	health   *health.Server
	served   chan error
}

// Open starts a site. When it returns the site takes jobs.
func Open(cfg config.Config, log *slog.Logger) (*Daemon, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	d := &Daemon{cfg: cfg, log: log.With("site_id", cfg.Site), served: make(chan error, 1)}
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

// open does all that comes before [Daemon.start].
func (d *Daemon) open() error {
	d.running = d.cfg
	d.peers.Store(&d.cfg.Peers)
	if err := os.MkdirAll(d.cfg.Data, 0o700); err != nil {
		return fmt.Errorf("data folder %s: %w", d.cfg.Data, err)
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
	site, err := sitesched.New(d.cfg.SchedulerConfig())
	if err != nil {
		return err
	}
	incarnation := uint64(time.Now().UnixNano())
	fx := &effects{backend: d.backend, log: d.log, changes: api.NewChanges(incarnation), streams: &streams{up: make(map[job.SiteID]bool)}}
	fx.ctx, fx.cancel = context.WithCancel(context.Background())
	d.effects = fx
	if err := d.openFiles(); err != nil {
		return err
	}
	if err := d.openExecutor(); err != nil {
		return err
	}
	if d.engine, err = meta.New(d.engineConfig(incarnation), d.state, site); err != nil {
		return err
	}
	barrier := commit.New(d.state, d.backend, d.runs.launched)
	d.loop = newLoop(d.engine, barrier, fx.carry, d.state.Site().Latest, d.log)
	d.loop.room = func() error { return checkRoom(d.cfg.Data, 0, d.cfg.Files.KeepFreeBytes) }
	d.files.loop = d.loop
	d.links = peer.New(peer.Config{
		Site: d.siteID(), Generation: d.state.Site().Generation, Incarnation: incarnation, Version: Version(),
		Admit: d.admits, Heartbeat: d.cfg.Timing.Heartbeat, DialOptions: dialOptions(), Logger: d.log,
	}, handler{d.loop.post, fx.streams}, d.files)
	d.files.links = d.links
	fx.links, fx.runs, fx.files = d.links, d.runs, d.files

	users := api.New(api.Config{
		Node: node{d.loop, d.backend, d}, Files: d.files, Output: d.files, Changes: fx.changes, User: userName(), Logger: d.log,
	})
	d.server, d.health = newServer(users, d.links, d.log)
	return nil
}

func (d *Daemon) siteID() job.SiteID { return job.SiteID(d.cfg.Site) }

func (d *Daemon) engineConfig(incarnation uint64) meta.Config {
	mc, sc := d.cfg.MetaConfig(), d.cfg.SchedulerConfig()
	mc.Incarnation, mc.BootID = incarnation, d.exec.BootID()
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

func (d *Daemon) openFiles() error {
	blobs, err := blobstore.Open(blobstore.Config{
		Dir: filepath.Join(d.cfg.Data, "blobs"), QuotaBytes: d.cfg.Files.QuotaBytes, LowWaterBytes: d.cfg.Files.KeepFreeBytes, Log: d.log,
	})
	if err != nil {
		return err
	}
	maxFile := d.cfg.Files.MaxFileBytes
	d.files = &files{
		site: d.siteID(), backend: d.backend, blobs: blobs, maxFile: maxFile, log: d.log,
		packer:  &transfer.Packer{Store: blobs, Roots: d.cfg.Files.InputRoots, MaxFileBytes: maxFile},
		fetcher: transfer.NewFetcher(blobs, transfer.FetchConfig{Patience: fetchPatience}),
		tail:    transfer.NewTail(transfer.TailConfig{}),
	}
	d.files.server = transfer.NewServer(blobs, transfer.ServeConfig{Allowed: d.files.allowed})
	return nil
}

func (d *Daemon) openExecutor() error {
	runs := &attempts{
		site: d.siteID(), dir: filepath.Join(d.cfg.Data, "attempts"), backend: d.backend, fetcher: d.files.fetcher, source: d.files.sourceAt,
		unpacker: &transfer.Unpacker{Store: d.files.blobs, LowWaterBytes: d.cfg.Files.KeepFreeBytes},
		collect:  &transfer.Collector{Store: d.files.blobs, MaxFileBytes: d.cfg.Files.MaxFileBytes},
		log:      d.log, collecting: make(chan struct{}, 8), runs: make(map[job.AttemptID]*run),
	}
	runs.ctx, runs.cancel = context.WithCancel(context.Background())
	runs.away, d.files.away = d.effects.streams.away, d.effects.streams.away
	runs.tell = func(ev meta.Event) { d.loop.tell(ev) }
	runs.lease = func(until job.Time) executor.Lease { return d.loop.clock.lease(until, d.cfg.Executor.Grace) }
	d.runs, d.files.runs = runs, runs
	x, err := executor.Open(executor.Config{
		Dir: runs.dir, Processors: int(d.cfg.Processors()), Grace: d.cfg.Executor.Grace,
		MaxOutputBytes: d.cfg.Executor.MaxOutputBytes, NoAffinity: !d.cfg.Executor.Pin, Logger: d.log,
	}, runs.executed)
	if err != nil {
		return fmt.Errorf("executor: %w", err)
	}
	d.exec, runs.exec, runs.folders = x, x, x.Folders
	return nil
}

// admits says whether a site may connect: configured peers, and with gossip
// whoever is a member.
func (d *Daemon) admits(site job.SiteID) bool {
	if d.cfg.Gossip.Listen != "" {
		return true
	}
	return d.isPeer(site)
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
	d.runs.removeStrays(func(a job.AttemptID) bool { return known[a] })
	if d.cfg.Gossip.Listen != "" {
		g, err := gossip.Start(gossip.Config{
			Site: d.siteID(), Listen: d.cfg.Gossip.Listen, Join: d.cfg.Gossip.Join, Seen: d.gossipSeen, Logger: d.log,
		})
		if err != nil {
			return err
		}
		d.gossip = g
		d.effects.spread = func(a meta.Advertise) { g.Advertise(a.Digest) }
	}
	first := append([]meta.Effect(nil), d.engine.Restore(d.loop.clock.now(), sitesOf(d.cfg.Peers))...)
	go d.loop.run(first)
	d.effects.wg.Go(func() { d.files.keepSweeping(d.effects.ctx) })
	go func() { d.served <- d.server.Serve(d.listener) }()
	for _, p := range d.cfg.Peers {
		d.links.Dial(job.SiteID(p.Site), p.Address)
	}
	d.log.Info("site ready", "address", d.Address(), "generation", d.state.Site().Generation, "version", Version(),
		"jobs", d.state.JobCount(), "copies", d.state.CopyCount())
	for _, c := range d.exec.Capabilities() {
		d.log.Info("executor capability", "capability", c.Name, "available", c.Available, "detail", c.Detail)
	}
	d.warn()
	// Without systemd there is nobody to notify, and that is no error.
	if _, err := sd.SdNotify(false, sd.SdNotifyReady); err != nil {
		d.log.Warn("service manager not notified", "error", err.Error())
	}
	return nil
}

// gossipSeen passes on what gossip brings, and dials sites it makes known.
func (d *Daemon) gossipSeen(g cluster.Digest) {
	d.loop.post(meta.LoadSeen{Digest: g})
	if !d.isPeer(g.Site) && g.Address != "" {
		d.links.Dial(g.Site, g.Address)
	}
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
	d.runs.close()
	d.effects.close()
	d.exec.Close()
	d.loop.close()
	err := errors.Join(d.files.server.Close(), d.files.blobs.Close(), d.backend.Close())
	d.log.Info("site stopped")
	return err
}

// abandon releases what open had come to.
func (d *Daemon) abandon() {
	if d.exec != nil {
		d.exec.Close()
	}
	if d.listener != nil {
		d.listener.Close()
	}
	if d.files != nil && d.files.blobs != nil {
		d.files.blobs.Close() //nolint:errcheck // why it was not opened is told
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

// Describe implements api.Node.
func (n node) Describe() api.Description {
	peers := *n.d.peers.Load()
	desc := api.Description{
		FileBytesSent: n.d.files.sent.Load(), FileBytesReceived: n.d.files.received.Load(),
		Addresses: make(map[job.SiteID]string, len(peers)),
	}
	for _, c := range n.d.exec.Capabilities() {
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
