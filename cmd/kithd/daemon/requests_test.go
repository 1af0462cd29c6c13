package daemon

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	kithv1 "kith/proto/gen/kith/v1"
)

func TestCancelHoldRelease(t *testing.T) {
	t.Parallel()
	sites := federation(t, nil, "alpha", "beta")
	a := sites[0]
	release := a.busy()
	away := a.submit(shell("trap '' TERM; sleep 600")) // ignores SIGTERM
	a.waitState(away, kithv1.JobStatus_STATE_RUNNING)
	cancel := func(id string) error {
		_, err := a.jobs.CancelJob(a.ctx(), &kithv1.CancelJobRequest{JobId: id})
		return err
	}
	if err := cancel(away); err != nil {
		t.Error(err)
	}
	if s := a.waitState(away, kithv1.JobStatus_STATE_CANCELLED).GetStatus(); s.GetHostSiteId() != "beta" || s.GetOutcome().GetReason() == "" {
		t.Errorf("cancelled away: %v", s)
	}
	wide := shell("true")
	wide.Processors, wide.Hold = 2, true
	id := a.submit(wide)
	if s := a.get(id).GetStatus().GetState(); s != kithv1.JobStatus_STATE_HELD {
		t.Errorf("submitted on hold: %v", s)
	}
	if _, err := a.jobs.ReleaseJob(a.ctx(), &kithv1.ReleaseJobRequest{JobId: id}); err != nil {
		t.Error(err)
	}
	a.waitState(id, completed)
	release()
	for what, err := range map[string]error{
		"cancel an ended job":    cancel(id),
		"cancel an unknown job":  cancel(strings.TrimRight(id, "0123456789") + "999"),
		"cancel a foreign job":   cancel("beta.1.1"),
		"cancel without a job":   cancel(""),
		"release what runs free": func() error { _, err := a.jobs.ReleaseJob(a.ctx(), &kithv1.ReleaseJobRequest{JobId: id}); return err }(),
	} {
		want := map[string]codes.Code{
			"cancel an unknown job": codes.NotFound, "cancel without a job": codes.InvalidArgument,
		}[what]
		if want == codes.OK {
			want = codes.FailedPrecondition
		}
		if status.Code(err) != want {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
}

func TestWalltime(t *testing.T) {
	t.Parallel()
	s := startSite(t, testConfig(t, "alpha"))
	j := shell("sleep 600")
	j.Walltime = durationpb.New(300 * time.Millisecond)
	got := s.waitState(s.submit(j), kithv1.JobStatus_STATE_TIMEOUT, failed)
	if o := got.GetStatus().GetOutcome(); got.GetStatus().GetState() != kithv1.JobStatus_STATE_TIMEOUT || o.GetReason() == "" {
		t.Errorf("%v", got.GetStatus())
	}
}

// reasonOf returns the ErrorInfo reason and the named fields of an error.
func reasonOf(err error) (reason string, fields []string, retry bool) {
	for _, d := range status.Convert(err).Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			reason = d.GetReason()
		case *errdetails.BadRequest:
			for _, f := range d.GetFieldViolations() {
				fields = append(fields, f.GetField())
			}
		case *errdetails.RetryInfo:
			retry = d.GetRetryDelay().AsDuration() > 0
		}
	}
	return reason, fields, retry
}

