// Package sim runs whole federations in virtual time: many sites, each with
// the very engines that kithd drives (meta.Engine, sitesched, store), a
// network that delays, drops, doubles and partitions, disks that forget what
// was not synced, and jobs that are nothing but a run time.
//
// It is a second driver of the engines and holds no rule of scheduling,
// placement or claiming. Everything that happens is an event ordered by
// (time, class, sequence); within one instant completions come before
// cancellations before arrivals before messages, and then each touched site
// makes its pass, in the order of names, until nothing moves any more (spec
// 001 section 2.1). All randomness comes from one seeded source. Two runs of
// one configuration are the same run.
//
// [World] is the place to start; [World.Submit] and [World.Run] are all that a
// simple run needs. invariant.go watches what must never happen.
package sim
