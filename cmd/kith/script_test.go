package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/timestamppb"

	"kith/internal/cli/clitest"
	"kith/internal/scratch"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/testbed/local/inprocess"
)

func TestMain(m *testing.M) {
	// In the script of the demo this test binary is the sites, too.
	if handled, code := inprocess.Main(os.Args); handled {
		os.Exit(code)
	}
	scratch.InMemory()
	testscript.Main(m, map[string]func(){"kith": main})
}

// update rewrites what the tests compare with; read the difference.
var update = flag.Bool("update", false, "rewrite golden files")

type fakeKey struct{}

// TestScripts runs testdata/*.txtar, each with a fake site of its own at
// $KITH_SITE. Beside the commands of package testscript there are:
//
//	until FILE TEXT             waits until the file has the text in it
//	code N COMMAND ARGS...      runs a command that must exit with N
//	site job FILE               adds or replaces a job, in proto JSON
//	site state JOB STATE [exit=N] [signal=N] [reason=TEXT] [host=SITE]
//	site tasks BAG INDICES CODE ends tasks of a bag with an exit code
//	site output JOB NAME FILE   appends to an output of a job
//	site fail METHOD CODE REASON TEXT [times=N] [retry=D] [field=NAME:TEXT] [late]
//	site silent METHOD          lets the next call hang
//	site wait METHOD N          waits for the Nth call
//	site requests METHOD FILE   writes the requests so far as lines of proto JSON
//	site uploads FILE           writes the sizes of uploads and of their pieces
//	site sites FILE, site remote FILE   sets the known sites, the hosted copies
//	site history FILE           sets what is past, as an answer of ListHistory
//	site whatif FILE            sets the answer of ForecastJob
//	site page N                 sets the size of pages
//	site up, site down          starts and stops it
//	big FILE SIZE               makes a large file
//	mkfifo FILE                 makes a pipe
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Setup: func(env *testscript.Env) error {
			f, err := startFake()
			if err != nil {
				return err
			}
			env.Defer(f.down)
			env.Values[fakeKey{}] = f
			env.Setenv("KITH_SITE", f.addr)
			env.Setenv("TZ", "UTC")
			env.Setenv("GORACE", "atexit_sleep_ms=10") // else each command takes a second longer
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":   clitest.ExitsWith,
			"until":  untilWritten,
			"site":   tellSite,
			"big":    makeBig,
			"mkfifo": makePipe,
		},
	})
}

func untilWritten(ts *testscript.TestScript, _ bool, args []string) {
	for range 1000 {
		if b, err := os.ReadFile(ts.MkAbs(args[0])); err == nil && strings.Contains(string(b), args[1]) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	ts.Fatalf("%s never had %q in it", args[0], args[1])
}

func makeBig(ts *testscript.TestScript, _ bool, args []string) {
	size, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), make([]byte, size), 0o600))
}

func makePipe(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(syscall.Mkfifo(ts.MkAbs(args[0]), 0o600))
}

// tellSite is the command "site".
func tellSite(ts *testscript.TestScript, neg bool, args []string) {
	f := ts.Value(fakeKey{}).(*fakeSite)
	if neg || len(args) == 0 {
		ts.Fatalf("usage: site WHAT ...")
	}
	what, rest := args[0], args[1:]
	switch what {
	case "job":
		j := &kithv1.Job{}
		ts.Check(protojson.Unmarshal([]byte(ts.ReadFile(rest[0])), j))
		f.change(func() { f.replace(j) })
	case "state":
		f.change(func() { ts.Check(f.setState(rest)) })
	case "tasks":
		code, err := strconv.ParseInt(rest[2], 10, 32)
		ts.Check(err)
		ts.Check(f.bags.end(rest[0], rest[1], int32(code), len(rest) > 3))
	case "output":
		text := ts.ReadFile(rest[2])
		f.change(func() { f.addOutput(rest[0], rest[1], text) })
	case "fail":
		ft, err := parseFault(rest)
		ts.Check(err)
		f.fail(rest[0], ft)
	case "silent":
		f.fail(rest[0], &fault{silent: true, times: 1})
	case "wait":
		waitForCalls(ts, f, rest)
	case "requests":
		var b strings.Builder
		seen, _ := f.seen(rest[0])
		for _, m := range seen {
			line, err := compactJSON(m)
			ts.Check(err)
			b.WriteString(string(line) + "\n")
		}
		ts.Check(os.WriteFile(ts.MkAbs(rest[1]), []byte(b.String()), 0o600))
	case "uploads":
		var b strings.Builder
		f.change(func() {
			for _, u := range f.uploads {
				fmt.Fprintf(&b, "upload %d\n", len(u))
			}
			fmt.Fprintf(&b, "pieces %v\n", f.pieces)
		})
		ts.Check(os.WriteFile(ts.MkAbs(rest[0]), []byte(b.String()), 0o600))
	case "sites":
		list := &kithv1.ListSitesResponse{}
		ts.Check(protojson.Unmarshal([]byte(ts.ReadFile(rest[0])), list))
		f.change(func() { f.sites = list })
	case "remote":
		list := &kithv1.ListJobsResponse{}
		ts.Check(protojson.Unmarshal([]byte(ts.ReadFile(rest[0])), list))
		f.change(func() { f.remote = list.RemoteCopies })
	case "whatif":
		r := &kithv1.ForecastJobResponse{}
		ts.Check(protojson.Unmarshal([]byte(ts.ReadFile(rest[0])), r))
		f.change(func() { f.whatIf = r })
	case "harm":
		r := &kithv1.GetHarmResponse{}
		ts.Check(protojson.Unmarshal([]byte(ts.ReadFile(rest[0])), r))
		f.change(func() { f.harm = r })
	case "forecasts":
		r := &kithv1.GetForecastsResponse{}
		ts.Check(protojson.Unmarshal([]byte(ts.ReadFile(rest[0])), r))
		f.change(func() { f.outcomes = r })
	case "history":
		list := &kithv1.ListHistoryResponse{}
		ts.Check(protojson.Unmarshal([]byte(ts.ReadFile(rest[0])), list))
		f.change(func() { f.history = list.Attempts })
	case "page":
		n, err := strconv.Atoi(rest[0])
		ts.Check(err)
		f.change(func() { f.page = n })
	case "up":
		ts.Check(f.up())
	case "down":
		f.down()
	default:
		ts.Fatalf("site %s: unknown", what)
	}
}

