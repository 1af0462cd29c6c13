package faults

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"kith/internal/job"
	"kith/sitesched"
	"kith/testbed/sim"
)

// Settings are what an operator may change of a site; 0 and "" leave the default.
type Settings struct {
	Processors int32
	// Memory of the site in bytes; 0 for no limit.
	Memory int64
	// PerOrigin, Copies and Jobs are the site's limits.
	PerOrigin, Copies, Jobs int
	// K is how many copies a job gets that does not say.
	K int32
	// Queues is a word of package sitesched; "" for no change.
	Queues string
	// GuestWalltime is the longest time limit of a job of another site that it takes; 0 for any.
	GuestWalltime time.Duration
	// Without is a site that the configuration does not name; "" for none.
	Without job.SiteID
}

// String returns the settings as words of a line, each with a space before it.
func (c *Settings) String() string {
	var b strings.Builder
	say := func(name string, n int64) {
		if n != 0 {
			fmt.Fprintf(&b, " %s=%d", name, n)
		}
	}
	say("memory", c.Memory)
	say("per-origin", int64(c.PerOrigin))
	say("copies-limit", int64(c.Copies))
	say("jobs-limit", int64(c.Jobs))
	say("k", int64(c.K))
	if c.GuestWalltime != 0 {
		fmt.Fprintf(&b, " guest-walltime=%v", c.GuestWalltime)
	}
	if c.Without != "" {
		fmt.Fprintf(&b, " without=%s", c.Without)
	}
	return b.String()
}

// settings reads what [Settings.String] writes.
func (l *line) settings() Settings {
	return Settings{
		Memory: l.int("memory", 0, 0, 1<<50), PerOrigin: int(l.int("per-origin", 0, 0, 1<<20)), Copies: int(l.int("copies-limit", 0, 0, 1<<20)),
		Jobs: int(l.int("jobs-limit", 0, 0, 1<<20)), K: int32(l.int("k", 0, 0, job.MaxCopies)), Without: job.SiteID(l.named("without", "")),
		GuestWalltime: l.span("guest-walltime", 0),
	}
}

// changes returns all of the settings as words of a line.
func (c *Settings) changes() string {
	text := fmt.Sprintf(" processors=%d", c.Processors) + c.String()
	if c.Queues != "" {
		text += " queues=" + c.Queues
	}
	return text
}

// changes reads what [Settings.changes] writes.
func (l *line) changes() Settings {
	c := l.settings()
	c.Processors, c.Queues = int32(l.int("processors", 4, 1, 1<<20)), l.named("queues", "")
	if c.Queues != "" {
		if _, err := sitesched.ParseQueues(c.Queues); err != nil {
			l.fail("queues: %w", err)
		}
	}
	return c
}

// apply makes a site's configuration say so.
func (c *Settings) apply(x *sim.SiteConfig) {
	if c.Processors != 0 {
		x.Scheduler.Processors = c.Processors
	}
	x.Scheduler.MemoryBytes = c.Memory
	c.reload(x)
	if q, err := sitesched.ParseQueues(c.Queues); err == nil {
		x.Scheduler.Queues = q
	}
	if c.Without != "" && !slices.Contains(x.Without, c.Without) {
		x.Without = append(slices.Clone(x.Without), c.Without)
	}
}

// Stream is jobs that come one after another, and do not stop before the end of
// the time that is watched, unless Count says how many they are.
type Stream struct {
	At, Every     time.Duration
	Count         int
	From          job.SiteID
	Processors    int32
	Copies        int32
	Run, Walltime time.Duration
	OnSiteLost    job.OnSiteLost
}

// String returns the stream's line.
func (x *Stream) String() string {
	text := fmt.Sprintf("stream at=%v every=%v from=%s processors=%d copies=%d run=%v walltime=%v", x.At, x.Every, x.From, x.Processors, x.Copies, x.Run, x.Walltime)
	if x.Count != 0 {
		text += fmt.Sprintf(" count=%d", x.Count)
	}
	if x.OnSiteLost != job.Wait {
		text += " on-site-lost=" + lostWords[x.OnSiteLost]
	}
	return text
}

func (l *line) stream() Stream {
	x := Stream{
		At: l.span("at", 0), Every: l.span("every", time.Second), Count: int(l.int("count", 0, 0, maxItems)), From: job.SiteID(l.named("from", "")),
		Processors: int32(l.int("processors", 1, 1, 1<<20)), Copies: int32(l.int("copies", 2, 0, job.MaxCopies)), Run: l.span("run", time.Minute),
	}
	x.Walltime = l.span("walltime", 2*x.Run)
	x.OnSiteLost = l.lost()
	if x.Every <= 0 {
		l.fail("every=%v: choose more than 0s", x.Every)
	}
	return x
}

// streamNumbers keeps the numbers of streams' jobs apart from others.
const streamNumbers = 1_000_000

// all returns the jobs of the schedule and of its streams.
func (s *Schedule) all() []Job {
	list := slices.Clone(s.Jobs)
	for i := range s.Streams {
		x := &s.Streams[i]
		for n, at := 1, x.At; at <= s.End+s.Watch && (x.Count == 0 || n <= x.Count) && len(list) < maxItems; n, at = n+1, at+x.Every {
			list = append(list, Job{
				Number: streamNumbers*(i+1) + n, At: at, From: x.From, Processors: x.Processors, Copies: x.Copies, Run: x.Run, Walltime: x.Walltime, OnSiteLost: x.OnSiteLost,
			})
		}
	}
	return list
}
