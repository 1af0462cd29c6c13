// Package shim is the small process that stands between the daemon and one
// running job. It starts the job, watches it, ends it at its walltime, and
// writes how it ended to disk, whether or not the daemon still lives.
//
// The package has two sides. [Main] is the whole of the shim process; it is
// called by cmd/kith-shim and, through executor.ShimMain, by any bigger binary
// that was started as a shim. The rest is what both processes must agree on:
// the messages on the socket between them ([Append], [Cut]) and the record in
// the attempt's folder ([ParseRecord]).
//
// What a shim promises:
//
//   - P1: it runs one job at a time, and takes the next only after every
//     process of the last is dead and reaped.
//   - P2: it starts an attempt only after it has taken the attempt's record,
//     under a lock, from empty to started. Of two shims that are told to run one
//     attempt, one does.
//   - P3: how the job ended is in the record before it is told to anyone.
//   - P4: without a daemon it finishes the present job, then exits. Idle, it
//     exits at once.
//   - P5: killed, it takes its job along: the kernel ends a PID namespace with
//     its first process; where there is none, the parent-death signal ends the
//     job's first process and the daemon looks for the rest.
//
// It imports little, because a shim's start costs processor time and there can
// be one for every slot: no fmt, no log, no net, nothing of Kith.
package shim
