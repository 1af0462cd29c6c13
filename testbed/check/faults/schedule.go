package faults

import (
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/bags"
	"kith/sitesched"
	"kith/testbed/sim"
)

// Schedule is a run of a federation: who submits what, what users ask for and
// what goes wrong. All times count from the start of the run.
type Schedule struct {
	// Seed drives what the schedule leaves open: how long messages and commits
	// take, and which messages noise hits.
	Seed  uint64
	Sites []Site
	// Scheme and Rank are those of every site's placement.
	Scheme meta.Scheme
	Rank   meta.Rank
	// A message takes Latency and up to Jitter more, a commit Sync and up to
	// SyncJitter more.
	Latency, Jitter  time.Duration
	Sync, SyncJitter time.Duration

	Jobs    []Job
	Bags    []Bag
	Streams []Stream
	Acts    []Act
	Faults  []Fault
	// End is when all faults are over at the latest, and held jobs are released.
	End time.Duration
	// Turn, Yield and Share are the configuration of all sites that run tasks; those of
	// [meta.Default] where there are no bags, or Turn is 0.
	Turn  time.Duration
	Yield bags.Yield
	Share float64
	// Watch is how much longer streams go on. Above 0, the run is a wide one: L4 is
	// watched from beginning to end, and sites tell their loads as often as daemons do.
	Watch time.Duration
}

// patience is that of all sites: half a minute in every fourth schedule, for ever in
// the others.
func (s *Schedule) patience() time.Duration {
	if s.Seed%4 == 3 {
		return 30 * time.Second
	}
	return 0
}

// forecasts reports whether the sites make forecasts: they ask each other, and keep what was said.
func (s *Schedule) forecasts() bool { return s.Seed%10 == 7 }

// forecastSteps is what a forecast may take. With what it may take in production, 85 of 100
// instructions of a search were spent in the scenarios of a tenth of its schedules.
const forecastSteps = 1 << 15

// files reports whether a wide schedule has files that take long at hosts.
func (s *Schedule) files() bool { return s.Watch > 0 && s.Seed%4 == 2 }

// stagingBound is how long processors are held for input.
func (s *Schedule) stagingBound() time.Duration {
	if s.files() {
		return 20 * time.Second
	}
	return 0
}

// Site is a site of the federation.
type Site struct {
	Name       job.SiteID
	Processors int32
	Backfill   sitesched.Backfill
	Queues     sitesched.Queues
	Scope      sitesched.Scope
	// Bound is for how long guests alone may keep a job of the site waiting before they have to leave;
	// 0 for as long as they run. Under DualPreempt it says nothing.
	Bound time.Duration
	// Rank is which level of a hierarchy it is, 0 for none; a job of one may use a level for Use and
	// stay for Stay.
	Rank      int
	Use, Stay time.Duration
	// Alpha is the part of Use that an estimator may take, 0 where none runs.
	Alpha float64
	// Share is how often the site compares where its jobs of a hierarchy wait, and moves them; 0 where they
	// have copies instead.
	Share time.Duration
	// Drift is how much faster its clock runs than others, in millionths.
	Drift int64
	// Members is how many machines keep its facts, 0 for one with a disk of its own. The wall
	// clock of each is Clocks ahead of that of the one before.
	Members int
	Clocks  time.Duration
	// Settings are the rest; their Processors say nothing here.
	Settings
}

// Job is a submission. A client that gets no answer submits again.
type Job struct {
	// Number names it within the schedule; at least 1.
	Number        int
	At            time.Duration
	From          job.SiteID
	Processors    int32
	Copies        int32
	Run, Walltime time.Duration
	OnSiteLost    job.OnSiteLost
	// Staging is how long its input takes to another site than its origin.
	Staging time.Duration
	// Output is how long what it leaves takes to its origin from another site.
	Output time.Duration
	// Collecting is how long what it leaves takes to be collected at its host.
	Collecting time.Duration
	// Pieces is, above 0, in how many attempts it does its work, each of which runs for Run
	// and saves what was done.
	Pieces int
	// Every is, above 0, how often what it has saved is copied home while it runs, in whole seconds; it
	// has one piece then.
	Every time.Duration
	// Level is, above 0, at which level it begins: nobody knows how long it takes.
	Level int
	// Estimators are those that it brings, of its attempts one after the other; the last one is that of
	// all later ones, too.
	Estimators []sim.Estimator
	// Memory is what it takes, in bytes. Fills says that it fills the disk of its host.
	Memory int64
	Fills  bool
	Waits
}

// Act is what a user wants of a job, or an operator of a site.
type Act struct {
	At   time.Duration
	Kind ActKind
	Job  int        // of cancel, hold, release and checkpoint
	Site job.SiteID // of drain and resume
	// Bag is that of acts about bags, Tasks those that it is about; empty for all.
	Bag   int
	Tasks job.TaskSet
	// Budget is the new one of a bag, in processor-seconds, 0 for none.
	Budget uint32
	// Stance is the new one of a bag, see stances. Stale has its owner replace other policies
	// than it has.
	Stance int
	Stale  bool
}

// ActKind is what a user or operator wants.
type ActKind string

// The acts.
const (
	Cancel  ActKind = "cancel"
	Hold    ActKind = "hold"
	Release ActKind = "release"
	Drain   ActKind = "drain"
	Resume  ActKind = "resume"
	// Forget has all other sites give up a site.
	Forget ActKind = "forget"
)

