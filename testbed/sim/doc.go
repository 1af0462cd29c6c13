// Package sim runs whole federations in virtual time: many sites, each with
// the very engines that kithd drives (meta.Engine, sitesched, store), a
// network that delays, drops, doubles and partitions, disks that forget what
// was not synced, and jobs that are nothing but a run time.
//
// It is a second driver of the engines and holds no rule of scheduling,
// placement or claiming, nor of what waits for the disk (package meta/commit).
// Everything that happens is an event ordered by (time,
// class, sequence). Of one instant, completions come first, by job id, then
// cancellations, then submissions, by origin, then messages (spec 001 section
// 2.1). What takes no time happens at once, before the next of these: a message
// over a link without latency, with all that it brings about, or the start of a
// process. So a job that is submitted finds the copies of those before it in
// the queues, also of the same instant. Then each touched site makes its pass:
// origins of the instant's submissions first, then those that copies came to,
// which for one job is the order of rank, then the others by name (section
// 2.5), until nothing moves any more.
//
// All randomness comes from one seeded source. Two runs of one configuration
// are the same run, whatever else the process does: the event log (eventlog.go)
// says so in bytes.
//
// [World] is the place to start; [World.Submit] and [World.Run] are all that a
// simple run needs. invariant.go watches what must never happen.
package sim