// Bad submissions name field, value and remedy, and leave nothing behind.
func TestBadSubmissions(t *testing.T) {
	root := t.TempDir()
	outside := filepath.Join(t.TempDir(), "secret")
	for path, content := range map[string]string{filepath.Join(root, "good.txt"): "x", outside: "secret"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	c := testConfig(t, "alpha")
	c.Files.InputRoots = []string{root}
	s := startSite(t, c)
	source := func(path string) []*kithv1.InputFile {
		return []*kithv1.InputFile{{Path: "in", Content: &kithv1.InputFile_Source{Source: path}}}
	}
	good := func() *kithv1.Job { return shell("true") }
	for name, c := range map[string]struct {
		spoil  func(*kithv1.Job)
		code   codes.Code
		reason string
		field  string
		says   string
	}{
		"no processors":       {func(j *kithv1.Job) { j.Processors = 0 }, codes.InvalidArgument, "INVALID_ARGUMENT", "job.processors", "at least 1"},
		"negative processors": {func(j *kithv1.Job) { j.Processors = -4 }, codes.InvalidArgument, "INVALID_ARGUMENT", "job.processors", "-4"},
		"no walltime":         {func(j *kithv1.Job) { j.Walltime = nil }, codes.InvalidArgument, "INVALID_ARGUMENT", "job.walltime", "missing"},
		"zero walltime":       {func(j *kithv1.Job) { j.Walltime = durationpb.New(0) }, codes.InvalidArgument, "INVALID_ARGUMENT", "job.walltime", "positive"},
		"negative walltime":   {func(j *kithv1.Job) { j.Walltime = durationpb.New(-1) }, codes.InvalidArgument, "INVALID_ARGUMENT", "job.walltime", "positive"},
		"too wide":            {func(j *kithv1.Job) { j.Processors = 99 }, codes.FailedPrecondition, "NO_SITE_LARGE_ENOUGH", "", "alpha, has 2"},
		"empty command":       {func(j *kithv1.Job) { j.Command = nil }, codes.InvalidArgument, "INVALID_ARGUMENT", "job.command", "empty"},
		"empty program":       {func(j *kithv1.Job) { j.Command = []string{""} }, codes.InvalidArgument, "INVALID_ARGUMENT", "job.command[0]", "program"},
		"command and script":  {func(j *kithv1.Job) { j.Script = "#!/bin/sh\n" }, codes.InvalidArgument, "INVALID_ARGUMENT", "job.command", "one of them"},
		"long script": {
			func(j *kithv1.Job) { j.Command, j.Script = nil, "#!/bin/sh\n"+strings.Repeat("x", 1<<20) },
			codes.InvalidArgument, "INVALID_ARGUMENT", "job.script", "1048576",
		},
		"script without interpreter": {func(j *kithv1.Job) { j.Command, j.Script = nil, "echo" }, codes.InvalidArgument, "INVALID_ARGUMENT", "job.script", "#!"},
		"unknown field": {
			func(j *kithv1.Job) { j.ProtoReflect().SetUnknown([]byte{0xfa, 0x3f, 0x01, 'x'}) },
			codes.InvalidArgument, "INVALID_ARGUMENT", "request.job", "1023",
		},
		"unknown nested field": {
			func(j *kithv1.Job) {
				in := &kithv1.InputFile{Path: "x", Content: &kithv1.InputFile_Data{}}
				in.ProtoReflect().SetUnknown([]byte{0xf8, 0x3f, 0x01})
				j.Inputs = []*kithv1.InputFile{in}
			},
			codes.InvalidArgument, "INVALID_ARGUMENT", "request.job.inputs[0]", "1023",
		},
		"sets the id":          {func(j *kithv1.Job) { j.Id = "alpha.1.1" }, codes.InvalidArgument, "INVALID_ARGUMENT", "job.id", "set by Kith"},
		"no such input":        {func(j *kithv1.Job) { j.Inputs = source(root + "/nothing") }, codes.InvalidArgument, "INPUT_NOT_FOUND", "job.inputs[0].source", "nothing"},
		"input outside":        {func(j *kithv1.Job) { j.Inputs = source(outside) }, codes.InvalidArgument, "INPUT_OUTSIDE_ROOTS", "job.inputs[0].source", "outside"},
		"input escapes":        {func(j *kithv1.Job) { j.Inputs = source(root + "/../x") }, codes.InvalidArgument, "", "job.inputs[0].source", ""},
		"input by a link":      {func(j *kithv1.Job) { j.Inputs = source(root + "/link") }, codes.InvalidArgument, "INPUT_OUTSIDE_ROOTS", "job.inputs[0].source", "link"},
		"input is a folder":    {func(j *kithv1.Job) { j.Inputs = source(root) }, codes.InvalidArgument, "", "job.inputs[0].source", ""},
		"input leaves folder":  {func(j *kithv1.Job) { j.Inputs = source(root + "/good.txt"); j.Inputs[0].Path = "../up" }, codes.InvalidArgument, "INVALID_ARGUMENT", "job.inputs[0].path", "leaves"},
		"input without bytes":  {func(j *kithv1.Job) { j.Inputs = []*kithv1.InputFile{{Path: "x"}} }, codes.InvalidArgument, "INVALID_ARGUMENT", "job.inputs[0]", "content"},
		"output leaves folder": {func(j *kithv1.Job) { j.Outputs = []*kithv1.OutputFile{{Path: "/etc/passwd"}} }, codes.InvalidArgument, "INVALID_ARGUMENT", "job.outputs[0].path", "leaves"},
		"tasks do not divide":  {func(j *kithv1.Job) { j.Processors, j.Tasks = 2, 3 }, codes.InvalidArgument, "INVALID_ARGUMENT", "job.tasks", "multiple"},
		"absurd copies":        {func(j *kithv1.Job) { j.Copies = 1000 }, codes.InvalidArgument, "INVALID_ARGUMENT", "job.copies", "64"},
		"bad variable":         {func(j *kithv1.Job) { j.Environment = map[string]string{"A=B": "x"} }, codes.InvalidArgument, "INVALID_ARGUMENT", "job.environment", "="},
	} {
		t.Run(name, func(t *testing.T) {
			j := good()
			c.spoil(j)
			_, err := s.jobs.SubmitJob(s.ctx(), &kithv1.SubmitJobRequest{Job: j})
			reason, fields, _ := reasonOf(err)
			if status.Code(err) != c.code || (c.reason != "" && reason != c.reason) {
				t.Errorf("%v with reason %q; want %v with %q", err, reason, c.code, c.reason)
			}
			if c.field != "" && (len(fields) == 0 || fields[0] != c.field) {
				t.Errorf("fields %v, want %s", fields, c.field)
			}
			if err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%q does not say %q", err, c.says)
			}
		})
	}
	r, err := s.jobs.ListJobs(s.ctx(), &kithv1.ListJobsRequest{AllStates: true})
	if err != nil || len(r.GetJobs()) != 0 {
		t.Errorf("%d jobs were made, %v", len(r.GetJobs()), err)
	}
	if _, err := s.jobs.SubmitJob(s.ctx(), &kithv1.SubmitJobRequest{}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("no job at all: %v", err)
	}
	ok := good()
	ok.Inputs = source(root + "/good.txt")
	ok.Command = []string{"/bin/cat", "in"}
	if id := s.submit(ok); s.waitState(id, completed) == nil || s.output(id, "") != "x" {
		t.Error("the good input did not arrive")
	}
}

