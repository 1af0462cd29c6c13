package level

import (
	"math"
	"slices"
	"testing"
	"time"
)

// queues is Table 2 of the source. The reference is a processor of 1 flop/s here, so that
// complexities are in flop.
var queues = []struct {
	name     string
	limits   Limits
	task, of float64 // C_e, C_q
}{
	{"Q1", table2(1, 6, 3, 2, 817477), 2.943e11, 5.886e11},
	{"Q2", table2(2, 320, 160, 100, 775251), 7.442e14, 1.488e15},
	{"Q3", table2(2, 160, 160, 500, 649505), 3.118e15, 3.118e15},
	{"Q4", table2(3, 2880, 2880, 500, 649505), 5.612e16, 5.612e16},
}

func table2(rank uint8, queueMinutes, runMinutes time.Duration, n int32, kflops float64) Limits {
	return Limits{
		Rank: rank, Queue: queueMinutes * time.Minute, Run: runMinutes * time.Minute,
		Processors: n, Speed: kflops * 1000, Bound: 1, EstimateShare: DefaultEstimateShare,
	}
}

// to4 rounds to four digits.
func to4(x Complexity) float64 {
	e := math.Pow(10, 3-math.Floor(math.Log10(float64(x))))
	return math.Round(float64(x)*e) / e
}

// Acceptance check 1: the φ table to four digits, and β = 0.5 halves it.
func TestPhiOfTable2(t *testing.T) {
	t.Parallel()
	for _, q := range queues {
		if err := q.limits.Validate(); err != nil {
			t.Errorf("%s: %v", q.name, err)
		}
		task, of := to4(q.limits.TaskLimit(0)), to4(q.limits.QueueLimit())
		if math.Abs(task/q.task-1) > 1e-9 || math.Abs(of/q.of-1) > 1e-9 {
			t.Errorf("%s: C_e %.4g and C_q %.4g, want %.4g and %.4g", q.name, task, of, q.task, q.of)
		}
		half := q.limits
		half.Bound = 0.5
		if half.TaskLimit(0) != q.limits.TaskLimit(0)/2 || half.QueueLimit() != q.limits.QueueLimit()/2 || q.limits.TaskLimit(0.5) != half.TaskLimit(0) {
			t.Errorf("%s: β = 0.5 does not halve the limits", q.name)
		}
	}
}

// Acceptance check 2: Q = C_q is no overload, Q > C_q is; C = C_e stays, C > C_e moves, by one level.
func TestLimitsAreNotPassedWhenMet(t *testing.T) {
	t.Parallel()
	above := func(c Complexity) Complexity { return Complexity(math.Nextafter(float64(c), math.Inf(1))) }
	for _, q := range queues {
		l := &q.limits
		known := func(c Complexity) Arrival { return Arrival{Task: Task{Left: c}, Estimated: false} }
		estimated := func(c Complexity) Arrival { return Arrival{Task: Task{Left: c}, Estimated: true} }
		for name, c := range map[string]struct {
			q    Complexity
			a    Arrival
			want Verdict
		}{
			"full":      {l.QueueLimit(), known(0), Verdict{}},
			"overfull":  {above(l.QueueLimit()), known(0), Verdict{Leave, Overload, Demote}},
			"fits":      {0, known(l.TaskLimit(0)), Verdict{}},
			"too much":  {0, known(above(l.TaskLimit(0))), Verdict{Step: Estimate}},
			"unknown":   {0, Arrival{Task: Task{Unknown: true}}, Verdict{Step: Estimate}},
			"still":     {0, estimated(above(l.TaskLimit(0))), Verdict{Leave, Mismatch, Demote}},
			"found":     {0, estimated(l.TaskLimit(0)), Verdict{}},
			"no bound":  {0, Arrival{Task: Task{Unknown: true}, Estimated: true}, Verdict{}},
			"no second": {above(l.QueueLimit()), estimated(0), Verdict{}},
		} {
			if got := ProcessNewTask(l, c.q, c.a, false); got != c.want {
				t.Errorf("%s, %s: %+v, want %+v", q.name, name, got, c.want)
			}
		}
	}
	var d Ladder
	for rank := range uint8(10) {
		d.Add(rank+1, 4)
	}
	if next, ok := d.Below(3, 4); next != 4 || !ok {
		t.Errorf("below level 3 is %d, %v, want level 4", next, ok)
	}
}

