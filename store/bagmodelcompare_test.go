package store_test

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"kith/store"
)

// having returns the bundles that are not late and have a task.
func (b *slowBag) having(task uint32) (list []*slowBundle) {
	if b.tasks[task].where != "given" {
		return nil
	}
	for _, o := range b.bundles {
		if !o.late && o.tasks[task] {
			list = append(list, o)
		}
	}
	return list
}

// runs counts runs of tasks at sites.
func (b *slowBag) runsAtSites() (n int) {
	for _, o := range b.bundles {
		if !o.late {
			n += len(o.tasks)
		}
	}
	return n
}

// mayReplicate reports whether the tasks of a grant may be at its site beside others.
func (b *slowBag) mayReplicate(c *store.GrantBundle) bool {
	for task := range c.Tasks.All {
		if int(task) >= len(b.tasks) {
			return false
		}
		t := &b.tasks[task]
		if t.where != "given" || t.stopping || len(b.having(task)) > b.replicas || t.failures > b.retries || t.losses >= store.MaxTaskLosses || b.wait && t.losses > 0 {
			return false
		}
		for _, o := range b.bundles {
			if o.site == c.Site && o.tasks[task] {
				return false
			}
		}
	}
	return b.tail && b.replicas > 0
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
		if want := len(b.having(task)); n != want || n > 1+b.replicas || b.replicas > 0 && got.RunsOf(task) != n {
			return fmt.Errorf("task %d is in %d bundles, want %d, counted are %d", task, n, want, got.RunsOf(task))
		}
		if !where[t.where] || len(slices.DeleteFunc(slices.Collect(maps.Values(where)), func(is bool) bool { return !is })) != 1 {
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
	if got.Runs() != b.runsAtSites() || int(got.Sums.Replicas) != b.twice || math.Abs(got.Sums.WastedTime-b.seconds) > 1e-6*(1+b.seconds) || (got.TailSince != 0) != b.tail {
		return fmt.Errorf("%d runs at sites, %d replicas, %v s wasted, tail since %v; want %d, %d, %v, %v", got.Runs(), got.Sums.Replicas, got.Sums.WastedTime, got.TailSince,
			b.runsAtSites(), b.twice, b.seconds, b.tail)
	}
	if got.Policies != b.policies {
		return fmt.Errorf("policies %+v, want %+v", got.Policies, b.policies)
	}
	if got.Budget != b.budget || got.Used() != b.ran+b.seconds {
		return fmt.Errorf("%v of %d processor-seconds are used; want %v of %d", got.Used(), got.Budget, b.ran+b.seconds, b.budget)
	}
	if got.State != b.state || got.CancelRequested != b.cancelled || got.Number != b.number || int(got.Sums.Runs) != b.runs || int(got.Sums.Wasted) != b.wasted || got.Given() != b.given() {
		return fmt.Errorf("%v, cancelled %v, bundle %d, %d runs, %d wasted, %d given; want %v, %v, %d, %d, %d, %d", got.State, got.CancelRequested,
			got.Number, got.Sums.Runs, got.Sums.Wasted, got.Given(), b.state, b.cancelled, b.number, b.runs, b.wasted, b.given())
	}
	return nil
}
