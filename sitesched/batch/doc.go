// Package batch is the local scheduler of a site whose jobs a batch system runs.
// Order, backfill and reservations are that system's; what stands here is the
// plan in memory that the engine asks: what is queued there, whose turn has come,
// what runs. It satisfies meta.Batch.
//
// It does no I/O and knows no batch system. The driver of the engine's effects
// submits, cancels and hears of turns, see meta.Batch for what it is told.
package batch
