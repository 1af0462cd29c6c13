package harvest

import (
	"iter"
	"math"
	"time"
)

// Widths are how many processors a job takes for which an owner is measured: one, half of the
// machine's, and all. A job of so many is interrupted while the owner holds more than the rest.
const Widths = 3

// WidthOf returns the measured width of a job that takes so many of a machine's processors: the
// least that is at least as wide, as a wider job is interrupted more.
func WidthOf(taken, processors int32) int {
	switch {
	case taken <= 1 && processors > 1 || processors <= 1:
		return 0
	case 2*taken <= processors+1:
		return 1
	}
	return Widths - 1
}

// taken are the processors of the width w.
func taken(w, processors int) int {
	return [Widths]int{1, (processors + 1) / 2, processors}[w]
}

// leastHeld is from which share of a span on the owner counts as there: what is less is the noise
// of a machine on which nobody works.
const leastHeld = 0.02

// A Meter makes loads out of spans of which it is known how much an owner held in the mean. It
// takes a run of spans in which he was there for one busy period. The zero value has a machine
// of one processor.
type Meter struct {
	// Processors are those of the machine; less than 1 counts as 1.
	Processors int
	widths     [Widths]periods
	total      float64 // s, in this hour
}

// periods are the busy periods of a width that ended in this hour.
type periods struct {
	busy, open      float64 // s: in this hour, and of the period that goes on
	n, sum, squares float64
}

// Add says that the owner held so many processors in the mean for so long. Spans follow each
// other; after a gap comes [Meter.Gap]. What is not a finite number, or negative, counts as 0.
func (m *Meter) Add(span time.Duration, held float64) {
	if span <= 0 {
		return
	}
	if !(held >= 0) || math.IsInf(held, 1) {
		held = 0
	}
	all := max(1, m.Processors)
	m.total += span.Seconds()
	for w := range m.widths {
		share := min(1, max(0, held-float64(all-taken(w, all))))
		if share < leastHeld {
			m.widths[w].end()
			continue
		}
		m.widths[w].add(share*span.Seconds(), share < 1-leastHeld)
	}
}

// add takes up a span in which the owner was there for so long; in part says that he was not
// there all of it. Such a span ends a period that went on before, or begins one.
func (p *periods) add(there float64, inPart bool) {
	ends := inPart && p.open > 0
	p.busy += there
	p.open += there
	if ends {
		p.end()
	}
}

// Gap says that the spans before and after do not follow each other: what went on has ended.
func (m *Meter) Gap() {
	for w := range m.widths {
		m.widths[w].end()
	}
}

func (p *periods) end() {
	if p.open > 0 {
		p.n++
		p.sum += p.open
		p.squares += p.open * p.open
		p.open = 0
	}
}

// Hour returns the loads of what was added since the hour began, by width, and false if nothing
// was. A period that goes on counts for the next hour, its time for both.
//
// The share ρ is what was measured. Busy periods of an M/G/1 queue have the mean 1/(μ(1−ρ)) and
// the second moment (θ²+1)/(μ²(1−ρ)³), from which arrivals and the deviation of service follow
// (spec 003 section 2.1).
func (m *Meter) Hour() (loads [Widths]Load, ok bool) {
	if m.total == 0 {
		return loads, false
	}
	for w := range m.widths {
		loads[w] = m.widths[w].load(m.total)
	}
	return loads, true
}

// NextHour begins an hour.
func (m *Meter) NextHour() {
	m.total = 0
	for w := range m.widths {
		m.widths[w] = periods{open: m.widths[w].open}
	}
}

// mostShare keeps what is divided by 1−ρ finite.
const mostShare = 0.999

func (p *periods) load(total float64) Load {
	l := Load{Rho: min(1, p.busy/total)}
	switch {
	case l.Rho == 0:
	case p.n == 0: // it has gone on all the hour
		l.Lambda = 1 / total
	default:
		rho := min(l.Rho, mostShare)
		mean := p.sum / p.n
		service := mean * (1 - rho)
		l.Lambda = rho / service
		theta := p.squares/p.n/(mean*mean)*(1-rho) - 1
		l.Sigma = service * math.Sqrt(max(0, theta))
	}
	return l
}

// Known returns the hours of the last four weeks up to one of which the loads of all widths are
// known, the earliest first.
func Known(usage *[Widths]Usage, until Hour) iter.Seq2[Hour, [Widths]Load] {
	return func(yield func(Hour, [Widths]Load) bool) {
	hours:
		for at := until - keptHours + 1; at <= until; at++ {
			var loads [Widths]Load
			for w := range usage {
				var ok bool
				if loads[w], ok = usage[w].of(at); !ok {
					continue hours
				}
			}
			if !yield(at, loads) {
				return
			}
		}
	}
}
