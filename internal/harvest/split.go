package harvest

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Place is a site with processors for tasks that cannot be cut, all of which take the same work.
type Place struct {
	// Slots run a task each at a time. All those of one entry are alike.
	Slots []Slots
	// After is when the first task can begin there, in s from now.
	After float64
}

// Slots are processors, or groups of them, that are alike.
type Slots struct {
	Machine
	// N is how many there are.
	N int
}

// PlaceOf is a site whose tasks take so many of its processors each. A slot counts as what its
// owner takes of a job as wide as it and those before it together, see [WidthOf]: he comes first,
// so that the first slots are those that he leaves alone the longest. No loads: nobody is before
// the tasks.
func PlaceOf(loads []Load, speed float64, processors, width int32, after float64) Place {
	p := Place{After: after}
	n := int(processors / max(1, width))
	if len(loads) != Widths {
		if n > 0 {
			p.Slots = []Slots{{Machine{Speed: speed}, n}}
		}
		return p
	}
	for done, w := 0, 0; w < Widths && done < n; w++ {
		upto := done
		for low, high := done, n; low < high; { // the last slot that counts as this width
			mid := (low + high + 1) / 2
			if WidthOf(int32(mid)*max(1, width), processors) <= w { //nolint:gosec // No more than processors.
				low, upto = mid, mid
			} else {
				high = mid - 1
			}
		}
		if l := &loads[w]; upto > done {
			p.Slots = append(p.Slots, Slots{Machine{Lambda: l.Lambda, Rho: l.Rho, Sigma: l.Sigma, Speed: speed}, upto - done})
			done = upto
		}
	}
	return p
}

// MostSlots bounds the slots of all places together, and [MostTasks] the tasks of a split.
const (
	MostSlots = 1 << 30
	MostTasks = 1 << 40
)

// Bag is tasks that are divided among places: so many, each of the same work.
type Bag struct {
	Tasks int
	// Each is the work of one, in processor-seconds at speed 1.
	Each float64
}

// Split is a set of places for the tasks of a bag, and what is expected of it.
type Split struct {
	// Places are those in the list that get tasks, ascending, and Tasks how many each gets.
	Places, Tasks []int
	// Mean and SD are those of when the last task ends, in s from now, Cost what the policy
	// makes of them.
	Mean, SD, Cost float64
	// Evaluated is how many sets were looked at.
	Evaluated int
	all       Parallel
}

// Quantile is the least time by which all tasks have ended with a probability.
func (s *Split) Quantile(prob float64) float64 { return s.all.Quantile(prob) }

// splitter looks at sets of places.
type splitter struct {
	places []Place
	bag    Bag
	policy *Policy
	order  []int // usable places, the one that would end a task first in front
	groups []group
	best   Split
}

// group are slots of a place that have the same work.
type group struct {
	Slots
	place int
	after float64
	each  int // tasks of each slot
	more  int // slots that have one more
}

// end is when the next task of one of its slots ends in the mean.
func (g *group) end(work float64) float64 { return g.after + float64(g.each+1)*work/g.Rate() }

func (p *Policy) splitter(places []Place, b Bag) (*splitter, error) {
	if b.Tasks < 1 || b.Tasks > MostTasks {
		return nil, fmt.Errorf("%d tasks: divide 1 to %d: %w", b.Tasks, MostTasks, ErrWork)
	}
	if err := checkWork(b.Each); err != nil || b.Each == 0 {
		return nil, cmp.Or(err, fmt.Errorf("tasks of no work: say what one takes: %w", ErrWork))
	}
	s := &splitter{places: places, bag: b, policy: p}
	slots := 0
	for i := range places {
		if a := places[i].After; a < 0 || math.IsNaN(a) || math.IsInf(a, 0) {
			return nil, fmt.Errorf("place %d: begins after %v s: use a number from 0: %w", i, a, ErrMachine)
		}
		for _, g := range places[i].Slots {
			if err := g.Check(); err != nil {
				return nil, fmt.Errorf("place %d: %w", i, err)
			}
			if g.N < 0 || g.N > MostSlots-slots {
				return nil, fmt.Errorf("place %d: %d slots: use 0 to %d in all: %w", i, g.N, MostSlots, ErrMachine)
			}
			slots += g.N
		}
		if !math.IsInf(s.first(i), 1) {
			s.order = append(s.order, i)
		}
	}
	if len(s.order) == 0 {
		return nil, fmt.Errorf("%d places: %w", len(places), ErrNobody)
	}
	slices.SortStableFunc(s.order, func(a, b int) int { return cmp.Compare(s.first(a), s.first(b)) })
	return s, nil
}

// serves says that an owner leaves enough of a machine.
func (p *Policy) serves(m Machine) bool { return m.Rate() > 0 && m.Rho <= p.Busiest }

// first is when a place would end a single task in the mean; never if no slot is of use.
func (s *splitter) first(i int) float64 {
	first := math.Inf(1)
	for _, g := range s.places[i].Slots {
		if g.N > 0 && s.policy.serves(g.Machine) {
			first = min(first, s.places[i].After+s.bag.Each/g.Rate())
		}
	}
	return first
}

