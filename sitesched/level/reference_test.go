package level

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// reference is the listing of spec 000 section 2.3, word for word and as slowly as one likes: a
// trigger is a function of the whole queue, Q is summed anew for each task.
func reference(l *Limits, tasks []Occupant, last bool) (leave []Departure, q Complexity) {
	gone := map[int]bool{}
	left := func(j int) Complexity {
		t := tasks[j]
		if !t.Unknown {
			return t.Left
		}
		rest := l.Run - t.Ran
		if l.Queue-t.Stayed < rest {
			rest = l.Queue - t.Stayed
		}
		if rest < 0 {
			rest = 0
		}
		return phi(l, rest, t.Bound)
	}
	workload := func(before int) (sum Complexity) {
		for i := range before {
			if !gone[i] {
				sum += left(i)
			}
		}
		return sum
	}
	tests := []struct {
		trigger Trigger
		acts    func(j int) bool
	}{
		{Overdue, func(j int) bool { return tasks[j].Stayed > l.Queue || tasks[j].Ran > l.Run }},
		{TaskOverdue, func(j int) bool {
			t := tasks[j]
			return !t.Unknown && (t.Left > phi(l, l.Run-t.Ran, t.Bound) || t.Left > phi(l, l.Queue-t.Stayed, t.Bound))
		}},
		{QueueOverdue, func(j int) bool { return workload(j)+left(j) > phi(l, l.Queue, 0) }},
	}
	for j := range tasks {
		for _, test := range tests {
			action := l.Action(test.trigger, last)
			if action == Off || !test.acts(j) {
				continue
			}
			if test.trigger == Overdue && len(tasks) == 1 {
				break // the sole occupant waits for another one
			}
			leave = append(leave, Departure{j, test.trigger, action})
			gone[j] = true
			break
		}
	}
	return leave, workload(len(tasks))
}

func phi(l *Limits, t time.Duration, bound float64) Complexity {
	if bound == 0 {
		bound = l.Bound
	}
	return Complexity(t.Seconds() * float64(l.Processors) * l.Speed * bound)
}

// drawn makes limits and a queue. All numbers are small and binary, so that sums and products are
// exact and meet their limits often.
func drawn(r *rand.Rand) (l Limits, tasks []Occupant, last bool) {
	shares := []float64{0.25, 0.5, 1}
	run := time.Duration(1+r.IntN(8)) * time.Second
	l = Limits{
		Rank: uint8(1 + r.IntN(MaxRank)), Run: run, Queue: run + time.Duration(r.IntN(8))*time.Second,
		Processors: int32(1 + r.IntN(4)), Speed: shares[r.IntN(3)], Bound: shares[r.IntN(3)],
		EstimateShare: DefaultEstimateShare, CountArrival: r.IntN(2) == 0,
	}
	for t := range l.Actions {
		l.Actions[t] = Action(r.IntN(len(actionNames)))
	}
	for t := range Overdue {
		if l.Actions[t] == Terminate {
			l.Actions[t] = Default
		}
	}
	tasks = make([]Occupant, r.IntN(6))
	for i := range tasks {
		t := &tasks[i]
		t.Unknown = r.IntN(5) == 0
		t.Left = Complexity(r.IntN(40)) / 4
		if r.IntN(2) == 0 {
			t.Bound = shares[r.IntN(3)]
		}
		t.Stayed = time.Duration(r.IntN(18)) * time.Second
		t.Ran = min(t.Stayed, time.Duration(r.IntN(10))*time.Second)
	}
	return l, tasks, r.IntN(3) == 0
}

func check(t *testing.T, l *Limits, tasks []Occupant, last bool) {
	t.Helper()
	got, q := EnforceQueueLimits(l, tasks, last, nil)
	want, sum := reference(l, tasks, last)
	if !slices.Equal(got, want) || q != sum {
		t.Fatalf("limits %+v, last %v, tasks %+v:\n%+v leave and %v stays, the reference says %+v and %v", *l, last, tasks, got, q, want, sum)
	}
	for _, d := range got {
		if d.Action == Off || d.Action == Default || last && d.Action == Demote {
			t.Fatalf("a departure with the action %v", d.Action)
		}
	}
	// Who stayed stays: the rule has nothing more to say about them, but for the one that is now alone.
	var stayers []Occupant
	for i := range tasks {
		if !slices.ContainsFunc(got, func(d Departure) bool { return d.Index == i }) {
			stayers = append(stayers, tasks[i])
		}
	}
	if again, q2 := EnforceQueueLimits(l, stayers, last, nil); len(again) > 0 || q2 != q {
		t.Fatalf("limits %+v, last %v, tasks %+v: of those that stayed %+v leave next and %v stays", *l, last, tasks, again, q2)
	}
}

