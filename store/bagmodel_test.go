package store_test

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

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
	budget     uint64 // of a bag whose tasks have a processor each
	ran        float64
	retries    int
	replicas   int
	tail       bool
	seconds    float64 // wasted
	twice      int     // tasks in bundles of replicas
	walltime   time.Duration
	wait       bool // for lost sites
	state      job.BagState
	cancelled  bool
	runs       int
	wasted     int
	lost       map[job.SiteID]int
	indices    job.Indices
	after      []job.Dependency
	policies   store.BagPolicies
}

type slowTask struct {
	where            string // fresh, waits, given, done, failed or cancelled
	stopping         bool
	failures, losses int
	ends, retries    int // how often it has ended, and was retried after that
}

type slowBundle struct {
	site  job.SiteID
	late  bool
	batch uint32
	since job.Time
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
	if b.state != job.BagReturning && !b.state.Terminal() {
		b.state = job.BagReturning
		b.drop()
	}
}

// affords reports whether the last of n more runs begins within the budget if those with sites
// and the others take as long as runs did so far, or their walltime.
func (b *slowBag) affords(n int) bool {
	each := b.walltime.Seconds()
	if b.runs > 0 {
		each = b.ran / float64(b.runs)
	}
	return b.budget == 0 || b.ran+b.seconds+float64(b.runsAtSites()+n-1)*each < float64(b.budget)
}

// grant reports whether the grant is allowed, and carries it out.
func (b *slowBag) grant(c store.GrantBundle) bool {
	claim := claimText(c.Site, c.Generation, c.Stamp, c.Node)
	if o := b.bundles[c.Bundle.Number]; o != nil && !o.late && o.claim == claim {
		return true
	}
	n := c.Tasks.Count()
	if c.Bundle.Number != b.number+1 || b.state != job.BagOpen || n == 0 || n > store.MaxBundleTasks || b.maxRunning > 0 && b.runsAtSites()+n > b.maxRunning || !b.affords(n) {
		return false
	}
	if c.Replica {
		if !b.mayReplicate(&c) {
			return false
		}
		b.twice += n
		b.give(&c, claim)
		return true
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
	b.give(&c, claim)
	return true
}

func (b *slowBag) give(c *store.GrantBundle, claim string) {
	b.number++
	o := &slowBundle{site: c.Site, since: c.Time, tasks: map[uint32]bool{}, claim: claim}
	for task := range c.Tasks.All {
		o.tasks[task] = true
		b.tasks[task].where = "given"
	}
	b.bundles[b.number] = o
}

func (b *slowBag) result(o *slowBundle, r job.TaskResult, now job.Time) {
	own := r.Kind == job.Failure || r.Kind == job.Timeout
	if !o.tasks[r.Ordinal] || o.late && !own && r.Kind != job.Success {
		b.wasted++
		return
	}
	b.runs++
	b.ran += r.Run.Seconds()
	if r.Kind == job.Loss {
		b.lost[o.site]++
	}
	delete(o.tasks, r.Ordinal)
	t := &b.tasks[r.Ordinal]
	others := b.having(r.Ordinal)
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
	case where != "" && (where == "done" || len(others) == 0):
		for _, other := range others {
			b.seconds += min(max(0, now.Sub(other.since)), b.walltime).Seconds()
		}
		b.end(r.Ordinal, where)
	case !o.late && len(others) == 0:
		b.back(r.Ordinal)
	}
}

func (b *slowBag) returned(o *slowBundle, tasks *job.TaskSet) {
	for task := range tasks.All {
		if o.tasks[task] {
			delete(o.tasks, task)
			if !o.late && len(b.having(task)) == 0 {
				b.back(task)
			}
		}
	}
}

func (b *slowBag) revoke(o *slowBundle, mayRun, requeue bool) {
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
		if t.losses++; len(b.having(task)) > 0 {
			continue
		}
		if !t.stopping && (b.wait && !requeue || t.losses >= store.MaxTaskLosses) {
			b.end(task, "failed")
			continue
		}
		b.back(task)
	}
}

