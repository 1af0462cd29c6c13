// Package chaos proves on real sites what testbed/check/faults searches for in
// virtual time: it starts kithd processes on loopback whose links all pass
// through testbed/check/wan, gives them a mixture of jobs and bags, and meanwhile kills,
// freezes, cuts off, fills up, restarts and upgrades them.
//
//	rounds of faults ──► sites ◄── submitters, cancellers
//	      │                │ jobs
//	      │                ▼
//	      └──► record    ledger ──► checker ──► Result
//
// Every job signs a ledger that only the checker reads, with one appended line
// at its start and one at its end, and holds a lock that no other attempt of
// the job can hold at the same time. Every task of a bag does the same with a ledger
// of their own. The kernel keeps both in order, so that no
// clock is needed to tell whether two attempts overlapped.
//
// Faults come in rounds. At the end of a round everything is healed, and the
// time is taken until what the sites hold of each other agrees with what their
// origins think. At the end of the run the history is checked:
//
//   - C1. A submission that was acknowledged has one job, the same one whenever
//     it is repeated, and that job has one outcome, which never changes.
//   - C2. No attempt starts twice, and no job starts again after its outcome.
//   - C3. No two attempts of a job overlap, but under race.
//   - C4. What is said to have completed has run to its end, and its output is
//     what it wrote.
//   - C5. A job is lost only if its shim was killed, or if its host and its origin did
//     not trust each other for a while, and only under wait.
//   - C6. No copy, attempt, bundle or process is left over.
//   - C7. The audit log of each site is whole, and no revoked token is taken.
//   - C8. Jobs that count, save and go on elsewhere count each number once, or again after a loss that
//     their origin tells of, come to the right sum, and never go on from an older checkpoint than before.
//
// C1 to C5 hold for each task of a bag as for a job; its runs take the place of attempts,
// of which there are as many as its origin knows of at most.
//
// The faults and jobs of a run come from its seed, and only from that; what
// they meet, no seed can repeat.
package chaos
