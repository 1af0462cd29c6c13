package lab_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"kith/internal/job"
	"kith/testbed/lab"
	"kith/testbed/lab/labtest"
	"kith/testbed/workload"
)

// Large and small sites get jobs that offer the load over the span, the same for the same
// random numbers, from a generator and from a log; a log that is too short is refused.
func TestSource(t *testing.T) {
	const offered = 0.8
	for name, env := range labtest.Envs(t, 100) {
		src, err := lab.NewSource(env, 338, 3000)
		if err != nil {
			t.Fatal(err)
		}
		span := src.Span(80, 1)
		for _, p := range []int32{src.Large, src.Small()} {
			w, err := src.Workload(p, offered, span, workload.NewRand(1, 1))
			if err != nil {
				t.Fatal(err)
			}
			if got := w.OfferedLoad(p); math.Abs(got-offered) > 0.01*offered {
				t.Errorf("%s, %d processors: offers %.3f, want %.3f", name, p, got, offered)
			}
			if got := w.Span(); got < span*99/100 || got > span*3/2 {
				t.Errorf("%s, %d processors: %v, want %v", name, p, got, span)
			}
			again, err := src.Workload(p, offered, span, workload.NewRand(1, 1))
			if err != nil || workload.Hash(again) != workload.Hash(w) {
				t.Errorf("%s, %d processors: other jobs the second time (%v)", name, p, err)
			}
		}
		if _, err := src.Workload(src.Large, offered, 1000*span, workload.NewRand(1, 1)); (name == "log") != errors.Is(err, lab.ErrEnv) {
			t.Errorf("%s, too long a span: %v", name, err)
		}
	}
}

// The last place of a log with enough jobs behind it is left out only on demand.
func TestNotLast(t *testing.T) {
	log := &workload.Workload{Name: "log", Processors: 2}
	for i := range 4 {
		log.Jobs = append(log.Jobs, workload.Job{
			Submit: job.Time(time.Duration(i) * time.Minute), Procs: 1, Run: 50 * time.Second, Estimate: time.Duration(100+i) * time.Second,
		})
	}
	for notLast, want := range map[bool]int{false: 3, true: 2} {
		src, err := lab.NewSource(&lab.Env{Trace: log}, 2, 2)
		if err != nil {
			t.Fatal(err)
		}
		src.NotLast = notLast
		begin := make(map[time.Duration]bool)
		for seed := range uint64(100) {
			w, err := src.Workload(1, 1, 90*time.Second, workload.NewRand(seed, 1))
			if err != nil {
				t.Fatal(err)
			}
			begin[w.Jobs[0].Estimate] = true
		}
		if len(begin) != want {
			t.Errorf("without the last place %t: jobs begin at %d places, want %d", notLast, len(begin), want)
		}
	}
}
