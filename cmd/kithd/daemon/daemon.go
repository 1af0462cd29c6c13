package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
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
	"kith/cluster/gossip/plain"
	"kith/cmd/kithd/config"
	"kith/cmd/kithd/metrics"
	"kith/internal/job"
	"kith/internal/loglines"
	"kith/meta"
	"kith/meta/api"
	"kith/meta/commit"
	"kith/meta/flight"
	"kith/meta/peer"
	"kith/meta/policy"
	"kith/meta/transfer"
	"kith/meta/trust/audit"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/sitesched"
	"kith/sitesched/runner"
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
	host    Host
	log     *slog.Logger
	backend store.Backend
	state   *store.State // the loop's, once it runs
	self    store.Site   // as this life began
	engine  *meta.Engine
	loop    *loop
	runs    *runner.Runner
	room    *room
	low     *lowRoom
	files   *runner.Files
	plan    sitesched.Config // how it schedules; nothing if a batch system does
	salt    saltFile
	owner   *ownerWatch // nil where the machine has no owner to give way to
	effects *effects
	links   *peer.Links
	gossip  *gossip.Gossip
	audit   *audit.Log
	flight  *flight.Ring // nil where nothing is recorded
	lanes   *plain.Lanes

	foresight chan meta.Foresee // see foresee
	// background ends with cancel; wg waits for it.
	background context.Context
	cancel     context.CancelFunc
	wg         sync.WaitGroup

	options  Options
	identity *siteIdentity // nil where it serves without keys
	desk     *desk         // nil likewise
	pace     *framePace
	border   *border
	door     *door
	listener net.Listener
	port     *port        // of listener, where the site has an identity
	socket   net.Listener // nil for none
	server   *grpc.Server
	peerside *grpc.Server // nil where server has PeerService too
	health   *health.Server
	served   chan error // has room for all that listen

	figures   *http.Server // nil for none, as its listener
	figuresAt net.Listener

	bundles     bundles
	brokenHeads loglines.Pacer[job.SiteID] // about sites whose audit logs do not go on
	refusedWork loglines.Pacer[job.SiteID]
}

// Open starts a site. When it returns the site takes jobs.
func Open(cfg config.Config, log *slog.Logger) (*Daemon, error) {
	cfg = withinDescriptors(cfg, descriptors(), log.With("site_id", cfg.Site))
	return OpenWith(cfg, log, Options{})
}

