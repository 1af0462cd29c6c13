package forecast

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Book is how forecasts did at a site: for starts and for run times what held of the latest,
// and how the next are recalibrated by it. The zero value is not usable, see [NewBook].
type Book struct {
	starts, runs Ledger
	startsBy     [StartClasses]*Recalibration
	runsBy       [RunClasses]*Recalibration
	// ratios are waits by what limits had promised of them, waits those by width.
	ratios ring
	waits  [widthClasses]ring
	counts [unresolvedKinds]int64
	even   *Recalibration
	// outcomes counts what was added since the book was saved.
	outcomes int
}

// Unresolved is why a forecast of a start is not scored.
type Unresolved uint8

// The reasons. The numbers are stored; they are frozen.
const (
	// Cancelled: the job was cancelled before it started.
	Cancelled Unresolved = iota
	// Held: its user held it back.
	Held
	// Replaced: the attempt ended without a start, and another one was opened.
	Replaced
	// AtOnce: it had started before there was a forecast, or right after.
	AtOnce
	// NotMade: no site had an answer in time, or too many were asked for.
	NotMade
	unresolvedKinds
)

// NewBook returns one that knows of no outcome.
func NewBook() *Book {
	b := &Book{even: NewRecalibration(1)}
	for i := range b.startsBy {
		b.startsBy[i] = NewRecalibration(FadeStarts)
	}
	for i := range b.runsBy {
		b.runsBy[i] = NewRecalibration(FadeRuns)
	}
	return b
}

// Tell returns the quantiles of a wait that would have been right in the past, and its class.
func (b *Book) Tell(raw *Waits) (told Waits, c Class) {
	c = StartClass(raw.Median())
	curve, r := CurveOf(raw), b.startsBy[c]
	for i, p := range Levels {
		told[i] = curve.Quantile(r.Level(p))
	}
	return told, c
}

// TellRun returns the range of a run time that would have been right in the past. jobs is
// how many of the user have ended.
func (b *Book) TellRun(runs *Runs, limit time.Duration, jobs int) Range {
	c := runs.Curve(limit)
	return RangeOf(&c, b.runsBy[RunClass(limit, jobs)])
}

// Started scores a forecast of a start: what was told and what it was made of, and how long
// the job waited. It is learnt from.
func (b *Book) Started(raw, told *Waits, wait time.Duration, rng *rand.Rand) Score {
	wait = max(wait, 0)
	curve := CurveOf(told)
	s := Judge(&curve, b.even, wait)
	s.Class = StartClass(raw.Median())
	b.starts.Add(&s)
	curve = CurveOf(raw)
	below, upto := curve.PIT(wait)
	b.startsBy[s.Class].Add(below, upto, rng)
	b.outcomes++
	return s
}

// Waited learns how long a job of some width waited, and what the limits had promised if
// that is known: with these, starts are forecast where no scenarios can be played.
func (b *Book) Waited(procs int32, wait, promised time.Duration, known bool) {
	wait = max(wait, 0)
	b.waits[widthClass(procs)].add(float32(wait.Seconds()))
	if known {
		b.ratios.add(float32(min(wait.Seconds()/max(promised.Seconds(), 1), 1000)))
	}
}

// Ran scores a forecast of a run time and learns from it. jobs is how many of the user had
// ended before. One that was stopped at its limit has run for that long.
func (b *Book) Ran(runs *Runs, limit, run time.Duration, jobs int, rng *rand.Rand) {
	if limit <= 0 {
		return
	}
	class := RunClass(limit, jobs)
	curve, r := runs.Curve(limit), b.runsBy[class]
	run = min(max(run, 0), limit)
	s := Judge(&curve, r, run)
	s.Class = class
	b.runs.Add(&s)
	below, upto := curve.PIT(run)
	r.Add(below, upto, rng)
	b.outcomes++
}

// Missed counts a forecast that is not scored.
func (b *Book) Missed(why Unresolved) {
	if why < unresolvedKinds {
		b.counts[why]++
	}
}

// Unscored returns how many forecasts were not scored for a reason.
func (b *Book) Unscored(why Unresolved) int64 { return b.counts[min(why, unresolvedKinds-1)] }

// Starts and Runs return the latest scores.
func (b *Book) Starts() *Ledger { return &b.starts }

// Runs returns the latest scores of run times.
func (b *Book) Runs() *Ledger { return &b.runs }

// Outcomes returns how many scores were added since the book was last encoded or made.
func (b *Book) Outcomes() int { return b.outcomes }

// ByLimits makes waits of what the limits promise; false while nothing is known of such
// promises.
func (b *Book) ByLimits(promised time.Duration) (w Waits, ok bool) {
	return b.ratios.times(max(promised, time.Second))
}

// ByPastWaits makes waits of those of jobs of about the same width; false without any.
func (b *Book) ByPastWaits(procs int32) (w Waits, ok bool) {
	return b.waits[widthClass(procs)].times(time.Second)
}

// widthClasses are octaves of widths.
const widthClasses = 8

func widthClass(procs int32) int {
	c := 0
	for ; procs > 1 && c < widthClasses-1; procs >>= 1 {
		c++
	}
	return c
}

// ringSize is how many values of the past are kept, fewest how many are needed.
const ringSize, fewest = 500, 10

// ring is the latest values of something.
type ring struct {
	of   []float32
	next int
}

