package api

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/transfer"
	"kith/meta/trust"
	"kith/meta/trust/invite"
	"kith/store"
	"kith/store/blobstore"
)

// Domain is the domain of every ErrorInfo.
const Domain = "kith"

// Errors of this package.
var (
	// ErrStopping is returned while the site shuts down.
	ErrStopping = errors.New("site is shutting down")
	// ErrNotDurable is returned while the site cannot write down what happens:
	// it neither does nor shows what could be gone after a crash.
	ErrNotDurable = errors.New("site cannot write to its data folder, and until it can it does nothing, and shows only what sites and lists say: look at its disk")
	// ErrNoOutput is returned when a job has no such output.
	ErrNoOutput = errors.New("job has no such output")
	// ErrHostAway is returned when output is at a site that cannot be reached.
	ErrHostAway = errors.New("site that has the output cannot be reached")
	// ErrCursor is returned when a watch cursor is too old.
	ErrCursor = errors.New("cursor is too old")
	// ErrBusy is returned when a bound on concurrent work is met.
	ErrBusy = errors.New("too many requests of this kind under way")
	// ErrRate is returned to a user who asks too often.
	ErrRate = errors.New("more requests than a user may make in a second")
	// ErrNoneFailed is returned when the tasks that failed are to run again and none has.
	ErrNoneFailed = errors.New("no task has failed; name tasks by their indices to run them again")
	// ErrMembersKeys is returned when keys are to be replaced that other machines of the site
	// have copies of.
	ErrMembersKeys = errors.New("the members of this site each have a copy of its keys, and this would change one: stop all, run kithd renew at one of them, copy its folder of keys to the others, and start them again")
	// ErrStalled is returned when an upload does not go on.
	ErrStalled = errors.New("upload does not go on")
)

// kind is how an error goes over the wire.
type kind struct {
	err    error
	code   codes.Code
	reason string
	// retry is how long a caller should wait before trying again, zero if
	// trying again is useless.
	retry time.Duration
}

