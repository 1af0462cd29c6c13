// Package raftlog keeps what hashicorp/raft must not forget on a member of a site: the log of
// entries, in a bbolt file, and term and vote, in a small file of their own.
//
// The log has no holes: an append begins right behind the last entry, or at an earlier one,
// and then takes the place of all from there on; only the beginning or the end is deleted. So
// what is in the file is always one stretch of indices, whenever the process dies. Each entry
// has a checksum over its index, term and content. [Open] looks at all of them, and at the
// pages of the file before it is mapped: a file that is damaged, cut short, has a hole, or is
// of another format, site, cluster or member is refused, and not changed.
//
// An append is one transaction, durable when it returns. After an error nobody knows whether it
// is: the next append takes its place.
//
// Term and vote are written in place, in two blocks by turns, as a full disk must not be able to
// refuse them: raft panics when it cannot keep its term. A disk that fails otherwise ends the
// process, which is what the other members expect of it.
//
// The published stores for bbolt do not build beside memberlist 0.7, and accept holes.
// The source of the rules is the documentation of [raft.LogStore], [raft.MonotonicLogStore] and
// [raft.StableStore].
package raftlog
