package store_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"kith/internal/job"
	"kith/store"
	"kith/store/codec"
	"kith/store/storetest"
)

// slowBag is a bag as a list of tasks: the reference that [store.Bag] is checked against.
type slowBag struct {
	tasks      []slowTask
	bundles    map[uint32]*slowBundle
	number     uint32
	maxRunning int
	retries    int
	wait       bool // for lost sites
	state      job.BagState
	cancelled  bool
	runs       int
	wasted     int
	lost       map[job.SiteID]int
	indices    job.Indices
}

type slowTask struct {
	where            string // fresh, waits, given, done, failed or cancelled
	bundle           uint32
	stopping         bool
	failures, losses int
	ends, retries    int // how often it has ended, and was retried after that
}

type slowBundle struct {
	site  job.SiteID
	late  bool
	batch uint32
	tasks map[uint32]bool
	claim string
}

func (t *slowTask) ended() bool {
	return t.where == "done" || t.where == "failed" || t.where == "cancelled"
}

func (b *slowBag) given() (n int) {
	for i := range b.tasks {
		if b.tasks[i].where == "given" {
			n++
		}
	}
	return n
}

func (b *slowBag) end(task uint32, where string) {
	t := &b.tasks[task]
	if t.ended() {
		panic(fmt.Sprintf("task %d is %s and ends as %s", task, t.where, where))
	}
	t.where, t.ends, t.stopping, t.failures, t.losses = where, t.ends+1, false, 0, 0
	for _, o := range b.bundles {
		delete(o.tasks, task)
	}
}

func (b *slowBag) back(task uint32) {
	if t := &b.tasks[task]; t.stopping {
		b.end(task, "cancelled")
	} else {
		t.where = "waits"
	}
}

func claimText(site job.SiteID, generation uint32, stamp uint64, node string) string {
	return fmt.Sprint(site, generation, stamp, node)
}

// settle forgets empty bundles and moves a bag all of whose tasks have ended.
func (b *slowBag) settle() {
	maps.DeleteFunc(b.bundles, func(_ uint32, o *slowBundle) bool { return len(o.tasks) == 0 })
	for i := range b.tasks {
		if !b.tasks[i].ended() {
			return
		}
	}
	if b.state < job.BagReturning {
		b.state = job.BagReturning
	}
}

// grant reports whether the grant is allowed, and carries it out.
func (b *slowBag) grant(c store.GrantBundle) bool {
	claim := claimText(c.Site, c.Generation, c.Stamp, c.Node)
	if o := b.bundles[c.Bundle.Number]; o != nil && !o.late && o.claim == claim {
		return true
	}
	n := c.Tasks.Count()
	if c.Bundle.Number != b.number+1 || b.state != job.BagOpen || n == 0 || n > store.MaxBundleTasks || b.maxRunning > 0 && b.given()+n > b.maxRunning {
		return false
	}
	gap := false // a fresh task that is left out
	for i := range b.tasks {
		has := c.Tasks.Has(uint32(i))
		switch where := b.tasks[i].where; {
		case where == "fresh" && !has:
			gap = true
		case where == "fresh" && gap, where != "fresh" && where != "waits" && has:
			return false
		}
	}
	if last, _ := c.Tasks.Last(); int(last) >= len(b.tasks) {
		return false
	}
	b.number++
	o := &slowBundle{site: c.Site, tasks: map[uint32]bool{}, claim: claim}
	for task := range c.Tasks.All {
		o.tasks[task] = true
		b.tasks[task].where, b.tasks[task].bundle = "given", b.number
	}
	b.bundles[b.number] = o
	return true
}

func (b *slowBag) result(number uint32, o *slowBundle, r job.TaskResult) {
	own := r.Kind == job.Failure || r.Kind == job.Timeout
	if !o.tasks[r.Ordinal] || o.late && !own && r.Kind != job.Success {
		b.wasted++
		return
	}
	b.runs++
	if r.Kind == job.Loss {
		b.lost[o.site]++
	}
	delete(o.tasks, r.Ordinal)
	t := &b.tasks[r.Ordinal]
	where := ""
	switch {
	case r.Kind == job.Success:
		where = "done"
	case t.stopping:
		where = "cancelled"
	case own:
		if t.failures++; t.failures > b.retries {
			where = "failed"
		}
	case r.Kind == job.Loss:
		if t.losses++; b.wait || t.losses >= store.MaxTaskLosses {
			where = "failed"
		}
	}
	switch {
	case where != "":
		b.end(r.Ordinal, where)
	case !o.late:
		b.back(r.Ordinal)
	}
}

