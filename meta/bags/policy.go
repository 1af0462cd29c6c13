package bags

import (
	"math"
	"strconv"

	"kith/internal/job"
	"kith/store"
)

// Policies makes what users say of hosts and bags (spec 002 section 2.1) into something
// that can be asked. Package policy implements it; who has none refuses texts. It belongs to one goroutine.
type Policies interface {
	// Compile checks texts. It fails with a [*TextsError], which names all mistakes.
	Compile(texts *store.BagPolicies) (Judge, error)
}

// Judge is the policies of one bag. It keeps neither scene nor scopes, but what it found
// for a host until something that a text reads has changed.
type Judge interface {
	// Verdict says what the policies of asks give for a host.
	Verdict(s *Scene) Verdict
	// Offer says whether the site of a scene is offered tasks.
	Offer(s *Scene) bool
	// Deadline returns after how many seconds a task that the host of a scene gets should have
	// ended; false without a text, or where it gives UNDEFINED or nothing above 0.
	Deadline(s *Scene) (seconds float64, stated bool)
	// Replicate says whether a task should have one more replica.
	Replicate(s *Scene) bool
	// Cost returns how many steps evaluating a policy takes at most, 0 if it is not stated.
	// A step takes 10 to 30 ns.
	Cost(t Text) int
	// Explain says what each policy that is stated gives, and by which part, and of
	// Replicate when it is asked if the scene has no task.
	Explain(s *Scene) []Given
	// Forget lets go of what was found.
	Forget()
}

// CostOf returns what all policies of a judge may cost, 0 for nil.
func CostOf(j Judge) (steps int) {
	if j == nil {
		return 0
	}
	for t := range TextCount {
		steps += j.Cost(t)
	}
	return steps
}

// Verdict is what the policies of a bag say to an ask.
type Verdict struct {
	// Yes says that the host may run tasks of the bag.
	Yes bool
	// Rank is a number: the higher goes first.
	Rank float64
	// Most is how many tasks of this origin the host may have at once, +Inf for no bound.
	Most float64
}

// Unbounded is the verdict of bags that state no policy.
func Unbounded() Verdict { return Verdict{Yes: true, Most: math.Inf(1)} }

// Given is what one policy gave.
type Given struct {
	Text Text
	// Value is what came out, in words: "UNDEFINED" and why if that is not known.
	Value string
	// Undefined says that it gave no value, and the default holds.
	Undefined bool
	// Part is the smallest part of the text that decided, "" if that is the whole text.
	Part string
}

// TextsError says what is wrong with texts.
type TextsError struct{ Mistakes []Mistake }

// Mistake is one thing that is wrong with one text.
type Mistake struct {
	Text Text
	// Line and Column are where, from 1; both 0 for the text as a whole.
	Line, Column int
	// What says what is wrong and what would do.
	What string
	// Place is the line with a mark below the column, "" if there is none.
	Place string
}

func (m Mistake) String() string {
	s := m.What
	if m.Line > 0 {
		s = "line " + strconv.Itoa(m.Line) + " column " + strconv.Itoa(m.Column) + ": " + s
	}
	if m.Place != "" {
		s += "\n" + m.Place
	}
	return s
}

func (e *TextsError) Error() string {
	s := ""
	for i, m := range e.Mistakes {
		if i > 0 {
			s += "\n"
		}
		s += "policies." + m.Text.String() + ": " + m.String()
	}
	return s
}

// judge returns the verdict of a bag's policies for the host of a scene.
func (w *Work) judge(s *Scene, now job.Time) Verdict {
	if w.Judge == nil {
		return Unbounded()
	}
	s.Bag, s.Submitted, s.Now = w.Scope, w.Submitted, now // of the caller's scene
	return w.Judge.Verdict(s)
}
