package config

import (
	"log/slog"
	"path/filepath"
	"runtime"
	"time"

	"kith/internal/job"
	"kith/internal/pathkind"
	"kith/meta"
	"kith/sitesched"
)

// Manual is the page that explains the keys.
const Manual = "docs/operations.md"

// Config is the configuration of a site. [Config.Knobs] says what each field means.
type Config struct {
	Site      string
	Data      string
	Listen    Listen
	Members   Members
	Scheduler Scheduler
	Placement meta.Placement
	Limits    meta.Limits
	Bags      meta.Bags
	NoHarm    NoHarm
	// Checkpoint bounds what jobs save.
	Checkpoint Checkpoint
	Level      meta.LevelPolicy
	Forecast   Forecast
	Timing     Timing
	Executor   Executor
	Owner      Owner
	Files      Files
	Flight     Flight
	Rates      Rates
	Peers      []Peer
	Log        Log
}

// Forecast is how starts are forecast, and how much of the past is kept for it.
type Forecast struct {
	meta.Forecasts
	// History is how many attempts that have ended are remembered.
	History int
}

// Listen says where the daemon listens.
type Listen struct {
	Address, Advertise string
	// Socket is the path of the unix socket; empty for kith.sock in the data folder.
	Socket string
	// AllowOwnUID lets the account that kithd, and so its jobs, run under call at the socket.
	AllowOwnUID bool
	// Metrics is where figures are served over HTTP, on loopback only; empty for nowhere.
	Metrics string
	// InsecureLoopback serves without keys, on loopback only.
	InsecureLoopback bool
}

// Members says which of the machines this is that keep the site's facts together.
type Members struct {
	// Self is the name of this one; empty for a site of one machine.
	Self string
	// Cluster is the id of the members, in 32 hexadecimal digits.
	Cluster string
	// Address is where the others dial this one; empty for the advertised address.
	Address string
	// Executor is the name of the machine that has the processors of the site; empty if it has none.
	Executor string
	// ExecutorAddress is where that is dialled, if it is no member.
	ExecutorAddress string
	// ExecutorLost is how long nothing may be heard of that machine until what runs there is lost.
	ExecutorLost time.Duration
}

// MembersFolder is the folder in the data folder that holds a member's part of the facts.
const MembersFolder = "members"

// MemberAddress returns where other members dial this one.
func (c *Config) MemberAddress() string {
	if c.Members.Address != "" {
		return c.Members.Address
	}
	if a := c.Listen.Advertise; a != "" && a != "none" {
		return a
	}
	return c.Listen.Address
}

// SocketPath returns where the unix socket is; empty for none. A site without keys has
// one only where it is told to.
func (c *Config) SocketPath() string {
	if c.Listen.Socket == "" && !c.Listen.InsecureLoopback {
		return filepath.Join(c.Data, "kith.sock")
	}
	return c.Listen.Socket
}

// KeysPath returns the folder of the site's keys.
func (c *Config) KeysPath() string { return filepath.Join(c.Data, "keys") }

// Scheduler is the local scheduler. Processors 0 means as many as the machine has.
type Scheduler struct {
	sitesched.Config
	// Speed of one processor; 1 is the reference.
	Speed float64
}

// Checkpoint bounds what jobs save to go on elsewhere.
type Checkpoint struct {
	// MaxGrace is the most that a job has to save what it has done when it is asked to.
	MaxGrace time.Duration
	// MaxBytes bounds the files of a checkpoint together.
	MaxBytes int64
}

// NoHarm is what guests may cost home jobs.
type NoHarm struct{ meta.NoHarm }

// Timing says when the protocol gives up waiting.
type Timing struct {
	meta.Timing
	// Staging is how long processors are held while inputs are brought.
	Staging time.Duration
	// Heartbeat is how often something is sent on an idle stream.
	Heartbeat time.Duration
}