// Fault is something that goes wrong for a while.
type Fault struct {
	Kind Kind
	// At is when it begins, unless Before is set.
	At time.Duration
	// Before makes it begin right before a site carries out an effect.
	Before *Point
	// For is how long it lasts; no longer than the schedule's End.
	For time.Duration
	// Site is where it happens; of a fault between two sites Other is the other
	// one. Both are empty where all sites are hit.
	Site, Other job.SiteID
	// By is the measure of a fault that has one, see [Kind].
	By time.Duration
	// Member is which of a site's members it hits, from 1 on; 0 for the one that leads.
	Member int
	// To is the configuration after it, of [Change] and [Reload].
	To Settings
}

// Point is a boundary between two effects of a site.
type Point struct {
	Site job.SiteID
	// Effect is what comes next: "any", "launch", "kill", "reply", … or the
	// name of a message to be sent, such as "verdict".
	Effect string
	// Nth counts such effects at the site, from 1.
	Nth int
}

// Kind is what goes wrong.
type Kind string

// The faults.
const (
	// Crash kills the daemon. What was not synced is gone; a commit on its way
	// may or may not have reached the disk. Jobs go on. It comes back on the
	// disk as it was.
	Crash Kind = "crash"
	// CrashAll does so with all sites at once.
	CrashAll Kind = "crash-all"
	// Reboot kills the machine with all that runs on it.
	Reboot Kind = "reboot"
	// RebootAll does so with all sites at once.
	RebootAll Kind = "reboot-all"
	// Wipe kills the machine; it comes back with an empty disk.
	Wipe Kind = "wipe"
	// LoseFolder makes the daemon come back with an empty data folder, while the
	// jobs of the machine go on.
	LoseFolder Kind = "lose-folder"
	// Freeze stops the daemon; then it gets all that it missed at once. Jobs go on.
	Freeze Kind = "freeze"
	// Suspend stops the whole machine with the jobs on it.
	Suspend Kind = "suspend"
	// Cut lets nothing through between two sites.
	Cut Kind = "cut"
	// OneWay lets nothing through from Site to Other.
	OneWay Kind = "one-way"
	// Isolate lets nothing through between a site and all others.
	Isolate Kind = "isolate"
	// Flap cuts and heals two sites in turn, By apart.
	Flap Kind = "flap"
	// Delay makes messages from Site to Other take By longer, up to hours.
	Delay Kind = "delay"
	// Noise loses, doubles and reorders messages of all sites at random; By is
	// the share in nanoseconds of a second: 50ms is 5 of 100.
	Noise Kind = "noise"
	// Ghosts makes messages from Site to Other arrive again, up to By later,
	// whatever became of their stream.
	Ghosts Kind = "ghosts"
	// SlowDisk makes commits take By longer.
	SlowDisk Kind = "slow-disk"
	// FullDisk makes commits fail.
	FullDisk Kind = "full-disk"
	// Lie makes a site send nonsense about its own and others' jobs, a message
	// every By.
	Lie Kind = "lie"
	// Change has a daemon start again with another configuration, which stays.
	Change Kind = "change"
	// Reload has a daemon take up another configuration while it goes on.
	Reload Kind = "reload"
	// Clock has a daemon start again, with the machine's wall clock set forward by
	// By; ClockBack, back.
	Clock     Kind = "clock"
	ClockBack Kind = "clock-back"
	// NoStart makes all that a site launches fail for reasons of its own.
	NoStart Kind = "no-start"
	// NoShims makes the shims of a site's jobs die, and of those that it starts.
	NoShims Kind = "no-shims"
	// LowDisk leaves less room on a site's disk than is to stay free. What is launched there
	// waits for By and has not started then; with no By it starts.
	LowDisk Kind = "low-disk"
	// HungDisk makes no commit come to its end, while streams stay up.
	HungDisk Kind = "hung-disk"
	// Leave takes a site away for good.
	Leave Kind = "leave"
	// Hostile makes a site claim whatever it can, flood others and call itself
	// idle, a stroke every By.
	Hostile Kind = "hostile"
	// Revoke has the operator of Site end the trust in Other, and admit it again.
	Revoke Kind = "revoke"
	// Drift is not a fault of its own in a schedule, see [Site]: it is counted.
	Drift Kind = "drift"
)

// Kinds lists the faults that any schedule is made of, see [WideKinds].
func Kinds() []Kind {
	return []Kind{
		Crash, CrashAll, Reboot, RebootAll, Wipe, LoseFolder, Freeze, Suspend, Cut, OneWay, Isolate, Flap, Delay, Noise, Ghosts, SlowDisk, FullDisk, Lie,
	}
}

// WideKinds lists the faults that only a wide schedule is made of.
func WideKinds() []Kind {
	return []Kind{Change, Reload, Clock, ClockBack, NoStart, NoShims, LowDisk, HungDisk, Leave, Hostile, Revoke}
}

// places returns how many sites a fault of a kind names.
func (k Kind) places() int {
	switch k {
	case CrashAll, RebootAll, Noise:
		return 0
	case Cut, OneWay, Flap, Delay, Ghosts, Revoke:
		return 2
	}
	return 1
}

// measured reports whether By means something.
func (k Kind) measured() bool {
	switch k {
	case Flap, Delay, Noise, Ghosts, SlowDisk, LowDisk, Lie, Clock, ClockBack, Hostile, Rolling:
		return true
	}
	return false
}

// site returns the site of a name, nil if there is none.
func (s *Schedule) site(name job.SiteID) *Site {
	for i := range s.Sites {
		if s.Sites[i].Name == name {
			return &s.Sites[i]
		}
	}
	return nil
}

// job returns the job of a number, nil if there is none.
func (s *Schedule) job(number int) *Job {
	for i := range s.Jobs {
		if s.Jobs[i].Number == number {
			return &s.Jobs[i]
		}
	}
	return nil
}
