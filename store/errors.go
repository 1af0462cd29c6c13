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
	// ErrNotWaiting is returned when a task of a grant is with a site or has ended, or a
	// task before it that was never given out would be left out.
	ErrNotWaiting = errors.New("not all of its tasks wait")
	// ErrBeside is returned when a replica would be where the task is already.
	ErrBeside = errors.New("the site has the task")
	// ErrFull is returned when a held bundle has [MaxUnacked] batches that wait for the origin.
	ErrFull = errors.New("too many results wait for the origin")
	// ErrNoCopy is returned when the claiming site holds no copy.
	ErrNoCopy = errors.New("site holds no copy of the attempt")
	// ErrState is returned when the job or copy is not in a state in which
	// this can happen.
	ErrState = errors.New("not possible in its present state")
	// ErrBounds is returned when a field of the command breaks a bound.
	ErrBounds = errors.New("out of bounds")
)

// Errors of [State.Apply] about the trust table.
var (
	// ErrTrustFull is returned when there is no room for one more record.
	ErrTrustFull = errors.New("no room")
	// ErrNameTaken is returned when a site has a name that belongs to another one here.
	ErrNameTaken = errors.New("name is taken")
	// ErrOldBundle is returned when a later bundle of the site is known.
	ErrOldBundle = errors.New("not later than what is known")
	// ErrOldAddresses is returned when a later start of the site has said where it is.
	ErrOldAddresses = errors.New("not later than what the site has said of its addresses")
	// ErrRevoked is returned when the site is not trusted any more.
	ErrRevoked = errors.New("trust was revoked")
	// ErrNoToken is returned when no token of that id is recorded.
	ErrNoToken = errors.New("no token of this site that has not expired")
	// ErrInvitationOver is returned when an invitation was used, refused or burnt, or
	// has expired.
	ErrInvitationOver = errors.New("invitation is over")
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

// Errors of [Batch.Commit] of a back end that several members keep. After either of them the
// facts in memory are void: see [Void].
var (
	// ErrDeposed is returned when another member may lead by now. Nothing of the batch is
	// durable, nor will it ever be.
	ErrDeposed = errors.New("this member leads the site no longer")
	// ErrUndecided is returned when this member cannot know whether the batch is durable:
	// whoever leads next decides. It is whole or not at all.
	ErrUndecided = errors.New("not known whether it is durable")
)

// Void reports whether, after this error of [Batch.Commit], the facts in memory count for
// nothing: what is held for them must not leave, and whoever goes on loads again. After any
// other error nothing is durable yet, and Commit may be called again.
func Void(err error) bool { return errors.Is(err, ErrDeposed) || errors.Is(err, ErrUndecided) }
