package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"kith/cmd/kithd/config"
	"kith/sitesched"
	"kith/testbed/check/wan"
	"kith/testbed/local"
)

// bed is the sites and the network between them.
type bed struct {
	opt   *Options
	fed   *local.Federation
	net   *wan.Proxy
	sites []*site
	logs  *logs
	locks locks
	// noDisk says why no site has a disk of its own, noUpgrade why none begins with the
	// earlier version that was named.
	noDisk, noUpgrade string
	// shimBeside is the kithd that lies beside the program of the shims, both copies of
	// this run's own; empty where the sites run in the program that started them.
	shimBeside string
	// stopping tells those who watch over the sites that they end for good.
	stopping chan struct{}
	// stopped looks at a site once all have ended, while its disk is there; may be nil.
	stopped func(*site)
	watch   sync.WaitGroup
}

// site is a site of the bed.
type site struct {
	*local.Node
	index      int
	processors int32
	disk       *disk    // nil if its data lies on the disk of all
	hanging    *hanging // that its data lies on; nil if none does
	// acked is told when the site has acknowledged a job.
	acked chan struct{}
	// children are shims that its daemons were seen with.
	mu       sync.Mutex
	children map[process]bool
}

// kinds of sites, in turn.
var siteKinds = []func(*config.Config){
	func(c *config.Config) { c.Scheduler.Processors = 8 },
	func(c *config.Config) { c.Scheduler.Processors, c.Scheduler.Backfill = 6, sitesched.Conservative },
	func(c *config.Config) {
		c.Scheduler.Processors, c.Scheduler.Queues, c.Scheduler.Scope = 8, sitesched.Single, sitesched.ScopeHead
	},
	func(c *config.Config) {
		c.Scheduler.Processors, c.Scheduler.Backfill, c.Scheduler.Queues = 4, sitesched.NoBackfill, sitesched.DualStrict
	},
}

// siteNames are the names of the sites in their order.
func siteNames(n int) []string {
	greek := []string{
		"alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu", "xi", "omicron", "pi",
	}
	return greek[:n]
}

// tune gives a site the timings of this test.
func tune(c *config.Config) {
	t := &c.Timing
	t.Claim, t.Backoff, t.Resend, t.Retry = 2*time.Second, 3*time.Second, 2*time.Second, time.Second
	t.Load, t.Heartbeat, t.AntiEntropy, t.Vanish = 500*time.Millisecond, heartbeat, antiEntropy, vanish
	t.Lease, t.LeaseMargin = lease, leaseMargin
	c.Executor.Grace = grace
	c.Placement.Copies = 3
	c.Files.KeepFreeBytes = 4 << 20
}

// openBed starts the network and the sites, which tune configures. One of them
// gets a small disk of its own if that is possible; none if disk is negative.
func openBed(ctx context.Context, opt *Options, tune func(*config.Config), disk int) (*bed, error) {
	b := &bed{opt: opt, logs: newLogs(), stopping: make(chan struct{})}
	names := siteNames(opt.Sites)
	if opt.UpgradeFrom != "" && !opt.Insecure {
		if err := local.MakesKeys(ctx, opt.UpgradeFrom); err != nil {
			b.noUpgrade = fmt.Sprintf("%s makes no keys: %v; --insecure-loopback upgrades from it without", opt.UpgradeFrom, err)
			opt.note("no upgrade: %s", b.noUpgrade)
			opt.UpgradeFrom = ""
		}
	}
	cfg, err := b.configure(names, tune)
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	if disk >= 0 {
		if err := b.giveDisk(disk); err != nil {
			b.noDisk = err.Error()
		}
	}
	if opt.wants(HungDisk) {
		i := hangingSite(opt.Sites)
		if b.sites[i].hanging, err = mountHanging(filepath.Join(opt.Dir, siteNames(opt.Sites)[i]), 1<<30); err != nil {
			return nil, errors.Join(fmt.Errorf("fault %s: %w; leave it out, or run this as root", HungDisk, err), b.close())
		}
	}
	if cfg.Program, err = b.ownPrograms(ctx); err != nil {
		return nil, errors.Join(err, b.close())
	}
	b.shimBeside = cfg.Program
	if b.fed, err = local.Start(ctx, cfg); err != nil {
		return nil, errors.Join(err, b.close())
	}
	for i, n := range b.fed.Nodes() {
		b.sites[i].Node = n
	}
	b.watch.Go(b.watchOver)
	return b, nil
}

// configure makes the network and says what sites there are. A link is named
// by who dials; every second pair of sites dials both ways, if they have no keys. Sites
// with keys dial who invited them.
func (b *bed) configure(names []string, tune func(*config.Config)) (local.Config, error) {
	addresses := make([]string, len(names))
	for i := range names {
		var err error
		if addresses[i], err = local.LastingAddress(); err != nil {
			return local.Config{}, err
		}
	}
	var links []wan.LinkConfig
	for i := range names {
		for k := range names {
			if k < i || (k > i && (i+k)%2 == 0) {
				links = append(links, wan.LinkConfig{
					From: names[i], To: names[k], Listen: "127.0.0.1:0", Target: addresses[k], Path: wan.Path{Delay: time.Millisecond},
				})
			}
		}
	}
	var err error
	if b.net, err = wan.Start(wan.Config{Seed: b.opt.Seed, Links: links}, nil); err != nil {
		return local.Config{}, err
	}
	cfg := local.Config{Dir: b.opt.Dir, Log: b.logs.line, Insecure: b.opt.Insecure, Via: b.via}
	for i, name := range names {
		b.sites = append(b.sites, &site{index: i, acked: make(chan struct{}, 1), children: make(map[process]bool)})
		cfg.Sites = append(cfg.Sites, local.Site{Name: name, Program: b.opt.UpgradeFrom, Tune: func(c *config.Config) {
			siteKinds[i%len(siteKinds)](c)
			tune(c)
			if b.opt.Demotions {
				tuneCounting(i, c)
			}
			c.Listen.Address = addresses[i]
			if !b.opt.Insecure {
				c.Listen.Advertise = "none" // others dial the links
			}
			for p := range c.Peers {
				c.Peers[p].Address = b.via(name, c.Peers[p].Site)
			}
			b.sites[i].processors = c.Scheduler.Processors
		}})
	}
	return cfg, nil
}

