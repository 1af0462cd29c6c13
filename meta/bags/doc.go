// Package bags has the rules by which the tasks of bags come to processors: at the origin
// which site is told of work and which tasks an ask gets, at the host what it keeps in
// stock and how long a pilot goes on.
//
//	origin                                        host
//	bags ─► Board ─── offers (volatile) ────────► Interest, pilots
//	     ◄─────────── an ask of a stock ───────── Level
//	Answers ─► Desk ─► store.GrantBundle ─ tasks ► Stock ─► Moment: begin, end
//	     ◄─────────── results, tasks given back ─ Batch, GiveBack
//	Hold, Elsewhere      Unserved, Recall ──────► Stock
//
// Each rule is a function of values or a small type that its owner feeds: nothing here
// keeps a fact, sends a message or reads a clock. Facts are in [kith/store]: what this
// package decides on is checked again when the fact is made, and the fact decides.
//
// Bounds on what comes from other sites are applied here ([Ask.Bounded]), so that an ask
// for a billion tasks is one for [MaxAsk].
//
// # Where to start
//
// shape.go has what offers and asks are about, desk.go who gets tasks next, size.go how
// many at once; stock.go and pilot.go have the host's side. ADR 0044 has the reasons.
//
// # Source
//
// GridBot (spec 002): section 2.2 for the answer to an ask, 2.6 for one look at each bag
// instead of each task, 2.8 for bags and hosts that fail. Order among users, budgets,
// bundles of two seconds and recall are our own.
package bags