// Overload is tested before anything is estimated, and the flag counts what comes.
func TestOverloadComesFirst(t *testing.T) {
	t.Parallel()
	l := queues[0].limits
	huge := Arrival{Task: Task{Left: 1e30}}
	if got := ProcessNewTask(&l, 2*l.QueueLimit(), huge, false); got != (Verdict{Leave, Overload, Demote}) {
		t.Errorf("a task for a full queue: %+v", got)
	}
	small := Arrival{Task: Task{Left: 1}}
	if got := ProcessNewTask(&l, l.QueueLimit(), small, false); got.Step != Stay {
		t.Errorf("a task for a queue at its limit: %+v", got)
	}
	l.CountArrival = true
	small.Left = l.TaskLimit(0) / 2
	if got := ProcessNewTask(&l, l.QueueLimit(), small, false); got != (Verdict{Leave, Overload, Demote}) {
		t.Errorf("a task that makes the queue too full, counted: %+v", got)
	}
	if got := ProcessNewTask(&l, l.QueueLimit(), Arrival{Task: Task{Unknown: true}}, false); got.Step != Estimate {
		t.Errorf("an unknown task, counted: %+v", got)
	}
}

// Acceptance check 3: a task above every limit of ten levels visits each once, in order, and is
// rejected at the last.
func TestEachLevelOnceAndRejectedAtTheLast(t *testing.T) {
	t.Parallel()
	var d Ladder
	levels := map[uint8]*Limits{}
	for rank := uint8(1); rank <= 10; rank++ {
		l := table2(rank, time.Duration(rank)*2, time.Duration(rank), int32(rank), 1)
		levels[rank] = &l
		d.Add(rank, l.Processors)
	}
	var visited []uint8
	var end Action
	for at, ok := d.At(1, 1); ok; {
		visited = append(visited, at)
		next, more := d.Below(at, 1)
		task := Arrival{Task: Task{Unknown: true}}
		v := ProcessNewTask(levels[at], 0, task, !more)
		if v.Step != Estimate {
			t.Fatalf("level %d does not estimate an unknown task: %+v", at, v)
		}
		task.Task, task.Estimated = Task{Left: 1e30}, true
		v = ProcessNewTask(levels[at], 0, task, !more)
		if v.Step != Leave || v.Trigger != Mismatch {
			t.Fatalf("level %d keeps a task above its limits: %+v", at, v)
		}
		if end = v.Action; end != Demote {
			break
		}
		at, ok = next, more
	}
	if want := []uint8{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}; !slices.Equal(visited, want) || end != Reject {
		t.Errorf("visited %d and ended with %v, want %d and reject", visited, end, want)
	}
}

// Acceptance check 4: a queue of five tasks in which each test finds one, and Q is the sum over
// those that stay.
func TestFiveTasksFivePolicies(t *testing.T) {
	t.Parallel()
	l := Limits{Rank: 1, Queue: 200 * time.Second, Run: 100 * time.Second, Processors: 1, Speed: 1, Bound: 1}
	tasks := []Occupant{
		{Task: Task{Left: 1}, Stayed: 150 * time.Second, Ran: 101 * time.Second}, // has run for too long
		{Task: Task{Left: 1}, Stayed: 201 * time.Second},                         // has waited for too long
		{Task: Task{Left: 60}, Stayed: 50 * time.Second, Ran: 50 * time.Second},  // 60 do not fit into 50
		{Task: Task{Left: 90}},                            // stays
		{Task: Task{Left: 60}, Stayed: 150 * time.Second}, // 60 do not fit into what is left of T_q
		{Task: Task{Left: 100}},                           // stays: 190
		{Task: Task{Left: 11}},                            // 201 are above 200
		{Task: Task{Left: 10}},                            // stays: 200 is not
	}
	list, q := EnforceQueueLimits(&l, tasks, false, nil)
	want := []Departure{
		{0, Overdue, Demote}, {1, Overdue, Demote}, {2, TaskOverdue, Demote}, {4, TaskOverdue, Demote}, {6, QueueOverdue, Demote},
	}
	if !slices.Equal(list, want) || q != 200 {
		t.Errorf("%+v leave and %v stays, want %+v and 200", list, q, want)
	}
	// The last level: potential triggers are off, who is overdue is ended.
	list, q = EnforceQueueLimits(&l, tasks, true, nil)
	if want = []Departure{{0, Overdue, Terminate}, {1, Overdue, Terminate}}; !slices.Equal(list, want) || q != 331 {
		t.Errorf("on the last level %+v leave and %v stays, want %+v and 331", list, q, want)
	}
	// The two triggers of an arrival are the other two of the five policies.
	if v := ProcessNewTask(&l, 201, Arrival{}, false); v != (Verdict{Leave, Overload, Demote}) {
		t.Errorf("overload: %+v", v)
	}
	if v := ProcessNewTask(&l, 0, Arrival{Task: Task{Left: 101}, Estimated: true}, true); v != (Verdict{Leave, Mismatch, Reject}) {
		t.Errorf("mismatch on the last level: %+v", v)
	}
}

