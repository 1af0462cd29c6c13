package forecast

import "time"

// Range is what people are told: with 80 % the truth is within Low and High.
type Range struct{ Low, Median, High time.Duration }

// The levels of a [Range].
const lowLevel, highLevel = 0.1, 0.9

// RangeOf reads the range off a distribution.
func RangeOf(d Distribution, r *Recalibration) Range {
	return Range{d.Quantile(r.Level(lowLevel)), d.Quantile(r.Level(.5)), d.Quantile(r.Level(highLevel))}
}

// Score is how a forecast did.
type Score struct {
	Class Class
	// Held, Below and Above are the parts of the truth within the range, below and above
	// it. They add up to 1: a truth that ties with a bound counts by the part of it inside.
	Held, Below, Above float64
	// Pinball is the pinball loss in seconds, the mean over [Levels]: the less the better.
	Pinball float64
	// Width is that of the range, in seconds.
	Width float64
}

// Judge scores a distribution against the truth.
func Judge(d Distribution, r *Recalibration, truth time.Duration) Score {
	var s Score
	low, high := r.Level(lowLevel), r.Level(highLevel)
	switch below, upto := d.PIT(truth); {
	case upto > below:
		part := func(from, to float64) float64 { return max(0, min(upto, to)-max(below, from)) / (upto - below) }
		s.Below, s.Held = part(0, low), part(low, high)
		s.Above = max(0, 1-s.Below-s.Held)
	case below < low:
		s.Below = 1
	case below < high:
		s.Held = 1
	default:
		s.Above = 1
	}
	for _, p := range Levels {
		s.Pinball += PinballLoss(d.Quantile(r.Level(p)), truth, p)
	}
	s.Pinball /= float64(len(Levels))
	s.Width = (d.Quantile(high) - d.Quantile(low)).Seconds()
	return s
}

// PinballLoss is the loss in seconds of a quantile at level p: what makes the true quantile
// the best answer.
func PinballLoss(quantile, truth time.Duration, p float64) float64 {
	if truth >= quantile {
		return p * (truth - quantile).Seconds()
	}
	return (1 - p) * (quantile - truth).Seconds()
}

// LedgerSize is how many scores a [Ledger] keeps.
const LedgerSize = 1000

// Ledger keeps the latest [LedgerSize] scores. The zero value is empty.
type Ledger struct {
	scores []Score
	next   int
}

// Add puts in a score.
func (l *Ledger) Add(s *Score) {
	if len(l.scores) < LedgerSize {
		l.scores = append(l.scores, *s)
		return
	}
	l.scores[l.next] = *s
	l.next = (l.next + 1) % LedgerSize
}

// Record is a sum of scores.
type Record struct {
	// Forecasts is how many, Held, Below and Above how many of them; see [Score].
	Forecasts          int
	Held, Below, Above float64
	// Pinball and Width are means in seconds.
	Pinball, Width float64
}

// Of returns the record of one class.
func (l *Ledger) Of(c Class) Record { return l.sum(func(s *Score) bool { return s.Class == c }) }

// All returns the record of all classes.
func (l *Ledger) All() Record { return l.sum(func(*Score) bool { return true }) }

func (l *Ledger) sum(counts func(*Score) bool) Record {
	var r Record
	for i := range l.scores {
		if counts(&l.scores[i]) {
			r.Add(&l.scores[i])
		}
	}
	return r
}

// Add adds a score.
func (r *Record) Add(s *Score) {
	n := float64(r.Forecasts)
	r.Forecasts++
	r.Held, r.Below, r.Above = r.Held+s.Held, r.Below+s.Below, r.Above+s.Above
	r.Pinball = (r.Pinball*n + s.Pinball) / (n + 1)
	r.Width = (r.Width*n + s.Width) / (n + 1)
}

// Share is the share of ranges that held, zero without forecasts.
func (r *Record) Share() float64 {
	if r.Forecasts == 0 {
		return 0
	}
	return r.Held / float64(r.Forecasts)
}