// Executor says how jobs are run.
type Executor struct {
	// Grace is the time between SIGTERM and SIGKILL.
	Grace time.Duration
	// Directories are absolute folders in which jobs may ask to run.
	Directories []string
	// MaxOutputBytes bounds stdout and stderr of an attempt, each.
	MaxOutputBytes int64
	// Pin keeps each job on processors of its own.
	Pin bool
}

// Owner says whether the machine has an owner who comes before all jobs.
type Owner struct {
	Sharing bool
	// Interval is how long a span of measurement is at least.
	Interval time.Duration
}

// Files bounds the files of jobs.
type Files struct {
	InputRoots []string
	// QuotaBytes is the most that inputs and outputs may take; 0 for no bound.
	QuotaBytes    int64
	KeepFreeBytes int64
	MaxFileBytes  int64
	// ReserveBytes are kept to be given up when the disk is full; 0 for none.
	ReserveBytes int64
}

// Flight bounds the recordings of what the engines are fed.
type Flight struct {
	Enabled bool
	// SizeBytes is what all files take together at most, Files how many there are.
	SizeBytes int64
	Files     int
}

// Rates are how many messages of each class are taken of each peer in a second, in the
// long run; twice as many may come together, but a twentieth of Protocol and Handshakes, and 8 streams. User is
// how many requests of a user are, and Handshakes how many of TLS of an address. Frames are
// those of HTTP/2, of an address or of a peer.
type Rates struct{ Queries, Protocol, Comparisons, Loads, Files, Streams, User, Handshakes, Frames int }

// Peer names another site. Address is empty for one that only dials out.
type Peer struct{ Site, Address string }

// Log says what is logged, on stderr.
type Log struct{ Level, Format string }

// SlogLevel returns the level in the library's terms; info for a word that is none.
func (l Log) SlogLevel() slog.Level {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.Level)); err != nil {
		return slog.LevelInfo
	}
	return level
}

// Default returns the configuration that an empty file stands for.
func Default() Config {
	var c Config
	for _, k := range c.Knobs() {
		k.put(k.standard)
	}
	return c
}

// Processors returns how many processors the site offers, none if it is several machines and none of
// them runs jobs.
func (c *Config) Processors() int32 {
	if c.Members.Self != "" && c.Members.Executor == "" {
		return 0
	}
	if c.Scheduler.Processors == 0 {
		return int32(min(runtime.NumCPU(), job.MaxProcessors))
	}
	return c.Scheduler.Processors
}

// MemoryBytes returns how much memory the site offers to all jobs together; 0 if
// it is not configured and the machine does not say, or the site is several machines, of which another
// one may run the jobs.
func (c *Config) MemoryBytes() int64 {
	if c.Members.Self != "" {
		return c.Scheduler.MemoryBytes
	}
	if c.Scheduler.MemoryBytes == 0 {
		return min(machineMemory(), sitesched.MaxMemoryBytes)
	}
	return c.Scheduler.MemoryBytes
}

// SchedulerConfig is the configuration of the local scheduler.
func (c *Config) SchedulerConfig() sitesched.Config {
	s := c.Scheduler.Config
	s.Processors, s.MemoryBytes = c.Processors(), c.MemoryBytes()
	// A claim that takes longer is given up, so that none moves a guarantee.
	s.StartMargin = c.Timing.Claim
	return s
}

// MetaConfig is the configuration of the engine, without what only the running
// daemon knows.
func (c *Config) MetaConfig() meta.Config {
	return meta.Config{Placement: c.Placement, Limits: c.Limits, Timing: c.Timing.Timing, Bags: c.Bags, NoHarm: c.noHarm(), Level: c.Level, MaxGrace: c.Checkpoint.MaxGrace, Forecasts: c.Forecast.Forecasts, AllowDirectory: pathkind.Within(c.Executor.Directories)}
}

// noHarm is c.NoHarm as the engine has it: a daemon always measures.
func (c *Config) noHarm() meta.NoHarm {
	n := c.NoHarm.NoHarm
	n.Measure = true
	return n
}
