// Package sitesched is the local scheduler of one site: it decides which copy
// of a job starts when, and predicts when one would.
//
// It is a pure state machine. Facts go in through the methods of [Scheduler],
// starts come out of [Scheduler.Pass]; there is no clock, goroutine, I/O or
// randomness inside. The daemon and the simulator drive the very same code.
//
//	Enqueue ──► LQ  local jobs    h ─ b ─ b ─ b ─ b        (arrival, id) order
//	            │                 │   └───┴───┴───┴── backfill: overtake, but
//	            │                 │                   leave the guarantees alone
//	            │                 └ head: blocked, guaranteed t*
//	            │
//	Enqueue ──► RQ  remote copies r ─ r ─ r ─ r            never block, own nothing
//	            │                 └───┴───┴───┴── fit around what LQ leaves
//	            ▼ Pass
//	         reserved ── Confirm ──► running ── Finish ──► gone
//	            │  │                    ▲
//	   Withdraw │  │ Postpone           └── Adopt (after a restart)
//	            ▼  ▼
//	         gone  back to its place in the queue, not eligible for a while
//
// The waiting copies of one origin can be set aside, all at once ([Scheduler.SetAside]):
// they leave their queues until they are brought back.
//
// With one queue ([Single]) local and remote copies stand in LQ together.
//
// # What a site promises
//
//   - P1. Charges never exceed the processors, except for what was adopted.
//   - P2. A copy that overtakes others moves none of their guarantees. Under
//     [EASY] the head owns a guarantee (its t*), under [Conservative] every copy
//     within the guarantee depth (its slot).
//   - P3. No start of a remote copy moves what the scope protects: t* of the
//     local head, or the plan of the local jobs within the guarantee depth. Only
//     local jobs own guarantees where there are two queues.
//     [Config.GuaranteeDepth] copies are within at least; who is stays so.
//     A remote copy that has waited for [Config.Patience] is not delayed by
//     remote copies that came later, from when it is the first of its kind.
//   - P4. A guarantee holds as long as estimates do. If a copy outlives its
//     estimate, is confirmed later than reserved, or a Pass comes late, slots
//     move back as far as they must and no further.
//   - P5. The same events give the same starts, byte for byte.
//   - P6. Under [DualPreempt] local jobs start, start for start, as on a site without
//     remote copies, later by no more than guests that were told to leave
//     ([Scheduler.Evicted]) take for it. P1 holds all the while.
//
// # What the caller owes
//
//   - Time never runs backwards. All events of one instant are fed first,
//     completions before cancellations before arrivals, then one Pass.
//   - Another Pass is due at [Scheduler.NextWake], even if nothing happened.
//   - Every start is answered: Confirm, Withdraw or Postpone, and every eviction in the
//     end by Finish, Withdraw or Postpone. A daemon that comes
//     back tells what runs with Adopt, and what waits with Enqueue, in any order.
//
// # Where to start reading
//
// scheduler.go holds the state and the events, dualqueue.go the pass over both
// queues, preempt.go that of a site whose local jobs do not see guests, fcfs.go, easy.go and conservative.go one discipline each. queue.go,
// running.go, profile.go and window.go are the structures that make them fast;
// DESIGN.md says why they look as they do. The stories in testdata show each
// rule at work.
//
// Sources: the backfilling of spec 001 sections 2.1 and 2.2, the loads of its
// section 2.3, the strict queues and predictions of spec 004 sections 1 and 2.1.
package sitesched
