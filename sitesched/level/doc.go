// Package level has the rules of an execution hierarchy: for jobs of unknown length, how long
// they may wait and run at a level, and which of them must leave it and why.
//
// A level is a rank, 1 for the smallest and fastest to answer, together with limits: T_q, the
// longest stay, and T_e, the longest execution. A task begins at the top and sinks while it turns
// out to be longer than its level allows. [ProcessNewTask] decides at each arrival,
// [EnforceQueueLimits] at each arrival, at each end and every so often in between. A [Ladder]
// says which level comes next, a [Bound] keeps the least estimate of what a task needs.
//
//	arrival ── overload? ── estimate, if unknown or too much ── mismatch? ──► stays
//	               │                                                │           │
//	               └───────────────► leaves: demoted, rejected ◄────┘           │
//	                                 or terminated  ▲                           │
//	                                                └── overdue, or would be ◄──┘
//
// Everything here is arithmetic on what the caller says: no clock, no randomness, no I/O. Work is
// a [Complexity], in processor-seconds of the reference processor. The optimistic
//
//	φ(T) = T · N · speed · β
//
// is what a level can do in the time T: with all its N processors, each speed times the
// reference, for a task of which the share β is bound by processors. It is optimistic on purpose:
// a long task too high costs less than a short one too low.
//
// Of several queues of one level each may tell the others a [Queue], and a task moves to one that
// would be done with it clearly [Sooner].
//
// Not here: who runs what when (package sitesched), and how a task is moved.
//
// Source: spec 000 sections 1, 2.2 to 2.6. Where it leaves something open, the comment
// of the rule says what was chosen.
package level
