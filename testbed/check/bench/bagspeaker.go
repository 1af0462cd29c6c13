package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/bags"
	"kith/testbed/local"
)

// tasker is a host that claims tasks and says at once that they have ended well. What is
// not atomic belongs to the stream's goroutine.
type tasker struct {
	*speaker
	share *share

	shape   bags.Shape
	stamp   uint64
	claims  int  // that have no answer yet
	offered bool // and no claim since came to nothing
	bundles map[job.AttemptID]int
}

// share is what taskers do together: so many tasks, and what else the latest claims got.
type share struct {
	most                     int64
	claims, granted, settled atomic.Int64
	done                     chan struct{} // closed once all that they got has been recorded
	once                     sync.Once
}

// look closes done if nothing is left to do.
func (s *share) look() {
	if n := s.settled.Load(); n >= s.most && s.claims.Load() == 0 && s.granted.Load() == n {
		s.once.Do(func() { close(s.done) })
	}
}

// claimsAhead is how many claims a tasker has under way.
const claimsAhead = 2

func newTasker(host, origin *local.Node, sh *share) (*tasker, error) {
	t := &tasker{share: sh, stamp: 1, bundles: make(map[job.AttemptID]int)}
	var err error
	if t.speaker, err = newSpeaker(host, origin, t.hear); err != nil {
		return nil, err
	}
	t.dial()
	return t, nil
}

// hear takes up what the origin says.
func (t *tasker) hear(m meta.Message) {
	switch m := m.(type) {
	case meta.Offer:
		t.shape, t.offered = m.Shape, m.Tasks > 0
	case meta.TaskVerdict:
		t.claims--
		t.offered = t.offered && len(m.Bundles) > 0
		for i := range m.Bundles {
			t.run(&m.Bundles[i])
		}
		t.share.claims.Add(-1)
	case meta.TaskResultsAck:
		t.share.settled.Add(int64(t.bundles[m.Bundle]))
		delete(t.bundles, m.Bundle)
	}
	for t.offered && t.claims < claimsAhead && t.share.granted.Load() < t.share.most {
		t.stamp++
		t.claims++
		t.share.claims.Add(1)
		t.send(meta.TaskClaim{Stamp: t.stamp, Sent: job.Instant(time.Now()), Ask: bags.Ask{
			Shape: t.shape, Places: speakerProcessors, Mean: taskRun, Want: bags.MaxAsk,
		}})
	}
	t.share.look()
}

// taskRun is how long tasks of a tasker say that they ran.
const taskRun = 5 * time.Millisecond

// run tells the ends of all tasks of a bundle, in a batch: none has more.
func (t *tasker) run(g *meta.GivenBundle) {
	m := meta.TaskResults{Bundle: g.Bundle, Batch: 1, Run: uint64(g.Bundle.Number)}
	now := job.Instant(time.Now())
	for task := range g.Tasks.All {
		m.Results = append(m.Results, job.TaskResult{Ordinal: task, Kind: job.Success, Start: now, Run: taskRun, CPUTime: time.Millisecond, MaxRSSBytes: 2 << 20})
	}
	t.share.granted.Add(int64(len(m.Results)))
	t.bundles[g.Bundle] = len(m.Results)
	t.send(m)
}

// work has two taskers, in place of the sites behind the first, run so many tasks of the
// bags of the first, or a few more, and returns how many and how long that took.
func work(ctx context.Context, nodes []*local.Node, tasks int) (ran int, took time.Duration, err error) {
	sh := &share{most: int64(tasks), done: make(chan struct{})}
	began := time.Now()
	for _, h := range nodes[1:] {
		t, err := newTasker(h, nodes[0], sh)
		if err != nil {
			return 0, 0, err
		}
		defer t.links.Close()
	}
	last := int64(-1)
	stuck := time.NewTicker(30 * time.Second)
	defer stuck.Stop()
	for {
		select {
		case <-sh.done:
			return int(sh.settled.Load()), time.Since(began), nil
		case <-stuck.C:
			if now := sh.settled.Load(); now > last {
				last = now
				continue
			}
			return 0, 0, fmt.Errorf("%d of %d tasks were recorded, then none for 30 s", last, tasks)
		case <-ctx.Done():
			return 0, 0, ctx.Err()
		}
	}
}
