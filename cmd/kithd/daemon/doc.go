// Package daemon is kithd: it wires the engines to the world.
//
// One goroutine, the loop, owns the engine, the local scheduler and the facts.
// Everything that happens becomes an event for it; what it answers goes
// through a pipeline of three stages, so that the loop never waits for a disk:
//
//	events ─► loop ─► committer ─► dispatcher ─► peers, clients, processes
//	          (Step,   (fsync)      (effects)
//	           Seal)
//
// While one batch is syncing the next gathers; effects leave in order, behind
// the batch that holds the facts they depend on. Package meta/commit sees to it.
//
// loop.go is the loop and the pipeline, effects.go carries effects out,
// host.go says how a site schedules and runs work, daemon.go puts it together.
// What is done for an attempt is package runner.
package daemon
