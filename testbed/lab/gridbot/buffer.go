package gridbot

import (
	"math"
	"slices"
	"time"

	"kith/internal/job"
)

// buffered is the paper's server before its optimisation: algorithm 1 over the tasks of a
// scheduling buffer, each of which is judged by itself (spec 002 sections 2.2 and 2.5).
type buffered struct {
	*plain
	capacity int
	buffer   []entry
}

// entry is a task in the buffer.
type entry struct {
	bag     *plainBag
	task    uint32
	replica bool
	until   job.Time
}

// bufferTime is how long a task stays in the buffer that no client takes: then it goes to the
// end of its queue, so that what few hosts may run does not clog it.
const bufferTime = time.Minute

func newBuffered(capacity int) *buffered { return &buffered{plain: newPlain(), capacity: capacity} }

// ask implements [dispatcher]: it is algorithm 1 as printed, but for the comparison that is the
// wrong way round there.
func (b *buffered) ask(c *client) {
	if !b.admit(c) {
		return
	}
	b.fill(b.f.w.Now())
	type choice struct {
		candidate
		at int
	}
	var list []choice
	for i, e := range b.buffer {
		if v := b.verdict(e.bag, c.host); v.Yes {
			list = append(list, choice{candidate{e.bag, v}, i})
		}
	}
	slices.SortStableFunc(list, func(x, y choice) int { return x.compare(y.candidate) })
	var taken []int
	most := math.Inf(1)
	for _, x := range list {
		if most = min(most, x.Most); float64(len(taken)) < most {
			taken = append(taken, x.at)
		}
	}
	slices.Sort(taken)
	for _, at := range slices.Backward(taken) {
		e := b.buffer[at]
		b.buffer = slices.Delete(b.buffer, at, at+1)
		e.bag.buffered--
		b.begin(c, e.bag, e.task, e.replica)
	}
	b.count(c, len(taken))
}

// fill lets tasks go whose time is over, and fills the buffer.
func (b *buffered) fill(now job.Time) {
	b.buffer = slices.DeleteFunc(b.buffer, func(e entry) bool {
		if now < e.until {
			return false
		}
		e.bag.buffered--
		if e.replica {
			e.bag.twice = append(e.bag.twice, e.task)
			e.bag.queued[e.task]++
		} else {
			e.bag.unwanted = append(e.bag.unwanted, e.task)
		}
		return true
	})
	need := make([]int, len(b.bags))
	for i, x := range b.bags {
		need[i] = x.unsent() + len(x.twice)
	}
	for i, n := range fairShares(b.capacity, need) {
		x := b.bags[i]
		for x.buffered < n && len(b.buffer) < b.capacity {
			task, replica, any := x.take()
			if !any {
				break
			}
			x.buffered++
			b.buffer = append(b.buffer, entry{x, task, replica, now.Add(bufferTime)})
		}
	}
}

// fairShares divides room among those who need so much of it: each gets what it needs, or at
// least as much as anybody else.
func fairShares(room int, need []int) []int {
	shares := make([]int, len(need))
	left := 0
	for _, n := range need {
		if n > 0 {
			left++
		}
	}
	for room > 0 && left > 0 {
		each := max(1, room/left)
		for i, n := range need {
			if more := min(n-shares[i], each, room); more > 0 {
				shares[i] += more
				room -= more
				if shares[i] == n {
					left--
				}
			}
		}
	}
	return shares
}
