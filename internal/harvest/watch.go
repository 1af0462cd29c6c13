package harvest

import "math"

// Window is how long a [Watch] measures before it compares, in s.
const Window = 600

// Verdict is what a [Watch] says of a window.
type Verdict uint8

// The verdicts.
const (
	// AsPredicted says that nothing is to be done.
	AsPredicted Verdict = iota
	// OwnerChanged says that over three windows the owner took another share than predicted.
	OwnerChanged
	// Late says that the task ends later than it should with 99 %, even if the owner does from
	// now on what was predicted.
	Late
)

// What a [Watch] demands before it speaks. The specification has three windows each of which is 3
// deviations off, and the 95 % quantile. Played, 8 to 18 of 100 owners who do as predicted cross
// that quantile within a task of 8 h, as it is looked at again and again; and of owners who take
// 0.8 instead of 0.2, whose jobs last 30 s, both together miss a fifth within 40 min. The mean of
// three windows finds more at fewer false alarms; see TestSpecCheck12.
const (
	watchedWindows = 3
	deviations     = 4.5 // of their mean
	lateQuantile   = 0.99
)

// Watch compares a task that runs with its prediction. When it says that something is wrong, the
// remaining work is to be planned anew, see [Worthwhile], and watched by a new one.
//
// Source: spec 003 section 2.7; the source leaves the rule to another paper.
type Watch struct {
	// Rho is the predicted share of the owner.
	Rho float64
	// Spread is the standard deviation of the share in a [Window]: see [Machine.SpreadOver].
	Spread float64
	// Latest is the 99 % quantile of the predicted completion, in s from the begin.
	Latest float64

	shares [watchedWindows]float64 // measured last
	n      int                     // measured in all
}

// NewWatch returns the watch of a task that has just begun. The spread is that which the model
// gives, or that of the hours the prediction rests on if it is larger.
func NewWatch(p Prediction, speed float64, f *Finish) *Watch {
	return &Watch{Rho: p.Rho, Spread: max(p.Spread, p.Machine(speed).SpreadOver(Window)), Latest: f.Quantile(lateQuantile)}
}

// Observe looks at a window that has ended: the share that the owner took in it, not a number if
// it was not measured, the time since the task began, in s, and how long what is left of it takes
// without an owner, in s.
func (w *Watch) Observe(rho, elapsed, left float64) Verdict {
	if !math.IsNaN(rho) {
		w.shares[w.n%watchedWindows] = rho
		w.n++
	}
	sum := 0.0
	for _, x := range w.shares {
		sum += x
	}
	switch {
	case w.n >= watchedWindows && math.Abs(sum/watchedWindows-w.Rho) > deviations*w.Spread/math.Sqrt(watchedWindows):
		return OwnerChanged
	case w.Rho < 1 && elapsed+left/(1-w.Rho) > w.Latest:
		return Late
	}
	return AsPredicted
}

// Worthwhile reports whether work should move to a new choice that costs anew, and migration
// once, instead of staying for what stay costs, all in s: if it gains a tenth.
func Worthwhile(stay, anew, migration float64) bool { return anew+migration < 0.9*stay }
