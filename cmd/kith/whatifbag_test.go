package main

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	kithv1 "kith/proto/gen/kith/v1"
)

// What is left of a bag are its tasks that have not ended, whichever way; how long one takes is
// what its runs took, or what was said, or a guess; and a site that has tasks of it begins others
// as these end, whatever else waits there.
func TestWhatIsLeftOfABag(t *testing.T) {
	bag := func(runs int64, took, limit time.Duration) *kithv1.Bag {
		return &kithv1.Bag{
			Id:  "uni-a.1.17",
			Job: &kithv1.Job{Processors: 4, MemoryBytes: 1 << 30, Walltime: durationpb.New(limit)},
			Status: &kithv1.BagStatus{
				Tasks: &kithv1.TaskCounts{Total: 100, Completed: 30, Failed: 7, Cancelled: 3}, RunCount: runs, RunTime: durationpb.New(took),
				Sites: []*kithv1.BagSite{{SiteId: "uni-b", AtSite: 2}, {SiteId: "uni-c"}},
			},
		}
	}
	for name, c := range map[string]struct {
		bag     *kithv1.Bag
		said    time.Duration
		want    time.Duration
		guessed bool
	}{
		"by its runs":           {bag(40, 40*time.Minute, time.Hour), 0, time.Minute, false},
		"as was said":           {bag(40, 40*time.Minute, time.Hour), time.Second, time.Second, false},
		"none has ended":        {bag(0, 0, time.Hour), 0, 10 * time.Minute, true},
		"none, and a low limit": {bag(0, 0, time.Minute), 0, time.Minute, true},
	} {
		q := bagQuestion{Run: c.said}
		if err := q.of(c.bag); err != nil {
			t.Fatal(name, err)
		}
		if q.Tasks != 60 || q.Run != c.want || q.guessed != c.guessed || q.processors != 4 || q.memory != 1<<30 {
			t.Errorf("%s: %+v", name, q)
		}
		for site, after := range map[string]float64{"uni-b": 0, "uni-c": 1800, "uni-d": 1800} {
			if p := q.place(&kithv1.Site{Id: site, Processors: 8, LoadWorkSeconds: 1800}); p.After != after {
				t.Errorf("%s: %s begins after %v s", name, site, p.After)
			}
		}
	}
	over := bag(1, time.Second, 0)
	over.Status.Tasks.Completed = 90
	if err := (&bagQuestion{}).of(over); err == nil || !strings.Contains(err.Error(), "uni-a.1.17: has no task left") {
		t.Error(err)
	}
}
