package meta

import (
	"kith/cluster"
	"kith/internal/job"
)

// Effect is what the driver must do, after the changes made so far are
// durable: package meta/commit holds it until then. The set is closed.
type Effect interface{ effect() }

// Reply answers a client's request. On an error, which wraps a sentinel of
// this package, nothing has changed.
type Reply struct {
	Token uint64
	Job   job.ID
	State job.State
	Err   error
	// Forgotten answers [ForgetSite].
	Forgotten Forgotten
}

// Send sends a message to a site. If no stream is up it is dropped.
type Send struct {
	To      job.SiteID
	Message Message
}

// Launch makes an attempt run: stage its files, start its command. The driver
// answers with [AttemptStarted] and [AttemptEnded]. Launching a launched
// attempt again must be harmless.
type Launch struct {
	Attempt job.AttemptID
	Request job.Request
	// Payload is what to run; nil if this site is the origin and its store has it.
	Payload []byte
	// Lease is when all its processes must be gone, unless [Extend] comes; 0
	// for no bound. Past that time it must not be started either.
	Lease job.Time
}

// Extend says that an attempt under a lease may go on until a later time.
type Extend struct {
	Attempt job.AttemptID
	Until   job.Time
}

// Kill stops a launched attempt; the driver answers with [AttemptEnded]. An
// attempt that has not been started yet must not start any more.
type Kill struct {
	Attempt job.AttemptID
	// Lease says why: not because the user wishes it, but because the lease has
	// ended. The end then counts as [job.Loss].
	Lease bool
}

// Adopt asks about an attempt that was begun before a restart. The driver
// answers with [AttemptStarted] and [AttemptEnded], or with [AttemptMissing].
type Adopt struct {
	Attempt job.AttemptID
	Request job.Request
	BootID  string
	// Leased says that it runs under a lease of an earlier daemon, and that it
	// must not be started without.
	Leased bool
}

// Clear removes the private folder of an attempt whose outcome is at the origin.
type Clear struct{ Attempt job.AttemptID }

// Fetch brings an attempt's output to this site, its origin; the driver
// answers with [FilesHome].
type Fetch struct {
	Attempt job.AttemptID
	From    job.SiteID
	Files   []byte
}

// Advertise spreads this site's load. To sites with a stream it has been sent already.
type Advertise struct{ Digest cluster.Digest }

// Changed says that a job submitted here has changed. Purged: it is gone.
type Changed struct {
	Job    job.ID
	Purged bool
}

func (Reply) effect()     {}
func (Send) effect()      {}
func (Launch) effect()    {}
func (Extend) effect()    {}
func (Kill) effect()      {}
func (Adopt) effect()     {}
func (Clear) effect()     {}
func (Fetch) effect()     {}
func (Advertise) effect() {}
func (Changed) effect()   {}
