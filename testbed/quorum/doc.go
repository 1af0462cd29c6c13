// Package quorum is raft among the members of a simulated site, in one goroutine and in virtual
// time: the site's facts are kept by three or five of them, and one leads. What an entry of the
// log is, what a member makes of it and what the leader's answers are is the code of real sites
// (store/raftstore/leads); who leads, and which entries stand, is decided here, as raft does:
// terms, votes, logs, snapshots, messages that take their time or are lost.
//
// Nothing here relies on clocks or on how long anything takes: a leader that is cut off, or
// whose process was stopped, goes on for as long as it likes with what it believes. The group
// knows better ([Config.Violate]): it notes which entries a majority has, and says so if
//
//   - R1: a batch was acknowledged that does not stand, or a lead begins without it;
//   - R2: it was said that a batch never stands, and it does;
//   - R3: a leader has confirmed that it leads, and another lead had begun before it was asked;
//   - R4: two members have other entries at a place of the log that stands.
//
// Source: Ongaro, Consensus: Bridging Theory and Practice (2014), sections 3 and 5, 6.4 for
// answers without an entry. There is no pre-vote, and membership does not change: a member
// whose disk was replaced does not vote before it has caught up.
package quorum