func waitForCalls(ts *testscript.TestScript, f *fakeSite, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	deadline := time.After(20 * time.Second)
	for {
		seen, changed := f.seen(args[0])
		if len(seen) >= n {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			ts.Fatalf("%d calls of %s, want %d", len(seen), args[0], n)
		}
	}
}

// replace adds a job or replaces the one of its id.
func (f *fakeSite) replace(j *kithv1.Job) {
	for i := range f.jobs {
		if f.jobs[i].GetId() == j.GetId() {
			f.jobs[i] = j
			return
		}
	}
	f.jobs = append(f.jobs, j)
}

// setState moves a job on.
func (f *fakeSite) setState(args []string) error {
	j, err := f.find(args[0])
	if err != nil {
		return err
	}
	st := j.Status
	st.Reason = ""
	st.State = kithv1.JobStatus_State(kithv1.JobStatus_State_value["STATE_"+args[1]])
	if st.State >= kithv1.JobStatus_STATE_RUNNING && st.StartTime == nil && st.State != kithv1.JobStatus_STATE_CANCELLED {
		st.StartTime = timestamppb.New(time.Date(2026, 11, 21, 9, 42, 3, 0, time.UTC))
	}
	if ended(st.State) {
		st.EndTime = timestamppb.New(time.Date(2026, 11, 21, 9, 43, 33, 0, time.UTC))
		if st.Outcome == nil {
			st.Outcome = &kithv1.Outcome{}
			for _, key := range slices.Sorted(maps.Keys(f.outputs)) {
				if name, ok := strings.CutPrefix(key, args[0]+"/"); ok {
					st.Outcome.Outputs = append(st.Outcome.Outputs, &kithv1.OutputInfo{Path: name, SizeBytes: int64(len(f.outputs[key]))})
				}
			}
		}
	}
	for _, arg := range args[2:] {
		name, value, _ := strings.Cut(arg, "=")
		number, _ := strconv.ParseInt(value, 10, 32)
		switch name {
		case "exit":
			st.Outcome.ExitCode = int32(number)
		case "signal":
			st.Outcome.Signal = int32(number)
		case "reason":
			st.Outcome.Reason = value
		case "host":
			st.HostSiteId = value
		default:
			return fmt.Errorf("site state: unknown %q", arg)
		}
	}
	return nil
}

// addOutput appends to an output and lists it in the outcome.
func (f *fakeSite) addOutput(id, name, text string) {
	key := id + "/" + name
	f.outputs[key] = append(f.outputs[key], text...)
	j, err := f.find(id)
	if err != nil || j.Status.Outcome == nil {
		return
	}
	for _, o := range j.Status.Outcome.Outputs {
		if o.GetPath() == name {
			o.SizeBytes = int64(len(f.outputs[key]))
			return
		}
	}
	j.Status.Outcome.Outputs = append(j.Status.Outcome.Outputs, &kithv1.OutputInfo{Path: name, SizeBytes: int64(len(f.outputs[key]))})
}

// parseFault reads METHOD CODE REASON TEXT and what follows.
func parseFault(args []string) (*fault, error) {
	var code codes.Code
	if err := code.UnmarshalJSON([]byte(strconv.Quote(args[1]))); err != nil {
		return nil, err
	}
	ft := &fault{times: 1}
	retry := time.Duration(0)
	var fields []*errdetails.BadRequest_FieldViolation
	for _, arg := range args[4:] {
		name, value, _ := strings.Cut(arg, "=")
		var err error
		switch name {
		case "times":
			ft.times, err = strconv.Atoi(value)
		case "retry":
			retry, err = time.ParseDuration(value)
		case "field":
			field, text, _ := strings.Cut(value, ":")
			fields = append(fields, &errdetails.BadRequest_FieldViolation{Field: field, Description: text})
		case "late":
			ft.late = true
		default:
			err = fmt.Errorf("site fail: unknown %q", arg)
		}
		if err != nil {
			return nil, err
		}
	}
	ft.err = siteError(code, args[3], args[2], retry, fields...)
	return ft, nil
}
