package workload

import (
	"fmt"
	"iter"
)

// Kind is a reason for which a job was skipped or mended.
type Kind uint8

// The kinds. A job that is skipped counts once, for the first that applies.
const (
	// BadLine is a line that has not the fields of its format, or is too long.
	BadLine Kind = iota
	// BadValue is a field that is not a number, a time or whatever it should be.
	BadValue
	// Negative is a field below zero that stands for nothing the format knows.
	Negative
	// Step is a part of a job that is counted with the job.
	Step
	// Unfinished is a job that had not ended when the log was written.
	Unfinished
	// NoRun ran for no time at all.
	NoRun
	// NoProcessors has no width.
	NoProcessors
	// TooLong has a run time or an estimate beyond [job.MaxWalltime].
	TooLong
	// TooLate is submitted more than MaxSpan after the start of the log.
	TooLate
	// TooWide is wider than the machine.
	TooWide

	// NoEstimate was given its run time as estimate.
	NoEstimate
	// Overran ran longer than its estimate and was treated as [Overrun] says.
	Overran
	// OutOfOrder was submitted before a job ahead of it in the log and has been sorted in.
	OutOfOrder

	kinds
)

// kindWords says of each kind what it means, for people.
var kindWords = [kinds]struct{ name, text string }{
	BadLine:      {"bad-line", "not a line of the format"},
	BadValue:     {"bad-value", "a field is not what it should be"},
	Negative:     {"negative", "a field is negative"},
	Step:         {"step", "a step of a job that is counted itself"},
	Unfinished:   {"unfinished", "had not ended"},
	NoRun:        {"no-run", "ran for no time"},
	NoProcessors: {"no-processors", "had no processors"},
	TooLong:      {"too-long", "run time or estimate above ten years"},
	TooLate:      {"too-late", "submitted too long after the first job"},
	TooWide:      {"too-wide", "wider than the machine"},
	NoEstimate:   {"no-estimate", "no estimate: the run time is taken"},
	Overran:      {"overran", "ran longer than estimated"},
	OutOfOrder:   {"out-of-order", "submitted before a job ahead of it in the log: sorted in"},
}

// String returns the kind in one word.
func (k Kind) String() string {
	if k < kinds {
		return kindWords[k].name
	}
	return fmt.Sprintf("unknown(%d)", uint8(k))
}

// Sentence says what the kind means, for people.
func (k Kind) Sentence() string {
	if k < kinds {
		return kindWords[k].text
	}
	return k.String()
}

// Skipped reports whether jobs of the kind were left out, else they were mended.
func (k Kind) Skipped() bool { return k < NoEstimate }

// Report says what became of the jobs of a log. The zero value is ready to use.
type Report struct {
	counts [kinds]int
	first  [kinds]string
}

// Count returns how many jobs or lines are of the kind.
func (r *Report) Count(k Kind) int {
	if k >= kinds {
		return 0
	}
	return r.counts[k]
}

// First describes the first one of the kind, for people: its line, field and
// value where they are known. It is "" if there is none.
func (r *Report) First(k Kind) string {
	if k >= kinds {
		return ""
	}
	return r.first[k]
}

// Skipped returns how many jobs or lines were left out altogether.
func (r *Report) Skipped() int {
	n := 0
	for k := range kinds {
		if k.Skipped() {
			n += r.counts[k]
		}
	}
	return n
}

// All yields the kinds that occurred, with their counts.
func (r *Report) All() iter.Seq2[Kind, int] {
	return func(yield func(Kind, int) bool) {
		for k := range kinds {
			if r.counts[k] > 0 && !yield(k, r.counts[k]) {
				return
			}
		}
	}
}

// Note says how many jobs of a log were skipped or mended, and why.
type Note struct {
	Kind    string `json:"kind"`
	Count   int    `json:"count"`
	Skipped bool   `json:"skipped"`
	Meaning string `json:"meaning"`
	First   string `json:"first"`
}

// Notes returns the report for people and programs: a note for each kind that
// occurred, and no nil if there is none.
func (r *Report) Notes() []Note {
	notes := []Note{}
	for k, n := range r.All() {
		notes = append(notes, Note{k.String(), n, k.Skipped(), k.Sentence(), r.First(k)})
	}
	return notes
}

// add counts one of kind k; text is asked for the first one only.
func (r *Report) add(k Kind, text func() string) {
	if r.counts[k]++; r.counts[k] == 1 {
		r.first[k] = text()
	}
}
