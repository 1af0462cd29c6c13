// Package blobstore keeps content on a local disk in chunks of at most 4 MiB
// that are named by their sha256.
//
// It promises:
//
//   - B1. What a put or a [Batch.Commit] has acknowledged survives a crash of
//     the process and of the machine.
//   - B2. What a read returns has the sum it was asked for. A chunk that does
//     not is removed and counts as missing from then on, so that the caller
//     fetches it again.
//   - B3. A chunk is one file however often and from however many goroutines
//     it is put.
//   - B4. The quota and the low-water mark hold at every moment, under
//     concurrent puts too.
//   - B5. A sweep never takes a chunk that a [Hold] has, nor one that was put,
//     found by [Store.Missing] or let go within the grace period before the sweep.
//   - B6. What is not needed refuses nothing: before a put meets the quota or the
//     low-water mark, [Config].Reclaim sweeps.
//
// The caller owes two things: one process a folder (a lock enforces it), and a
// hold of each chunk until a durable record names it, because [Store.Sweep] takes
// what neither has. A [Batch] holds what is put through it.
//
// A folder looks like this; nothing else belongs into it:
//
//	format          the layout's version
//	lock            held while a store is open
//	tmp/            chunks being written; emptied by Open
//	chunks/ab/…     a chunk whose sum begins with ab, under its full name
//
// Every caller that knows a sum can read the chunk: the store has no notion of users. What
// names a sum to it (a job's file set, an upload) is checked one level up.
//
// Start reading at [Store]; [Batch.Put] is the path every byte takes.
package blobstore
