package meta_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/bags"
	"kith/meta/policy"
	"kith/store"
)

// counting notes what is asked and compiled at each instant.
type counting struct {
	bags.Policies
	now      func() job.Time
	compiled map[job.Time]int // bytes of texts
	steps    map[job.Time]int // of judges asked for sites and for replicas
}

func (c *counting) Compile(p *store.BagPolicies) (bags.Judge, error) {
	for _, text := range p.Texts {
		c.compiled[c.now()] += len(text)
	}
	j, err := c.Policies.Compile(p)
	if err != nil {
		return nil, err
	}
	return &countingJudge{j, c}, nil
}

type countingJudge struct {
	bags.Judge
	c *counting
}

func (j *countingJudge) Offer(s *bags.Scene) bool {
	j.c.steps[j.c.now()] += j.Cost(bags.Sites) + j.Cost(bags.Requirements)
	return j.Judge.Offer(s)
}

func (j *countingJudge) Replicate(s *bags.Scene) bool {
	j.c.steps[j.c.now()] += j.Cost(bags.Replicate)
	return j.Judge.Replicate(s)
}

// most returns the most there was at one instant, and at how many there was some.
func most(at map[job.Time]int) (most, instants int) {
	for _, n := range at {
		most = max(most, n)
	}
	return most, len(at)
}

func countingWorld(t *testing.T, seed uint64, processors ...int32) (*world, *counting) {
	c := &counting{Policies: policy.New(), compiled: map[job.Time]int{}, steps: map[job.Time]int{}}
	w := newWorld(t, seed, func(cfg *meta.Config) { cfg.Policies = c }, processors...)
	c.now = func() job.Time { return w.now }
	return w, c
}

// After a start the texts of bags are compiled some at a time: those of a look have so few
// bytes that compiling them takes no 20 ms, and in the end all are.
func TestTextsAreCompiledSomeAtATime(t *testing.T) {
	w, c := countingWorld(t, 14, 1)
	alpha := w.sites[0]
	const n = 60
	for i := range n {
		w.stating(1, fmt.Sprint("x", i), map[bags.Text]string{
			bags.Sites: "false", bags.Rank: fmt.Sprint(i, strings.Repeat(" + 1", 60)), bags.Concurrency: fmt.Sprint(i, strings.Repeat(" + 2", 60)),
		})
	}
	alpha.stop(false, time.Second)
	clear(c.compiled)
	w.run(time.Minute)
	bytes, looks := most(c.compiled)
	if bytes > 7_000 || looks < 4 {
		t.Errorf("%d bytes compiled at once, at %d instants", bytes, looks)
	}
	if err := alpha.ask(meta.SubmitBag{
		Token: 1, Request: job.Request{User: "ada", Processors: 1, Walltime: time.Minute}, Indices: tasks(1), Policies: texts(map[bags.Text]string{bags.Rank: "1"}),
	}); err != nil {
		t.Errorf("not all were compiled: %v", err)
	}
}

// A look for the sites of all bags ends when it may have taken 2,000,000 steps, and goes on later.
func TestPlacementIsBoundedInSteps(t *testing.T) {
	w, c := countingWorld(t, 15, 1, 1, 1, 1, 1)
	costly := strings.Repeat("bag.name.matches('(a|b|c|d|e|f|g|h|i|j|k|l|m|n)*(o|p|q)') || ", 6) + "site.load < 0"
	for range 60 {
		w.stating(1, "x", map[bags.Text]string{bags.Sites: costly, bags.Requirements: "host.places < 0"})
	}
	w.run(time.Second)
	clear(c.steps)
	w.run(10 * time.Minute)
	one, looks := most(c.steps)
	t.Logf("%d steps at most, %d instants", one, looks)
	if one > 2_100_000 || one < 1_900_000 {
		t.Errorf("%d steps at once, at %d instants", one, looks)
	}
}

// A look for tasks to be replicated ends when it may have taken 2,000,000 steps, and goes
// on later.
func TestDrawsAreBoundedInSteps(t *testing.T) {
	w, c := countingWorld(t, 16, 400, 400)
	w.takes = func(job.TaskID) outcome { return outcome{run: 30 * time.Minute} }
	costly := strings.Repeat("bag.name.matches('(a|b|c|d|e|f|g|h|i|j|k|l|m|n)*(o|p|q)') || ", 6) + "task.index < 0"
	for i := range 4 {
		w.sites[0].submit(meta.SubmitBag{
			Token: 1, Request: job.Request{User: fmt.Sprint("u", i), Name: "x", Processors: 1, Walltime: time.Hour}, Indices: tasks(180), MaxReplicas: 1,
			Policies: texts(map[bags.Text]string{bags.Replicate: costly}),
		})
	}
	w.run(20 * time.Minute)
	one, looks := most(c.steps)
	t.Logf("%d steps at most, %d instants", one, looks)
	if one > 3_500_000 || one < 2_000_000 { // a look ends with the bag that it has begun
		t.Errorf("%d steps at once, at %d instants", one, looks)
	}
}
