package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
)

// TestExitCodeOf goes through every code of gRPC: what is not in the table is
// a refusal.
func TestExitCodeOf(t *testing.T) {
	t.Parallel()
	want := map[codes.Code]int{
		codes.InvalidArgument: 2, codes.OutOfRange: 2, codes.Unavailable: 3, codes.DeadlineExceeded: 3, codes.ResourceExhausted: 4,
	}
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		if got := exitCodeOf(code); got != max(want[code], 1) {
			t.Errorf("%v: %d", code, got)
		}
	}
}

// TestExplain has the reasons that a site gives, each with its code.
func TestExplain(t *testing.T) {
	t.Parallel()
	cases := []struct {
		code   codes.Code
		reason string
		retry  time.Duration
		exit   int
		want   string
	}{
		{codes.InvalidArgument, "INVALID_JOB", 0, 2, "it is so"},
		{codes.FailedPrecondition, "NO_SITE_LARGE_ENOUGH", 0, 1, `it is so; ask for less; "kith sites" shows what there is`},
		{codes.FailedPrecondition, "SITE_CONNECTED", 0, 1, "it is so"},
		{codes.AlreadyExists, "REQUEST_ID_REUSED", 0, 1, "it is so; use another --request-id, or leave it out"},
		{codes.ResourceExhausted, "SITE_FULL", 5 * time.Second, 4, "it is so; try again in 5s"},
		{codes.NotFound, "JOB_NOT_FOUND", 0, 1, `it is so; "kith queue --all" lists the jobs of this site`},
		{codes.FailedPrecondition, "JOB_OF_ANOTHER_SITE", 0, 1, "it is so; ask that site with --site: a job's id begins with its origin"},
		{codes.FailedPrecondition, "JOB_ENDED", 0, 1, "it is so"},
		{codes.FailedPrecondition, "JOB_STARTED", 0, 1, `it is so; "kith cancel" ends it`},
		{codes.FailedPrecondition, "JOB_NOT_HELD", 0, 1, `it is so; "kith show" tells where it is`},
		{codes.InvalidArgument, "INVALID_JOB_ID", 0, 2, "it is so"},
		{codes.InvalidArgument, "INVALID_DEPENDENCY", 0, 2, "it is so"},
		{codes.Unavailable, "SITE_STOPPING", 2 * time.Second, 3, "it is so; try again in 2s"},
		{codes.NotFound, "OUTPUT_NOT_FOUND", 0, 1, `it is so; "kith show" lists what came back`},
		{codes.Unavailable, "HOST_UNREACHABLE", 5 * time.Second, 3, "it is so; the output is there when the site is back; try again in 5s"},
		{codes.OutOfRange, "CURSOR_TOO_OLD", 0, 2, "it is so"},
		{codes.ResourceExhausted, "TOO_MANY_REQUESTS", time.Second, 4, "it is so; try again in 1s"},
		{codes.ResourceExhausted, "DISK_FULL", time.Minute, 4, "it is so; try again in 1m0s"},
		{codes.ResourceExhausted, "QUOTA_EXCEEDED", time.Minute, 4, "it is so; try again in 1m0s"},
		{codes.InvalidArgument, "INPUT_NOT_FOUND", 0, 2, "it is so"},
		{codes.Internal, "INTERNAL", 0, 1, "it is so"},
	}
	for _, tc := range cases {
		f := (&client{address: "here:1"}).explain(siteError(tc.code, "it is so", tc.reason, tc.retry))
		got, ok := errors.AsType[*cli.Failure](f)
		if !ok || got.Code != tc.exit || len(got.Problems) != 1 || got.Problems[0] != tc.want {
			t.Errorf("%s: %#v", tc.reason, f)
		}
	}
}

