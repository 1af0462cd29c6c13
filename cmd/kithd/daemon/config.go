package daemon

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"

	"kith/internal/job"
	"kith/internal/strict"
	"kith/meta"
	"kith/sitesched"
)

// Config is a site's configuration, a TOML file. Every field has a default
// but site; docs/operations.md shows them all with their meaning.
type Config struct {
	// Site is the name of this site among the others.
	Site string `toml:"site"`
	// Data is the folder that holds everything the site keeps.
	Data      string          `toml:"data"`
	Listen    ListenConfig    `toml:"listen"`
	Scheduler SchedulerConfig `toml:"scheduler"`
	Placement PlacementConfig `toml:"placement"`
	Limits    LimitsConfig    `toml:"limits"`
	Timing    TimingConfig    `toml:"timing"`
	Executor  ExecutorConfig  `toml:"executor"`
	Files     FilesConfig     `toml:"files"`
	Peers     []PeerConfig    `toml:"peers"`
	Gossip    GossipConfig    `toml:"gossip"`
	Log       LogConfig       `toml:"log"`
}

// ListenConfig says where the daemon listens.
type ListenConfig struct {
	// Address is host:port for clients and peers.
	Address string `toml:"address"`
	// Advertise is host:port under which other sites reach this one; empty if
	// they reach Address, or "none" if this site only dials out.
	Advertise string `toml:"advertise"`
	// Insecure allows an address other than loopback although nobody is
	// authenticated in this version.
	Insecure bool `toml:"insecure_no_authentication"`
}

// SchedulerConfig is the local scheduler.
type SchedulerConfig struct {
	// Processors the site offers; 0 means as many as the machine has.
	Processors int32 `toml:"processors"`
	// Memory the site offers; 0 means that it is not limited.
	Memory Bytes `toml:"memory"`
	// Backfill is none, easy or conservative.
	Backfill string `toml:"backfill"`
	// Queues is single, dual-strict or dual-backfill.
	Queues string `toml:"queues"`
	// Guarantee is head or all.
	Guarantee string `toml:"guarantee"`
	// Speed of one processor; 1 is the reference.
	Speed float64 `toml:"speed"`
}

// PlacementConfig says where copies go.
type PlacementConfig struct {
	Scheme string `toml:"scheme"`
	Rank   string `toml:"rank"`
	Copies int32  `toml:"copies"`
	// Weight multiplies the score of sites of another queue policy than this
	// one's, where that helps (spec 004 section 2.3); 0 for none. Adaptive lets the
	// weight of each site follow how late its promises came true.
	Weight       float64  `toml:"weight"`
	Adaptive     bool     `toml:"adaptive"`
	MaxLoadAge   Duration `toml:"max_load_age"`
	QueryTimeout Duration `toml:"query_timeout"`
}

// LimitsConfig bounds what the site takes on.
type LimitsConfig struct {
	Jobs            int      `toml:"jobs"`
	CopiesPerOrigin int      `toml:"copies_per_origin"`
	Copies          int      `toml:"copies"`
	ClosedJobs      int      `toml:"closed_jobs"`
	ClosedFor       Duration `toml:"closed_for"`
}

// TimingConfig says when the protocol gives up waiting.
type TimingConfig struct {
	Claim       Duration `toml:"claim"`
	Backoff     Duration `toml:"backoff"`
	Resend      Duration `toml:"resend"`
	Vanish      Duration `toml:"vanish"`
	AntiEntropy Duration `toml:"anti_entropy"`
	Load        Duration `toml:"load"`
	Retry       Duration `toml:"retry"`
	Heartbeat   Duration `toml:"heartbeat"`
	// Lease is how long another site may run a job under on_site_lost rerun
	// without hearing of this one, LeaseMargin how much longer this one waits,
	// ClockRate by what fraction any clock may go wrong.
	Lease       Duration `toml:"lease"`
	LeaseMargin Duration `toml:"lease_margin"`
	ClockRate   float64  `toml:"clock_rate"`
}