// take lists the slots of a set of places.
func (s *splitter) take(set []int) {
	s.groups = s.groups[:0]
	for _, i := range set {
		for _, g := range s.places[i].Slots {
			if g.N > 0 && s.policy.serves(g.Machine) {
				s.groups = append(s.groups, group{Slots: g, place: i, after: s.places[i].After})
			}
		}
	}
}

// divide gives tasks one after another to the slot that would end them first in the mean: what
// [MinMin] does with tasks that are all alike, for any number of them.
func (s *splitter) divide() {
	by := func(t float64) (tasks int) {
		for i := range s.groups {
			g := &s.groups[i]
			g.each, g.more = 0, 0
			if n := (t - g.after) * g.Rate() / s.bag.Each; n >= 1 {
				g.each = int(min(n, MostTasks))
			}
			if g.each > 0 && g.N > (s.bag.Tasks-tasks)/g.each {
				return s.bag.Tasks + 1
			}
			tasks += g.N * g.each
		}
		return tasks
	}
	low, high := 0.0, math.Inf(1)
	for i := range s.groups {
		g := &s.groups[i]
		high = min(high, g.after+float64(s.bag.Tasks/g.N+1)*s.bag.Each/g.Rate())
	}
	for range 60 {
		if mid := low + (high-low)/2; by(mid) <= s.bag.Tasks {
			low = mid
		} else {
			high = mid
		}
	}
	for left := s.bag.Tasks - by(low); left > 0; {
		g := &s.groups[0]
		for i := range s.groups {
			if o := &s.groups[i]; o.end(s.bag.Each) < g.end(s.bag.Each) {
				g = o
			}
		}
		n := min(left, g.N-g.more)
		left -= n
		if g.more += n; g.more == g.N {
			g.each, g.more = g.each+1, 0
		}
	}
}

// look looks at a set of places, ascending. If it costs less than all before, it is the best.
func (s *splitter) look(set []int) float64 {
	s.take(set)
	s.divide()
	return s.weigh()
}

// weigh says what costs the division that was made.
func (s *splitter) weigh() float64 {
	var all Parallel
	x := Split{Evaluated: s.best.Evaluated + 1}
	all.begin()
	for i := range s.groups {
		g := &s.groups[i]
		for k, n := range [2]int{g.N - g.more, g.more} {
			if n == 0 || g.each+k == 0 {
				continue
			}
			by := s.policy.Method
			by.Seed += uint64(2*i + k) //nolint:gosec // Small numbers.
			f := newFinish(g.Machine, float64(g.each+k)*s.bag.Each, by)
			f.after, f.many = g.after, float64(n)
			all.add(f)
		}
		if tasks := g.N*g.each + g.more; tasks > 0 {
			if n := len(x.Places); n > 0 && x.Places[n-1] == g.place {
				x.Tasks[n-1] += tasks
			} else {
				x.Places, x.Tasks = append(x.Places, g.place), append(x.Tasks, tasks)
			}
		}
	}
	all.settle(s.policy.Method)
	x.all, x.Mean, x.SD, x.Cost = all, all.mean, all.sd, all.mean
	if s.policy.Risk > 0 {
		x.Cost += s.policy.Risk * x.SD
	}
	if s.best.Places == nil || x.Cost < s.best.Cost {
		evaluated := x.Evaluated
		s.best = x
		s.best.Evaluated = evaluated
	} else {
		s.best.Evaluated++
	}
	return x.Cost
}

// prefix looks at the first n places. It cannot fail: all were checked.
func (s *splitter) prefix(n int) (float64, error) {
	set := slices.Clone(s.order[:n])
	slices.Sort(set)
	return s.look(set), nil
}

// SplitOne has one slot do all tasks one after another: the one of least cost.
func (p *Policy) SplitOne(places []Place, b Bag) (Split, error) {
	s, err := p.splitter(places, b)
	if err != nil {
		return Split{}, err
	}
	for _, i := range s.order {
		s.take([]int{i})
		for k := range s.groups {
			g := s.groups[k]
			g.N, g.each = 1, b.Tasks
			all := s.groups
			s.groups = []group{g}
			s.weigh()
			s.groups = all
		}
	}
	return s.best, nil
}

// SplitFixed divides the tasks among so many places: those that would end a task first. All of
// those that are of use if there are no more.
func (p *Policy) SplitFixed(places []Place, b Bag, n int) (Split, error) {
	s, err := p.splitter(places, b)
	if err != nil {
		return Split{}, err
	}
	if n < 1 {
		return Split{}, fmt.Errorf("%d places: choose at least 1: %w", n, ErrMachine)
	}
	_, err = s.prefix(min(n, len(s.order)))
	return s.best, err
}

// SplitBisection chooses as many of the places that would end a task first as [Policy.Bisection]
// chooses machines. It looks at no more than 2·log₂(q)+2 sets.
func (p *Policy) SplitBisection(places []Place, b Bag) (Split, error) {
	s, err := p.splitter(places, b)
	if err != nil {
		return Split{}, err
	}
	err = bisect(len(s.order), s.prefix)
	return s.best, err
}

// SplitScan looks at each number of the places that would end a task first, as
// [Policy.PrefixScan] does with machines.
func (p *Policy) SplitScan(places []Place, b Bag) (Split, error) {
	s, err := p.splitter(places, b)
	if err != nil {
		return Split{}, err
	}
	err = scan(len(s.order), s.prefix)
	return s.best, err
}