// via returns where one site dials another, "" if it does not.
func (b *bed) via(from, to string) string {
	at, err := b.net.Addr(from, to)
	if err != nil {
		return ""
	}
	return at.String()
}

// giveDisk puts a site's data on a small disk of its own, before it starts.
func (b *bed) giveDisk(i int) error {
	d, err := mountDisk(filepath.Join(b.opt.Dir, siteNames(b.opt.Sites)[i]), diskBytes(b.opt.Duration))
	if err != nil {
		return err
	}
	b.sites[i].disk = d
	return nil
}

// watchOver looks for sites that end by themselves, which is a failure, and
// starts them again.
func (b *bed) watchOver() {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-b.stopping:
			return
		}
		for _, s := range b.sites {
			s.note(childrenOf(s.PID()))
			if s.Ended() {
				unlock := b.locks.take([]string{daemonLock(s.index)})
				if s.Ended() {
					b.logs.crashed(s.Name)
					s.Kill()
					b.up(context.Background(), s)
				}
				unlock()
			}
		}
	}
}

// note keeps in mind which processes a site's daemon had.
func (s *site) note(children []process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range children {
		s.children[p] = true
	}
}

// up starts a site's daemon, again if it does not come up at once: its
// disk may be full for as long as a fault lasts, its port may be taken for a
// moment.
func (b *bed) up(ctx context.Context, s *site) {
	var err error
	for stop := time.Now().Add(2 * longest); time.Now().Before(stop); {
		if err = s.Start(ctx); err == nil || ctx.Err() != nil {
			return
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			return
		}
	}
	b.logs.problem("site %s does not start again: %v", s.Name, err)
}

// close ends everything that was started, and waits for it.
func (b *bed) close() error {
	close(b.stopping)
	b.watch.Wait()
	var errs []error
	if b.fed != nil {
		errs = append(errs, b.fed.Close())
		for _, s := range b.sites {
			if b.stopped != nil {
				b.stopped(s)
			}
		}
	}
	if b.net != nil {
		errs = append(errs, b.net.Close())
	}
	for _, s := range b.sites {
		if s.disk != nil {
			errs = append(errs, s.disk.unmount())
		}
		if s.hanging != nil {
			errs = append(errs, s.hanging.unmount())
		}
	}
	return errors.Join(errs...)
}

// sweep ends what jobs and shims are left of a run, and returns how many
// there were once some time had passed for them to end by themselves.
func (b *bed) sweep(patience time.Duration) int {
	left := b.remains()
	for stop := time.Now().Add(patience); len(left) > 0 && time.Now().Before(stop); left = b.remains() {
		time.Sleep(50 * time.Millisecond)
	}
	for _, p := range left {
		p.signal(sigkill)
	}
	return len(left)
}

// remains are the processes of the run that live although the sites have ended.
func (b *bed) remains() []process {
	left := processesUnder(b.opt.Dir)
	for _, s := range b.sites {
		s.mu.Lock()
		for p := range s.children {
			if p.lives() && !slices.Contains(left, p) {
				left = append(left, p)
			}
		}
		s.mu.Unlock()
	}
	return left
}

// locks keep faults apart that would meddle with each other.
type locks struct {
	mu   sync.Mutex
	held map[string]*sync.Mutex
}

// What a fault can have for itself at a site; see [Fault.needs].
func daemonLock(i int) string { return fmt.Sprintf("daemon %02d", i) }
func frozenLock(i int) string { return fmt.Sprintf("frozen daemon %02d", i) }
func shimLock(i int) string   { return fmt.Sprintf("frozen shim %02d", i) }
func guardLock(i int) string  { return fmt.Sprintf("guard %02d", i) }
func drainLock(i int) string  { return fmt.Sprintf("drain %02d", i) }
func diskLock(i int) string   { return fmt.Sprintf("disk %02d", i) }
func filesLock(i int) string  { return fmt.Sprintf("files %02d", i) }

func keysLock(i int, k Kind) string { return fmt.Sprintf("%s %02d", k, i) }

func linkLock(i, k int) string { return fmt.Sprintf("link %02d %02d", min(i, k), max(i, k)) }

// take locks all names, in order, and returns what unlocks them.
func (l *locks) take(names []string) (unlock func()) {
	slices.Sort(names)
	names = slices.Compact(names)
	var taken []*sync.Mutex
	for _, name := range names {
		l.mu.Lock()
		if l.held == nil {
			l.held = make(map[string]*sync.Mutex)
		}
		m := l.held[name]
		if m == nil {
			m = &sync.Mutex{}
			l.held[name] = m
		}
		l.mu.Unlock()
		m.Lock()
		taken = append(taken, m)
	}
	return func() {
		for _, m := range taken {
			m.Unlock()
		}
	}
}

// folder makes a folder of the run.
func (o *Options) folder(name string) (string, error) {
	path := filepath.Join(o.Dir, name)
	return path, os.MkdirAll(path, 0o700)
}
