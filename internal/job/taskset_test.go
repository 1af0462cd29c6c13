package job

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// slowSet is the reference: what a [TaskSet] must be at every step.
type slowSet map[uint32]bool

func (m slowSet) sorted() []uint32 { return slices.Sorted(maps.Keys(m)) }

// checkSet compares all that can be asked of a set with the reference, and checks how it
// is kept.
func checkSet(t *testing.T, s *TaskSet, want slowSet) {
	t.Helper()
	count, before := 0, -1
	for i := range s.pages {
		p := &s.pages[i]
		n := p.end() - int(p.first)
		if p.bits != nil {
			n = p.bits.count()
		}
		if int(p.index) <= before || p.count == 0 || n != int(p.count) || p.end() > pageTasks && p.bits == nil || p.full() && p.bits != nil {
			t.Fatalf("page %d: index %d behind %d, first %d, count %d of %d, bitmap %v", i, p.index, before, p.first, p.count, n, p.bits != nil)
		}
		count, before = count+n, int(p.index)
	}
	if count != s.Count() || count != len(want) || s.Empty() != (len(want) == 0) {
		t.Fatalf("%d tasks in pages, Count() = %d, want %d", count, s.Count(), len(want))
	}
	sorted := want.sorted()
	if got := slices.Collect(s.All); !slices.Equal(got, sorted) {
		t.Fatalf("All: %d tasks, want %d, or others", len(got), len(sorted))
	}
	var fromRanges []uint32
	end := -1
	for lo, hi := range s.Ranges {
		if lo >= hi || int(lo) <= end {
			t.Fatalf("range %d to %d behind one that ends at %d", lo, hi, end)
		}
		for n := lo; n < hi; n++ {
			fromRanges = append(fromRanges, n)
		}
		end = int(hi)
	}
	if !slices.Equal(fromRanges, sorted) {
		t.Fatal("Ranges has other tasks")
	}
	if last, ok := s.Last(); ok != (len(sorted) > 0) || ok && last != sorted[len(sorted)-1] {
		t.Fatalf("Last() = %d, %v", last, ok)
	}
}

// playground draws ordinals that meet: near the bounds of some pages, in few pages, and
// at both ends of what there is.
func playground(rng *rand.Rand) uint32 {
	switch rng.IntN(6) {
	case 0:
		return uint32(rng.IntN(3)*pageTasks + rng.IntN(4))
	case 1:
		return MaxTasks - 1 - uint32(rng.IntN(70))
	case 2:
		return uint32(rng.IntN(130))
	case 3:
		return uint32(pageTasks*2 - 1 - rng.IntN(130))
	case 4:
		return uint32(1000*pageTasks + rng.IntN(pageTasks))
	default:
		return uint32(rng.IntN(3 * pageTasks))
	}
}

func randomSet(rng *rand.Rand) (TaskSet, slowSet) {
	var s TaskSet
	m := slowSet{}
	for range rng.IntN(6) {
		lo := playground(rng)
		hi := min(lo+uint32(rng.IntN(1<<rng.IntN(14))), MaxTasks)
		s.AddRange(lo, hi)
		for n := lo; n < hi; n++ {
			m[n] = true
		}
	}
	for range rng.IntN(40) {
		n := playground(rng)
		s.Add(n)
		m[n] = true
	}
	return s, m
}