// raw is bytes that go as they are for a message.
type raw struct{}

func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}
func (raw) Unmarshal(mem.BufferSlice, any) error { return nil }
func (raw) Name() string                         { return "proto" }

// Requests of millions of parts, or of parts in parts without end, are refused in words
// that are short. Lists are cut before they are decoded: 64 requests of 3 MiB that were
// nothing but inputs took 2.7 GiB.
func TestRequestsOfManyParts(t *testing.T) {
	t.Parallel()
	s := startSite(t, testConfig(t, "alpha"))
	conn := s.connect(s.d.Address(), insecure.NewCredentials())
	nested := func(depth int) []byte { // groups 99, each in the one before
		return append(bytes.Repeat([]byte{0x9b, 0x06}, depth), bytes.Repeat([]byte{0x9c, 0x06}, depth)...)
	}
	parts := func(key ...byte) []byte { // a job of nothing else
		b := binary.AppendUvarint([]byte{0x12}, 3<<20)
		return append(b, bytes.Repeat(key, 3<<20/len(key))...)
	}
	for name, c := range map[string]struct {
		request []byte
		code    codes.Code
		says    string
	}{
		"1,000 levels":           {nested(1000), codes.InvalidArgument, "field number 99"},
		"9,000 levels":           {nested(9000), codes.InvalidArgument, "field number 99"},
		"20,000 levels":          {nested(20_000), codes.Internal, "cannot parse"}, // protobuf reads 10,000
		"1,000,000 levels":       {nested(1_000_000), codes.Internal, "cannot parse"},
		"1,500,000 inputs":       {parts(0x6a, 0x00), codes.InvalidArgument, "job.inputs: 2000 of them, at most 1000"},
		"1,500,000 words":        {parts(0x1a, 0x00), codes.InvalidArgument, "job.command: has 132072 bytes"},
		"a million odd fields":   {parts(0x98, 0x06, 0x01), codes.InvalidArgument, "field number 99"},
		"levels that do not end": {bytes.Repeat([]byte{0x9b, 0x06}, 9000), codes.Internal, "cannot parse"},
	} {
		t.Run(name, func(t *testing.T) {
			err := conn.Invoke(s.ctx(), "/kith.v1.JobService/SubmitJob", c.request, new([]byte), grpc.ForceCodecV2(raw{}))
			if status.Code(err) != c.code || !strings.Contains(fmt.Sprint(err), c.says) || len(err.Error()) > 4<<10 {
				t.Errorf("%.600v, %d bytes; want %v and %q", err, len(fmt.Sprint(err)), c.code, c.says)
			}
		})
	}
	if id := s.submit(shell("true")); s.waitState(id, completed) == nil {
		t.Error("no job runs behind them")
	}
}

