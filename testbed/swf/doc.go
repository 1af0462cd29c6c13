// Package swf reads workload logs in the Standard Workload Format of the
// Parallel Workloads Archive, plain or gzip, and turns them into jobs that a
// simulated site can run.
//
// A log is a header of comment lines, many of the form "; Name: value", and
// one line of 18 numbers for each job. -1 stands for unknown. [Read] is
// strict: it accepts what the format allows and names the line, field and
// value of what it does not. [Normalise] then applies the rules by which two
// simulators can agree on a log start by start.
//
// The package needs no more than an [io.Reader]; it opens no files.
package swf
