// Package apart keeps the control plane of a site and its processors apart: a site whose facts are
// kept by several machines has its processors at one of them, and whichever leads drives it.
//
// At the machine with the processors a [Worker] has the runner and its files, for as long as the process
// lives, whoever leads. At the member that leads a [Driver] takes the effects of the engine that a runner
// takes elsewhere, and tells the engine what became of them. Between them goes one session at a time
// (WorkService in proto/kith/v1/work_service.proto).
//
// A session begins with what both know:
//
//	leader   greeting: the number of its lead
//	machine  greeting: its boot, and the attempts that it has
//	leader   clear what no fact knows; adopt, kill, extend what it knows; known
//	machine  what became of each; ready, once nothing runs that was cleared
//
// From then on orders and events go as they come. None has a number, and none is acknowledged: what a
// session that breaks has lost the next one finds out, as the leader says again what it wants of each
// attempt, and the machine what became of it. It keeps that until the attempt is cleared, in memory, and
// after a restart the executor finds it on disk. So a change of leaders is to the machine what a broken
// connection is, and to the leader a restart of the machine's daemon is that, too.
//
// What holds, whatever is lost, late or paused:
//
//   - One lead at a time. The machine keeps the number of the latest lead on disk and refuses earlier
//     ones; a session of a later lead ends the one before, and its last order, first.
//   - What is lost does not run. Attempts that would be run again elsewhere (on_site_lost "rerun") run
//     under a lease that their shim keeps, which the leader prolongs by the clock of the machine, after a
//     majority has said that it leads. It gives an attempt up when it has not heard of the machine for
//     longer than that, counted from the beginning of its lead at the earliest.
//   - What has ended is home before it is told. The driver brings the files that an attempt left to the
//     members before the engine hears of the end.
//
// Others that were given up, and still run when the machine is back, are stopped before it is ready.
//
// See docs/adr/0056-members-of-a-site.md.
package apart
