package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/transfer"
	"kith/meta/trust"
	"kith/meta/trust/invite"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
	"kith/store/blobstore"
)

// answer is an error as a program sees it.
type answer struct {
	code   codes.Code
	reason string
	retry  time.Duration
	fields []string // "field: description"
}

// onWire reads an error of a method, which its interceptor would turn into a status.
func onWire(t *testing.T, err error) answer {
	t.Helper()
	if _, ok := status.FromError(err); !ok {
		err = testServer().toStatus(t.Context(), "Test", err)
	}
	st, ok := status.FromError(err)
	if !ok {
		t.Fatalf("%v is not a status", err)
	}
	w := answer{code: st.Code()}
	for _, d := range st.Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			w.reason = d.GetReason()
			if d.GetDomain() != Domain {
				t.Errorf("%v: domain %q", err, d.GetDomain())
			}
		case *errdetails.RetryInfo:
			w.retry = d.GetRetryDelay().AsDuration()
		case *errdetails.BadRequest:
			for _, f := range d.GetFieldViolations() {
				w.fields = append(w.fields, f.GetField()+": "+f.GetDescription())
			}
		}
	}
	return w
}

func testServer() *Server { return New(Config{Logger: slog.New(slog.DiscardHandler)}) }

// The codes and reasons are API: this table changes only when a reason is
// added. Every error of the table is wrapped on its way, as in life.
func TestKindsOfErrors(t *testing.T) {
	s := testServer()
	want := map[error]answer{
		meta.ErrInvalid:         {code: codes.InvalidArgument, reason: "INVALID_JOB"},
		meta.ErrTooLarge:        {code: codes.FailedPrecondition, reason: "NO_SITE_LARGE_ENOUGH"},
		meta.ErrSiteInUse:       {code: codes.FailedPrecondition, reason: "SITE_IN_USE"},
		meta.ErrRequestReused:   {code: codes.AlreadyExists, reason: "REQUEST_ID_REUSED"},
		meta.ErrFull:            {code: codes.ResourceExhausted, reason: "SITE_FULL", retry: 5 * time.Second},
		meta.ErrUnknownJob:      {code: codes.NotFound, reason: "JOB_NOT_FOUND"},
		meta.ErrForeignJob:      {code: codes.FailedPrecondition, reason: "JOB_OF_ANOTHER_SITE"},
		meta.ErrJobEnded:        {code: codes.FailedPrecondition, reason: "JOB_ENDED"},
		meta.ErrJobStarted:      {code: codes.FailedPrecondition, reason: "JOB_STARTED"},
		meta.ErrDependency:      {code: codes.InvalidArgument, reason: "INVALID_DEPENDENCY"},
		meta.ErrNotHeld:         {code: codes.FailedPrecondition, reason: "JOB_NOT_HELD"},
		meta.ErrNotRunning:      {code: codes.FailedPrecondition, reason: "JOB_NOT_RUNNING"},
		meta.ErrNotMovable:      {code: codes.FailedPrecondition, reason: "JOB_NOT_MOVABLE"},
		meta.ErrLastAttempt:     {code: codes.FailedPrecondition, reason: "JOB_LAST_ATTEMPT"},
		meta.ErrEnding:          {code: codes.FailedPrecondition, reason: "JOB_ENDING"},
		meta.ErrUnknownBag:      {code: codes.NotFound, reason: "BAG_NOT_FOUND"},
		meta.ErrBagEnded:        {code: codes.FailedPrecondition, reason: "BAG_ENDED"},
		meta.ErrBagNotHeld:      {code: codes.FailedPrecondition, reason: "BAG_NOT_HELD"},
		meta.ErrBagCancelling:   {code: codes.FailedPrecondition, reason: "BAG_CANCELLING"},
		meta.ErrStalePolicies:   {code: codes.Aborted, reason: "POLICIES_CHANGED"},
		meta.ErrTasksNotEnded:   {code: codes.FailedPrecondition, reason: "TASKS_NOT_ENDED"},
		meta.ErrSingletonRuns:   {code: codes.FailedPrecondition, reason: "SINGLETON_RUNS"},
		ErrNoneFailed:           {code: codes.FailedPrecondition, reason: "NO_TASK_FAILED"},
		job.ErrBadID:            {code: codes.InvalidArgument, reason: "INVALID_JOB_ID"},
		ErrMembersKeys:          {code: codes.FailedPrecondition, reason: "KEYS_OF_MEMBERS"},
		ErrNoMembers:            {code: codes.FailedPrecondition, reason: "NO_MEMBERS"},
		ErrMembership:           {code: codes.FailedPrecondition, reason: "MEMBERSHIP"},
		ErrMemberName:           {code: codes.InvalidArgument, reason: "INVALID_MEMBER"},
		ErrMemberAway:           {code: codes.Unavailable, reason: "MEMBER_UNREACHABLE", retry: 5 * time.Second},
		ErrNoLeader:             {code: codes.Unavailable, reason: "NO_LEADER", retry: 250 * time.Millisecond},
		blobstore.ErrCopies:     {code: codes.Unavailable, reason: "TOO_FEW_MEMBERS", retry: 2 * time.Second},
		ErrStopping:             {code: codes.Unavailable, reason: "SITE_STOPPING", retry: 2 * time.Second},
		ErrNotDurable:           {code: codes.Unavailable, reason: "NOT_DURABLE", retry: 5 * time.Second},
		ErrNoOutput:             {code: codes.NotFound, reason: "OUTPUT_NOT_FOUND"},
		ErrHostAway:             {code: codes.Unavailable, reason: "HOST_UNREACHABLE", retry: 5 * time.Second},
		ErrCursor:               {code: codes.OutOfRange, reason: "CURSOR_TOO_OLD"},
		ErrStalled:              {code: codes.DeadlineExceeded, reason: "UPLOAD_STALLED"},
		ErrBackupTime:           {code: codes.DeadlineExceeded, reason: "BACKUP_STALLED"},
		ErrBusy:                 {code: codes.ResourceExhausted, reason: "TOO_MANY_REQUESTS", retry: time.Second},
		ErrRate:                 {code: codes.ResourceExhausted, reason: "TOO_MANY_REQUESTS", retry: time.Second},
		blobstore.ErrDiskFull:   {code: codes.ResourceExhausted, reason: "DISK_FULL", retry: time.Minute},
		blobstore.ErrQuota:      {code: codes.ResourceExhausted, reason: "QUOTA_EXCEEDED", retry: time.Minute},
		transfer.ErrNotFound:    {code: codes.InvalidArgument, reason: "INPUT_NOT_FOUND"},
		transfer.ErrOutsideRoot: {code: codes.InvalidArgument, reason: "INPUT_OUTSIDE_ROOTS"},
		transfer.ErrNotRegular:  {code: codes.InvalidArgument, reason: "INPUT_NOT_A_FILE"},
		store.ErrUnknown:        {code: codes.NotFound, reason: "JOB_NOT_FOUND"},
		meta.ErrConnected:       {code: codes.FailedPrecondition, reason: "SITE_CONNECTED"},

		meta.ErrNoForecasts:       {code: codes.FailedPrecondition, reason: "NO_FORECASTS"},
		meta.ErrManyQuestions:     {code: codes.ResourceExhausted, reason: "TOO_MANY_REQUESTS", retry: 15 * time.Second},
		ErrNoKeys:                 {code: codes.FailedPrecondition, reason: "NO_KEYS"},
		trust.ErrRotating:         {code: codes.FailedPrecondition, reason: "CA_UNDER_WAY"},
		trust.ErrOffline:          {code: codes.FailedPrecondition, reason: "CA_OFFLINE"},
		ErrNotOperator:            {code: codes.PermissionDenied, reason: "OPERATOR_ONLY"},
		ErrNoTrustedSite:          {code: codes.NotFound, reason: "SITE_NOT_TRUSTED"},
		ErrNoInvitation:           {code: codes.NotFound, reason: "INVITATION_NOT_FOUND"},
		invite.ErrNoOffer:         {code: codes.NotFound, reason: "INVITATION_NOT_FOUND"},
		invite.ErrNothingToDecide: {code: codes.FailedPrecondition, reason: "NOTHING_TO_DECIDE"},
		store.ErrNameTaken:        {code: codes.AlreadyExists, reason: "SITE_NAME_TAKEN"},
		store.ErrInvitationOver:   {code: codes.FailedPrecondition, reason: "INVITATION_OVER"},
		store.ErrOldBundle:        {code: codes.FailedPrecondition, reason: "BUNDLE_OLD"},
		store.ErrNoToken:          {code: codes.NotFound, reason: "TOKEN_NOT_FOUND"},
		store.ErrTrustFull:        {code: codes.ResourceExhausted, reason: "TRUST_TABLE_FULL", retry: time.Minute},
		invite.ErrDeskFull:        {code: codes.ResourceExhausted, reason: "TRUST_TABLE_FULL", retry: time.Minute},
		store.ErrBounds:           {code: codes.InvalidArgument, reason: "INVALID_ARGUMENT"},
		ErrInviterAway:            {code: codes.Unavailable, reason: "INVITER_UNREACHABLE", retry: 5 * time.Second},
		ErrInviter:                {code: codes.FailedPrecondition, reason: "NOT_ADMITTED"},

		meta.ErrUnknownSite: {code: codes.NotFound, reason: "SITE_NOT_FOUND"},
	}
	for _, k := range kinds {
		w, ok := want[k.err]
		if !ok {
			t.Errorf("%q (%s) is not in this test's table", k.err, k.reason)
			continue
		}
		delete(want, k.err)
		err := s.toStatus(t.Context(), "Test", fmt.Errorf("job alpha.1.1: %w", fmt.Errorf("deeper: %w", k.err)))
		if got := onWire(t, err); got.code != w.code || got.reason != w.reason || got.retry != w.retry || len(got.fields) > 0 {
			t.Errorf("%q: %+v, want %+v", k.err, got, w)
		}
		if !strings.Contains(err.Error(), "job alpha.1.1: deeper: "+k.err.Error()) {
			t.Errorf("%q: the text is lost: %v", k.err, err)
		}
		if retries := w.code == codes.ResourceExhausted || w.code == codes.Unavailable; retries != (w.retry > 0) {
			t.Errorf("%q: %v and a time to try again of %v", k.err, w.code, w.retry)
		}
	}
	for err := range want {
		t.Errorf("no caller is told of %q", err)
	}
}

