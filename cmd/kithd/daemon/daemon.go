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

	"kith/cluster/gossip"
	"kith/cluster/gossip/plain"
	"kith/cmd/kithd/config"
	"kith/cmd/kithd/metrics"
	"kith/internal/job"
	"kith/internal/loglines"
	"kith/meta"
	"kith/meta/flight"
	"kith/meta/peer"
	"kith/meta/trust/audit"
	"kith/sitesched"
	"kith/sitesched/apart"
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
	backend store.Backend
	state   *store.State // the loop's, once it runs
	self    store.Site   // as this life began
	engine  *meta.Engine
	loop    *loop
	runs    *runner.Runner
	tries   attempts      // runs, or driver
	driver  *apart.Driver // nil where the processors are at this machine, or nowhere
	room    *room
	low     *lowRoom
	disk    *runner.Room // of the data folder
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

func (d *Daemon) siteID() job.SiteID { return job.SiteID(d.cfg.Site) }

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
	d.tries.RemoveStrays(attemptsOf(d.state))
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
	d.wg.Go(func() { d.room.keep(d.background, d.runs, d.lowOnRoom, d.loop.tell) })
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
	for _, c := range d.tries.Capabilities() {
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
	if d.driver != nil {
		word := d.driver.FirstWord()
		d.loop.records.Event(now, word)
		effects := d.engine.Step(now, word)
		d.loop.records.Effects(effects)
		first = append(first, effects...)
		d.driver.Begin(first)
	}
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
	if d.driver != nil {
		d.driver.Close()
	}
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
	if d.driver != nil {
		d.driver.Close()
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
