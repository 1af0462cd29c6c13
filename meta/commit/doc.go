// Package commit holds the rule that an effect waits for the disk: what the
// engine wants done leaves the site only after the facts behind it are durable.
// Every driver of the engine runs this code: kithd (cmd/kithd/daemon), the
// simulator (testbed/sim) and the explorer (testbed/check/explore).
//
// # How a driver uses it
//
//	effects = Engine.Step(now, event)
//	now     = Barrier.Add(effects)       carry these out at once; the rest is held
//	ready   = Barrier.Next()             seals the facts of all steps so far
//	effects = ready.Commit()             the batch is on disk; carry these out, in order
//	          Barrier.Done()             the next batch may be sealed
//
// Steps go on while a batch is on its way to the disk. What they change and what
// they want done gathers for the next one. At most one batch is under way, so
// that batches are committed in the order of sealing.
//
// The only way to an effect that is held is [Ready.Commit]. A driver cannot get
// the order wrong, only lose effects, which is what a crash does, too.
//
// Where several members keep a site's facts ([store.Replicated]), Commit has a third answer:
// it is not known whether the facts are durable. The barrier is done for then, and the driver
// loads again. A batch without facts is committed there as well, so that an answer leaves
// only from the member that leads.
//
// The package does no I/O of its own: it calls the [store.Backend] that it was
// given, on the goroutine that the driver chooses.
package commit
