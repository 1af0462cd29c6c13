package job

import (
	"errors"
	"fmt"
	"time"
)

// Bounds on what a job may ask for. They keep sums of processor-seconds far
// from overflow and records small.
const (
	MaxProcessors  = 1 << 24
	MaxWalltime    = 10 * 366 * 24 * time.Hour
	MaxCopies      = 64
	MaxNameLength  = 256
	MaxMemoryBytes = 1 << 50
)

// MaxAttempts is how many attempts of a job may get a claim and then be lost, taken back or
// demoted. Attempts that no site began are not counted, however many there are.
const MaxAttempts = 64

// MaxEvictions is how many attempts of a job may be made to leave for jobs of their host's own
// users. After that no site takes it that might have it leave again.
const MaxEvictions = 8

// Request is what a job asks of a site: the part of a job that scheduling and
// placement read. The rest (command, environment, files) is payload, which
// the engines never look into.
type Request struct {
	// Name is for people; at most MaxNameLength bytes.
	Name string
	// User is the submitter as the origin knows it.
	User string
	// Processors is the width: processors held for the whole run, all at one site. At least 1.
	Processors int32
	// Copies is K: how many sites the job queues at, the origin's copy
	// included. Zero means the origin's default.
	Copies int32
	// MemoryBytes is the most memory the whole job may use; zero means no limit of its own.
	MemoryBytes int64
	// Walltime is the user's estimate and the limit: the job is stopped when
	// it is used up. Schedulers read it, never the actual run time.
	Walltime time.Duration
	// Directory is the absolute working directory the job insists on, empty
	// for the private folder that each attempt gets. A site may refuse it.
	Directory string
	// OnSiteLost says what a lost host means for a running job.
	OnSiteLost OnSiteLost
	// Checkpoint says that the job writes checkpoints: an attempt of it may end as [Demoted].
	// Such a job does not race.
	Checkpoint bool
	// Level is the level of the hierarchy that the job is at, 1 to [MaxLevel]: it is placed at
	// sites of that level only, and goes down when it outgrows it. In a submission it is where
	// the job begins. 0 is a job of no hierarchy. A job of one writes checkpoints, or begins
	// again where it is lost.
	Level uint8
	// Unknown says that nobody knows how long the job runs: Walltime is [MaxWalltime], and each
	// level sets a limit of its own. Only for jobs with a Level.
	Unknown bool
	// Estimate says that the job brings an estimator. Only for jobs with a Level.
	Estimate bool
	// Runs is what the origin expects of the run time: nine quantiles that do not fall, at
	// the levels .05, .1, .2, .35, .5, .65, .8, .9 and .95, in units of Walltime/65535. All
	// zero says nothing. Only forecasts read it, no schedule hangs on it.
	Runs [9]uint16
	// AskSeconds is how long before its limit an attempt of a job that writes checkpoints is asked to
	// save, to go on in another one, in seconds; 0 for not at all. Less than Walltime.
	AskSeconds uint16
	// SaveSeconds is how often what the job has saved is copied to its origin while it runs, in
	// seconds; 0 for not at all. Only of jobs that write checkpoints.
	SaveSeconds uint32
	// Script is a hash of what the job runs, by which its origin knows jobs alike; zero if it is
	// not known. No other site is told.
	Script uint64
}

// AskBefore is AskSeconds as a span.
func (r *Request) AskBefore() time.Duration { return time.Duration(r.AskSeconds) * time.Second }

// SaveEvery is SaveSeconds as a span.
func (r *Request) SaveEvery() time.Duration { return time.Duration(r.SaveSeconds) * time.Second }

// OnSiteLost is a job's choice of what happens when the site that runs it
// cannot be reached (design: the claim).
type OnSiteLost uint8

// The numbers are stored and sent; they are frozen.
const (
	// Wait keeps the claim with the lost site for as long as it takes. Nothing runs twice.
	Wait OnSiteLost = 0
	// Rerun opens the next attempt once the host must have stopped this one.
	Rerun OnSiteLost = 1
	// Race opens the next attempt at once; the first result wins.
	Race OnSiteLost = 2
)

