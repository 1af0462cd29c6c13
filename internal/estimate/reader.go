package estimate

import (
	"strconv"
	"strings"
)

// Bounds on what is read of an estimator.
const (
	// MostLine is the longest line, without its end, in bytes. A longer one is no bound.
	MostLine = 256
	// MostLines and MostBytes are how much is read of all. What comes after is not.
	MostLines = 10_000
	MostBytes = 1 << 20
)

const word = "bound"

// Reader takes what an estimator prints, in pieces of any size.
type Reader struct {
	// Bound is the least that was printed, together with what was added before.
	Bound
	// Ignored counts the lines that were no bound, First is the first of them, cut short.
	Ignored int
	First   string

	line  []byte
	long  bool // the line is longer than MostLine: the rest of it is not kept
	lines int
	bytes int
}

// Write takes more of it, and reports false when no more is wanted. A line counts when its end was seen.
func (r *Reader) Write(p []byte) bool {
	for _, c := range p {
		if r.Full() {
			return false
		}
		switch r.bytes++; {
		case c == '\n':
			r.endLine()
		case len(r.line) < MostLine:
			r.line = append(r.line, c)
		default:
			r.long = true
		}
	}
	return !r.Full()
}

// Full reports whether no more is wanted.
func (r *Reader) Full() bool { return r.lines >= MostLines || r.bytes >= MostBytes }

// End says that no more comes. A last line without an end counts if whoever printed it ended by
// itself: of one that was stopped the number may be cut short.
func (r *Reader) End(whole bool) {
	if whole && (len(r.line) > 0 || r.long) {
		r.endLine()
	}
}

func (r *Reader) endLine() {
	line := strings.Trim(string(r.line), " \t\r")
	if r.long || line != "" && !r.take(line) {
		if r.Ignored++; r.Ignored == 1 {
			r.First = line
		}
	}
	r.lines++
	r.line, r.long = r.line[:0], false
}

// take takes a line, and reports false for what is no bound.
func (r *Reader) take(line string) bool {
	rest, ok := strings.CutPrefix(line, word)
	number := strings.Trim(rest, " \t")
	if !ok || number == rest { // no blank between them
		return false
	}
	for _, c := range []byte(number) {
		if (c < '0' || c > '9') && c != '.' && c != 'e' && c != 'E' && c != '+' && c != '-' {
			return false // of what else stands for a number nothing is meant here
		}
	}
	work, err := strconv.ParseFloat(number, 64)
	// A job does some work. One of 0 would say that nothing is known, where bounds are kept.
	return err == nil && work > 0 && work <= MostWork && r.Add(work)
}

// MostWork is the largest bound that is taken, in processor-seconds of the reference. It is
// that of package job, which this one does not import.
const MostWork = 1e18
