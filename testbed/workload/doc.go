// Package workload holds what a simulated site has to run: jobs with their
// submissions, run times, estimates and widths. It reads them from logs (the
// Standard Workload Format, Slurm's sacct and the accounting logs of PBS and
// Torque, see [Open]), makes them up from models ([CTCLike], [Lublin],
// [Exponential]), and changes them for experiments ([Workload.Fit],
// [Workload.Stretch] and the other methods).
//
// A [Workload] is never changed once it is made: every transformation returns a
// new one. Nothing is lost on the way without a word: what was skipped or
// mended is counted by [Kind] in its [Report].
//
// Only [Open] touches a file. Models draw from the [rand.Rand] they are given
// and from nothing else, so that a seed stands for a workload; zero is a valid
// seed.
//
// Sources: the formats and rules of the Parallel Workloads Archive; spec 001
// sections 2.7 and 3.0; spec 004 section 3.1.
package workload
