// Package meta is the peer meta-scheduler of a site: it places copies of each
// job at the sites that look best, keeps the claim of every job submitted
// here, and queues copies of other origins at the local scheduler.
//
// # What it is
//
// [Engine.Step] takes an event at a time and returns what must happen because
// of it. It reads no clock, starts no goroutine, does no I/O and draws no
// random numbers: the same events at the same times give the same effects. A
// daemon and a simulator are two drivers of this one engine.
//
// The engine applies facts to its [store.State] as it goes; the state in
// memory runs ahead of the disk. What the driver owes in return:
//
//   - effects leave only after the changes that were made up to their Step
//     are durable: package meta/commit holds them until then, for every driver;
//   - all events of one instant are fed before one [Pass] of that instant;
//   - a [Tick] is fed no later than [Engine.NextWake] says;
//   - messages of one stream arrive in order and not before [PeerUp]; between
//     a [PeerDown] and the next PeerUp nothing of the old stream arrives.
//     (The protocol survives worse, but converges more slowly then.)
//
// # The claim
//
// For every attempt of a job the origin keeps one semaphore, the claim:
//
//	        place copies            first claim: grant         outcome recorded
//	(none) ───────────────► Open ───────────────────► Taken ──────────────────► Closed
//	   ▲                     │                         │
//	   │   hold, no copy left│     gave back unstarted │
//	   └─────────────────────┴─────────────────────────┘   then attempt + 1
//
//	origin                                  host
//	  │ PlaceCopy ──────────────────────────► │ commit the copy
//	  │ ◄────────────────────────── CopyAnswer│ queue it
//	  │                                       │ its turn: reserve processors
//	  │ ◄─────────────────────────────── Claim│
//	  │ commit the grant                      │
//	  │ Verdict(granted, payload) ──────────► │ commit the begin, stage files, start
//	  │ Withdraw ───► the other hosts         │
//	  │ ◄───────────────────────────── Started│
//	  │ ◄────────────────────────────── Result│ repeated until acknowledged
//	  │ fetch output, commit the outcome      │
//	  │ ResultAck ──────────────────────────► │ forget the attempt
//
// Every message names the attempt, and its number fences: what carries an
// older one is refused. Any message may be lost, late or doubled. Requests
// (PlaceCopy, Withdraw, Result, Stop) are repeated while the stream is up;
// what a broken stream swallowed is found by comparing what host and origin
// hold, on every connect and once a minute (antientropy.go).
//
// # The paper
//
// Ranking, K copies, claims and withdrawals are those of the K-Distributed and
// K-Dual schemes (spec 001 sections 2.4 and 2.5); which sites get copies is
// decided in package place, by the stages of spec 999 section 2. Where the
// protocol adds to the paper: attempts as fencing tokens, durable facts before
// messages, acknowledgements, anti-entropy (spec 001 section 4).
//
// # Where to start
//
// A site plays two roles, and reaches others through a third part. Start reading
// at engine.go, which hands each event to the role that it concerns. Then:
//
//	origin.go     the jobs submitted here; placement.go and ask.go, where they go
//	claim.go      the semaphore; outcome.go, how a job is closed
//	host.go       the copies that this site was given
//	hostclaim.go  a host asks for the right to start; run.go, and starts
//	batch.go      a batch system in the place of the local scheduler
//	bagorigin.go  the bags of tasks submitted here; bagclaim.go, bagresults.go
//	taskhost.go   the tasks that this site was given; pilot.go, in what they run
//	peers.go      streams to other sites, requests repeated until answered
//	antientropy.go
//	rights.go     who may say what
//	trust.go      whom this site trusts; admit.go, revoke.go
//
// Origin and host of one site meet as those of two sites would, through two
// small interfaces instead of messages (ownHost, ownOrigin). Neither of them is
// known to peers, which makes each message anew from the facts.
package meta
