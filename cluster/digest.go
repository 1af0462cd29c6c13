package cluster

import (
	"time"

	"kith/internal/job"
)

// Digest is how loaded a site is, as the site itself says.
type Digest struct {
	Site job.SiteID
	// Incarnation counts the starts of the site's daemon on its data folder, from
	// some first number; Sequence counts its digests since the start.
	Incarnation, Sequence uint64
	// Address is host:port of its daemon, empty if it only dials out.
	Address string
	// Processors and MemoryBytes are what it has; no memory means no limit.
	Processors  int32
	MemoryBytes int64
	Load        job.Load
	// HomeJobs says whether it starts its own jobs before those of others. Sites
	// that say the same are one policy group (spec 004 section 2.3).
	HomeJobs HomeJobs
	// Policy is its local policy in words, for people. It decides nothing.
	Policy string
	// Speed is that of one processor; 1 is the reference.
	Speed float64
	// Draining says that it takes no copies.
	Draining bool
	// NotStarting says that it starts nothing for a while, as it could not. What is
	// queued there waits.
	NotStarting bool
	// Owner is who else works on its machine, nil if nobody is said to.
	Owner *Owner
	// Level is the level of a hierarchy that the site is, nil for none.
	Level *Level
	// GuestWalltime is the longest time limit of a job of another site that it takes, 0 for any;
	// KeptFree is how many processors such jobs never have.
	GuestWalltime time.Duration
	KeptFree      int32
	// Settings counts how often its daemon has taken up a configuration since it started.
	Settings uint64
	// TimesFreed counts how often its daemon had more processors free for copies of other sites
	// than it had told of. Others may have taken these before the digest was made.
	TimesFreed uint64
	// Time is when the digest was made, by the site's own clock.
	Time job.Time
	// Version is that of its daemon, for people.
	Version string
	// Head is the newest signed head of its audit log, nil if it tells none. It says
	// nothing of the load and is not changed once it is made.
	Head *AuditHead
}

// AuditHead is a signed word of a site about its audit log: the number and the SHA-256 of
// the last line, and when that was. What it is signed over is the business of
// meta/trust/audit.
type AuditHead struct {
	Number    uint64
	Hash      [32]byte
	Time      job.Time
	Signature []byte
	// Chain is the certificate whose key has signed, and those between it and the CA.
	// It does not travel with the head but with the key of the digest.
	Chain [][]byte
}

// Startable returns how many processors a copy of another site could start on.
func (d *Digest) Startable() int32 {
	if d.Load.Blocked {
		return 0
	}
	return d.Load.Free
}

// Bars says why the site takes no job like that of another one, for the sake of its own:
// [job.NoReason] if it may. How long a job of a hierarchy runs there is its level's business.
func (d *Digest) Bars(r *job.Request) job.Reason {
	switch {
	case r.Level == 0 && d.GuestWalltime > 0 && r.Walltime > d.GuestWalltime:
		return job.GuestWalltime
	case d.KeptFree > 0 && r.Processors > d.Processors-d.KeptFree:
		return job.KeptFree
	}
	return job.NoReason
}

// Newer reports whether d says something later than other about the same site.
func (d *Digest) Newer(other *Digest) bool {
	if d.Incarnation != other.Incarnation {
		return d.Incarnation > other.Incarnation
	}
	return d.Sequence > other.Sequence
}

// HomeJobs says whether a site starts the jobs submitted to it before the copies
// of other sites. The numbers are sent; they are frozen.
type HomeJobs uint8

// What a site says of its own jobs.
const (
	HomeJobsUnknown HomeJobs = 0 // it does not say: its version is older
	HomeJobsAlike   HomeJobs = 1 // its own and those of others are treated alike
	HomeJobsFirst   HomeJobs = 2 // its own go first
)

// HomeJobsOf returns what a site says that starts its own jobs first, or not.
func HomeJobsOf(first bool) HomeJobs {
	if first {
		return HomeJobsFirst
	}
	return HomeJobsAlike
}
