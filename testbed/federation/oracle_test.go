package federation_test

import (
	"compress/gzip"
	"encoding/csv"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/sitesched"
	"kith/testbed/federation"
	"kith/testbed/replay"
	"kith/testbed/workload"
)

// readStarts returns the starts of a published schedule, in seconds.
func readStarts(t *testing.T, name string) []int64 {
	t.Helper()
	f, err := os.Open(traces + "oracle/" + name + ".csv.gz")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("this test needs the shared traces beside the repository: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(z).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	starts := make([]int64, len(rows)-1)
	for i, row := range rows[1:] {
		if starts[i], err = strconv.ParseInt(row[2], 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	return starts
}

// A federation of one site gives the schedules of independent simulators, start
// by start, although every job is submitted, placed, claimed and closed.
func TestOneSiteGivesThePublishedSchedules(t *testing.T) {
	for _, log := range []struct {
		name       string
		processors int32
		policies   []string
	}{
		{"kth-5k", 100, []string{"easy", "fcfs", "cons-compress", "cons-replan"}},
		{"ctc-5k-p430", 430, []string{"easy"}},
	} {
		for _, policy := range log.policies {
			t.Run(log.name+"/"+policy, func(t *testing.T) {
				want := readStarts(t, log.name+"."+policy)
				w, err := workload.Open(traces + "oracle/" + log.name + ".swf.gz")
				if err != nil {
					t.Fatal(err)
				}
				if w, err = w.Fit(log.processors, workload.Kill); err != nil {
					t.Fatal(err)
				}
				s := sites(1, log.processors, sitesched.DualBackfill)
				if s[0].Backfill, err = replay.ParsePolicy(policy); err != nil {
					t.Fatal(err)
				}
				res := run(t, federation.Config{Sites: s, Placement: meta.Placement{Scheme: meta.KDual, Copies: 1}}, []*workload.Workload{w})
				if len(res.Records) != len(want) {
					t.Fatalf("%d records, want %d", len(res.Records), len(want))
				}
				wrong := 0
				for i := range want {
					if res.Records[i].Start != job.Time(want[i])*job.Time(time.Second) {
						wrong++
					}
				}
				if wrong > 0 {
					t.Errorf("%d of %d starts are wrong", wrong, len(want))
				}
			})
		}
	}
}