func (r *ring) add(x float32) {
	if len(r.of) < ringSize {
		r.of = append(r.of, x)
		return
	}
	r.of[r.next] = x
	r.next = (r.next + 1) % ringSize
}

// times returns the quantiles of a base times what is in the ring.
func (r *ring) times(base time.Duration) (w Waits, ok bool) {
	if len(r.of) < fewest {
		return w, false
	}
	var d Dist
	for _, x := range r.of {
		d.Add(time.Duration(min(float64(x)*float64(base), float64(longestWait))), 1)
	}
	return WaitsOf(&d), true
}

// longestWait is longer than any wait.
const longestWait = 20 * 366 * Day

// bookVersion is the layout of [Book.Encode].
const bookVersion = 1

// MaxBook is more than the bytes of any book.
const MaxBook = 256 << 10

// ErrBook is wrapped by every error of [DecodeBook].
var ErrBook = errors.New("not a book of forecasts")

// Encode returns the book in bytes, at most [MaxBook].
func (b *Book) Encode() []byte {
	w := writer{[]byte{bookVersion}}
	w.ledger(&b.starts)
	w.ledger(&b.runs)
	for _, r := range b.startsBy {
		w.recalibration(r)
	}
	for _, r := range b.runsBy {
		w.recalibration(r)
	}
	w.ring(&b.ratios)
	for i := range b.waits {
		w.ring(&b.waits[i])
	}
	for _, n := range b.counts {
		w.uint(uint64(n)) //nolint:gosec // A count.
	}
	b.outcomes = 0
	return w.bytes
}

// DecodeBook reads what [Book.Encode] wrote.
func DecodeBook(data []byte) (*Book, error) {
	if len(data) == 0 || data[0] != bookVersion {
		return nil, fmt.Errorf("%d bytes of another version: %w", len(data), ErrBook)
	}
	b, r := NewBook(), reader{bytes: data[1:]}
	r.ledger(&b.starts, StartClasses)
	r.ledger(&b.runs, RunClasses)
	for _, c := range b.startsBy {
		r.recalibration(c)
	}
	for _, c := range b.runsBy {
		r.recalibration(c)
	}
	r.ring(&b.ratios)
	for i := range b.waits {
		r.ring(&b.waits[i])
	}
	for i := range b.counts {
		b.counts[i] = int64(r.uint()) //nolint:gosec // A count.
	}
	if r.bad || len(r.bytes) > 0 {
		return nil, fmt.Errorf("%d bytes that do not fit: %w", len(data), ErrBook)
	}
	return b, nil
}

type writer struct{ bytes []byte }

func (w *writer) uint(x uint64)   { w.bytes = binary.AppendUvarint(w.bytes, x) }
func (w *writer) float(x float64) { w.single(float32(x)) }
func (w *writer) single(x float32) {
	w.bytes = binary.LittleEndian.AppendUint32(w.bytes, math.Float32bits(x))
}

func (w *writer) ledger(l *Ledger) {
	w.uint(uint64(len(l.scores)))
	for i := range l.scores {
		s := &l.scores[(l.next+i)%len(l.scores)]
		w.bytes = append(w.bytes, byte(s.Class))
		for _, x := range [5]float64{s.Held, s.Below, s.Above, s.Pinball, s.Width} {
			w.float(x)
		}
	}
}

func (w *writer) recalibration(r *Recalibration) {
	for _, x := range r.bin {
		w.float(x / r.unit)
	}
	w.uint(uint64(r.outcomes)) //nolint:gosec // A count.
}

func (w *writer) ring(r *ring) {
	w.uint(uint64(len(r.of)))
	for i := range r.of {
		w.single(r.of[(r.next+i)%len(r.of)])
	}
}

// reader reads what a writer wrote; bad says that it could not.
type reader struct {
	bytes []byte
	bad   bool
}

func (r *reader) uint() uint64 {
	x, n := binary.Uvarint(r.bytes)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.bytes = r.bytes[n:]
	return x
}

// float reads a number that is finite and not negative.
func (r *reader) float() float64 {
	if len(r.bytes) < 4 {
		r.bad = true
		return 0
	}
	x := float64(math.Float32frombits(binary.LittleEndian.Uint32(r.bytes)))
	r.bytes = r.bytes[4:]
	if !(x >= 0) || math.IsInf(x, 0) {
		r.bad = true
		return 0
	}
	return x
}

func (r *reader) ledger(l *Ledger, classes int) {
	for n := r.count(LedgerSize); n > 0 && !r.bad; n-- {
		if len(r.bytes) == 0 || int(r.bytes[0]) >= classes {
			r.bad = true
			return
		}
		s := Score{Class: Class(r.bytes[0])}
		r.bytes = r.bytes[1:]
		for _, x := range [5]*float64{&s.Held, &s.Below, &s.Above, &s.Pinball, &s.Width} {
			*x = r.float()
		}
		l.Add(&s)
	}
}

func (r *reader) recalibration(c *Recalibration) {
	c.sum, c.unit = 0, 1
	for i := range c.bin {
		c.bin[i] = r.float()
		c.sum += c.bin[i]
	}
	c.outcomes = int64(r.uint()) //nolint:gosec // A count.
	r.bad = r.bad || !(c.sum > 0)
}

func (r *reader) ring(x *ring) {
	for n := r.count(ringSize); n > 0 && !r.bad; n-- {
		x.add(float32(r.float()))
	}
}

func (r *reader) count(most uint64) uint64 {
	n := r.uint()
	if n > most {
		r.bad = true
	}
	return n
}