// What [Request.Validate] finds wrong, one a field.
var (
	errProcessors = errors.New("processors must be at least 1 and at most 16777216")
	errWalltime   = errors.New("walltime must be positive and at most 10 years")
	errCopies     = errors.New("copies must be between 0 (the site's default) and 64")
	errMemory     = errors.New("memory_bytes must be between 0 (no limit of its own) and 2^50")
	errName       = errors.New("name must be at most 256 bytes")
	errCheckpoint = errors.New("a job with a checkpoint cannot race: two attempts would go on from one")
	errLevel      = errors.New("level must be 0 (no hierarchy) to 16")
	errUnknown    = errors.New("a job of unknown length has a level and the longest walltime")
	errMoved      = errors.New("a job of a level is moved while it runs: it must write checkpoints, or begin again when its site is lost, and cannot race")
	errEstimate   = errors.New("an estimator is for a job of a level")
	errAskBefore  = errors.New("ask_before must be 0, or less than the walltime of a job with a checkpoint")
	errSaveEvery  = errors.New("save_every must be 0, or at most 10 years of a job with a checkpoint")
	errRuns       = errors.New("runs must be nine quantiles of 0 to 65535 that do not fall")
)

// Validate returns all that is wrong with r by itself, joined, or nil. It
// does not know which sites exist.
func (r *Request) Validate() error {
	var errs []error
	if r.Processors < 1 || r.Processors > MaxProcessors {
		errs = append(errs, fmt.Errorf("processors %d: %w", r.Processors, errProcessors))
	}
	if r.Walltime <= 0 || r.Walltime > MaxWalltime {
		errs = append(errs, fmt.Errorf("walltime %v: %w", r.Walltime, errWalltime))
	}
	if r.Copies < 0 || r.Copies > MaxCopies {
		errs = append(errs, fmt.Errorf("copies %d: %w", r.Copies, errCopies))
	}
	if r.MemoryBytes < 0 || r.MemoryBytes > MaxMemoryBytes {
		errs = append(errs, fmt.Errorf("memory_bytes %d: %w", r.MemoryBytes, errMemory))
	}
	if len(r.Name) > MaxNameLength {
		errs = append(errs, fmt.Errorf("name of %d bytes: %w", len(r.Name), errName))
	}
	if r.Checkpoint && r.OnSiteLost == Race {
		errs = append(errs, errCheckpoint)
	}
	errs = append(errs, r.checkLevel()...)
	if r.AskSeconds != 0 && (!r.Checkpoint || r.AskBefore() >= r.Walltime) {
		errs = append(errs, fmt.Errorf("ask_before %v: %w", r.AskBefore(), errAskBefore))
	}
	if r.SaveSeconds != 0 && (!r.Checkpoint || r.SaveEvery() > MaxWalltime) {
		errs = append(errs, fmt.Errorf("save_every %v: %w", r.SaveEvery(), errSaveEvery))
	}
	for i := 1; i < len(r.Runs); i++ {
		if r.Runs[i] < r.Runs[i-1] {
			errs = append(errs, fmt.Errorf("runs[%d] is %d, runs[%d] is %d: %w", i-1, r.Runs[i-1], i, r.Runs[i], errRuns))
			break
		}
	}
	return errors.Join(errs...)
}

// MaxLevel is the largest level of a hierarchy.
const MaxLevel = 16

// checkLevel returns what is wrong with the place of r in a hierarchy.
func (r *Request) checkLevel() (errs []error) {
	if r.Level > MaxLevel {
		errs = append(errs, fmt.Errorf("level %d: %w", r.Level, errLevel))
	}
	if r.Unknown && (r.Level == 0 || r.Walltime != MaxWalltime) {
		errs = append(errs, fmt.Errorf("level %d, walltime %v: %w", r.Level, r.Walltime, errUnknown))
	}
	if r.Estimate && r.Level == 0 {
		errs = append(errs, errEstimate)
	}
	if r.Level > 0 && !r.Checkpoint && r.OnSiteLost != Rerun || r.Level > 0 && r.OnSiteLost == Race {
		errs = append(errs, fmt.Errorf("level %d: %w", r.Level, errMoved))
	}
	return errs
}
