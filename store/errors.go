package store

import "errors"

// Errors of [State.Apply]. A command that fails has changed nothing.
var (
	// ErrUnknown is returned when the job or copy is not in the state.
	ErrUnknown = errors.New("not known at this site")
	// ErrExists is returned when a job, copy or request id is recorded already.
	ErrExists = errors.New("already recorded")
	// ErrStale is returned when the command is about another attempt than the
	// latest, or another site than the holder.
	ErrStale = errors.New("superseded by a later attempt or another site")
	// ErrTaken is returned when another site has the claim.
	ErrTaken = errors.New("claim is taken by another site")
	// ErrNoCopy is returned when the claiming site holds no copy.
	ErrNoCopy = errors.New("site holds no copy of the attempt")
	// ErrState is returned when the job or copy is not in a state in which
	// this can happen.
	ErrState = errors.New("not possible in its present state")
)

// Errors of opening a [Backend].
var (
	// ErrNewerFormat is returned when a later version of Kith wrote the file.
	ErrNewerFormat = errors.New("written by a newer version of kith")
	// ErrOtherSite is returned when the file belongs to another site.
	ErrOtherSite = errors.New("belongs to another site")
	// ErrCorrupt is returned when the file is damaged.
	ErrCorrupt = errors.New("damaged")
	// ErrLocked is returned when another process has the file open.
	ErrLocked = errors.New("in use by another process")
)
