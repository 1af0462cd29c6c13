package meta

import (
	"errors"
	"fmt"
	"time"

	"kith/internal/job"
)

// Errors with which client requests fail; each changes nothing.
var (
	// ErrInvalid is returned when a request breaks a bound of package job.
	ErrInvalid = errors.New("invalid job")
	// ErrTooLarge is returned when no known site could ever run the job.
	ErrTooLarge = errors.New("no known site is large enough")
	// ErrConnected is returned when a site is to be forgotten that is in reach.
	ErrConnected = errors.New("site is connected")
	// ErrSiteInUse is returned when a site is to be taken out of the trust table that is
	// trusted, or of which something may still run.
	ErrSiteInUse = errors.New("it cannot be forgotten yet")
	// ErrUnknownSite is returned for a site that this one has never heard of.
	ErrUnknownSite = errors.New("no such site is known here")
	// ErrRequestReused is returned when a request id was used for another job.
	ErrRequestReused = errors.New("request_id was used for another job")
	// ErrFull is returned when the site holds as many jobs as it takes.
	ErrFull = errors.New("site holds as many jobs as it takes")
	// ErrUnknownJob is returned when there is no such job.
	ErrUnknownJob = errors.New("no such job")
	// ErrForeignJob is returned when another site is the origin of the job.
	ErrForeignJob = errors.New("job belongs to another site")
	// ErrJobEnded is returned when the job has ended.
	ErrJobEnded = errors.New("job has ended")
	// ErrJobStarted is returned when it is too late because a site has the claim.
	ErrJobStarted = errors.New("job has been given to a site")
	// ErrDependency is returned when a job is to wait for what is not here.
	ErrDependency = errors.New("dependency cannot be")
	// ErrNotHeld is returned when a job to be released is not held.
	ErrNotHeld = errors.New("job is not held")
)

// TooLargeError says which site comes closest. It wraps [ErrTooLarge].
type TooLargeError struct {
	Request job.Request
	Widest  job.SiteID
	// Processors and MemoryBytes are those of Widest.
	Processors  int32
	MemoryBytes int64
}

// Error implements error.
func (e *TooLargeError) Error() string {
	if e.Request.Processors > e.Processors {
		return fmt.Sprintf("processors %d: the widest known site, %s, has %d: %v", e.Request.Processors, e.Widest, e.Processors, ErrTooLarge)
	}
	return fmt.Sprintf("memory_bytes %d: the largest known site of sufficient width, %s, has %d: %v",
		e.Request.MemoryBytes, e.Widest, e.MemoryBytes, ErrTooLarge)
}

// Unwrap returns [ErrTooLarge].
func (e *TooLargeError) Unwrap() error { return ErrTooLarge }

// DependencyError says which dependency of a submission cannot be, and why. It wraps
// [ErrDependency].
type DependencyError struct {
	Index  int
	Reason string
}

// Error implements error.
func (e *DependencyError) Error() string {
	return fmt.Sprintf("after[%d]: %s: %v", e.Index, e.Reason, ErrDependency)
}

// Unwrap returns [ErrDependency].
func (e *DependencyError) Unwrap() error { return ErrDependency }

// FullError says when to try again. It wraps [ErrFull].
type FullError struct {
	Jobs int
	// Bags is set in place of Jobs if it is bags that are too many.
	Bags       int
	RetryAfter time.Duration
}

// Error implements error.
func (e *FullError) Error() string {
	if e.Bags > 0 {
		return fmt.Sprintf("%d bags have not ended: %v; try again in %v", e.Bags, ErrFull, e.RetryAfter)
	}
	return fmt.Sprintf("%d jobs have not ended: %v; try again in %v", e.Jobs, ErrFull, e.RetryAfter)
}

// Unwrap returns [ErrFull].
func (e *FullError) Unwrap() error { return ErrFull }