func TestExplainOthers(t *testing.T) {
	t.Parallel()
	c := &client{address: "here:1", timeout: time.Second}
	for _, tc := range []struct {
		err  error
		exit int
		want string
	}{
		{status.Error(codes.Unavailable, "connection error: desc = x"), 3, "broke the connection; is it a kithd?"},
		{status.Error(codes.DeadlineExceeded, "context deadline exceeded"), 3, "did not answer within 1s"},
		{context.DeadlineExceeded, 3, "did not answer within 1s"},
		{errSilent, 3, "did not answer within 1s"},
		{status.Error(codes.Unimplemented, "unknown method"), 1, "older than this kith"},
		{errors.New("disk is full"), 1, "disk is full"},
		{cli.Usagef("this %d", 7), 2, "this 7"},
	} {
		got, ok := errors.AsType[*cli.Failure](c.explain(tc.err))
		if !ok || got.Code != tc.exit || !strings.Contains(got.Error(), tc.want) {
			t.Errorf("%v: %#v", tc.err, got)
		}
	}
	socket := &client{address: "unix:/run/kith.sock"}
	if text := socket.explain(status.Error(codes.Unavailable, "error reading from server: EOF")).Error(); strings.Contains(text, "--ca") || !strings.Contains(text, "look whether kithd runs there") {
		t.Errorf("at a socket, which needs no keys: %s", text)
	}
	if c.explain(nil) != nil {
		t.Error("nil is explained")
	}
}

// TestFlagOf checks that every field of a submission has a name on the command
// line, unless it cannot be set there.
func TestFlagOf(t *testing.T) {
	t.Parallel()
	_, flags := submitFlags()
	fields := (&kithv1.Job{}).ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		name := "job." + string(fields.Get(i).Name())
		flag := flagOf(name)
		switch name {
		case "job.id", "job.status", "job.left_out", "job.hold":
			if flag != "" {
				t.Errorf("%s: %q", name, flag)
			}
			continue
		case "job.command", "job.arguments", "job.script":
			continue
		}
		long, _, _ := strings.Cut(strings.TrimPrefix(flag, "--"), " ")
		if flags.Lookup(long) == nil {
			t.Errorf("%s: %q is no flag", name, flag)
		}
	}
	for field, want := range map[string]string{"bag.policies.rank": "--policy", "policies.rank": "FILE"} {
		if flag := flagOf(field); flag != want {
			t.Errorf("%s: %q", field, flag)
		}
	}
	st := status.Convert(siteError(codes.InvalidArgument, "x", "INVALID_ARGUMENT", 0,
		&errdetails.BadRequest_FieldViolation{Field: "job.outputs[3].path", Description: "bad"}))
	if got := violations(st); len(got) != 1 || got[0] != "--output-file (job.outputs[3].path): bad" {
		t.Errorf("%q", got)
	}
}

func TestJobExitCode(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		state        kithv1.JobStatus_State
		exit, signal int32
		want         int
	}{
		{kithv1.JobStatus_STATE_COMPLETED, 0, 0, 0},
		{kithv1.JobStatus_STATE_FAILED, 1, 0, 1},
		{kithv1.JobStatus_STATE_FAILED, 255, 0, 255},
		{kithv1.JobStatus_STATE_FAILED, 0, 15, 143},
		{kithv1.JobStatus_STATE_FAILED, 3, 9, 137},
		{kithv1.JobStatus_STATE_FAILED, 0, 0, 1},
		{kithv1.JobStatus_STATE_TIMEOUT, 0, 9, 124},
		{kithv1.JobStatus_STATE_CANCELLED, 0, 15, 125},
		{kithv1.JobStatus_STATE_LOST, 0, 0, 125},
	} {
		st := &kithv1.JobStatus{State: tc.state, Outcome: &kithv1.Outcome{ExitCode: tc.exit, Signal: tc.signal}}
		if got := jobExitCode(st); got != tc.want {
			t.Errorf("%v %d %d: %d, want %d", tc.state, tc.exit, tc.signal, got, tc.want)
		}
	}
}

// kith runs a command line in this process.
func kith(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, problems bytes.Buffer
	code = run(ctx, args, strings.NewReader(""), &out, &problems)
	return code, out.String(), problems.String()
}

// TestNoKithd asks something that listens and does not speak gRPC.
func TestNoKithd(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() // Ends the goroutine.
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n")
			_ = conn.Close()
		}
	}()
	address := listener.Addr().String()
	code, stdout, stderr := kith(t.Context(), "--site", address, "queue")
	if code != exitUnreachable || stdout != "" || stderr != "kith: site "+address+" broke the connection; is it a kithd? One with keys wants --ca and --token\n" {
		t.Errorf("%d %q %q", code, stdout, stderr)
	}
}