func (b *slowBag) returned(o *slowBundle, tasks *job.TaskSet) {
	for task := range tasks.All {
		if o.tasks[task] {
			delete(o.tasks, task)
			if !o.late {
				b.back(task)
			}
		}
	}
}

func (b *slowBag) revoke(o *slowBundle, mayRun bool) {
	if o.late {
		if !mayRun {
			clear(o.tasks)
		}
		return
	}
	o.late = true
	for _, task := range slices.Sorted(maps.Keys(o.tasks)) {
		if !mayRun || b.wait {
			delete(o.tasks, task)
		}
		t := &b.tasks[task]
		b.lost[o.site]++
		if t.losses++; !t.stopping && (b.wait || t.losses >= store.MaxTaskLosses) {
			b.end(task, "failed")
			continue
		}
		b.back(task)
	}
}

func (b *slowBag) cancel(only *job.TaskSet) bool {
	all := true
	for i := range b.tasks {
		all = all && b.tasks[i].ended()
	}
	if only == nil {
		to, ok := b.state.Next(job.RequestBagCancel)
		if !ok {
			return false
		}
		b.state, b.cancelled = to, b.cancelled || !all
	} else if last, any := only.Last(); b.state.Terminal() || any && int(last) >= len(b.tasks) {
		return false
	}
	top := -1 // what lies below a fresh task that is cancelled is not fresh any more
	for i := range b.tasks {
		t := &b.tasks[i]
		if only != nil && !only.Has(uint32(i)) || t.ended() {
			continue
		}
		if t.where == "given" {
			t.stopping = true
			continue
		}
		if t.where == "fresh" {
			top = i
		}
		b.end(uint32(i), "cancelled")
	}
	for i := range top {
		if b.tasks[i].where == "fresh" {
			b.tasks[i].where = "waits"
		}
	}
	return true
}

func (b *slowBag) retry(tasks *job.TaskSet) bool {
	to, ok := b.state.Next(job.BagRetry)
	if !ok || tasks.Empty() {
		return false
	}
	for task := range tasks.All {
		if int(task) >= len(b.tasks) || !b.tasks[task].ended() {
			return false
		}
	}
	b.state, b.cancelled = to, false
	for task := range tasks.All {
		b.tasks[task].where = "waits"
		b.tasks[task].retries++
	}
	return true
}

func (b *slowBag) closeAs() (job.BagState, bool) {
	count := map[string]int{}
	for i := range b.tasks {
		count[b.tasks[i].where]++
	}
	switch {
	case b.state != job.BagReturning:
		return 0, false
	case b.cancelled:
		return job.BagCancelled, true
	case count["failed"] > 0:
		return job.BagFailed, true
	case count["cancelled"] > 0:
		return job.BagCancelled, true
	}
	return job.BagCompleted, true
}

// slowSite is all bags of a site.
type slowSite map[job.ID]*slowBag

