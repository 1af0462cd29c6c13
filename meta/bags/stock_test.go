package bags

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kith/internal/job"
)

func bundleOf(seq uint64, number uint32) job.AttemptID {
	return job.AttemptID{Job: job.ID{Origin: "alpha", Generation: 1, Seq: seq}, Number: number}
}

// slowStock is a stock as a list of tasks, in the order in which they begin.
type slowStock []slowTask

type slowTask struct {
	bundle   job.AttemptID
	task     uint32
	walltime time.Duration
}

func (s *slowStock) take(which func(slowTask) bool) (gone []slowTask) {
	*s = slices.DeleteFunc(*s, func(t slowTask) bool {
		if which(t) {
			gone = append(gone, t)
			return true
		}
		return false
	})
	return gone
}

func (s slowStock) of(bundle job.AttemptID) (tasks []uint32) {
	for _, t := range s {
		if t.bundle == bundle {
			tasks = append(tasks, t.task)
		}
	}
	return tasks
}

// Whatever is asked of it, a stock is what a list of its tasks would be, and each task
// that was added begins once or goes back once.
func TestStocksAgainstAList(t *testing.T) {
	began, back := 0, 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 8))
		var s Stock
		var slow slowStock
		left := map[string]int{} // how often a task that was added has left
		leave := func(bundle job.AttemptID, task uint32, n *int) {
			left[fmt.Sprint(bundle, task)]++
			*n++
		}
		same := func(what string, bundle job.AttemptID, got job.TaskSet, want []uint32) {
			t.Helper()
			if !slices.Equal(slices.Collect(got.All), want) {
				t.Fatalf("seed %d: %s of %v: %v, want %v", seed, what, bundle, got.String(), want)
			}
			for task := range got.All {
				leave(bundle, task, &back)
			}
		}
		lots := func(what string, gone []Lot, which func(slowTask) bool) {
			t.Helper()
			var want slowStock = slow.take(which)
			n := 0
			for _, l := range gone {
				n += l.Tasks.Count()
				same(what, l.Bundle, l.Tasks, want.of(l.Bundle))
			}
			if n != len(want) {
				t.Fatalf("seed %d: %s: %d tasks, want %d", seed, what, n, len(want))
			}
		}
		for number := range uint32(400) {
			bundle := bundleOf(uint64(1+number%3), 1+rng.Uint32N(number+1))
			switch rng.IntN(12) {
			case 0, 1:
				walltime := time.Duration(1+rng.IntN(3)) * time.Minute
				bundle, lo := bundleOf(bundle.Job.Seq, number+1), uint32(rng.IntN(5000))
				tasks := job.TaskRange(lo, lo+uint32(rng.IntN(30)))
				for task := range tasks.All {
					slow = append(slow, slowTask{bundle, task, walltime})
				}
				s.Add(bundle, walltime, tasks)
			case 2:
				n := rng.IntN(20)
				want := slow.of(bundle)
				want = want[max(0, len(want)-n):]
				slow.take(func(t slowTask) bool { return t.bundle == bundle && slices.Contains(want, t.task) })
				same("recall", bundle, s.Recall(bundle, n), want)
			case 3:
				some := job.TaskRange(0, uint32(rng.IntN(5000)))
				gone := slow.take(func(t slowTask) bool { return t.bundle == bundle && some.Has(t.task) })
				same("remove", bundle, s.Remove(bundle, &some), slowStock(gone).of(bundle))
			case 4:
				if rng.IntN(8) == 0 {
					lots("bag", s.RemoveBag(bundle.Job), func(t slowTask) bool { return t.bundle.Job == bundle.Job })
				}
			case 5:
				if rng.IntN(20) == 0 {
					lots("all", s.Clear(), func(slowTask) bool { return true })
				}
			default:
				room := time.Duration(rng.IntN(4)) * time.Minute
				at := slices.IndexFunc(slow, func(t slowTask) bool { return t.walltime <= room })
				if s.Fits(room) != (at >= 0) {
					t.Fatalf("seed %d: a task fits into %v: %v", seed, room, s.Fits(room))
				}
				got, task, ok := s.Next(room)
				if ok != (at >= 0) || ok && (got != slow[at].bundle || task != slow[at].task) {
					t.Fatalf("seed %d: next within %v is %v of %v, %v", seed, room, task, got, ok)
				}
				if ok {
					slow = slices.Delete(slow, at, at+1)
					leave(got, task, &began)
				}
			}
			if s.Count() != len(slow) {
				t.Fatalf("seed %d: %d tasks, want %d", seed, s.Count(), len(slow))
			}
		}
		lots("all", s.Clear(), func(slowTask) bool { return true })
		for task, n := range left {
			if n != 1 {
				t.Errorf("seed %d: task %s has left %d times", seed, task, n)
			}
		}
		if s.Count() != 0 || len(s.lots) != 0 {
			t.Errorf("seed %d: %d tasks are left in %d lots", seed, s.Count(), len(s.lots))
		}
	}
	if began < 2000 || back < 2000 {
		t.Errorf("%d tasks began, %d went back: the test has become too easy", began, back)
	}
}

// Tasks of a bundle that come late, as a verdict that was cut in two, join the others.
func TestStocksTakeABundleInPieces(t *testing.T) {
	var s Stock
	s.Add(bundleOf(1, 1), time.Minute, job.TaskRange(4, 6))
	s.Add(bundleOf(2, 1), time.Minute, job.TaskRange(0, 1))
	s.Add(bundleOf(1, 1), time.Minute, job.TaskRange(0, 1))
	s.Add(bundleOf(3, 1), time.Minute, job.TaskSet{})
	var got []string
	for {
		bundle, task, ok := s.Next(time.Hour)
		if !ok {
			break
		}
		got = append(got, fmt.Sprint(bundle.Job.Seq, ":", task))
	}
	if want := []string{"1:0", "1:4", "1:5", "2:0"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
