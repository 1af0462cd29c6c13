// Package leads has what is decided of batches of a site's facts that go through the log of
// raft, whoever's raft that is: how an entry is written, what every member makes of it
// ([Position]), and what the leader's answer is ([Answers]). The members of a site
// (store/raftstore) and those of a simulated one (testbed/quorum) run this code.
//
// A leader's first entry begins a lead, and its place in the log is the lead's number. A batch
// names its lead and counts from 1. Every member takes a batch only if it is the next one of the
// latest lead. See docs/adr/0052-records-through-raft.md.
package leads