// kinds is the table of sentinel errors and what programs see of them; the
// first match counts. The reasons are API: they never change their meaning.
var kinds = []kind{
	{meta.ErrInvalid, codes.InvalidArgument, "INVALID_JOB", 0},
	{meta.ErrTooLarge, codes.FailedPrecondition, "NO_SITE_LARGE_ENOUGH", 0},
	{meta.ErrConnected, codes.FailedPrecondition, "SITE_CONNECTED", 0},
	{meta.ErrSiteInUse, codes.FailedPrecondition, "SITE_IN_USE", 0},
	{meta.ErrUnknownSite, codes.NotFound, "SITE_NOT_FOUND", 0},
	{meta.ErrRequestReused, codes.AlreadyExists, "REQUEST_ID_REUSED", 0},
	{meta.ErrNoForecasts, codes.FailedPrecondition, "NO_FORECASTS", 0},
	{meta.ErrManyQuestions, codes.ResourceExhausted, "TOO_MANY_REQUESTS", 15 * time.Second},
	{meta.ErrFull, codes.ResourceExhausted, "SITE_FULL", 5 * time.Second},
	{meta.ErrUnknownJob, codes.NotFound, "JOB_NOT_FOUND", 0},
	{meta.ErrForeignJob, codes.FailedPrecondition, "JOB_OF_ANOTHER_SITE", 0},
	{meta.ErrJobEnded, codes.FailedPrecondition, "JOB_ENDED", 0},
	{meta.ErrJobStarted, codes.FailedPrecondition, "JOB_STARTED", 0},
	{meta.ErrDependency, codes.InvalidArgument, "INVALID_DEPENDENCY", 0},
	{meta.ErrNotRunning, codes.FailedPrecondition, "JOB_NOT_RUNNING", 0},
	{meta.ErrNotMovable, codes.FailedPrecondition, "JOB_NOT_MOVABLE", 0},
	{meta.ErrLastAttempt, codes.FailedPrecondition, "JOB_LAST_ATTEMPT", 0},
	{meta.ErrEnding, codes.FailedPrecondition, "JOB_ENDING", 0},
	{meta.ErrNotHeld, codes.FailedPrecondition, "JOB_NOT_HELD", 0},
	{meta.ErrUnknownBag, codes.NotFound, "BAG_NOT_FOUND", 0},
	{meta.ErrBagEnded, codes.FailedPrecondition, "BAG_ENDED", 0},
	{meta.ErrBagNotHeld, codes.FailedPrecondition, "BAG_NOT_HELD", 0},
	{meta.ErrBagCancelling, codes.FailedPrecondition, "BAG_CANCELLING", 0},
	{meta.ErrStalePolicies, codes.Aborted, "POLICIES_CHANGED", 0},
	{meta.ErrTasksNotEnded, codes.FailedPrecondition, "TASKS_NOT_ENDED", 0},
	{meta.ErrSingletonRuns, codes.FailedPrecondition, "SINGLETON_RUNS", 0},
	{ErrNoneFailed, codes.FailedPrecondition, "NO_TASK_FAILED", 0},
	{job.ErrBadID, codes.InvalidArgument, "INVALID_JOB_ID", 0},
	{ErrNoMembers, codes.FailedPrecondition, "NO_MEMBERS", 0},
	{ErrMembership, codes.FailedPrecondition, "MEMBERSHIP", 0},
	{ErrMemberName, codes.InvalidArgument, "INVALID_MEMBER", 0},
	{ErrMemberAway, codes.Unavailable, "MEMBER_UNREACHABLE", 5 * time.Second},
	{ErrNoLeader, codes.Unavailable, "NO_LEADER", 250 * time.Millisecond},
	{ErrMembersKeys, codes.FailedPrecondition, "KEYS_OF_MEMBERS", 0},
	{blobstore.ErrCopies, codes.Unavailable, "TOO_FEW_MEMBERS", 2 * time.Second},
	{ErrStopping, codes.Unavailable, "SITE_STOPPING", 2 * time.Second},
	{ErrNotDurable, codes.Unavailable, "NOT_DURABLE", 5 * time.Second},
	{ErrNoOutput, codes.NotFound, "OUTPUT_NOT_FOUND", 0},
	{ErrHostAway, codes.Unavailable, "HOST_UNREACHABLE", 5 * time.Second},
	{ErrCursor, codes.OutOfRange, "CURSOR_TOO_OLD", 0},
	{ErrBusy, codes.ResourceExhausted, "TOO_MANY_REQUESTS", time.Second},
	{ErrRate, codes.ResourceExhausted, "TOO_MANY_REQUESTS", time.Second},
	{ErrStalled, codes.DeadlineExceeded, "UPLOAD_STALLED", 0},
	{ErrBackupTime, codes.DeadlineExceeded, "BACKUP_STALLED", 0},
	{blobstore.ErrDiskFull, codes.ResourceExhausted, "DISK_FULL", time.Minute},
	{blobstore.ErrQuota, codes.ResourceExhausted, "QUOTA_EXCEEDED", time.Minute},
	{transfer.ErrNotFound, codes.InvalidArgument, "INPUT_NOT_FOUND", 0},
	{transfer.ErrOutsideRoot, codes.InvalidArgument, "INPUT_OUTSIDE_ROOTS", 0},
	{transfer.ErrNotRegular, codes.InvalidArgument, "INPUT_NOT_A_FILE", 0},
	{ErrNoKeys, codes.FailedPrecondition, "NO_KEYS", 0},
	{trust.ErrRotating, codes.FailedPrecondition, "CA_UNDER_WAY", 0},
	{trust.ErrOffline, codes.FailedPrecondition, "CA_OFFLINE", 0},
	{ErrNotOperator, codes.PermissionDenied, "OPERATOR_ONLY", 0},
	{ErrNoTrustedSite, codes.NotFound, "SITE_NOT_TRUSTED", 0},
	{ErrNoInvitation, codes.NotFound, "INVITATION_NOT_FOUND", 0},
	{invite.ErrNoOffer, codes.NotFound, "INVITATION_NOT_FOUND", 0},
	{invite.ErrNothingToDecide, codes.FailedPrecondition, "NOTHING_TO_DECIDE", 0},
	{store.ErrNameTaken, codes.AlreadyExists, "SITE_NAME_TAKEN", 0},
	{store.ErrInvitationOver, codes.FailedPrecondition, "INVITATION_OVER", 0},
	{store.ErrOldBundle, codes.FailedPrecondition, "BUNDLE_OLD", 0},
	{store.ErrNoToken, codes.NotFound, "TOKEN_NOT_FOUND", 0},
	{store.ErrTrustFull, codes.ResourceExhausted, "TRUST_TABLE_FULL", time.Minute},
	{invite.ErrDeskFull, codes.ResourceExhausted, "TRUST_TABLE_FULL", time.Minute},
	{store.ErrBounds, codes.InvalidArgument, "INVALID_ARGUMENT", 0},
	{ErrInviterAway, codes.Unavailable, "INVITER_UNREACHABLE", 5 * time.Second},
	{ErrInviter, codes.FailedPrecondition, "NOT_ADMITTED", 0},
	{store.ErrUnknown, codes.NotFound, "JOB_NOT_FOUND", 0},
}