// TestInterrupted ends verbs that wait, as Ctrl-C does.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	f, err := startFake()
	if err != nil {
		t.Fatal(err)
	}
	defer f.down()
	f.replace(&kithv1.Job{Id: "uni-a.1.1", Status: &kithv1.JobStatus{State: kithv1.JobStatus_STATE_QUEUED}})
	for method, args := range map[string][]string{
		"WatchJobs":    {"wait", "uni-a.1.1"},
		"GetJobOutput": {"logs", "-f", "uni-a.1.1"},
		"ListSites":    {"sites"},
	} {
		f.fail(method, &fault{silent: true, times: 1})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer cancel()
			for {
				seen, changed := f.seen(method)
				if len(seen) > 0 {
					return
				}
				<-changed
			}
		}()
		code, stdout, stderr := kith(ctx, append([]string{"--site", f.addr}, args...)...)
		if code != cli.ExitInterrupted || stdout != "" || stderr != "kith: interrupted\n" {
			t.Errorf("%s: %d %q %q", args, code, stdout, stderr)
		}
	}
}

// brokenPipe is a stdout that takes nothing.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// TestFullDisk checks that an answer that cannot be written is a failure.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	var problems bytes.Buffer
	code := run(t.Context(), []string{"version"}, strings.NewReader(""), brokenPipe{}, &problems)
	if code != cli.ExitRefused || problems.String() != "kith: write the answer: no space left on device\n" {
		t.Errorf("%d %q", code, problems.String())
	}
}

// TestHelpOfVerbs checks that each verb can be explained and that its flags
// and its siblings' do not clash.
func TestHelpOfVerbs(t *testing.T) {
	t.Parallel()
	for _, v := range verbs() {
		code, stdout, stderr := kith(t.Context(), "help", v.name)
		if code != cli.ExitOK || stderr != "" || len(stdout) < 20 {
			t.Errorf("%s: %d %q %q", v.name, code, stdout, stderr)
		}
	}
}

// A verb that is made alone is the same as among all others: the table has its
// name, and it explains itself alike. Without a verb at the front all are made.
func TestVerbMadeAlone(t *testing.T) {
	t.Parallel()
	for _, v := range verbs() {
		if name := v.make(newClient(nil, nil, nil)).Name(); name != v.name {
			t.Errorf("the verb %q is %q in the table", name, v.name)
		}
		if list := needed([]string{v.name, "--help"}); len(list) != 1 || list[0].name != v.name {
			t.Errorf("%s: %d verbs are made for it", v.name, len(list))
		}
		_, alone, _ := kith(t.Context(), v.name, "--help")
		if _, among, _ := kith(t.Context(), "--output", "table", v.name, "--help"); alone != among {
			t.Errorf("%s --help is %q, among all verbs %q", v.name, alone, among)
		}
	}
	for _, args := range [][]string{nil, {"--site", "a:1", "queue"}, {"help", "queue"}, {"__complete", ""}, {"quue"}} {
		if got := len(needed(args)); got != len(verbs()) {
			t.Errorf("%q: %d verbs are made", args, got)
		}
	}
}

// What speaks HTTP/2 and no gRPC is no old kithd (D15).
func TestExplainAnotherServer(t *testing.T) {
	c := still(0)
	c.address = "127.0.0.1:80"
	err := c.explain(status.Error(codes.Unimplemented, "unexpected HTTP status code received from server: 404 (Not Found)"))
	f, ok := errors.AsType[*cli.Failure](err)
	if !ok || f.Code != exitUnreachable || !strings.Contains(f.Problems[0], "is it a kithd?") {
		t.Errorf("%v", err)
	}
	err = c.explain(status.Error(codes.Unimplemented, "unknown method Fly"))
	if f, ok := errors.AsType[*cli.Failure](err); !ok || f.Code != cli.ExitRefused {
		t.Errorf("%v", err)
	}
}
