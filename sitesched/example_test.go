package sitesched_test

import (
	"fmt"
	"slices"
	"time"

	"kith/internal/job"
	"kith/sitesched"
)

// A site of ten processors, six of them busy until 100 s. The head of the queue
// needs eight; a narrow copy slips in before it.
func Example() {
	s, err := sitesched.New(sitesched.Config{Processors: 10, Backfill: sitesched.EASY})
	if err != nil {
		panic(err)
	}
	id := func(n uint64) job.AttemptID {
		return job.AttemptID{Job: job.ID{Origin: "uni-a", Seq: n}, Number: 1}
	}
	now := job.Time(0)
	at := func(seconds int) job.Time { return job.Time(seconds) * job.Time(time.Second) }

	of := func(n uint64, processors int32, walltime time.Duration) job.Copy {
		return job.Copy{ID: id(n), Request: job.Request{Processors: processors, Walltime: walltime}}
	}
	head := of(2, 8, 50*time.Second)

	s.Adopt(now, of(1, 6, 100*time.Second), at(0))
	s.Enqueue(now, head)
	s.Enqueue(now, of(3, 4, 100*time.Second))
	for _, start := range slices.Clone(s.Pass(now)) {
		fmt.Println("start", start)
		s.Confirm(now, start, now)
	}
	guarantee, _ := s.Guarantee(head.ID)
	fmt.Println("the head starts at", time.Duration(guarantee), "at the latest")
	// Output:
	// start uni-a.0.3#1
	// the head starts at 1m40s at the latest
}
