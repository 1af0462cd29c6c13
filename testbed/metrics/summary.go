package metrics

import (
	"time"

	"kith/internal/job"
)

// The thresholds of spec 001 section 3.0.
const (
	// Floor is the floor of bounded slowdown.
	Floor = 10 * time.Second
	// ShortBelow is the run time below which a job is short.
	ShortBelow = 900 * time.Second
	// NarrowBelow is the width below which a job is narrow.
	NarrowBelow = 8
)

// Options say how to summarise. The zero value is that of the papers.
type Options struct {
	// Processors is how many there are, for utilisation; zero leaves it out.
	Processors int64
	// Floor, ShortBelow and NarrowBelow replace the constants of these names.
	Floor, ShortBelow time.Duration
	NarrowBelow       int32
}

func (o Options) withDefaults() Options {
	if o.Floor == 0 {
		o.Floor = Floor
	}
	if o.ShortBelow == 0 {
		o.ShortBelow = ShortBelow
	}
	if o.NarrowBelow == 0 {
		o.NarrowBelow = NarrowBelow
	}
	return o
}

// Class is a category of jobs by run time and width (spec 001 section 3.0).
type Class uint8

// The classes.
const (
	ShortNarrow Class = iota
	ShortWide
	LongNarrow
	LongWide
	// Classes is how many there are.
	Classes = 4
)

var classNames = [Classes]string{"short-narrow", "short-wide", "long-narrow", "long-wide"}

// String returns the name.
func (c Class) String() string {
	if c < Classes {
		return classNames[c]
	}
	return "unknown"
}

// ClassOf returns the class of r. Reference and Procs decide.
func (o Options) ClassOf(r *Record) Class {
	o = o.withDefaults()
	c := ShortNarrow
	if r.reference() >= o.ShortBelow {
		c = LongNarrow
	}
	if r.Procs >= o.NarrowBelow {
		c++
	}
	return c
}

// Summary is a set of records in figures. Times are in seconds.
type Summary struct {
	// Jobs is how many records there are; without any, all figures are zero.
	Jobs int `json:"jobs"`
	// Wait and Turnaround are in seconds; slowdowns have no unit.
	Wait            Distribution `json:"wait_seconds"`
	Turnaround      Distribution `json:"turnaround_seconds"`
	Slowdown        Distribution `json:"slowdown"`
	BoundedSlowdown Distribution `json:"bounded_slowdown"`
	// WorkSeconds is the processor-seconds held.
	WorkSeconds float64 `json:"work_processor_seconds"`
	// FirstSubmit and LastEnd limit the time of the records.
	FirstSubmit job.Time `json:"-"`
	LastEnd     job.Time `json:"-"`
	// MakespanSeconds is the time between them.
	MakespanSeconds float64 `json:"makespan_seconds"`
	// Utilisation is work ÷ (processors × makespan), zero without Options.Processors.
	Utilisation float64 `json:"utilisation"`
	// Classes are the four categories.
	Classes [Classes]ClassSummary `json:"classes"`
}

// ClassSummary is one class of jobs in figures.
type ClassSummary struct {
	Class           Class        `json:"-"`
	Name            string       `json:"class"`
	Jobs            int          `json:"jobs"`
	Wait            Distribution `json:"wait_seconds"`
	Turnaround      Distribution `json:"turnaround_seconds"`
	Slowdown        Distribution `json:"slowdown"`
	BoundedSlowdown Distribution `json:"bounded_slowdown"`
}

// Summarise returns the figures of records, which are not changed.
func Summarise(records []Record, o Options) Summary {
	o = o.withDefaults()
	s := Summary{Jobs: len(records)}
	for c := range Class(Classes) {
		s.Classes[c] = ClassSummary{Class: c, Name: c.String()}
	}
	if len(records) == 0 {
		return s
	}
	m := measure(records, o)
	from := 0
	for c := range s.Classes {
		k := &s.Classes[c]
		k.Jobs = m.perClass[c]
		k.Wait, k.Turnaround, k.Slowdown, k.BoundedSlowdown = m.distributions(from, from+k.Jobs)
		from += k.Jobs
	}
	// All together come last: it mixes the classes.
	s.Wait, s.Turnaround, s.Slowdown, s.BoundedSlowdown = m.distributions(0, len(records))
	s.FirstSubmit, s.LastEnd = records[0].Submit, records[0].End
	for i := range records {
		r := &records[i]
		s.WorkSeconds += r.Work()
		s.FirstSubmit, s.LastEnd = min(s.FirstSubmit, r.Submit), max(s.LastEnd, r.End)
	}
	s.MakespanSeconds = s.LastEnd.Sub(s.FirstSubmit).Seconds()
	if o.Processors > 0 && s.MakespanSeconds > 0 {
		s.Utilisation = s.WorkSeconds / (float64(o.Processors) * s.MakespanSeconds)
	}
	return s
}

// measures are the measures of records, those of one class side by side.
type measures struct {
	perClass                            [Classes]int
	wait, turnaround, slowdown, bounded []float64
}

func measure(records []Record, o Options) *measures {
	n := len(records)
	m := &measures{}
	class := make([]Class, n)
	for i := range records {
		class[i] = o.ClassOf(&records[i])
		m.perClass[class[i]]++
	}
	var next [Classes]int
	for c := 1; c < Classes; c++ {
		next[c] = next[c-1] + m.perClass[c-1]
	}
	all := make([]float64, 4*n)
	m.wait, m.turnaround, m.slowdown, m.bounded = all[:n], all[n:2*n], all[2*n:3*n], all[3*n:]
	for i := range records {
		r := &records[i]
		at := next[class[i]]
		next[class[i]]++
		m.wait[at], m.turnaround[at] = r.Wait().Seconds(), r.Turnaround().Seconds()
		m.slowdown[at], m.bounded[at] = r.Slowdown(), r.BoundedSlowdown(o.Floor)
	}
	return m
}

// distributions describes the measures of a range of jobs, whose order is lost.
func (m *measures) distributions(from, to int) (wait, turnaround, slowdown, bounded Distribution) {
	return describe(m.wait[from:to]), describe(m.turnaround[from:to]), describe(m.slowdown[from:to]), describe(m.bounded[from:to])
}
