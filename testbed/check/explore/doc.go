// Package explore walks through every behaviour of a small federation: all
// interleavings of deliveries, losses, duplicates, crashes, timeouts and ends
// of jobs, with bounds on how many faults there are. It drives the engines that
// ship (meta.Engine, sitesched, store.Apply), not a model of them.
//
// # How
//
// A state of the world is the state of each site, the messages on each stream,
// what is left of the bounds, and what the observer remembers. Sites only meet
// through messages, so a step changes one site: the same event at the same
// state of a site always does the same. Each such local step is carried out
// once, by playing the site's history again on fresh engines, and then looked
// up (local.go). States of a site are told apart by all that its engine, its
// facts, its scheduler and its processes hold (fingerprint.go). The search is
// breadth first, so a counter-example is a shortest one (search.go).
//
// Steps at different sites commute. Where nothing that the others do can bring a
// site anything new, its own steps are enough to look at: all other orders come
// to the same (enough.go).
//
// # Time
//
// Each site has a clock of its own that stands still but for timeouts: a
// timeout is an event that may come at any moment, takes the clock to the next
// instant at which the engine wants to be woken, and is bounded in number. So
// every order of timeouts and messages is looked at, those included that real
// clocks would hardly ever bring about. Leases rest on how fast clocks run and
// are beyond this: see testbed/check/faults.
//
// # Streams
//
// A stream keeps order. When a daemon dies, what it had sent may still arrive,
// all of it or the first part, until the other end notices; what was on its way
// to it is gone. A lost message is gone although its stream lives on, a
// doubled one arrives once more at any later moment: no real stream does so.
//
// # What is checked
//
// In every state S1, S2, S3, S5 and S6 (docs/reliability.md). From every state
// in which nothing but timeouts can happen, the world is let run without
// faults: every job must end and no copy may be left (L1, L2).
//
// # A bag
//
// In place of jobs there may be a bag of some tasks (bag.go). The same then holds of each
// task, by its bag and ordinal, and of bundles and pilots in place of copies. Tasks take no
// time: how long they run decides how many a site is given.
//
// The bag may have replicas, or a deadline in its policies. Both take time to come, more of it
// than can be explored: so everything begins right before the instant in which the first of
// them does, with the tasks running that run until then (bagpolicy.go). It may also state all
// other policies, and sites may be revoked.
package explore