func TestOtherErrors(t *testing.T) {
	s := testServer()
	// A full site says itself when to come back.
	full := s.toStatus(t.Context(), "Test", fmt.Errorf("submit: %w", &meta.FullError{Jobs: 7, RetryAfter: 42 * time.Second}))
	if w := onWire(t, full); w.code != codes.ResourceExhausted || w.retry != 42*time.Second || !strings.Contains(full.Error(), "7 jobs") {
		t.Errorf("%v: %+v", full, w)
	}
	large := s.toStatus(t.Context(), "Test", &meta.TooLargeError{Request: job.Request{Processors: 99}, Widest: "uni-b", Processors: 64})
	if text := large.Error(); !strings.Contains(text, "processors 99") || !strings.Contains(text, "uni-b") || !strings.Contains(text, "64") {
		t.Errorf("%v", large)
	}
	// An error that is in no table stays inside.
	inside := s.toStatus(t.Context(), "Test", errors.New("secret path /x"))
	if w := onWire(t, inside); w.code != codes.Internal || w.reason != "INTERNAL" || strings.Contains(inside.Error(), "secret") {
		t.Errorf("%v: %+v", inside, w)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if w := onWire(t, s.toStatus(gone, "Test", fmt.Errorf("wait: %w", context.Canceled))); w.code != codes.Canceled {
		t.Errorf("%+v", w)
	}
	if err := s.toStatus(t.Context(), "Test", nil); err != nil {
		t.Error(err)
	}
	// All that is wrong is told at once, and a field keeps the reason it came from.
	two := fieldErrors{{Field: "a", Reason: "is odd"}, {Field: "b", Reason: "is missing", Err: fmt.Errorf("x: %w", transfer.ErrNotFound)}}
	w := onWire(t, s.toStatus(t.Context(), "Test", fmt.Errorf("job: %w", two)))
	if w.code != codes.InvalidArgument || w.reason != "INPUT_NOT_FOUND" || len(w.fields) != 2 || w.fields[0] != "a: is odd" || w.fields[1] != "b: is missing" {
		t.Errorf("%+v", w)
	}
	one := onWire(t, s.toStatus(t.Context(), "Test", fmt.Errorf("job: %w", two[0])))
	if one.reason != "INVALID_ARGUMENT" || len(one.fields) != 1 {
		t.Errorf("%+v", one)
	}
}

// The interceptors turn the errors of this server's methods into statuses, and leave
// those of other services alone.
func TestInterceptors(t *testing.T) {
	s, other := testServer(), errors.New("of another service")
	unary := func(server any, err error) error {
		_, err = s.Unary(t.Context(), nil, &grpc.UnaryServerInfo{Server: server, FullMethod: "/kith.v1.JobService/GetJob"},
			func(context.Context, any) (any, error) { return "answer", err })
		return err
	}
	stream := func(server any, err error) error {
		return s.Stream(server, watcher{ctx: t.Context()}, &grpc.StreamServerInfo{FullMethod: "/kith.v1.JobService/WatchJobs"},
			func(any, grpc.ServerStream) error { return err })
	}
	for name, call := range map[string]func(any, error) error{"unary": unary, "stream": stream} {
		if err := call(s, nil); err != nil {
			t.Errorf("%s: %v from nothing", name, err)
		}
		if st, ok := status.FromError(call(s, fmt.Errorf("watch: %w", ErrCursor))); !ok || st.Code() != codes.OutOfRange {
			t.Errorf("%s: %v", name, st)
		}
		if err := call("another server", other); !errors.Is(err, other) {
			t.Errorf("%s: an error of another service became %v", name, err)
		}
	}
}

// An answer names a bounded number of faults, however many there are, and says so.
func TestManyFaults(t *testing.T) {
	r := &kithv1.WatchJobsRequest{}
	for range 1000 {
		r.JobIds = append(r.JobIds, strings.Repeat("x", 200))
	}
	got := onWire(t, checkBounds(r))
	if got.code != codes.InvalidArgument || len(got.fields) != mostFields+1 {
		t.Fatalf("%v with %d fields", got.code, len(got.fields))
	}
	if want := "request: has 980 more faults; mend these first"; got.fields[mostFields] != want {
		t.Errorf("the last is %q, want %q", got.fields[mostFields], want)
	}
}

// A clipped text is within the bound of its field.
func TestClip(t *testing.T) {
	if n := len(clip(strings.Repeat("x", maxShortText+1))); n > maxShortText {
		t.Errorf("a clipped text has %d bytes, at most %d", n, maxShortText)
	}
	if text := strings.Repeat("x", maxShortText); clip(text) != text {
		t.Error("a text within the bound is clipped")
	}
}