// FieldError says which field of a request is wrong, and why.
type FieldError struct {
	Field  string
	Reason string
	Err    error // what it comes from; may be nil
}

// Error implements error.
func (e *FieldError) Error() string { return e.Field + ": " + e.Reason }

// Unwrap returns what the error comes from.
func (e *FieldError) Unwrap() error { return e.Err }

// fieldErrors collects what is wrong with a request.
type fieldErrors []*FieldError

func (f *fieldErrors) add(field, reason string) {
	*f = append(*f, &FieldError{Field: field, Reason: reason})
}

// Error implements error.
func (f fieldErrors) Error() string {
	texts := make([]error, len(f))
	for i, e := range f {
		texts[i] = e
	}
	return errors.Join(texts...).Error()
}

// Unary turns the errors of this server's methods into what goes over the wire: it
// is to be the innermost interceptor. Other services of a gRPC server are left alone.
func (s *Server) Unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if info.Server != any(s) {
		return next(ctx, req)
	}
	err := checkBounds(req)
	if err == nil {
		var resp any
		if resp, err = next(ctx, req); err == nil {
			return resp, nil
		}
	}
	return nil, s.toStatus(ctx, path.Base(info.FullMethod), err)
}

// Stream is [Server.Unary] for streams.
func (s *Server) Stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if srv != any(s) {
		return next(srv, stream)
	}
	err := next(srv, checkedStream{stream})
	return s.toStatus(stream.Context(), path.Base(info.FullMethod), err)
}

// toStatus turns any error into what goes over the wire. What is not in the
// table is our fault: its text stays in the log.
func (s *Server) toStatus(ctx context.Context, method string, err error) error {
	if err == nil {
		return nil
	}
	if st := s.scarcityStatus(method, err); st != nil {
		return st
	}
	if fields := (fieldErrors)(nil); errors.As(err, &fields) {
		return fieldStatus(fields)
	}
	if field := (*FieldError)(nil); errors.As(err, &field) {
		return fieldStatus(fieldErrors{field})
	}
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return k.status(err)
		}
	}
	if ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	if st, ok := status.FromError(err); ok {
		return st.Err()
	}
	s.log.Error("request failed", "method", method, "error", err.Error())
	return withDetails(codes.Internal, "internal error; the site's log tells more", &errdetails.ErrorInfo{Reason: "INTERNAL", Domain: Domain})
}

// Refusal returns what a caller is told that is refused with one of the errors of this
// package.
func Refusal(err error) error {
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return k.status(err)
		}
	}
	return status.Error(codes.Unknown, err.Error())
}

func (k *kind) status(err error) error {
	retry := k.retry
	if full := (*meta.FullError)(nil); errors.As(err, &full) {
		retry = full.RetryAfter
	}
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: k.reason, Domain: Domain}}
	if retry > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(retry)})
	}
	return withDetails(k.code, err.Error(), details...)
}

// mostFields bounds the fields that an error names. They go into the trailer of the
// answer, and some clients take no more than 8 KiB of that.
const mostFields = 20

// first returns the first fields, with a last entry that counts the others.
func (f fieldErrors) first() fieldErrors {
	if len(f) <= mostFields {
		return f
	}
	list := slices.Clone(f[:mostFields])
	list.add("request", fmt.Sprintf("has %d more faults; mend these first", len(f)-mostFields))
	return list
}

func fieldStatus(fields fieldErrors) error {
	fields = fields.first()
	bad := &errdetails.BadRequest{}
	reason := "INVALID_ARGUMENT"
	for _, f := range fields {
		bad.FieldViolations = append(bad.FieldViolations, &errdetails.BadRequest_FieldViolation{Field: f.Field, Description: f.Reason})
		for _, k := range kinds {
			if f.Err != nil && errors.Is(f.Err, k.err) {
				reason = k.reason
			}
		}
	}
	return withDetails(codes.InvalidArgument, fields.Error(), &errdetails.ErrorInfo{Reason: reason, Domain: Domain}, bad)
}

func withDetails(code codes.Code, text string, details ...protoadapt.MessageV1) error {
	st, err := status.New(code, text).WithDetails(details...)
	if err != nil {
		return status.Error(code, text)
	}
	return st.Err()
}
