package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/testbed/demo"
)

// golden compares with testdata/golden/NAME, or writes it with -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
	}
}

// still is a client in a place and at a time that do not change.
func still(width int) *client {
	c := newClient(nil, &bytes.Buffer{}, &bytes.Buffer{})
	c.Width, c.Zone = width, time.FixedZone("CET", 3600)
	c.Now = func() time.Time { return time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC) }
	return c
}

// load reads a message in proto JSON from testdata/golden.
func load[M proto.Message](t *testing.T, name string, m M) M {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "golden", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := protojson.Unmarshal(b, m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestTables(t *testing.T) {
	t.Parallel()
	list := load(t, "jobs.json", &kithv1.ListJobsResponse{})
	golden(t, "queue.txt", still(0).queueText(list, nil, true, liveColumns, false))
	golden(t, "queue-80.txt", still(80).queueText(list, nil, true, liveColumns, false))
	golden(t, "queue-20.txt", still(20).queueText(list, nil, false, liveColumns, false))
	golden(t, "queue-none.txt", still(80).queueText(&kithv1.ListJobsResponse{}, nil, true, liveColumns, false))
	for _, rank := range []string{"procs", "start", "none"} {
		j := load(t, "why.json", &kithv1.Job{})
		j.Status.Rank = rank
		golden(t, "why-"+rank+".txt", still(100).whyText(j))
	}
	golden(t, "why-pending.txt", still(0).whyText(&kithv1.Job{Id: "uni-a.1.1", Status: &kithv1.JobStatus{State: kithv1.JobStatus_STATE_PENDING}}))
	for _, j := range list.GetJobs()[:3] {
		golden(t, "show-"+strings.ToLower(stateWord(j.GetStatus().GetState()))+".txt", still(0).showText(j))
	}
}

// TestTableWidth checks that no line of a table is wider than it may be.
func TestTableWidth(t *testing.T) {
	t.Parallel()
	list := load(t, "jobs.json", &kithv1.ListJobsResponse{})
	for width := 90; width <= 200; width++ {
		for line := range strings.Lines(still(width).queueText(list, nil, true, liveColumns, false)) {
			if w := cli.TextWidth(strings.TrimRight(line, "\n")); w > width {
				t.Fatalf("width %d: %d columns in %q", width, w, line)
			}
		}
	}
}

// TestNarrowTables checks that the tables of sites and of the demo fit narrow
// terminals, show what matters most there, and all of it in a pipe (D23).
func TestNarrowTables(t *testing.T) {
	t.Parallel()
	sites := &kithv1.ListSitesResponse{}
	result := &demo.Result{}
	for _, name := range []string{"alpha", "bravo", "delta"} {
		sites.Sites = append(sites.Sites, &kithv1.Site{
			Id: name, Reachability: kithv1.Site_REACHABILITY_UNREACHABLE, Processors: 1024, MemoryBytes: 1 << 38, Speed: 1.25, Version: "v1.22.333",
			FreeProcessors: 1000, Policy: "easy, dual-backfill, scope all", LoadTime: timestamppb.Now(), LoadWorkSeconds: 90000,
			ConnectionError: "nothing listens at this address",
		})
		result.Sites = append(result.Sites, demo.SiteResult{Site: name, Address: "127.0.0.1:40000", Processors: 64, Policy: "easy, dual-backfill", MeanWaitSeconds: 12})
	}
	for width := 70; width <= 200; width++ {
		s := still(width).sitesText(sites)
		table, _, _ := strings.Cut(strings.TrimPrefix(demoSummary(result, width), "\n"), "\n\n")
		for line := range strings.Lines(s + table) {
			if w := cli.TextWidth(strings.TrimRight(line, "\n")); w > width {
				t.Fatalf("width %d: %d columns in %q", width, w, line)
			}
		}
		if !strings.Contains(s, "NOTE") || !strings.Contains(s, "LOAD") || !strings.Contains(table, "RAN") {
			t.Fatalf("width %d: %s%s", width, s, table)
		}
	}
	if s := still(0).sitesText(sites); !strings.Contains(s, "v1.22.333") || !strings.Contains(s, "MEMORY") {
		t.Error(s)
	}
}

// TestLongNameDoesNotWidenTheQueue checks that a pipe gets a name cut, unless
// the user chose the columns (D23).
func TestLongNameDoesNotWidenTheQueue(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 200)
	list := &kithv1.ListJobsResponse{Jobs: []*kithv1.Job{{Id: "uni-a.1.1", Name: long}, {Id: "uni-a.1.2", Name: "b"}}}
	list.RemoteCopies = []*kithv1.HostedCopy{{JobId: "uni-b.1.1", Name: long}}
	for line := range strings.Lines(still(0).queueText(list, nil, true, liveColumns, false)) {
		if cli.TextWidth(line) > 140 {
			t.Errorf("%q", line)
		}
	}
	if s := still(0).queueText(list, nil, false, []string{"id", "name"}, true); !strings.Contains(s, long) {
		t.Error(s)
	}
}

func TestHowItEnded(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		exit, signal int32
		reason       string
		want         string
	}{
		{0, 0, "", ""}, {3, 0, "", "exit code 3"}, {3, 0, "exit code 3", "exit code 3"}, {0, 9, "", "signal 9"},
		{0, 15, "the walltime is used up", "signal 15: the walltime is used up"}, {0, 0, "program not found", "program not found"},
	} {
		st := &kithv1.JobStatus{
			State:   kithv1.JobStatus_STATE_FAILED,
			Outcome: &kithv1.Outcome{ExitCode: tc.exit, Signal: tc.signal, Reason: tc.reason},
		}
		if got := howItEnded(st); got != tc.want {
			t.Errorf("%+v: %q", tc, got)
		}
	}
}

func TestByteCount(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0 bytes", 1: "1 byte", 1023: "1023 bytes", 1024: "1 KiB (1024 bytes)", 1 << 50: "1 PiB (1125899906842624 bytes)"} {
		if got := byteCount(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
