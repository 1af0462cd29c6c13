// Package lab carries out the experiments of the papers that Kith is built on
// and says, claim by claim, what holds.
//
// An [Experiment] is a table of [Claim]s and a function that runs simulations
// and finds out. Every simulated site runs the engines that kithd runs, through
// package federation; what only an experiment needs, such as a scheme with a
// central scheduler, is in this package. [Execute] carries out an experiment;
// its [Report] has one [Finding] for each claim, with the tables and plots
// behind them.
//
// A band belongs to its claim and is that of the specification. It is never
// widened: a claim that does not reproduce fails, and its finding says why we
// think so.
//
// An experiment depends on its [Env] only: the same seeds and the same workload
// give the same findings on any number of processors.
//
// Sources: spec 001 section 3, spec 004 section 3.
package lab