// step carries out a command at the origin and reports whether it is allowed.
func (m slowSite) step(s *store.State, c store.Command) (ok, known bool) {
	at := func(id job.AttemptID, site job.SiteID) (*slowBag, *slowBundle) {
		b := m[id.Job]
		if b == nil || b.bundles[id.Number] == nil || b.bundles[id.Number].site != site {
			return nil, nil
		}
		return b, b.bundles[id.Number]
	}
	simple := func(id job.ID, ev job.BagEvent) bool {
		to, ok := m[id].state.Next(ev)
		if ok {
			m[id].state = to
		}
		return ok
	}
	var b *slowBag
	var o *slowBundle
	switch c := c.(type) {
	case store.SubmitBag:
		if c.ID != s.NextID() || s.BagOfRequest(c.RequestID) != nil {
			return false, true
		}
		b = &slowBag{
			tasks: make([]slowTask, c.Indices.Count()), bundles: map[uint32]*slowBundle{}, maxRunning: int(c.MaxRunning), retries: int(c.Retries), lost: map[job.SiteID]int{},
			wait: c.Request.OnSiteLost == job.Wait, state: job.BagOpen, indices: c.Indices,
		}
		for i := range b.tasks {
			b.tasks[i].where = "fresh"
		}
		m[c.ID] = b
		return true, true
	case store.GrantBundle:
		return m[c.Bundle.Job].grant(c), true
	case store.RecordResults:
		if b, o = at(c.Bundle, c.Site); b == nil {
			return false, true
		}
		if c.Batch <= o.batch {
			return true, true
		}
		if slices.ContainsFunc(c.Results, func(r job.TaskResult) bool { return int(r.Ordinal) >= len(b.tasks) }) {
			return false, true
		}
		o.batch = c.Batch
		for _, r := range c.Results {
			b.result(c.Bundle.Number, o, r)
		}
		b.returned(o, &c.Returned)
	case store.ReturnTasks:
		if b, o = at(c.Bundle, c.Site); b == nil {
			return false, true
		}
		b.returned(o, &c.Tasks)
	case store.RevokeBundle:
		if b, o = at(c.Bundle, c.Site); b == nil {
			return false, true
		}
		b.revoke(o, c.MayRun)
	case store.HoldBag:
		return simple(c.Bag, job.BagHold), true
	case store.ReleaseBag:
		return simple(c.Bag, job.BagRelease), true
	case store.CancelBag:
		if b = m[c.Bag]; !b.cancel(c.Tasks) {
			return false, true
		}
	case store.RetryTasks:
		return m[c.Bag].retry(&c.Tasks), true
	case store.CloseBag:
		to, ok := m[c.Bag].closeAs()
		if ok {
			m[c.Bag].state = to
		}
		return ok, true
	case store.PurgeBag:
		if !m[c.Bag].state.Terminal() {
			return false, true
		}
		delete(m, c.Bag)
		return true, true
	default:
		return false, false
	}
	b.settle()
	return true, true
}

// compare returns how a bag differs from the reference.
func (b *slowBag) compare(got *store.Bag) error {
	for i := range b.tasks {
		t, task := &b.tasks[i], uint32(i)
		where := map[string]bool{
			"fresh": task >= got.Next, "waits": got.Again.Has(task), "done": got.Done.Has(task), "failed": got.Failed.Has(task), "cancelled": got.Cancelled.Has(task),
		}
		n := 0
		for o := range got.Bundles {
			if !o.Late && o.Tasks.Has(task) {
				n++
				where["given"] = true
			}
		}
		if !where[t.where] || len(slices.DeleteFunc(slices.Collect(maps.Values(where)), func(is bool) bool { return !is })) != 1 || n > 1 {
			return fmt.Errorf("task %d should be %s, is %v, in %d bundles", task, t.where, where, n)
		}
		if tries := got.Tries[task]; int(tries.Failures) != t.failures || int(tries.Losses) != t.losses || got.Stopping.Has(task) != t.stopping {
			return fmt.Errorf("task %d has %+v, stopping %v; want %+v", task, tries, got.Stopping.Has(task), *t)
		}
		if t.ends != t.retries && !t.ended() || t.ended() && t.ends != t.retries+1 {
			return fmt.Errorf("task %d has ended %d times with %d retries by its user", task, t.ends, t.retries)
		}
	}
	if len(got.Live) != len(b.bundles) {
		return fmt.Errorf("%d live bundles, want %d", len(got.Live), len(b.bundles))
	}
	for number, o := range b.bundles {
		g := got.Bundle(number)
		if g == nil || g.Late != o.late || g.Site != o.site || g.Batch != o.batch || !slices.Equal(slices.Collect(g.Tasks.All), slices.Sorted(maps.Keys(o.tasks))) {
			return fmt.Errorf("bundle %d is %+v, want %+v", number, g, o)
		}
	}
	for _, sum := range got.Sums.Sites {
		if int(sum.Lost) != b.lost[sum.Site] {
			return fmt.Errorf("%d runs were lost at %s, want %d", sum.Lost, sum.Site, b.lost[sum.Site])
		}
	}
	if got.State != b.state || got.CancelRequested != b.cancelled || got.Number != b.number || int(got.Sums.Runs) != b.runs || int(got.Sums.Wasted) != b.wasted || got.Given() != b.given() {
		return fmt.Errorf("%v, cancelled %v, bundle %d, %d runs, %d wasted, %d given; want %v, %v, %d, %d, %d, %d", got.State, got.CancelRequested,
			got.Number, got.Sums.Runs, got.Sums.Wasted, got.Given(), b.state, b.cancelled, b.number, b.runs, b.wasted, b.given())
	}
	return nil
}