// ExecutorConfig says how jobs are run.
type ExecutorConfig struct {
	// Grace is the time between SIGTERM and SIGKILL.
	Grace Duration `toml:"grace"`
	// Directories are absolute folders in which jobs may ask to run.
	Directories []string `toml:"directories"`
	// MaxOutput bounds stdout and stderr of an attempt, each.
	MaxOutput Bytes `toml:"max_output"`
	// Pin keeps each job on processors of its own where the site offers no more
	// than the machine has. Turn it off where several sites share a machine.
	Pin bool `toml:"pin"`
}

// FilesConfig bounds the files of jobs.
type FilesConfig struct {
	// InputRoots are folders on this machine that jobs submitted here may take
	// inputs from by name.
	InputRoots []string `toml:"input_roots"`
	// Quota is the most that inputs and outputs may take on this disk; 0: no bound of its own.
	Quota Bytes `toml:"quota"`
	// KeepFree is left free on the disk.
	KeepFree Bytes `toml:"keep_free"`
	// MaxFile is the largest single file.
	MaxFile Bytes `toml:"max_file"`
}

// PeerConfig names another site.
type PeerConfig struct {
	Site string `toml:"site"`
	// Address is host:port; empty for a site that only dials out.
	Address string `toml:"address"`
}

// GossipConfig spreads load and membership beyond the connected sites.
type GossipConfig struct {
	// Listen is host:port, TCP and UDP; empty turns gossip off.
	Listen string `toml:"listen"`
	// Join are host:port of sites to begin with.
	Join []string `toml:"join"`
}

// LogConfig says what is logged, on stderr.
type LogConfig struct {
	// Level is debug, info, warn or error.
	Level string `toml:"level"`
	// Format is json or text.
	Format string `toml:"format"`
}

// DefaultConfig returns the configuration that an empty file stands for.
func DefaultConfig() Config {
	d := meta.Default()
	return Config{
		Data:      "/var/lib/kith",
		Listen:    ListenConfig{Address: "127.0.0.1:7410"},
		Scheduler: SchedulerConfig{Backfill: "easy", Queues: "dual-backfill", Guarantee: "all", Speed: 1},
		Placement: PlacementConfig{
			Scheme: string(d.Placement.Scheme), Rank: d.Placement.Rank.String(), Copies: d.Placement.Copies,
			MaxLoadAge: Duration(d.Placement.MaxLoadAge), QueryTimeout: Duration(d.Placement.QueryTimeout),
		},
		Limits: LimitsConfig{
			Jobs: d.Limits.Jobs, CopiesPerOrigin: d.Limits.CopiesPerOrigin, Copies: d.Limits.Copies,
			ClosedJobs: d.Limits.ClosedJobs, ClosedFor: Duration(d.Limits.ClosedFor),
		},
		Timing: TimingConfig{
			Claim: Duration(d.Timing.Claim), Backoff: Duration(d.Timing.Backoff), Resend: Duration(d.Timing.Resend),
			Vanish: Duration(d.Timing.Vanish), AntiEntropy: Duration(d.Timing.AntiEntropy), Load: Duration(d.Timing.Load),
			Retry: Duration(d.Timing.Retry), Heartbeat: Duration(5e9),
			Lease: Duration(d.Timing.Lease), LeaseMargin: Duration(d.Timing.LeaseMargin), ClockRate: d.Timing.ClockRate,
		},
		Executor: ExecutorConfig{Grace: Duration(5e9), MaxOutput: 1 << 30, Pin: true},
		Files:    FilesConfig{KeepFree: 256 << 20, MaxFile: 64 << 30},
		Log:      LogConfig{Level: "info", Format: "json"},
	}
}

