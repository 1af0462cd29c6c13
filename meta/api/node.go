package api

import (
	"context"
	"time"

	"kith/internal/job"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/sitesched"
	"kith/store"
)

// Node is the site behind the services.
type Node interface {
	// Ask feeds the event that make returns for a token to the engine and
	// waits for the reply of that token, which comes when the facts behind it
	// are durable. It returns [ErrStopping] when the site shuts down first.
	Ask(ctx context.Context, make func(token uint64) meta.Event) (meta.Reply, error)
	// Look runs look with views of the engine between two events, and returns when
	// everything that look saw is durable.
	Look(ctx context.Context, look func(now job.Time, v meta.Views)) error
	// Glance is Look, but while nothing can be written it returns at once, with
	// what a crash could take back: for lists that an operator needs just then.
	Glance(ctx context.Context, look func(now job.Time, v meta.Views)) error
	// Payload, Outputs, Decision, TaskResults and TaskFiles are those of store.Backend.
	Payload(id job.ID) ([]byte, error)
	Outputs(id job.ID) ([]byte, error)
	Decision(id job.ID) (*store.Decision, error)
	TaskResults(bag job.ID, block uint32) ([]store.TaskRecord, error)
	TaskFiles(bag job.ID, task uint32) ([]byte, error)
	// Past is that of store.Backend.
	Past(from uint64) ([]store.Past, error)
	// Plan returns how the site schedules, false if a batch system does.
	Plan() (sitesched.Config, bool)
	// Salt returns [SaltBytes] random bytes which this site alone knows, and which are the
	// same as long as it has its data folder.
	Salt() ([]byte, error)
	// Describe returns what only the daemon knows of the site.
	Describe() Description
}

// Description is what only the daemon knows of the site.
type Description struct {
	Capabilities []*kithv1.Capability
	// FileBytesSent and FileBytesReceived are to and from other sites.
	FileBytesSent, FileBytesReceived int64
	Addresses                        map[job.SiteID]string
	// DiskTrouble says what is wrong with the disk, or what else the machine lacks for
	// files; empty if nothing.
	DiskTrouble string
	// Keys says when the certificates of this site end; nil if it has none.
	Keys *Expiry
	// Shown is when the certificates end that other sites have shown on streams that are up.
	Shown map[job.SiteID]time.Time
	// Trouble is what stands between this site and others.
	Trouble map[job.SiteID]Trouble
}

// Expiry says by which CAs others know this site, and when its certificates end.
type Expiry struct {
	// Fingerprints are those of its CAs, in the bundle with this sequence.
	Fingerprints []string
	Bundle       uint64
	Leaf, CA     time.Time
	// Trouble says which of them ends soon or has ended, and what to do; empty if none does.
	Trouble string
}

// Trouble says, for people, why there is no stream to a site and since when, and
// whether two daemons use its name, and why its load is not believed.
type Trouble struct {
	Why   string
	Since job.Time
	Clash string
	Load  string
}
