package bags

import (
	"math"
	"time"

	"kith/internal/job"
)

// Scope is the values of the variables of one root, for one host, site, bag, queue or
// task. A variable that was not set, or to NaN, is not there: who reads it gets UNDEFINED.
// It belongs to one goroutine.
type Scope struct {
	root   Root
	latest uint64 // count of changes
	slots  []slot
}

type slot struct {
	set     bool
	number  float64
	text    string
	changed uint64 // as of Scope.latest
	boxed   any
}

// NewScope returns a scope without values.
func NewScope(r Root) *Scope {
	return &Scope{root: r, slots: make([]slot, rootSize[r])}
}

// The variables of a root stand together.
var rootFirst, rootSize = func() (first [rootCount]Var, size [rootCount]int) {
	for v := range VarCount {
		r := Vars[v].Root
		if size[r] == 0 {
			first[r] = v
		}
		size[r]++
	}
	return first, size
}()

func (s *Scope) slot(v Var) *slot { return &s.slots[v-rootFirst[s.root]] }

func (s *Scope) store(k *slot, set bool, number float64, text string) {
	if k.set == set && (k.number == number || !set) && k.text == text {
		return
	}
	s.latest++
	*k = slot{set: set, number: number, text: text, changed: s.latest}
}

// Number sets a variable of type [Number].
func (s *Scope) Number(v Var, n float64) {
	s.store(s.slot(v), !math.IsNaN(n), n, "")
}

// MaxText is how long the text of a variable may be, in bytes. What reading one may cost is
// estimated by it.
const MaxText = job.MaxNameLength

// Text sets a variable of type [String]. A text of more than [MaxText] is not there.
func (s *Scope) Text(v Var, text string) {
	if len(text) > MaxText {
		s.store(s.slot(v), false, 0, "")
		return
	}
	s.store(s.slot(v), true, 0, text)
}

// Truth sets a variable of type [Bool].
func (s *Scope) Truth(v Var, yes bool) {
	n := 0.0
	if yes {
		n = 1
	}
	s.store(s.slot(v), true, n, "")
}

// Value returns what box made of the value, once for each, and whether there is one.
func (s *Scope) Value(v Var, box func(t Type, number float64, text string) any) (any, bool) {
	k := s.slot(v)
	if !k.set {
		return nil, false
	}
	if k.boxed == nil {
		k.boxed = box(Vars[v].Type, k.number, k.text)
	}
	return k.boxed, true
}

// Latest returns the number of changes; it never goes down.
func (s *Scope) Latest() uint64 { return s.latest }

// ChangedSince reports whether one of some variables has changed since there were so many
// changes.
func (s *Scope) ChangedSince(changes uint64, vars VarSet) bool {
	if s.latest == changes {
		return false
	}
	vars >>= rootFirst[s.root]
	for i := range s.slots {
		if s.slots[i].changed > changes && vars>>i&1 != 0 {
			return true
		}
	}
	return false
}

// Scene is what policies are asked about. What is nil has no values.
type Scene struct {
	Host, Site, Bag, Queue, Task *Scope
	Replicas                     []Replica
	// Split says whether the site is one of those among which the bag would best be split, and
	// whether that is known. It is only called by a text that reads [SiteSplit]; nil where there
	// is no such question.
	Split func() (in, known bool)
	// Submitted is when the bag was, Now when the policies are asked.
	Submitted, Now job.Time
}

// Time returns the value of a variable of [RootTime].
func (s *Scene) Time(v Var) float64 {
	if v == BagAge {
		return s.Now.Sub(s.Submitted).Seconds()
	}
	return float64(time.Duration(s.Now) % (24 * time.Hour) / time.Hour)
}

// Scope returns the scope of a root, nil for those that have none.
func (s *Scene) Scope(r Root) *Scope {
	switch r {
	case RootHost:
		return s.Host
	case RootSite:
		return s.Site
	case RootBag:
		return s.Bag
	case RootQueue:
		return s.Queue
	case RootTask:
		return s.Task
	}
	return nil
}
