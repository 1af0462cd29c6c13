package replay

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kith/sitesched"
	"kith/testbed/workload"
)

// traces is where the public logs and the schedules others agree on lie.
const traces = "../../../shared/traces"

func openTrace(t testing.TB, name string) *workload.Workload {
	t.Helper()
	w, err := workload.Open(filepath.Join(traces, filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no %s in %s: this test needs the shared traces beside the repository", name, traces)
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func readOracle(t testing.TB, name string) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join(traces, "oracle", name+".csv.gz"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no %s in %s/oracle: this test needs the shared traces beside the repository", name, traces)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestOracleSchedules demands of the published logs, byte for byte, the
// schedules that independent simulators agree on, from the logs as they are
// published and through every transformation on the way.
func TestOracleSchedules(t *testing.T) {
	const ctc, kth = "CTC-SP2-1996-3.1-cln.swf.gz", "KTH-SP2-1996-2.1-cln.swf.gz"
	for _, m := range []struct {
		name, log  string
		processors int32
		jobs       int
		stretch    float64
		policies   string
	}{
		{"ctc", ctc, 338, 0, 1, "easy fcfs cons-compress"},
		{"ctc-5k-p430", ctc, 430, 5000, 1, "easy fcfs cons-compress"},
		{"ctc-5k-p430-x17", ctc, 430, 5000, 1.7, "easy fcfs cons-compress cons-replan"},
		{"kth-5k", kth, 100, 5000, 1, "easy fcfs cons-compress cons-replan"},
	} {
		log := openTrace(t, m.log)
		fit, err := log.Fit(m.processors, workload.Kill)
		if err != nil {
			t.Fatal(err)
		}
		window, err := fit.Window(0, m.jobs)
		if err != nil {
			t.Fatal(err)
		}
		w, err := window.Stretch(m.stretch)
		if err != nil {
			t.Fatal(err)
		}
		for _, policy := range strings.Fields(m.policies) {
			t.Run(m.name+"/"+policy, func(t *testing.T) {
				if testing.Short() && m.jobs == 0 && policy == "cons-compress" {
					t.Skip("left out with -short: the whole log takes seconds")
				}
				want := readOracle(t, m.name+"."+policy)
				backfill, err := ParsePolicy(policy)
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				s, err := Run(context.Background(), w, sitesched.Config{Processors: m.processors, Backfill: backfill}, nil)
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%d jobs, %.0f jobs/s", len(w.Jobs), float64(len(w.Jobs))/time.Since(began).Seconds())
				var got bytes.Buffer
				if _, err := s.WriteTo(&got); err != nil {
					t.Fatal(err)
				}
				compare(t, got.Bytes(), want)
			})
		}
	}
}

// compare tells of the first lines that differ.
func compare(t *testing.T, got, want []byte) {
	t.Helper()
	if bytes.Equal(got, want) {
		return
	}
	g, w := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	wrong := 0
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			if wrong++; wrong <= 5 {
				t.Errorf("line %d is %s, want %s", i+1, g[i], w[i])
			}
		}
	}
	t.Errorf("%d of %d lines differ, there are %d", wrong, len(w), len(g))
}
