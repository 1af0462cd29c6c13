package apart

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"kith/internal/job"
	"kith/internal/pause"
	"kith/meta"
	"kith/meta/transfer"
	"kith/sitesched/runner"
	"kith/sitesched/work"
	"kith/store/blobstore"
)

// DriverConfig is what a [Driver] is made of.
type DriverConfig struct {
	Site job.SiteID
	// Member is the one that leads, Machine the one with the processors, Lead the number of the lead.
	Member, Machine string
	Lead            uint64
	Version         string
	// Processors is how many the machine must have.
	Processors int32
	// Lost is how long nothing may be heard of the machine until what runs there is lost, and how long what
	// would run again may run there without a word of this driver. Earlier leads, and the machine, may have had more:
	// see [WorkerConfig].
	Lost time.Duration
	// MostMessage bounds a message, in bytes.
	MostMessage int
	// Dial begins a connection to the machine.
	Dial func(ctx context.Context) (net.Conn, error)
	// Confirm asks a majority whether this member still leads.
	Confirm func() error
	// Tell gives the engine an event and never waits.
	Tell func(meta.Event)
	// Now is the time of the engine, SinceBoot what the clock of leases of this machine shows then.
	Now       func() job.Time
	SinceBoot func(job.Time) time.Duration
	// Files and Runs are those of the site: what attempts leave is brought there.
	Files *runner.Files
	Runs  *runner.Runner
	// Peers reads files of other sites.
	Peers runner.Peers
	// Again is told once that the machine was restarted, after which this driver does nothing more: the
	// site must be loaded again from its facts.
	Again func(why string)
	Log   *slog.Logger
}

const (
	// redial is the pause between two sessions.
	redial = 250 * time.Millisecond
	// watchEvery is how often the driver looks how long it has heard nothing.
	watchEvery = 250 * time.Millisecond
	// silentFor is after how long without a word a session is given up.
	silentFor = 5 * time.Second
	// awayAfter is how long there may be no session until nothing is started any more.
	awayAfter = 2 * time.Second
	// renewals is how many times in Lost the leases are prolonged, that of the machine if it is shorter.
	renewals = 6
)

// Driver has the attempts of a site run at another machine, for as long as this member leads. What
// takes an effect may be called by one goroutine after another, in the order of the effects; Extend,
// Kill and Launched by any, at any time.
type Driver struct {
	cfg    DriverConfig
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex
	attempts map[job.AttemptID]*driven
	bringing map[job.AttemptID]bool // told missing, with inputs on their way
	session  *session               // nil while there is none
	boot     string                 // of the machine; empty until it is known
	// away is why the engine was told that the machine is away; empty if it was told that it is not.
	away string
	why  error // why the latest session ended
	// low is what the engine was told of the machine's disk.
	low string
	// lost is after how long without a word attempts are lost: [DriverConfig].Lost, or what the machine has if
	// that is longer.
	lost time.Duration
	// gone is for how long there was no session that was ready, silent how long no beat was heard; both by
	// a clock that stands still while this process does.
	gone, silent time.Duration
}

// driven is an attempt from its launch until it is cleared.
type driven struct {
	launch meta.Launch
	// whileDriven says that it runs under a lease of the driver's own.
	whileDriven bool
	boot        string // of an attempt of an earlier lead
	leased      bool   // likewise
	ready       bool   // what it runs was read
	sent        bool   // the machine may have it
	// lease is until when its origin lets it run, may until when the machine may have heard that it runs:
	// the latest that was sent, and, after another one led, at least the first that this one hears of.
	// Both 0 if it has no lease of another origin, or nothing is known of it.
	lease, may job.Time
	killed     *meta.Kill
	asked      *meta.AskCheckpoint // the first
	told       bool                // how it ended
	lost       bool                // it was given up
	// outcome is how it ended, while its files are brought; taking ends that.
	outcome *job.Outcome
	taking  context.CancelFunc
	set     transfer.Set
	hold    *blobstore.Hold
}

// NewDriver makes a driver; it does nothing before Begin.
func NewDriver(cfg DriverConfig) *Driver {
	d := &Driver{cfg: cfg, lost: cfg.Lost, attempts: make(map[job.AttemptID]*driven), bringing: make(map[job.AttemptID]bool)}
	d.away = d.FirstWord().Away
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d
}

// FirstWord is what the engine must be told before its first pass, and before all that the driver tells.
func (d *Driver) FirstWord() meta.MachineSeen {
	return meta.MachineSeen{Away: fmt.Sprintf("machine %s, which has them, has not answered yet", d.cfg.Machine)}
}

// Begin begins to drive. first are the effects of restoring the engine: the attempts that it asks about
// are known before a word is said to the machine, which stops all others.
func (d *Driver) Begin(first []meta.Effect) {
	for _, f := range first {
		if f, is := f.(meta.Adopt); is {
			d.Adopt(f)
		}
	}
	d.wg.Go(d.run)
	d.wg.Go(d.watch)
}

// Close ends the driver; what runs runs on.
func (d *Driver) Close() {
	d.cancel()
	d.wg.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.attempts {
		if e.hold != nil {
			e.hold.Close()
		}
	}
}

// run holds one session after another.
func (d *Driver) run() {
	for d.ctx.Err() == nil {
		err := d.drive()
		d.mu.Lock()
		if d.session != nil {
			d.session.end(errNoSession)
			d.session = nil
		}
		again := d.why == nil || d.why.Error() != err.Error()
		d.why = err
		d.mu.Unlock()
		if d.ctx.Err() == nil && again {
			d.cfg.Log.Warn("the machine with the processors cannot be driven; tried again", "machine", d.cfg.Machine, "error", err.Error())
		}
		if !pause.For(d.ctx, redial) {
			return
		}
	}
}

// BootID returns the boot of the machine, empty while it is not known.
func (d *Driver) BootID() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.boot
}

// Capabilities implements what a runner has: the machine logs its own.
func (d *Driver) Capabilities() []work.Capability { return nil }

// Machine returns its name and why it is away, empty if it is not.
func (d *Driver) Machine() (name, away string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.cfg.Machine, d.away
}
