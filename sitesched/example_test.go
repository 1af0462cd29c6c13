package sitesched_test

import (
	"fmt"
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

	busy := sitesched.Copy{ID: id(1), Processors: 6, Walltime: 100 * time.Second}
	head := sitesched.Copy{ID: id(2), Processors: 8, Walltime: 50 * time.Second, Arrival: at(0)}
	narrow := sitesched.Copy{ID: id(3), Processors: 4, Walltime: 100 * time.Second, Arrival: at(0)}

	s.Step(now, sitesched.Event{Kind: sitesched.Adopt, Copy: busy, At: at(0)})
	s.Step(now, sitesched.Event{Kind: sitesched.Enqueue, Copy: head})
	s.Step(now, sitesched.Event{Kind: sitesched.Enqueue, Copy: narrow})
	for _, effect := range s.Step(now, sitesched.Event{Kind: sitesched.Pass}) {
		fmt.Println("start", effect.Start.ID)
		s.Step(now, sitesched.Event{Kind: sitesched.Confirm, ID: effect.Start.ID})
	}
	guarantee, _ := s.Guarantee(head.ID)
	fmt.Println("the head starts at", time.Duration(guarantee), "at the latest")
	// Output:
	// start uni-a.0.3#1
	// the head starts at 1m40s at the latest
}