// LoadConfig reads and checks a configuration file. Its error names the file,
// and every key that is wrong with value and remedy.
func LoadConfig(path string) (Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("config: %w", err)
	}
	c, err := ParseConfig(string(text))
	if err != nil {
		return Config{}, fmt.Errorf("config %s: %w", path, err)
	}
	return c, nil
}

// ParseConfig reads and checks the text of a configuration.
func ParseConfig(text string) (Config, error) {
	c := DefaultConfig()
	if err := strict.Decode(text, &c, sampleConfig(), "docs/operations.md"); err != nil {
		return Config{}, err
	}
	if err := c.Validate(); err != nil {
		return Config{}, err
	}
	return c, nil
}

// Validate returns all that is wrong, joined, each naming key, value and remedy.
func (c *Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Site == "" {
		bad("site is missing: give this site a name")
	} else if _, err := job.ParseSiteID(c.Site); err != nil {
		bad("site: %w", err)
	}
	if !filepath.IsAbs(c.Data) {
		bad("data %q: give an absolute path", c.Data)
	}
	c.checkListen(bad)
	if _, err := c.schedulerConfig(); err != nil {
		bad("scheduler: %w", err)
	}
	if c.Scheduler.Speed <= 0 {
		bad("scheduler.speed %v: choose a positive number, 1 for the reference", c.Scheduler.Speed)
	}
	if mc, err := c.metaConfig(); err != nil {
		bad("%w", err)
	} else if err := mc.Validate(); err != nil {
		bad("%w", err)
	}
	c.checkPeers(bad)
	c.checkPaths(bad)
	if c.Executor.Grace < 0 || c.Timing.Heartbeat <= 0 {
		bad("executor.grace %v, timing.heartbeat %v: choose positive durations", c.Executor.Grace, c.Timing.Heartbeat)
	}
	if c.Executor.MaxOutput <= 0 || c.Files.MaxFile <= 0 || c.Files.Quota < 0 || c.Files.KeepFree < 0 {
		bad("executor.max_output, files.max_file, files.quota, files.keep_free: choose sizes of at least 0, the first two above it")
	}
	if _, err := c.Log.level(); err != nil {
		bad("%w", err)
	}
	if c.Log.Format != "json" && c.Log.Format != "text" {
		bad("log.format %q: choose json or text", c.Log.Format)
	}
	return errors.Join(errs...)
}

func (c *Config) checkListen(bad func(string, ...any)) {
	host, _, err := net.SplitHostPort(c.Listen.Address)
	if err != nil {
		bad("listen.address %q: give host:port", c.Listen.Address)
		return
	}
	if ip := net.ParseIP(host); !c.Listen.Insecure && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		bad("listen.address %q is not loopback, and nobody who connects is authenticated in this version: "+
			"set listen.insecure_no_authentication = true if only trusted machines can reach it", c.Listen.Address)
	}
	if a := c.Listen.Advertise; a != "" && a != "none" {
		if _, _, err := net.SplitHostPort(a); err != nil {
			bad(`listen.advertise %q: give host:port, or "none"`, a)
		}
	}
}

func (c *Config) checkPeers(bad func(string, ...any)) {
	seen := make(map[string]bool)
	for i, p := range c.Peers {
		if _, err := job.ParseSiteID(p.Site); err != nil {
			bad("peers[%d].site: %w", i, err)
		}
		if p.Site == c.Site || seen[p.Site] {
			bad("peers[%d].site %q: name every other site once", i, p.Site)
		}
		seen[p.Site] = true
		if p.Address != "" {
			if _, _, err := net.SplitHostPort(p.Address); err != nil {
				bad("peers[%d].address %q: give host:port, or nothing for a site that only dials out", i, p.Address)
			}
		}
	}
	if c.Gossip.Listen == "" && len(c.Gossip.Join) > 0 {
		bad("gossip.join without gossip.listen: give an address to listen at")
	}
	for _, a := range append(append([]string(nil), c.Gossip.Join...), c.Gossip.Listen) {
		if _, _, err := net.SplitHostPort(a); a != "" && err != nil {
			bad("gossip address %q: give host:port", a)
		}
	}
}

