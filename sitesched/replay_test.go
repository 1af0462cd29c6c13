package sitesched

import (
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"kith/internal/job"
	"kith/testbed/workload"
)

// second is the unit of most tests.
const second = job.Time(time.Second)

// load is a workload in a form that the replay reads fast: copies in order of
// arrival, and how long each really runs.
type load struct {
	copies []entry
	run    []time.Duration
}

func attempt(origin job.SiteID, n int) job.AttemptID {
	return job.AttemptID{Job: job.ID{Origin: origin, Generation: 1, Seq: uint64(n)}, Number: 1}
}

func loadOf(jobs []workload.Job) *load {
	w := &load{}
	for i, j := range jobs {
		w.copies = append(w.copies, entry{id: attempt("a", i), processors: j.Procs, walltime: j.Estimate, arrival: j.Submit})
		w.run = append(w.run, j.Run)
	}
	return w
}

// replay runs a whole workload through s with granted claims, on a virtual
// clock, and writes the start of every job.
type replay struct {
	s      *Scheduler
	w      *load
	starts []job.Time
	ends   []runEnd // a heap
	passes int
	// check, if set, is called after every pass.
	check func(now job.Time) error
}

type runEnd struct {
	at job.Time
	n  int32
}

func (r *replay) push(e runEnd) {
	r.ends = append(r.ends, e)
	i := len(r.ends) - 1
	for i > 0 && e.at < r.ends[(i-1)/2].at {
		r.ends[i] = r.ends[(i-1)/2]
		i = (i - 1) / 2
	}
	r.ends[i] = e
}

func (r *replay) pop() runEnd {
	top := r.ends[0]
	last := r.ends[len(r.ends)-1]
	r.ends = r.ends[:len(r.ends)-1]
	i := 0
	for {
		c := 2*i + 1
		if c >= len(r.ends) {
			break
		}
		if c+1 < len(r.ends) && r.ends[c+1].at < r.ends[c].at {
			c++
		}
		if last.at <= r.ends[c].at {
			break
		}
		r.ends[i] = r.ends[c]
		i = c
	}
	if i < len(r.ends) {
		r.ends[i] = last
	}
	return top
}

// all runs to the end. At each instant it feeds all terminations, then all
// arrivals, then one pass.
func (r *replay) all() error {
	next := 0
	for last := job.Time(0); next < len(r.w.copies) || len(r.ends) > 0; {
		now := r.s.NextWake(last)
		if next < len(r.w.copies) {
			now = min(now, r.w.copies[next].arrival)
		}
		if len(r.ends) > 0 {
			now = min(now, r.ends[0].at)
		}
		last = now
		for len(r.ends) > 0 && r.ends[0].at == now {
			e := r.pop()
			r.s.Step(now, Event{Kind: Finish, ID: r.w.copies[e.n].id})
		}
		for ; next < len(r.w.copies) && r.w.copies[next].arrival == now; next++ {
			r.s.Step(now, Event{Kind: Enqueue, Copy: r.w.copies[next]})
		}
		r.passes++
		for _, e := range r.s.Step(now, Event{Kind: Pass}) {
			n := int32(e.Job.Seq)
			r.s.Step(now, Event{Kind: Confirm, ID: e})
			r.starts[n] = now
			r.push(runEnd{now.Add(r.w.run[n]), n})
		}
		if r.check != nil {
			if err := r.check(now); err != nil {
				return fmt.Errorf("at %d: %w", now, err)
			}
		}
	}
	return nil
}

// traces is where the public logs and the schedules others agree on lie.
const traces = "../../shared/traces/oracle"

func openTrace(t testing.TB, name string) io.ReadCloser {
	t.Helper()
	f, err := os.Open(filepath.Join(filepath.FromSlash(traces), name))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no %s in %s: this test needs the shared traces beside the repository", name, traces)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func readLoad(t testing.TB, name string, processors int32) *load {
	t.Helper()
	f := openTrace(t, name+".swf.gz")
	defer func() { _ = f.Close() }()
	log, err := workload.Read(name, f)
	if err != nil {
		t.Fatal(err)
	}
	w, err := log.Fit(processors, workload.Kill)
	if err != nil {
		t.Fatal(err)
	}
	if w.Report != (workload.Report{}) {
		t.Fatalf("%s is not normalised: %+v", name, w.Report)
	}
	return loadOf(w.Jobs)
}

// readStarts returns the start column of an oracle schedule, in seconds.
func readStarts(t testing.TB, name string) []int64 {
	t.Helper()
	f := openTrace(t, name+".csv.gz")
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(z).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var starts []int64
	for _, row := range rows[1:] {
		start, err := strconv.ParseInt(row[2], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		starts = append(starts, start)
	}
	return starts
}

func mustNew(t testing.TB, c Config) *Scheduler {
	t.Helper()
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