func TestEnforceAgainstReference(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(15, 0))
	acted := map[Trigger]int{}
	for range 200_000 {
		l, tasks, last := drawn(r)
		if err := l.Validate(); err != nil {
			t.Fatal(err)
		}
		check(t, &l, tasks, last)
		got, _ := EnforceQueueLimits(&l, tasks, last, nil)
		for _, d := range got {
			acted[d.Trigger]++
		}
	}
	for trigger := Overdue; trigger <= QueueOverdue; trigger++ {
		if acted[trigger] < 1000 {
			t.Errorf("%v has acted %d times only", trigger, acted[trigger])
		}
	}
}

// arrival is spec 000 section 2.2, word for word, as one call: estimate is what the estimator finds.
func arrival(l *Limits, q Complexity, t Task, estimate Complexity, last bool) Verdict {
	work := q
	if l.CountArrival && !t.Unknown {
		work += t.Left
	}
	if work > phi(l, l.Queue, 0) && l.Action(Overload, last) != Off {
		return Verdict{Leave, Overload, l.Action(Overload, last)}
	}
	limit := phi(l, l.Run, t.Bound)
	if t.Unknown || t.Left > limit {
		t.Unknown, t.Left = false, estimate
	}
	if t.Left > limit && l.Action(Mismatch, last) != Off {
		return Verdict{Leave, Mismatch, l.Action(Mismatch, last)}
	}
	return Verdict{}
}

func TestArrivalAgainstReference(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(15, 1))
	acted := map[Verdict]int{}
	for range 200_000 {
		l, _, last := drawn(r)
		q := Complexity(r.IntN(120)) / 4
		a := Arrival{Task: Task{Left: Complexity(r.IntN(120)) / 4, Unknown: r.IntN(3) == 0}}
		estimate := Complexity(r.IntN(120)) / 4
		if !a.Unknown {
			estimate = min(estimate, a.Left) // a bound only shrinks
		}
		want := arrival(&l, q, a.Task, estimate, last)
		got := ProcessNewTask(&l, q, a, last)
		if got.Step == Estimate {
			got = ProcessNewTask(&l, q, Arrival{Task: Task{Left: estimate, Bound: a.Bound}, Estimated: true}, last)
		}
		if got != want {
			t.Fatalf("limits %+v, last %v, %v in the queue, %+v, estimated as %v: %+v, want %+v", l, last, q, a, estimate, got, want)
		}
		acted[got]++
	}
	if len(acted) != 5 {
		t.Errorf("of stay, and demote or reject for either trigger, there were %v", acted)
	}
}

// FuzzEnforce reads limits and a queue from bytes: nothing panics, nothing goes wrong with numbers
// at the ends of their ranges, and the reference agrees where numbers are exact.
func FuzzEnforce(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Add(uint64(15), uint64(3))
	f.Fuzz(func(t *testing.T, a, b uint64) {
		l, tasks, last := drawn(rand.New(rand.NewPCG(a, b)))
		check(t, &l, tasks, last)
	})
}

func FuzzEnforceAnyNumbers(f *testing.F) {
	f.Add(int64(1), int64(1), 1.0, 1.0, 1.0, int64(0), int64(0), int32(1))
	f.Add(int64(1<<62), int64(1<<62), 1e308, 1.0, 1e308, int64(-1), int64(1<<62), int32(1<<24))
	f.Fuzz(func(t *testing.T, queue, run int64, speed, bound, left float64, stayed, ran int64, n int32) {
		l := Limits{Rank: 1, Queue: time.Duration(queue), Run: time.Duration(run), Speed: speed, Bound: bound, Processors: n}
		if l.Validate() != nil || !(left >= 0) {
			return
		}
		o := Occupant{Task: Task{Left: Complexity(left)}, Stayed: time.Duration(max(stayed, 0)), Ran: time.Duration(max(ran, 0))}
		list, q := EnforceQueueLimits(&l, []Occupant{o, o, o}, false, nil)
		if q < 0 || q > l.QueueLimit() || len(list) > 3 {
			t.Fatalf("limits %+v: %v of three times %+v stays, above %v", l, q, o, l.QueueLimit())
		}
		for i := 1; i < len(list); i++ {
			if list[i].Index <= list[i-1].Index {
				t.Fatalf("departures are not in the order of the queue: %+v", list)
			}
		}
	})
}