func TestTaskSetAgainstMap(t *testing.T) {
	seeds := uint64(100)
	if testing.Short() {
		seeds = 30
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 0))
		s, want := randomSet(rng)
		for range 40 {
			o, other := randomSet(rng)
			switch op := rng.IntN(10); op {
			case 0:
				s.AddAll(&o)
				maps.Copy(want, other)
			case 1:
				s.RemoveAll(&o)
				maps.DeleteFunc(want, func(n uint32, _ bool) bool { return other[n] })
			case 2:
				o.AddAll(&s) // so that something stays
				o.RemoveRange(pageTasks/2, pageTasks)
				o.Remove(playground(rng))
				s.RetainAll(&o)
				maps.DeleteFunc(want, func(n uint32, _ bool) bool { return !o.Has(n) })
			case 3:
				n := rng.IntN(1 << rng.IntN(14))
				taken := s.Take(n)
				lowest := slowSet{}
				for _, task := range want.sorted()[:min(n, len(want))] {
					lowest[task] = true
					delete(want, task)
				}
				checkSet(t, &taken, lowest)
				taken.AddRange(0, 3*pageTasks) // s must not see it
			case 4:
				lo := playground(rng)
				hi := min(lo+uint32(rng.IntN(2*pageTasks)), MaxTasks)
				s.RemoveRange(lo, hi)
				maps.DeleteFunc(want, func(n uint32, _ bool) bool { return n >= lo && n < hi })
			case 5:
				clone := s.Clone()
				checkSet(t, &clone, want)
				clone.AddAll(&o)
				clone.Remove(playground(rng))
			default:
				for range 100 {
					n := playground(rng)
					if s.Has(n) != want[n] {
						t.Fatalf("seed %d: Has(%d) = %v", seed, n, s.Has(n))
					}
					if rng.IntN(2) == 0 {
						if added := s.Add(n); added == want[n] {
							t.Fatalf("seed %d: Add(%d) = %v", seed, n, added)
						}
						want[n] = true
					} else {
						if removed := s.Remove(n); removed != want[n] {
							t.Fatalf("seed %d: Remove(%d) = %v", seed, n, removed)
						}
						delete(want, n)
					}
				}
			}
			checkSet(t, &s, want)
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	}
}

func TestTaskSetsCompared(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 1))
		a, ma := randomSet(rng)
		b, mb := randomSet(rng)
		if rng.IntN(2) == 0 { // often one covers the other, or is the other
			b.AddAll(&a)
			maps.Copy(mb, ma)
			if n := playground(rng); rng.IntN(2) == 0 {
				b.Remove(n)
				delete(mb, n)
			}
		}
		intersects, covers := false, true
		for n := range mb {
			intersects = intersects || ma[n]
			covers = covers && ma[n]
		}
		if a.Intersects(&b) != intersects || b.Intersects(&a) != intersects {
			t.Errorf("seed %d: Intersects is not %v", seed, intersects)
		}
		if a.Covers(&b) != covers {
			t.Errorf("seed %d: Covers is not %v", seed, covers)
		}
		if equal := maps.Equal(ma, mb); a.Equal(&b) != equal || b.Equal(&a) != equal {
			t.Errorf("seed %d: Equal is not %v", seed, equal)
		}
		from := playground(rng)
		want := slices.DeleteFunc(ma.sorted(), func(n uint32) bool { return n < from })
		if got := slices.Collect(a.From(from)); !slices.Equal(got, want) {
			t.Errorf("seed %d: From(%d) has %d tasks, want %d", seed, from, len(got), len(want))
		}
	}
}

func TestTaskSetWithItself(t *testing.T) {
	s, want := randomSet(rand.New(rand.NewPCG(7, 7)))
	s.AddAll(&s)
	s.RetainAll(&s)
	checkSet(t, &s, want)
	if !s.Equal(&s) || !s.Covers(&s) || !s.Intersects(&s) {
		t.Error("a set is not itself")
	}
	s.RemoveAll(&s)
	checkSet(t, &s, slowSet{})
}

func TestTaskSetBounds(t *testing.T) {
	s := TaskRange(0, MaxTasks)
	if s.Count() != MaxTasks || !s.Has(MaxTasks-1) || s.Has(MaxTasks) || s.Has(1<<32-1) || s.Remove(MaxTasks) {
		t.Errorf("%d tasks of %d", s.Count(), MaxTasks)
	}
	none := s.Take(0)
	negative := s.Take(-1)
	if !none.Empty() || !negative.Empty() || s.Count() != MaxTasks {
		t.Errorf("took %d and %d tasks for 0 and -1", none.Count(), negative.Count())
	}
	for name, f := range map[string]func(){
		"Add":         func() { s.Add(MaxTasks) },
		"AddRange":    func() { s.AddRange(0, MaxTasks+1) },
		"RemoveRange": func() { s.RemoveRange(0, MaxTasks+1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s beyond the bound does not panic", name)
				}
			}()
			f()
		}()
	}
	s.AddRange(5, 5)
	s.AddRange(6, 5)
	s.RemoveRange(5, 5)
	if s.Count() != MaxTasks {
		t.Error("an empty range changed the set")
	}
}

