package sitesched

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kith/internal/job"
)

// TestQueue adds, hides, takes out and looks for thousands of copies and
// compares the queue with a sorted slice.
func TestQueue(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 12))
		var tab table
		var q queue
		var want []int32 // slots in queue order
		for n := range 4000 {
			filling := n%1000 < 500
			switch k := rng.IntN(10); {
			case k < 6 == filling || len(want) == 0:
				c := entry{id: attempt("a", n), walltime: time.Duration(1+rng.IntN(1000)) * time.Second, arrival: job.Time(n)}
				if rng.IntN(20) == 0 {
					c.arrival -= job.Time(rng.IntN(300))
				}
				slot := tab.add(&c, 1+rng.Int32N(100))
				tab.rows[slot].state = queued
				tab.rows[slot].hidden = rng.IntN(10) == 0
				q.add(&tab, slot)
				i, _ := slices.BinarySearchFunc(want, slot, func(a, b int32) int {
					return map[bool]int{true: -1, false: 1}[tab.before(a, b)]
				})
				want = slices.Insert(want, i, slot)
			default:
				q.settle(&tab)
				i := rng.IntN(1 + rng.IntN(len(want))) // mostly from the front
				q.remove(int(tab.rows[want[i]].position))
				tab.release(want[i])
				want = slices.Delete(want, i, i+1)
				seen, planned := liveBefore(&q, q.seen), liveBefore(&q, q.planned)
				q.tidy(&tab)
				if liveBefore(&q, q.seen) != seen || liveBefore(&q, q.planned) != planned {
					t.Fatalf("seed %d step %d: tidying moved the marks", seed, n)
				}
			}
			if n%7 == 0 {
				q.settle(&tab)
				q.seen, q.planned = rng.IntN(len(q.slot)+1), rng.IntN(len(q.slot)+1)
				compareQueue(t, rng, &tab, &q, want)
			}
		}
	}
}

// TestLongQueue looks for copies in a queue of many blocks, of which few fit.
func TestLongQueue(t *testing.T) {
	for seed := range uint64(3) {
		rng := rand.New(rand.NewPCG(seed, 14))
		var tab table
		var q queue
		var want []int32
		for n := range 5*blockSize + 100 {
			// Wide copies, narrow and long ones, and now and then one that fits.
			c := entry{id: attempt("a", n), walltime: time.Duration(500+rng.IntN(1000)) * time.Second, arrival: job.Time(n)}
			charge := 1 + rng.Int32N(20000)
			if rng.IntN(2000) == 0 {
				c.walltime = time.Duration(rng.Int64N(int64(500 * time.Second)))
				charge = 1 + rng.Int32N(60)
			}
			slot := tab.add(&c, charge)
			tab.rows[slot].state = queued
			q.add(&tab, slot)
			want = append(want, slot)
		}
		for n := range 4000 {
			i := rng.IntN(len(want))
			if n < 2000 {
				i = rng.IntN(1 + i/50) // leaves a gap at the front
			}
			q.remove(int(tab.rows[want[i]].position))
			tab.release(want[i])
			want = slices.Delete(want, i, i+1)
			q.tidy(&tab)
			if n%200 == 0 {
				compareQueue(t, rng, &tab, &q, want)
			}
		}
		before := q.scanned
		q.nextFit(0, 3, 0, time.Second)
		q.nextFit(0, 3, 0, time.Second)
		if groups := int64(len(q.bounds)); q.scanned-before > groups {
			t.Errorf("seed %d: two scans for what is not there look at %d of %d groups and blocks", seed, q.scanned-before, groups)
		}
	}
}

func liveBefore(q *queue, place int) (n int) {
	for _, slot := range q.slot[:place] {
		if slot != gap {
			n++
		}
	}
	return n
}

func compareQueue(t *testing.T, rng *rand.Rand, tab *table, q *queue, want []int32) {
	t.Helper()
	if err := q.check(tab); err != nil {
		t.Fatal(err)
	}
	if got := slices.DeleteFunc(slices.Clone(q.slot), func(s int32) bool { return s == gap }); !slices.Equal(got, want) {
		t.Fatalf("queue %v, want %v", got, want)
	}
	free, extra, window := rng.Int32N(60), rng.Int32N(30), time.Duration(rng.IntN(500))*time.Second
	w := window2(free, min(free, extra), window)
	for from, i := 0, 0; ; i++ {
		for i < len(want) {
			r := &tab.rows[want[i]]
			if !r.hidden && r.charge <= free && (r.charge <= extra || r.copy.walltime <= window) {
				break
			}
			i++
		}
		got := q.nextFit(from, free, extra, window)
		if within := q.nextWithin(from, 0, w, math.MaxInt32); within != got {
			t.Fatalf("nextFit finds place %d, nextWithin %d", got, within)
		}
		if i == len(want) {
			if got != -1 {
				t.Fatalf("found place %d, want none", got)
			}
			return
		}
		if got != int(tab.rows[want[i]].position) {
			t.Fatalf("found place %d, want %d", got, tab.rows[want[i]].position)
		}
		from = got + 1
	}
}

// window2 is the window of EASY: free processors until the shadow, extra ones beyond.
func window2(free, extra int32, shadow time.Duration) *window {
	return &window{steps: []step{{job.Time(shadow), free}, {job.Never, extra}}}
}

// TestRunSet adds and takes out running copies at both ends and in the middle.
func TestRunSet(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 13))
	var tab table
	var set runSet
	var want []runItem
	less := func(a, b runItem) int {
		if a.end != b.end {
			return int(a.end - b.end)
		}
		return tab.rows[a.slot].copy.id.Compare(tab.rows[b.slot].copy.id)
	}
	for n := range 20000 {
		if len(want) == 0 || n/3000%2 == 0 && rng.IntN(3) > 0 || rng.IntN(3) == 0 {
			c := entry{id: attempt("a", rng.IntN(1<<40))}
			it := runItem{end: job.Time(n/10 + rng.IntN(100)), charge: 1, slot: tab.add(&c, 1)}
			set.insert(&tab, it)
			i, _ := slices.BinarySearchFunc(want, it, less)
			want = slices.Insert(want, i, it)
		} else {
			i := rng.IntN(len(want))
			if n%3 == 0 {
				i = 0
			}
			set.remove(&tab, want[i].end, want[i].slot)
			tab.release(want[i].slot)
			want = slices.Delete(want, i, i+1)
		}
		if n%50 == 0 && !slices.Equal(set.items(), want) {
			t.Fatalf("after %d steps: %v, want %v", n, set.items(), want)
		}
	}
	if cap(set.buf) > 20*len(want)+20000 {
		t.Errorf("%d items keep %d places", len(want), cap(set.buf))
	}
}
