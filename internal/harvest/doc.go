// Package harvest predicts work on machines whose owners come first, and divides work among
// them.
//
// Such a machine is a [Machine]: jobs of its owner come as a Poisson process and have priority;
// guest work runs only while there are none. The same few numbers that a sensor can measure
// give a distribution of the completion time, not just a mean:
//
//   - [Finish] is when a task ends on one machine, [Parallel] when the last of several does;
//   - [Usage] predicts a machine from what was measured in past hours, and a [Sampler] says how
//     often to measure;
//   - [MeanTime], [Equal] and [SpeedEqual] divide work that can be cut anywhere; [MinMin] and
//     [MaxMin] divide subtasks;
//   - [Policy] chooses machines: one, p of them, the best set of all, or a prefix of the list
//     by what owners leave;
//   - [Watch] says when what runs is so far from the prediction that it pays to plan anew.
//
// Times are in seconds, as float64, work is in seconds on a processor of speed 1. The package is
// pure: where it draws, the caller's seed decides. Nothing is safe for concurrent use unless it
// is only read.
//
// A machine that is given to one job at a time is not of this kind: when a copy starts there
// follows from its queue.
//
// Source: spec 003; X.-H. Sun and M. Wu, Grid harvest service: a performance system of grid
// computing, Journal of Parallel and Distributed Computing (2006).
package harvest
