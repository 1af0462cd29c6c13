// Package metrics turns what happened to jobs into the figures that papers and
// administrators compare: waiting time, turnaround, slowdown, utilisation,
// fairness.
//
// There is one input, a [Record] for each job that has ended, and everything
// is derived from records: a driver writes them down and asks no questions
// while it runs. Percentiles are exact.
//
// Sources: spec 001 section 3.0, spec 004 section 3.1.
package metrics