// setBytes returns what a set keeps in memory.
func setBytes(s *TaskSet) int {
	n := cap(s.pages) * int(unsafe.Sizeof(page{}))
	for i := range s.pages {
		if s.pages[i].bits != nil {
			n += pageTasks / 8
		}
	}
	return n
}

// A bag's sets are small at its begin, in its midst if tasks end about in order, and at
// its end; and never larger than a bit a task and some.
func TestTaskSetMemory(t *testing.T) {
	const tasks = 10_000_000
	rng := rand.New(rand.NewPCG(1, 1))
	var done TaskSet
	worst := 0
	const window = 5000 // tasks at work, of which any ends next
	var working []uint32
	for next := uint32(0); next < tasks || len(working) > 0; {
		for len(working) < window && next < tasks {
			working = append(working, next)
			next++
		}
		i := rng.IntN(len(working))
		done.Add(working[i])
		working[i] = working[len(working)-1]
		working = working[:len(working)-1]
		if done.Count()%10000 == 0 {
			worst = max(worst, setBytes(&done))
		}
	}
	if worst > 128<<10 {
		t.Errorf("at most %d bytes while 10^7 tasks end, 5,000 at a time", worst)
	}
	if n := setBytes(&done); n > 64<<10 {
		t.Errorf("%d bytes for 10^7 tasks that are done", n)
	}
	var odd TaskSet
	for n := uint32(1); n < tasks; n += 2 {
		odd.Add(n)
	}
	if n := setBytes(&odd); n > tasks/8*11/10 {
		t.Errorf("%d bytes for every other of 10^7 tasks", n)
	}
	one := TaskRange(MaxTasks-256, MaxTasks)
	if n := setBytes(&one); n > 64 {
		t.Errorf("%d bytes for a bundle that is cut off a cursor", n)
	}
}

func BenchmarkTaskSetAddInOrder(b *testing.B) {
	b.ReportAllocs()
	var s TaskSet
	for n := 0; b.Loop(); n = (n + 1) % MaxTasks {
		s.Add(uint32(n))
	}
}

func BenchmarkTaskSetAddAnywhere(b *testing.B) {
	b.ReportAllocs()
	rng := rand.New(rand.NewPCG(1, 1))
	var s TaskSet
	for b.Loop() {
		s.Add(uint32(rng.IntN(MaxTasks)))
	}
}

func BenchmarkTaskSetHas(b *testing.B) {
	b.ReportAllocs()
	var s TaskSet
	for n := uint32(0); n < MaxTasks; n += 3 {
		s.Add(n)
	}
	n := uint32(0)
	for b.Loop() {
		s.Has(n % MaxTasks)
		n += 9973
	}
}

// BenchmarkTaskSetTake takes bundles of 256 off ten million tasks that came back.
func BenchmarkTaskSetTake(b *testing.B) {
	b.ReportAllocs()
	var s TaskSet
	for b.Loop() {
		if s.Empty() {
			s = TaskRange(0, 10_000_000)
		}
		s.Take(256)
	}
}

// BenchmarkTaskSetRemoveAll takes a bundle out of a large set and puts it back.
func BenchmarkTaskSetRemoveAll(b *testing.B) {
	b.ReportAllocs()
	s := TaskRange(0, 10_000_000)
	bundle := TaskRange(5_000_000, 5_000_256)
	for b.Loop() {
		s.RemoveAll(&bundle)
		s.AddAll(&bundle)
	}
}
