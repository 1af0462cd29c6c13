package cluster

import (
	"kith/internal/job"
)

// Digest is how loaded a site is, as the site itself says.
type Digest struct {
	Site job.SiteID
	// Incarnation is the start of the site's daemon in nanoseconds since 1970;
	// Sequence counts its digests since then.
	Incarnation, Sequence uint64
	// Address is host:port of its daemon, empty if it only dials out.
	Address string
	// Processors and MemoryBytes are what it has; no memory means no limit.
	Processors  int32
	MemoryBytes int64
	Load        job.Load
	// Policy is its local policy in words. Sites with the same words are one
	// policy group (spec 004 section 2.3).
	Policy string
	// Speed is that of one processor; 1 is the reference.
	Speed float64
	// Draining says that it takes no copies.
	Draining bool
	// Time is when the digest was made, by the site's own clock.
	Time job.Time
	// Version is that of its daemon, for people.
	Version string
}

// Newer reports whether d says something later than other about the same site.
func (d *Digest) Newer(other *Digest) bool {
	if d.Incarnation != other.Incarnation {
		return d.Incarnation > other.Incarnation
	}
	return d.Sequence > other.Sequence
}
