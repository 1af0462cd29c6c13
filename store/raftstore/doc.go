// Package raftstore keeps a site's facts on three or five machines of that site, through
// hashicorp/raft: the site goes on when one or two of them are lost.
//
// # A member and a lead
//
// A [Member] lives as long as the daemon on its machine. It has a part of the log, votes, and
// writes into its file what a majority has. One member leads. [Member.Lead] waits until that
// is this one and returns a [Lead], which is the [store.Backend] for as long as it leads:
//
//	for {
//		lead, err := member.Lead(ctx)      until raft elects this member
//		facts, err := lead.Load()          what was ever committed, and nothing else
//		...                                engine and barrier, as with any back end
//		<-lead.Over(), or a Commit that is [store.Void]: stop the engine, forget the facts
//	}
//
// # What is promised
//
//   - P1. What Commit has said yes to is in every later [Lead.Load], at whichever member.
//   - P2. A batch is there whole or not at all.
//   - P3. After [store.ErrDeposed] a batch is in no Load, ever. After [store.ErrUndecided] it is
//     in every later one or in none.
//   - P4. Batches are written in the order of one lead, each on the facts that it was made on:
//     every member refuses a batch of an earlier lead, and one that is not the next.
//   - P5. Commit of an empty batch succeeds only if no later lead had begun when it was called.
//
// # What is where
//
// In the folder of a member: raft.db, the log, and raft.vote (package raftlog), which are what is
// durable; snapshots; and the file of facts (package boltstore), which is made anew at every start
// from the last snapshot and the log behind it, and is not synced.
//
// Members speak the library's protocol over connections that begin with a greeting, see [Config].
// Source: Ongaro, Consensus: Bridging Theory and Practice (2014), sections 3, 4.1, 5, 6.4, 9.6
// (pre-vote). Why records and not commands: docs/adr/0052-records-through-raft.md.
package raftstore