// setPolicies reports whether the policies are allowed, and takes them.
func (b *slowBag) setPolicies(c store.SetPolicies) bool {
	long := slices.ContainsFunc(c.Texts[:], func(text string) bool { return len(text) > store.MaxPolicyText })
	if long || c.Version != b.policies.Version || b.cancelled || b.state == job.BagCancelling || b.state.Terminal() {
		return false
	}
	b.policies = store.BagPolicies{Texts: c.Texts, Version: c.Version + 1}
	return true
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
	b.state, b.cancelled, b.tail = to, false, false
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

// requeue counts revocations with Requeue of bags that wait for lost sites.
type requeue struct{}

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
		if c.ID != s.NextID() || s.BagOfRequest(c.RequestID) != nil || c.MaxReplicas > store.MaxReplicas {
			return false, true
		}
		b = &slowBag{
			tasks: make([]slowTask, c.Indices.Count()), bundles: map[uint32]*slowBundle{}, maxRunning: int(c.MaxRunning), budget: c.Budget, retries: int(c.Retries), lost: map[job.SiteID]int{},
			replicas: int(c.MaxReplicas), walltime: c.Request.Walltime, wait: c.Request.OnSiteLost == job.Wait, state: job.BagOpen, indices: c.Indices,
		}
		for i := range b.tasks {
			b.tasks[i].where = "fresh"
		}
		if !m.submitted(b, c.After) {
			return false, true
		}
		m[c.ID] = b
	case store.GrantBundle:
		return m[c.Bundle.Job].grant(c), true
	case store.BeginTail:
		if b = m[c.Bag]; b.state != job.BagOpen {
			return false, true
		}
		b.tail = true
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
			b.result(o, r, c.Time)
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
		b.revoke(o, c.MayRun, c.Requeue)
	case store.SetPolicies:
		return m[c.Bag].setPolicies(c), true
	case store.SetBudget:
		if b = m[c.Bag]; c.Budget > store.MaxBudget || b.cancelled || b.state == job.BagCancelling || b.state.Terminal() {
			return false, true
		}
		b.budget = c.Budget
	case store.HoldBag:
		return simple(c.Bag, job.BagHold), true
	case store.ReleaseBag:
		ok := simple(c.Bag, job.BagRelease)
		if ok && m[c.Bag].has(job.DependencyWaits) {
			m[c.Bag].state = job.BagBlocked
		}
		return ok, true
	case store.ResolveDependency:
		if b = m[c.ID]; !m.resolved(c) {
			return false, true
		}
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

// Whatever is applied in whatever order, a bag is what a list of its tasks would be: each
// task is in one place, in one live bundle at most, and ends once unless its user has it
// run again. What is refused changes nothing.
func TestBagsAgainstAList(t *testing.T) {
	seeds, steps := uint64(16), 900
	if testing.Short() {
		seeds, steps = 4, 700
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
				if r, is := c.(store.RevokeBundle); is && r.Requeue && m[r.Bundle.Job].wait {
					applied[fmt.Sprintf("%T", requeue{})]++
				}
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
				if err := cmp.Or(m[b.ID].compare(b), m[b.ID].sameAfter(s.After(b.ID))); err != nil {
					t.Fatalf("seed %d, step %d: bag %v after %T: %v\n%+v", seed, step, b.ID, c, err, c)
				}
			}
			if s.BagCount() != len(m) {
				t.Fatalf("seed %d, step %d: %d bags, want %d", seed, step, s.BagCount(), len(m))
			}
		}
		finish(t, s)
	}
	for _, c := range []any{
		store.SubmitBag{}, store.GrantBundle{}, store.RecordResults{}, store.ReturnTasks{}, store.RevokeBundle{}, store.HoldBag{}, store.ReleaseBag{},
		store.CancelBag{}, store.RetryTasks{}, store.CloseBag{}, store.PurgeBag{}, store.BeginTail{}, store.SetPolicies{}, requeue{}, store.ResolveDependency{}, store.AcceptBundle{}, store.EndTasks{}, store.DropTasks{}, store.ForgetTasks{},
	} {
		if n := applied[fmt.Sprintf("%T", c)]; n < int(seeds) {
			t.Errorf("%T was applied %d times in %d walks: the test looks at too little", c, n, seeds)
		}
	}
}
