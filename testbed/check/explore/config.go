package explore

import (
	"errors"
	"fmt"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/bags"
	"kith/sitesched"
)

// Config is a small world and how much may go wrong in it.
type Config struct {
	// Sites is how many there are, 2 to 4. The first is the origin of the first
	// job, the second of the second.
	Sites int
	// Jobs is how many are submitted, 1 or 2; Copies is K of each.
	Jobs, Copies int
	// Tasks is how many the bag has that is submitted at the first site, 1 to 4, 0 for no
	// bag. There are no jobs beside it, but for that of Busy. The other sites have two
	// processors, so that they are given two tasks at once.
	Tasks int
	// Replicas is how many sites may have a task of the bag beside the first one. Without a
	// deadline everything begins right before time brings the first of them.
	Replicas int
	// Deadline is what the policies of the bag state, in seconds; 0 for none. Everything
	// begins right before time brings the first one that is missed.
	Deadline int
	// Policies has the bag state where, in which order and how many at once: one task at a
	// host and, where there are three sites, none at its own. See [Config.policies].
	Policies bool
	// Revokes is how many other sites the operator of the first one may revoke, at any moment.
	Revokes int
	// Crashes and Reboots are how many daemons and machines may die, at any
	// boundary between two effects.
	Crashes, Reboots int
	// Losses and Duplicates are how many messages are lost and arrive twice.
	Losses, Duplicates int
	// Cuts is how many streams may break with both daemons alive.
	Cuts int
	// Timeouts is how many may fire while something else could still happen, all
	// sites together.
	Timeouts int
	// Waits is how many fire where nothing else can happen, with all other orders
	// and faults looked at from there on. Beyond that such a state is only let run
	// to its end without faults.
	Waits int
	// Cancels is how many jobs a user may cancel, at any moment.
	Cancels int
	// Fails is how many starts fail for a reason of the host's, at any time before the
	// process is there.
	Fails int
	// Demotions is how many attempts of the jobs save what they have done and end to go on in
	// another one, Asks how often users have jobs do so, at any moment while they run.
	Demotions, Asks int
	// Busy keeps the first site busy with a job of its own in the beginning, so
	// that the others have a chance to be first.
	Busy bool
	// Race submits jobs that may run again at once when a site vanishes.
	Race bool
	// Staging lets time pass between begin and start at other sites than the
	// origin, as where input has to be brought first.
	Staging bool
	// Output has jobs leave output that must be fetched from their hosts.
	Output bool
	// Collecting lets time pass between the end of a process and its result, as where its
	// output has to be collected first.
	Collecting bool
	// Shrink gives every site two processors until its daemon has died, and one from then
	// on.
	Shrink bool
	// Full looks at all orders of steps that commute as well.
	Full bool
	// MaxStates ends the search; 0 means [DefaultMaxStates].
	MaxStates int
	// Progress is called now and then; nil for never.
	Progress func(states, depth int)

	compiler bags.Policies // of all sites; nil where the bag states no policy
}

// DefaultMaxStates needs some 10 GB of memory.
const DefaultMaxStates = 60_000_000

// Default is a world of three sites with one job, where one daemon dies, one
// message is lost and one arrives twice.
func Default() Config {
	return Config{Sites: 3, Jobs: 1, Copies: 3, Crashes: 1, Losses: 1, Duplicates: 1, Busy: true}
}

// Validate returns all that is wrong, joined, each naming field and value.
func (c *Config) Validate() error {
	var errs []error
	least, most := 1, 2
	if c.Tasks > 0 {
		least, most = 0, 0
	}
	if c.saves() && (c.Tasks > 0 || c.Race) {
		errs = append(errs, errors.New("demotions and asks are of jobs that do not race: leave out the bag and race"))
	}
	if c.Tasks == 0 && (c.Replicas > 0 || c.Deadline > 0 || c.Policies || c.Revokes > 0) {
		errs = append(errs, errors.New("replicas, deadline, policies and revokes are of a bag: give it tasks"))
	}
	for _, v := range []struct {
		name               string
		value, least, most int
	}{
		{"sites", c.Sites, 2, maxSites}, {"tasks", c.Tasks, 0, maxTasks}, {"jobs", c.Jobs, least, most}, {"copies", c.Copies, 1, maxSites},
		{"replicas", c.Replicas, 0, maxSites - 1}, {"deadline", c.Deadline, 0, 1 << 20}, {"revokes", c.Revokes, 0, 3}, {"crashes", c.Crashes, 0, 7},
		{"reboots", c.Reboots, 0, 7}, {"losses", c.Losses, 0, 7}, {"duplicates", c.Duplicates, 0, 3}, {"cuts", c.Cuts, 0, 7},
		{"timeouts", c.Timeouts, 0, 15}, {"waits", c.Waits, 0, 15}, {"cancels", c.Cancels, 0, 3}, {"fails", c.Fails, 0, 7}, {"demotions", c.Demotions, 0, 3}, {"asks", c.Asks, 0, 3}, {"max_states", c.MaxStates, 0, 1 << 31},
	} {
		if v.value < v.least || v.value > v.most {
			errs = append(errs, fmt.Errorf("%s %d: choose %d to %d", v.name, v.value, v.least, v.most))
		}
	}
	return errors.Join(errs...)
}

const maxSites = 4

// siteID names the i-th site.
func siteID(i int) job.SiteID { return job.SiteID(fmt.Sprint("s", i)) }

// origin returns the site at which job k is submitted.
func (c *Config) origin(k int) int { return min(k, c.Sites-1) }

// linked reports whether two sites have anything to tell each other: one of
// them is an origin.
func (c *Config) linked(a, b int) bool { return a != b && min(a, b) < c.submissions() }

// submissions is how many jobs and bags clients submit.
func (c *Config) submissions() int { return max(c.Jobs, min(c.Tasks, 1)) }

// request is what the jobs ask for.
func (c *Config) request(k int) job.Request {
	r := job.Request{Name: fmt.Sprint("job-", k), User: "ada", Processors: 1, Copies: int32(c.Copies), Walltime: time.Hour}
	if c.Race {
		r.OnSiteLost = job.Race
	}
	r.Checkpoint = c.saves()
	return r
}

// saves reports whether jobs save what they have done and go on.
func (c *Config) saves() bool { return c.Demotions > 0 || c.Asks > 0 }

// engine is the configuration of every site's engine. The waiting times are
// short multiples of each other, so that few timeouts lead to each of them;
// how long they are means nothing here.
func (c *Config) engine(b *board, processors int32) meta.Config {
	m := meta.Default()
	m.Placement.Scheme, m.Placement.Copies, m.Placement.MaxLoadAge = meta.KDual, int32(c.Copies), 1000*time.Hour
	m.Placement.Conserve = false // rounds would multiply the orders of events
	t := &m.Timing
	t.Claim, t.Resend, t.Retry, t.Backoff, t.Vanish, t.AntiEntropy = second, second, second, 2*second, 3*second, 4*second
	t.Load, t.ReplicaCycle = 100_000*time.Hour, second
	m.Policies = c.compiler
	m.Board = b
	m.Self.Processors = processors
	return m
}

const second = time.Second

func (c *Config) scheduler(processors int32) sitesched.Config {
	return sitesched.Config{Processors: processors, Backfill: sitesched.EASY, Queues: sitesched.DualBackfill, Scope: sitesched.ScopeAll}
}