// Acceptance check 5: who is alone and over its limit stays, and moves when another one comes.
func TestSoleOccupantStays(t *testing.T) {
	t.Parallel()
	for _, last := range []bool{false, true} {
		l := Limits{Rank: 1, Queue: 200 * time.Second, Run: 100 * time.Second, Processors: 1, Speed: 1, Bound: 1}
		alone := []Occupant{{Task: Task{Left: 7}, Stayed: 150 * time.Second, Ran: 150 * time.Second}}
		if list, q := EnforceQueueLimits(&l, alone, last, nil); len(list) > 0 || q != 7 {
			t.Errorf("alone, last %v: %+v leave and %v stays", last, list, q)
		}
		two := []Occupant{alone[0], {Task: Task{Left: 5}}}
		list, q := EnforceQueueLimits(&l, two, last, nil)
		if len(list) != 1 || list[0].Index != 0 || list[0].Trigger != Overdue || q != 5 {
			t.Errorf("not alone, last %v: %+v leave and %v stays", last, list, q)
		}
		// What is only about to be overdue does not wait for anybody.
		soon := []Occupant{{Task: Task{Left: 7}, Stayed: 95 * time.Second, Ran: 95 * time.Second}}
		if list, _ := EnforceQueueLimits(&l, soon, false, nil); len(list) != 1 || list[0].Trigger != TaskOverdue {
			t.Errorf("alone and about to be overdue: %+v", list)
		}
	}
}

// Acceptance check 12, the part of the rules: a bound never rises, and estimating has its share of T_e.
func TestBoundOnlyShrinks(t *testing.T) {
	t.Parallel()
	var b Bound
	if b.Task(0, 0) != (Task{Unknown: true}) {
		t.Error("a task is known of which nothing was said")
	}
	least := Complexity(math.Inf(1))
	for _, c := range []Complexity{100, 200, 90, 95, 90, 0.5, 1e9} {
		if err := b.Add(c); err != nil {
			t.Fatal(err)
		}
		least = min(least, c)
		if got, ok := b.Least(); got != least || !ok {
			t.Errorf("after %v the bound is %v, want %v", c, got, least)
		}
	}
	for _, c := range []Complexity{-1, Complexity(math.NaN()), Complexity(math.Inf(1)), Complexity(math.Inf(-1))} {
		if err := b.Add(c); err == nil {
			t.Errorf("%v was taken for a bound", c)
		}
	}
	if got, _ := b.Least(); got != 0.5 {
		t.Errorf("what is no bound made it %v", got)
	}
	if got := b.Task(0.25, 1); got != (Task{Left: 0.25, Bound: 1}) {
		t.Errorf("after half of it there is %+v", got)
	}
	if got := b.Task(0.6, 0); !got.Unknown {
		t.Errorf("after more than the bound there is %+v", got)
	}
	if got := queues[0].limits.EstimateLimit(); got != 10800*time.Millisecond {
		t.Errorf("Q1 may estimate for %v, the source says 11 s", got)
	}
}
