package meta_test

import (
	"testing"
	"time"

	"kith/internal/job"
)

// A host takes the tasks of a bag for as short as those of the one before. It gets too many
// of them then, and what is recalled goes to those who are idle: not back to it at once, which
// wants more, and so on without end.
func TestLongTasksBehindShortOnes(t *testing.T) {
	for name, c := range map[string]struct {
		few   uint32 // tasks of the first bag
		pause time.Duration
	}{
		"at once": {20, 0}, "behind a moment": {20, 100 * time.Millisecond}, "behind a while": {20, 5 * time.Second},
		"all have run short ones": {4000, 0}, "and behind a while": {4000, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, nil, 4, 2, 3, 1)
			var short job.ID
			w.takes = func(id job.TaskID) outcome {
				if id.Bag == short {
					return outcome{run: 5 * time.Millisecond}
				}
				return outcome{run: time.Minute}
			}
			w.run(time.Second)
			short = w.sites[0].state.NextID()
			w.bagOf(c.few, nil)
			w.run(time.Hour)
			w.now = w.now.Add(c.pause)
			given := w.sites[0].engine.Views().Counters().TasksGranted
			const tasks = 50
			id := w.bagOf(tasks, nil)
			w.run(4 * time.Second)
			for _, p := range w.sites {
				if p.busy != p.procs {
					t.Errorf("%s runs %d tasks on %d processors", p.id, p.busy, p.procs)
				}
			}
			w.mustEnd(time.Hour)
			b := w.sites[0].state.Bag(id)
			if took := b.Closed.Sub(b.Submitted); took > 6*time.Minute+20*time.Second {
				t.Errorf("%d tasks of a minute took %v on 10 processors", tasks, took)
			}
			if given = w.sites[0].engine.Views().Counters().TasksGranted - given; given > 3*tasks {
				t.Errorf("%d tasks were given %d times", tasks, given)
			}
		})
	}
}
