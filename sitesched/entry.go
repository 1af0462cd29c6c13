package sitesched

import (
	"time"

	"kith/internal/job"
)

// entry is what the scheduler keeps of a [job.Copy]: what its rules read. It
// is a type of its own because a queue of 100,000 copies need not hold their
// names, users and directories.
type entry struct {
	id job.AttemptID
	// processors is the width, at least 1.
	processors int32
	// remote says that the copy was placed here by another site.
	remote bool
	// elder says that its origin can never run it.
	elder bool
	// level is its rank in the hierarchy, 0 if it has none.
	level uint8
	// stays says that it cannot be made to leave once it runs.
	stays bool
	// memoryBytes is the memory of the whole job; zero means no limit of its own.
	memoryBytes int64
	// walltime is the user's estimate and limit. Zero or less counts as one
	// second (spec 001 section 2.1), more than [job.MaxWalltime] as that.
	walltime time.Duration
	// arrival is when the copy arrived at this site. Queues are in the order
	// of (arrival, id).
	arrival job.Time
}

func entryOf(c *job.Copy) entry {
	return entry{
		id: c.ID, processors: c.Request.Processors, remote: c.Remote, elder: c.Elder, level: c.Level, stays: c.Stays, memoryBytes: c.Request.MemoryBytes,
		walltime: c.Request.Walltime, arrival: c.Arrival,
	}
}

// copy returns e as others know it, without the words of the request.
func (e *entry) copy() job.Copy {
	return job.Copy{
		ID: e.id, Arrival: e.arrival, Remote: e.remote, Elder: e.elder, Level: e.level, Stays: e.stays,
		Request: job.Request{Processors: e.processors, MemoryBytes: e.memoryBytes, Walltime: e.walltime},
	}
}

// differs reports whether c asks for something else than e. Without processors it asks for
// nothing.
func (e *entry) differs(c *job.Copy) bool {
	r := &c.Request
	return r.Processors > 0 && (r.Processors != e.processors || r.MemoryBytes != e.memoryBytes || r.Walltime != e.walltime)
}

// before is the queue order (spec 001 section 2.1).
func (e *entry) before(d *entry) bool {
	if e.arrival != d.arrival {
		return e.arrival < d.arrival
	}
	return e.id.Compare(d.id) < 0
}