func TestRequestID(t *testing.T) {
	t.Parallel()
	c := testConfig(t, "alpha")
	c.Limits.Jobs = 2
	s := startSite(t, c)
	release := s.busy()
	j := shell("true")
	submit := func(id string, j *kithv1.Job) (string, error) {
		r, err := s.jobs.SubmitJob(s.ctx(), &kithv1.SubmitJobRequest{RequestId: id, Job: proto.CloneOf(j)})
		return r.GetJobId(), err
	}
	first, err := submit("r-1", j)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { // what still starts would write into a folder that goes
		release()
		s.waitState(first, completed)
	}()
	if again, err := submit("r-1", j); again != first || err != nil {
		t.Errorf("repeated: %q, %v; want %q", again, err, first)
	}
	s.restart()
	if again, err := submit("r-1", j); again != first || err != nil {
		t.Errorf("repeated after a restart: %q, %v; want %q", again, err, first)
	}
	_, err = submit("r-1", shell("false"))
	if reason, _, _ := reasonOf(err); status.Code(err) != codes.AlreadyExists || reason != "REQUEST_ID_REUSED" {
		t.Errorf("with another job: %v", err)
	}
	_, err = submit("r-2", j)
	if reason, _, retry := reasonOf(err); status.Code(err) != codes.ResourceExhausted || reason != "SITE_FULL" || !retry {
		t.Errorf("a full site: %v", err)
	}
}

func TestDrainAndWatch(t *testing.T) {
	t.Parallel()
	sites := federation(t, nil, "alpha", "beta")
	a, b := sites[0], sites[1]
	watch, err := a.jobs.WatchJobs(a.ctx(), &kithv1.WatchJobsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.sites.DrainSite(a.ctx(), &kithv1.DrainSiteRequest{Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	id := a.submit(shell("true"))
	seen := map[kithv1.JobStatus_State]bool{}
	cursor := ""
	for !seen[completed] {
		r, err := watch.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if r.GetJob().GetId() == id {
			seen[r.GetJob().GetStatus().GetState()] = true
			cursor = r.GetCursor()
			if h := r.GetJob().GetStatus().GetHostSiteId(); h == "alpha" {
				t.Errorf("a draining site runs the job")
			}
		}
	}
	r, err := b.sites.ListSites(b.ctx(), &kithv1.ListSitesRequest{})
	if err != nil || len(r.GetSites()) != 2 || !r.GetSites()[1].GetDraining() {
		t.Errorf("beta does not see the drain: %v, %v", r.GetSites(), err)
	}
	if _, err := a.sites.ResumeSite(a.ctx(), &kithv1.ResumeSiteRequest{}); err != nil {
		t.Fatal(err)
	}
	// A watcher that comes back goes on where it was.
	second := a.submit(shell("true"))
	again, err := a.jobs.WatchJobs(a.ctx(), &kithv1.WatchJobsRequest{Cursor: cursor, JobIds: []string{second}})
	if err != nil {
		t.Fatal(err)
	}
	for {
		r, err := again.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if r.GetJob().GetId() != second {
			t.Errorf("watching %s, got %s", second, r.GetJob().GetId())
		}
		if r.GetJob().GetStatus().GetState() == completed {
			break
		}
	}
	old, err := a.jobs.WatchJobs(a.ctx(), &kithv1.WatchJobsRequest{Cursor: "1-1"})
	if err == nil {
		_, err = old.Recv()
	}
	if status.Code(err) != codes.OutOfRange {
		t.Errorf("a cursor of another life: %v", err)
	}
}

func TestListJobsPages(t *testing.T) {
	t.Parallel()
	s := startSite(t, testConfig(t, "alpha"))
	release := s.busy()
	want := map[string]bool{}
	for i := range 25 {
		j := shell("true")
		j.Labels = map[string]string{"parity": fmt.Sprint(i % 2)}
		want[s.submit(j)] = i%2 == 0
	}
	count := func(labels map[string]string) int {
		n, token := 0, ""
		for {
			r, err := s.jobs.ListJobs(s.ctx(), &kithv1.ListJobsRequest{PageSize: 4, PageToken: token, Labels: labels})
			if err != nil {
				t.Fatal(err)
			}
			if len(r.GetJobs()) > 4 {
				t.Fatalf("page of %d", len(r.GetJobs()))
			}
			n += len(r.GetJobs())
			if token = r.GetNextPageToken(); token == "" {
				return n
			}
		}
	}
	if n := count(nil); n != 26 {
		t.Errorf("%d jobs, want 26", n)
	}
	if n := count(map[string]string{"parity": "0"}); n != 13 {
		t.Errorf("%d even jobs, want 13", n)
	}
	for name, r := range map[string]*kithv1.ListJobsRequest{"page size": {PageSize: 5000}, "token": {PageToken: "nonsense"}} {
		if _, err := s.jobs.ListJobs(s.ctx(), r); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	release()
	for id := range want {
		s.waitState(id, completed)
	}
}