// OpenWith starts a site that is given some of its parts.
func OpenWith(cfg config.Config, log *slog.Logger, o Options) (*Daemon, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if o.Host.Site == nil {
		o.Host = ownHost(cfg, log)
	}
	if o.Known == nil {
		o.Known = func() []Known { return nil }
	}
	if o.lead == nil {
		if err := fitsMembers(&cfg); err != nil {
			return nil, err
		}
		if cfg.Members.Self != "" {
			return nil, errors.New("members.self names a member of a site: it is opened by OpenMember")
		}
	}
	d := newDaemon(cfg, log, o)
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

func newDaemon(cfg config.Config, log *slog.Logger, o Options) *Daemon {
	d := &Daemon{cfg: cfg, host: o.Host, options: o, log: log.With("site_id", cfg.Site), served: make(chan error, 5)}
	d.salt.path, d.salt.shared = filepath.Join(cfg.Data, saltName), o.lead != nil
	d.background, d.cancel = context.WithCancel(context.Background())
	return d
}

// open does all that comes before [Daemon.start].
func (d *Daemon) open() error {
	if err := closeFolder(d.cfg.Data, d.log); err != nil {
		return err
	}
	if err := d.openIdentity(); err != nil {
		return err
	}
	d.running = d.cfg
	d.peers.Store(&d.cfg.Peers)
	if err := writable(d.cfg.Data); err != nil {
		return err
	}
	var err error
	if d.backend, err = d.openBackend(); err != nil {
		return err
	}
	if d.state, err = d.backend.Load(); err != nil {
		return err
	}
	d.state.KeepPast(d.cfg.Forecast.History)
	if err := d.restoreTrust(); err != nil {
		return err
	}
	if err := d.openAudit(); err != nil {
		return err
	}
	if err := d.openDoors(); err != nil {
		return err
	}
	if at := d.cfg.Listen.Metrics; at != "" {
		if d.figuresAt, err = listen("listen.metrics", at); err != nil {
			return err
		}
		d.figuresAt = metrics.Listener(d.figuresAt)
	}
	d.border = newBorder(defaultBounds(descriptors()), d.log)
	d.border.refused = d.refusedAtBorder
	d.listener = d.border.listener(d.listener)
	return d.assemble()
}

// openBackend opens where the facts are.
func (d *Daemon) openBackend() (store.Backend, error) {
	if l := d.options.lead; l != nil {
		return l.backend, nil
	}
	b, err := boltstore.Open(filepath.Join(d.cfg.Data, boltstore.FileName), job.SiteID(d.cfg.Site))
	if err != nil {
		return nil, err // and no back end that is a nil one
	}
	return b, nil
}

// openDoors listens. That comes early: a port in use must be known before jobs are touched.
func (d *Daemon) openDoors() (err error) {
	if l := d.options.lead; l != nil {
		d.listener, d.socket = l.port, l.socket
		return nil
	}
	if d.listener, err = listen("listen.address", d.cfg.Listen.Address); err != nil {
		return err
	}
	d.socket, err = openSocket(&d.cfg, d.log)
	return err
}

// openSocket listens at the unix socket of a site, if it has one.
func openSocket(cfg *config.Config, log *slog.Logger) (net.Listener, error) {
	path := cfg.SocketPath()
	if path == "" {
		return nil, nil
	}
	l, err := listenSocket(path)
	if err != nil {
		return nil, err
	}
	if gid, ok := leftOut(path); ok {
		log.Warn("the group of the socket's folder is not let in", "socket", path, "gid", gid,
			"remedy", "have kithd run in that group, by Group= or SupplementaryGroups= of its unit, or give the folder to a group that it is in")
	}
	return l, nil
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
	if own, is := site.(interface{ Config() sitesched.Config }); is {
		d.plan = own.Config()
	}
	streams := newStreams()
	disk := runner.NewRoom(d.cfg.Data)
	d.low = &lowRoom{check: func() error { return disk.Check(0, d.cfg.Files.KeepFreeBytes) }, now: time.Now}
	in := newInbox(d.state.Site().Latest, d.low.room, d.log)
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
	d.pace = newFramePace(d.cfg.Rates.Frames, d.metFrames)
	links := peer.Config{
		Site: d.siteID(), Generation: d.self.Generation, Folder: d.self.Folder, Incarnation: d.self.Incarnation, Version: Version(),
		Admit: d.admits, Heartbeat: d.cfg.Timing.Heartbeat, DialOptions: dialOptions(), Logger: d.log,
		Payload: func(g meta.Grant) ([]byte, error) { return d.effects.payload(g) },
		Bundle:  func(bundle job.AttemptID, tasks *job.TaskSet) ([]byte, error) { return d.effects.bundle(bundle, tasks) },
		Refused: d.refusedOfPeer, Rates: ratesOf(d.cfg.Rates),
	}
	if d.identity != nil {
		links.Proven, links.Proves, links.Credentials, links.ReadBundle = provenSite, d.proves, d.siteCredentials, d.readBundle
	}
	d.links = peer.New(links, handler{in, streams, d.files, new(turns), &aheadLines{log: d.log, refused: d.refusedOfWork}, d.log, d.tellBundle}, d.files)
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
	d.foresight = make(chan meta.Foresee, 1)
	if d.engine, err = meta.New(d.engineConfig(), d.state, site); err != nil {
		return err
	}
	if err := d.engine.Recall(store.AllPast(d.backend)); err != nil {
		return err
	}
	spread, err := d.startGossip(in, streams)
	if err != nil {
		return err
	}
	d.effects = &effects{
		links: d.links, runs: d.runs, backend: d.backend, log: d.log, changes: api.NewChanges(d.self.Incarnation), bags: api.NewChanges(d.self.Incarnation), streams: streams, spread: spread, audit: d.audit, site: d,
	}
	barrier := commit.New(d.state, d.backend, d.runs.Launched)
	d.loop = newLoop(in, d.engine, barrier, d.effects.carry)
	if d.options.lead != nil {
		in.ended = errLeadOver
	}
	d.recordFlight(site)
	if d.cfg.Owner.Sharing {
		d.owner = d.watchOwner(d.runs.AdoptedShims)
	}
	ac := api.Config{
		Node: node{d.loop, d.backend, d}, Files: d.files, Output: d.runs, Changes: d.effects.changes, BagChanges: d.effects.bags, User: userName(), Logger: d.log,
	}
	if d.identity != nil {
		d.desk = d.openDesk()
		ac.Trust, d.identity.endpoint.JoinOpen = d.desk, d.desk.desk.IsOpen
	}
	if l := d.options.lead; l != nil {
		ac.Members = l.members
	}
	users := api.New(ac)
	if d.figuresAt != nil {
		d.figures = metrics.Server(users, d.flightFigures()...)
	}
	d.door = newDoor(d.cfg.Listen.AllowOwnUID, d.options.Tokens, d.border, d.refusedToken)
	d.server, d.health = newServer(users, d.door, newUserRates(d.cfg.Rates.User, d.refusedRate), d.pace, d.log)
	if d.identity == nil {
		kithv1.RegisterPeerServiceServer(d.server, d.links)
		kithv1.RegisterGossipServiceServer(d.server, d.lanes)
		return nil
	}
	d.peerside = newPeerServer(d.links, d.border, d.pace, d.log)
	d.port = newPort(d.listener, d.identity.endpoint.ServerTLS(), newHandshakePace(d.cfg.Rates.Handshakes), d.refusedHandshake, d.metAtPort)
	d.port.gossip, d.port.join = d.acceptLane, d.desk.serve
	return nil
}

func (d *Daemon) siteID() job.SiteID { return job.SiteID(d.cfg.Site) }

func (d *Daemon) engineConfig() meta.Config {
	mc, sc := d.cfg.MetaConfig(), d.cfg.SchedulerConfig()
	mc.Policies = policy.New()
	mc.BootID, mc.Admitted = d.runs.BootID(), d.identity != nil
	mc.Self = meta.Self{
		Address: d.advertised(), Processors: sc.Processors, MemoryBytes: sc.MemoryBytes, HomeJobs: cluster.HomeJobsOf(sc.HomeFirst()),
		Policy: sc.Policy(), Speed: d.cfg.Scheduler.Speed, Version: Version(),
	}
	return mc
}

// advertised is the address that other sites are told.
func (d *Daemon) advertised() string { return advertised(d.cfg.Listen, d.listener.Addr()) }

// advertised is what a site tells of where it listens. A host is told as it was written:
// its name may lead others elsewhere than here, through their own border. The port is the
// one that was taken.
func advertised(l config.Listen, at net.Addr) string {
	switch l.Advertise {
	case "":
	case "none":
		return ""
	default:
		return l.Advertise
	}
	host, _, err := net.SplitHostPort(l.Address)
	_, port, err2 := net.SplitHostPort(at.String())
	if err != nil || err2 != nil {
		return at.String()
	}
	return net.JoinHostPort(host, port)
}

// advertisedAll is all addresses that other sites are told, none where nothing can connect.
func (d *Daemon) advertisedAll() []string {
	if l := d.options.lead; l != nil {
		return l.addresses()
	}
	if a := d.advertised(); a != "" {
		return []string{a}
	}
	return nil
}

// fetchPatience is how long files may fail to come until their fetch gives up.
const fetchPatience = 20 * time.Second

func (d *Daemon) openFiles(in *inbox) (err error) {
	var copies blobstore.Copies
	if l := d.options.lead; l != nil {
		copies = l.copies
	}
	d.files, err = runner.OpenFiles(runner.FilesConfig{
		Site: d.siteID(), Dir: d.cfg.Data, Backend: d.backend, Copies: copies, InputRoots: d.cfg.Files.InputRoots,
		QuotaBytes: d.cfg.Files.QuotaBytes, KeepFreeBytes: d.cfg.Files.KeepFreeBytes, MaxFileBytes: d.cfg.Files.MaxFileBytes,
		Look: in.Look, Log: d.log, Refused: d.refusedOfWork,
	})
	return err
}

// admits says whether a site may connect.
func (d *Daemon) admits(site job.SiteID) bool {
	if d.identity != nil {
		return d.identity.knows(site)
	}
	return d.isPeer(site)
}

// isPeer reports whether the configuration names a site. Others may not connect.
func (d *Daemon) isPeer(site job.SiteID) bool {
	return slices.ContainsFunc(*d.peers.Load(), func(p config.Peer) bool { return p.Site == string(site) })
}

// start sets everything going.
func (d *Daemon) start() error {
	d.runs.RemoveStrays(attemptsOf(d.state))
	first := d.restore()
	// The facts are the loop's from here on.
	ready := []any{
		"address", d.Address(), "generation", job.GenerationText(d.state.Site().Generation), "version", Version(),
		"jobs", d.state.JobCount(), "copies", d.state.CopyCount(),
	}
	known := d.unknownYet()
	go d.loop.run(first)
	if err := d.admitKnown(known); err != nil {
		return err
	}
	d.wg.Go(func() { d.foresee(d.background, d.loop.tell) })
	d.wg.Go(func() { d.files.KeepSweeping(d.background) })
	d.wg.Go(func() { d.room.keep(d.background, d.runs) })
	if d.owner != nil {
		d.wg.Go(func() { d.owner.run(d.background) })
	}
	d.serve()
	for _, p := range d.cfg.Peers {
		if p.Address != "" { // one of the trust table has none here: trustChanged may have come first with those it has
			d.links.Dial(job.SiteID(p.Site), p.Address)
		}
	}
	if l := d.options.lead; l != nil {
		d.wg.Go(func() { d.files.KeepCopies(d.background, l.copies.Repair) })
	}
	d.log.Info("site ready", ready...)
	for _, c := range d.runs.Capabilities() {
		d.log.Info("executor capability", "capability", c.Name, "available", c.Available, "detail", c.Detail)
	}
	d.warn()
	if d.options.lead == nil {
		notify(sd.SdNotifyReady, d.log)
	}
	return nil
}

// notify tells systemd how it is. Without systemd there is nothing to notify, and that is no
// error.
func notify(state string, log *slog.Logger) {
	if _, err := sd.SdNotify(false, state); err != nil {
		log.Warn("service manager not notified", "error", err.Error())
	}
}

// restore has the engine take up its facts and returns what must be done then.
func (d *Daemon) restore() []meta.Effect {
	now, sites := d.loop.clock.now(), sitesOf(d.cfg.Peers)
	d.loop.records.Restore(now, sites)
	first := append([]meta.Effect(nil), d.engine.Restore(now, sites)...)
	d.loop.records.Effects(first)
	return first
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
	if d.options.lead == nil {
		notify(sd.SdNotifyStopping, d.log)
	}
	return d.close(2 * time.Second)
}

// close ends the site. Calls have so long to end by themselves.
func (d *Daemon) close(patience time.Duration) error {
	d.health.Shutdown()
	close(d.loop.closing)
	d.closeGossip()
	d.stopServing(patience)
	d.cancel()
	d.runs.Close()
	d.wg.Wait()
	d.loop.close()
	if d.flight != nil {
		d.flight.Close()
	}
	err := errors.Join(d.files.Close(), d.backend.Close(), d.audit.Close())
	d.log.Info("site stopped")
	return err
}

// abandon releases what open had come to.
func (d *Daemon) abandon() {
	d.cancel()
	d.closeGossip()
	if d.links != nil {
		d.links.Close()
	}
	if d.runs != nil {
		d.runs.Close()
	}
	for _, l := range []net.Listener{d.listener, d.socket, d.figuresAt} {
		if l != nil {
			l.Close()
		}
	}
	if d.files != nil {
		d.files.Close() //nolint:errcheck // why it was not opened is told
	}
	if d.backend != nil {
		d.backend.Close() //nolint:errcheck // why it was not opened is told
	}
	if d.audit != nil {
		d.audit.Close() //nolint:errcheck // why the site was not opened is told
	}
	if d.flight != nil {
		d.flight.Close()
	}
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