// Whatever is applied in whatever order, a bag is what a list of its tasks would be: each
// task is in one place, in one live bundle at most, and ends once unless its user has it
// run again. What is refused changes nothing.
func TestBagsAgainstAList(t *testing.T) {
	seeds, steps := uint64(16), 700
	if testing.Short() {
		seeds = 4
	}
	applied := map[string]int{}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 9))
		s := store.NewState("alpha", 3)
		m := slowSite{}
		for step := range steps {
			c := storetest.WalkBags(rng, s)
			before := []byte(nil)
			if step%10 == 0 {
				before = codec.Dump(s)
			}
			allowed, known := m.step(s, c)
			err := s.Apply(c)
			if known && allowed != (err == nil) {
				t.Fatalf("seed %d, step %d: %T: %v; allowed: %v\n%+v", seed, step, c, err, allowed, c)
			}
			if err == nil {
				applied[fmt.Sprintf("%T", c)]++
			} else if before != nil && !bytes.Equal(codec.Dump(s), before) {
				t.Fatalf("seed %d, step %d: %T failed and changed the state: %v", seed, step, c, err)
			}
			if err := s.Check(); err != nil {
				t.Fatalf("seed %d, step %d: after %T: %v", seed, step, c, err)
			}
			for b := range s.Bags {
				if len(m[b.ID].tasks) > 200 && step%25 != 0 {
					continue // a long list
				}
				if err := m[b.ID].compare(b); err != nil {
					t.Fatalf("seed %d, step %d: bag %v after %T: %v\n%+v", seed, step, b.ID, c, err, c)
				}
			}
			if s.BagCount() != len(m) {
				t.Fatalf("seed %d, step %d: %d bags, want %d", seed, step, s.BagCount(), len(m))
			}
		}
		finish(t, s)
	}
	for _, c := range []store.Command{
		store.SubmitBag{}, store.GrantBundle{}, store.RecordResults{}, store.ReturnTasks{}, store.RevokeBundle{}, store.HoldBag{}, store.ReleaseBag{},
		store.CancelBag{}, store.RetryTasks{}, store.CloseBag{}, store.PurgeBag{}, store.AcceptBundle{}, store.EndTasks{}, store.DropTasks{}, store.ForgetTasks{},
	} {
		if n := applied[fmt.Sprintf("%T", c)]; n < int(seeds) {
			t.Errorf("%T was applied %d times in %d walks: the test looks at too little", c, n, seeds)
		}
	}
}

// finish has all bags end from where they are: every task runs, and every bag closes.
func finish(t *testing.T, s *store.State) {
	t.Helper()
	for b := range s.Bags {
		if b.State == job.BagOnHold {
			must(t, s, store.ReleaseBag{Bag: b.ID})
		}
		for !b.State.Terminal() {
			for o := range b.Bundles {
				c := store.RecordResults{Bundle: job.AttemptID{Job: b.ID, Number: o.Number}, Site: o.Site, Batch: o.Batch + 1}
				for task := range o.Tasks.All {
					c.Results = append(c.Results, job.TaskResult{Ordinal: task, Kind: job.Success})
				}
				must(t, s, c)
			}
			if b.State == job.BagReturning {
				must(t, s, store.CloseBag{Bag: b.ID})
				continue
			}
			must(t, s, store.GrantBundle{Bundle: job.AttemptID{Job: b.ID, Number: b.Number + 1}, Site: "beta", Stamp: 99, Tasks: b.NextTasks(store.MaxBundleTasks)})
		}
		if b.EndedCount() != int(b.Tasks()) || len(b.Live) != 0 || b.Given() != 0 || len(b.Tries) != 0 {
			t.Errorf("bag %v has ended with %d of %d tasks, %d bundles, %d given, tries of %d", b.ID, b.EndedCount(), b.Tasks(), len(b.Live), b.Given(), len(b.Tries))
		}
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}
