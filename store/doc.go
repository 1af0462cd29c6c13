// Package store holds the durable facts of a site and the one [State.Apply]
// that checks and records them.
//
// A fact is a [Command]: "this job was submitted", "that site got the claim".
// Apply checks it against the state and either records it or returns an error
// and changes nothing. It is pure: no clock, no randomness, no I/O. Time comes
// with the command. The same commands in the same order give the same state
// on every machine.
//
// # From a command to the disk
//
//	Apply ─► State (memory) ─► Backend.Seal ─► Batch ─► Batch.Commit ─► disk
//	            │                 (event loop)             (any goroutine)
//	            └─ read by the engines
//
// The owner of a State (one event loop) applies commands and gathers what must
// happen because of them. Now and then it seals the changes into a batch and
// commits that elsewhere, while the next changes gather. What depends on a
// fact (a reply, a grant, a start) may leave only when the batch that holds
// the fact is committed. So the state in memory runs ahead of the disk, but
// no client or peer ever sees it do so.
//
// # What is here and what is not
//
// A State keeps in memory what decisions need. Three things about a job are
// written with it but not kept in memory: its payload (what to run), the latest
// decision (why it was placed where it is), and the files it left once it has
// ended. [Backend.Payload], [Backend.Decision] and [Backend.Outputs] read them.
//
// Of the tasks of a bag a State keeps sets, not records: a bag of millions costs what is in
// motion. Results are written, merged into blocks of 256 by the back end, and never all in
// memory: [Backend.TaskResults] reads a block. What a held bundle runs is written, too, and
// read by [Backend.HeldPayload].
//
// An attempt that has ended leaves a [Past], which is written and not kept in memory either, up
// to a bound: [Backend.Past] reads it.
//
// Schedules, loads and choices are not here: they are volatile and computed
// again after a restart.
//
// Back ends are in store/boltstore (a bbolt file), store/memstore (memory, for simulation
// and tests) and store/raftstore (several machines of one site; no daemon uses it yet);
// store/storetest is the suite that all pass.
// Start reading at [Command].
package store