func (c *Config) checkPaths(bad func(string, ...any)) {
	for key, paths := range map[string][]string{"executor.directories": c.Executor.Directories, "files.input_roots": c.Files.InputRoots} {
		for _, p := range paths {
			if !filepath.IsAbs(p) {
				bad("%s %q: give absolute paths", key, p)
			}
		}
	}
}

func (c *Config) processors() int32 {
	if c.Scheduler.Processors == 0 {
		return int32(min(runtime.NumCPU(), job.MaxProcessors))
	}
	return c.Scheduler.Processors
}

// schedulerConfig is the configuration of the local scheduler.
func (c *Config) schedulerConfig() (sitesched.Config, error) {
	backfill, err1 := sitesched.ParseBackfill(c.Scheduler.Backfill)
	queues, err2 := sitesched.ParseQueues(c.Scheduler.Queues)
	scope, err3 := sitesched.ParseScope(c.Scheduler.Guarantee)
	s := sitesched.Config{
		Processors: c.processors(), MemoryBytes: int64(c.Scheduler.Memory), Backfill: backfill, Queues: queues, Scope: scope,
		// A claim that takes longer is given up, so that none moves a guarantee.
		StartMargin: c.Timing.Claim.D(),
	}
	if err := errors.Join(err1, err2, err3); err != nil {
		return s, err
	}
	return s, s.Validate()
}

// metaConfig is the configuration of the engine, without what only the running
// daemon knows.
func (c *Config) metaConfig() (meta.Config, error) {
	rank, ok := meta.ParseRank(c.Placement.Rank)
	if !ok {
		return meta.Config{}, fmt.Errorf("placement.rank %q: choose work, procs, start or completion", c.Placement.Rank)
	}
	if implied, ok := meta.Scheme(c.Placement.Scheme).ImpliedRank(); ok && c.Placement.Rank == meta.Default().Placement.Rank.String() {
		rank = implied
	}
	t := &c.Timing
	return meta.Config{
		Placement: meta.Placement{
			Scheme: meta.Scheme(c.Placement.Scheme), Rank: rank, Copies: c.Placement.Copies,
			Weight: c.Placement.Weight, Adaptive: c.Placement.Adaptive,
			MaxLoadAge: c.Placement.MaxLoadAge.D(), QueryTimeout: c.Placement.QueryTimeout.D(),
		},
		Limits: meta.Limits{
			Jobs: c.Limits.Jobs, CopiesPerOrigin: c.Limits.CopiesPerOrigin, Copies: c.Limits.Copies,
			ClosedJobs: c.Limits.ClosedJobs, ClosedFor: c.Limits.ClosedFor.D(),
		},
		Timing: meta.Timing{
			Claim: t.Claim.D(), Backoff: t.Backoff.D(), Resend: t.Resend.D(), Vanish: t.Vanish.D(),
			AntiEntropy: t.AntiEntropy.D(), Load: t.Load.D(), Retry: t.Retry.D(), Lease: t.Lease.D(), LeaseMargin: t.LeaseMargin.D(), ClockRate: t.ClockRate,
		},
		AllowDirectory: c.allowDirectory,
	}, nil
}

// allowDirectory reports whether a job may run in an absolute folder.
func (c *Config) allowDirectory(dir string) bool {
	for _, root := range c.Executor.Directories {
		if rel, err := filepath.Rel(root, dir); err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	return false
}

// sampleConfig has all keys that there are: lists that are empty are not written.
func sampleConfig() Config {
	c := DefaultConfig()
	c.Peers = []PeerConfig{{}}
	c.Executor.Directories, c.Files.InputRoots, c.Gossip.Join = []string{""}, []string{""}, []string{""}
	return c
}
