package level

import (
	"testing"
	"time"
)

// tenThousand is a queue in which two in three stay, and the others leave for each of the three reasons.
func tenThousand() (*Limits, []Occupant) {
	l := &Limits{Rank: 2, Queue: 320 * time.Minute, Run: 160 * time.Minute, Processors: 100_000, Speed: 0.9, Bound: 0.95}
	tasks := make([]Occupant, 10_000)
	for i := range tasks {
		tasks[i] = Occupant{Task: Task{Left: Complexity(i%7) * 40_000, Unknown: i%5000 == 0}, Stayed: time.Duration(i%330) * time.Minute}
		if i%3 == 0 {
			tasks[i].Ran = tasks[i].Stayed / 2
		}
	}
	return l, tasks
}

func BenchmarkEnforceQueueLimits(b *testing.B) {
	l, tasks := tenThousand()
	var list []Departure
	list, _ = EnforceQueueLimits(l, tasks, false, list)
	b.ReportAllocs()
	for b.Loop() {
		list, _ = EnforceQueueLimits(l, tasks, false, list[:0])
	}
	b.ReportMetric(float64(len(list)), "departures")
}

func TestEnforceAllocatesNothing(t *testing.T) {
	l, tasks := tenThousand()
	list, _ := EnforceQueueLimits(l, tasks, false, nil)
	if got := testing.AllocsPerRun(10, func() { list, _ = EnforceQueueLimits(l, tasks, false, list[:0]) }); got > 0 {
		t.Errorf("%v allocations", got)
	}
}
