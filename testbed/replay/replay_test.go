package replay

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kith/internal/job"
	"kith/sitesched"
	"kith/testbed/metrics"
	"kith/testbed/workload"
)

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// small returns a workload from rows of submission, run time, estimate and width.
func small(rows ...[4]int64) *workload.Workload {
	w := &workload.Workload{Name: "small", Tick: time.Second}
	for i, r := range rows {
		w.Jobs = append(w.Jobs, workload.Job{
			ID: int64(10 * (i + 1)), Submit: job.Time(seconds(r[0])), Run: seconds(r[1]), Estimate: seconds(r[2]), Procs: int32(r[3]), User: "ann",
		})
	}
	return w
}

// The unit table of spec 001 section 5, as a log: job 1 holds 6 of 10
// processors until 100, then come the blocked head and what may overtake it.
func TestSpecTable(t *testing.T) {
	w := small([4]int64{0, 100, 100, 6}, [4]int64{1, 50, 50, 8}, [4]int64{1, 99, 99, 4}, [4]int64{1, 200, 200, 3}, [4]int64{1, 300, 300, 2})
	for policy, want := range map[string]string{
		"easy": Header + "10,0,0,100,6,100\n20,1,100,150,8,50\n30,1,1,100,4,99\n40,1,150,350,3,200\n50,1,100,400,2,300\n",
		"fcfs": Header + "10,0,0,100,6,100\n20,1,100,150,8,50\n30,1,150,249,4,99\n40,1,150,350,3,200\n50,1,150,450,2,300\n",
	} {
		backfill, err := ParsePolicy(policy)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Run(context.Background(), w, sitesched.Config{Processors: 10, Backfill: backfill}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if n, err := s.WriteTo(&got); err != nil || n != int64(got.Len()) || got.String() != want {
			t.Errorf("%s: %v\n%swant\n%s", policy, err, got.String(), want)
		}
	}
}

func TestRecords(t *testing.T) {
	w := small([4]int64{0, 100, 200, 6}, [4]int64{5, 10, 20, 6})
	s, err := Run(context.Background(), w, sitesched.Config{Processors: 8}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []metrics.Record{
		{Job: 10, Origin: "x", Site: "x", User: "ann", End: job.Time(seconds(100)), Run: seconds(100), Estimate: seconds(200), Procs: 6},
		{
			Job: 20, Origin: "x", Site: "x", User: "ann", Submit: job.Time(seconds(5)), Start: job.Time(seconds(100)),
			End: job.Time(seconds(110)), Run: seconds(10), Estimate: seconds(20), Procs: 6,
		},
	}
	if got := s.Records("x"); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if s.Passes < 3 {
		t.Errorf("%d passes", s.Passes)
	}
}

// What cannot be replayed is refused by name, and nothing runs for ever.
func TestRunRefuses(t *testing.T) {
	ctx := context.Background()
	ten := sitesched.Config{Processors: 10}
	for name, m := range map[string]struct {
		w  *workload.Workload
		c  sitesched.Config
		is error
	}{
		"no processors": {small([4]int64{0, 1, 1, 1}), sitesched.Config{}, sitesched.ErrConfig},
		"too wide":      {small([4]int64{0, 1, 1, 11}), ten, sitesched.ErrTooWide},
		"too long": {
			func() *workload.Workload {
				var rows [][4]int64
				for range 40 { // ten years each, one after another
					rows = append(rows, [4]int64{0, int64(job.MaxWalltime / time.Second), int64(job.MaxWalltime / time.Second), 10})
				}
				return small(rows...)
			}(), ten, ErrEndless,
		},
	} {
		s, err := Run(ctx, m.w, m.c, nil)
		if !errors.Is(err, m.is) || s != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	cause := errors.New("enough")
	stopped, stop := context.WithCancelCause(ctx)
	stop(cause)
	if _, err := Run(stopped, small([4]int64{0, 1, 1, 1}), ten, nil); !errors.Is(err, cause) {
		t.Errorf("when stopped: %v", err)
	}
	if s, err := Run(ctx, &workload.Workload{}, ten, nil); err != nil || len(s.Starts) != 0 {
		t.Errorf("of nothing: %+v, %v", s, err)
	}
}

// Estimates may be too short, as with workload.Keep: then jobs run on, and
// every policy still ends every job without using a processor twice.
func TestRandomWorkloads(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	for range 60 {
		w, err := workload.CTCLike{Jobs: 1 + rng.IntN(300), Processors: 1 + rng.Int32N(100), Load: 0.3 + rng.Float64()}.Generate(rng)
		if err != nil {
			t.Fatal(err)
		}
		if rng.IntN(2) == 0 {
			w = tooShort(rng, w)
		}
		for _, policy := range Policies() {
			backfill, err := ParsePolicy(policy)
			if err != nil {
				t.Fatal(err)
			}
			done := -1
			s, err := Run(context.Background(), w, sitesched.Config{Processors: w.Processors, Backfill: backfill}, func(n int) {
				if n < done || n > len(w.Jobs) {
					t.Fatalf("progress from %d to %d", done, n)
				}
				done = n
			})
			if err != nil {
				t.Fatal(err)
			}
			if done != len(w.Jobs) {
				t.Errorf("progress ends with %d of %d", done, len(w.Jobs))
			}
			checkSchedule(t, s)
		}
	}
}

// tooShort gives some jobs estimates that they outlive, a little: the end of a
// late job is looked for every second.
func tooShort(rng *rand.Rand, w *workload.Workload) *workload.Workload {
	c := *w
	c.Jobs = slices.Clone(w.Jobs)
	for i := range c.Jobs {
		if rng.IntN(3) == 0 {
			c.Jobs[i].Estimate = max(c.Jobs[i].Run-seconds(rng.Int64N(30)), time.Second)
		}
	}
	return &c
}

// checkSchedule demands that every job ran once, for its time, not before it
// was submitted, and that the processors sufficed at every instant.
func checkSchedule(t *testing.T, s *Schedule) {
	t.Helper()
	type change struct {
		at    job.Time
		procs int32
	}
	var changes []change
	for i, j := range s.Workload.Jobs {
		if s.Starts[i] < j.Submit || s.Ends[i] != s.Starts[i].Add(j.Run) {
			t.Fatalf("job %d: submitted at %d, runs from %d to %d, for %v", j.ID, j.Submit, s.Starts[i], s.Ends[i], j.Run)
		}
		changes = append(changes, change{s.Starts[i], j.Procs}, change{s.Ends[i], -j.Procs})
	}
	slices.SortFunc(changes, func(a, b change) int {
		if a.at != b.at {
			return int(min(max(a.at-b.at, -1), 1))
		}
		return int(a.procs - b.procs)
	})
	busy := int32(0)
	for _, c := range changes {
		if busy += c.procs; busy > s.Config.Processors {
			t.Fatalf("%d processors of %d busy at %d", busy, s.Config.Processors, c.at)
		}
	}
}

// Two replays of one workload are one and the same.
func TestDeterminism(t *testing.T) {
	w, err := workload.CTCLike{Jobs: 2000, Load: 0.9}.Generate(workload.NewRand(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	var texts [2]bytes.Buffer
	for i := range texts {
		s, err := Run(context.Background(), w, sitesched.Config{Processors: 430, Backfill: sitesched.EASY}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.WriteTo(&texts[i]); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(texts[0].Bytes(), texts[1].Bytes()) {
		t.Error("two replays differ")
	}
}

func TestEnds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var h ends
	var want []end
	for range 20000 {
		if len(want) == 0 || rng.IntN(5) < 3 && len(want) < 500 {
			e := end{job.Time(rng.IntN(50)), rng.Int32N(1 << 30)}
			h.push(e.at, e.job)
			want = append(want, e)
			continue
		}
		first := slices.MinFunc(want, func(a, b end) int {
			if a.before(b) {
				return -1
			}
			return 1
		})
		if h[0].at != first.at || h.pop() != first.job {
			t.Fatal("not the first")
		}
		want = slices.DeleteFunc(want, func(e end) bool { return e == first })
	}
}

func TestAppendSeconds(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0", time.Second: "1", 90 * time.Minute: "5400", 1500 * time.Millisecond: "1.5", 1: "0.000000001", 10*time.Second + 20*time.Nanosecond: "10.00000002",
		-time.Second: "-1", -1500 * time.Millisecond: "-1.5", -500 * time.Millisecond: "-0.5",
	} {
		if got := string(appendSeconds(nil, job.Time(d))); got != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
}

func TestPolicies(t *testing.T) {
	seen := make(map[sitesched.Backfill]bool)
	for _, name := range Policies() {
		b, err := ParsePolicy(name)
		if err != nil || seen[b] {
			t.Errorf("%s: %v, %v", name, b, err)
		}
		seen[b] = true
	}
	if _, err := ParsePolicy("sjf"); !errors.Is(err, ErrPolicy) {
		t.Errorf("sjf: %v", err)
	}
}

// failing refuses to be written to after some bytes.
type failing int

var errFull = errors.New("full")

func (f *failing) Write(b []byte) (int, error) {
	if len(b) > int(*f) {
		return int(*f), errFull
	}
	*f -= failing(len(b))
	return len(b), nil
}

func TestWriteToTellsOfFailure(t *testing.T) {
	s, err := Run(context.Background(), crowd(t, 5000), sitesched.Config{Processors: 430}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, room := range []failing{0, 70000} {
		if _, err := s.WriteTo(&room); !errors.Is(err, errFull) {
			t.Errorf("a full disk: %v", err)
		}
	}
}

// What guests cost: one job waits for a guest alone, the next one would wait without it, too.
func TestSharedMeasuresWhomGuestsBlock(t *testing.T) {
	t.Parallel()
	w := small([4]int64{0, 100, 200, 1}, [4]int64{10, 50, 60, 1}, [4]int64{20, 50, 60, 1})
	cfg := sitesched.Config{Processors: 1, Backfill: sitesched.EASY, Queues: sitesched.DualBackfill, Scope: sitesched.ScopeAll}
	s, err := RunShared(t.Context(), w, []bool{true, false, false}, cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := []time.Duration{0, seconds(90), 0}; !slices.Equal(s.Blocked, want) || !slices.Equal(s.Moved, make([]uint32, 3)) {
		t.Errorf("blocked for %v, want %v; moved %v", s.Blocked, want, s.Moved)
	}
	if s, err = RunShared(t.Context(), w, make([]bool, 3), cfg, nil); err != nil || s.Blocked != nil || s.Moved != nil {
		t.Errorf("without guests: %v, %v, %v", s.Blocked, s.Moved, err)
	}
}
