package commit

import (
	"kith/internal/job"
	"kith/meta"
)

// leave says when an effect is carried out.
type leave uint8

const (
	afterCommit leave = iota
	atOnce
	// atOnceAndAfter is for what is harmless when it is done twice.
	atOnceAndAfter
)

// leaves says when an effect may be carried out. All wait for the facts of their
// step, except for renewals of leases and some kills, which say nothing that a
// crash could take back. A disk that takes nothing for the length of a lease would
// otherwise end every job that runs under one, and a job that fills the disk could
// not be ended.
//
//   - A host asks for a renewal of what it has launched, so that the beginning
//     is on its disk. That it still runs it is no fact. Whose beginning waits
//     for the disk is not renewed: the job may run elsewhere sooner.
//     The same holds for a bundle, of which one task at least has been launched.
//   - An origin renews a lease only while its facts in memory, which are those
//     on its disk or later ones, say that the site holds the claim. A holder of
//     an attempt never becomes one again, so a crash can take back only what
//     would have ended the lease. That a lease is not renewed may be such a
//     thing, and waits.
//   - A longer lease goes to the job at once, and again in its turn: the launch
//     that it belongs to may still wait.
//   - Where several members keep the facts, an attempt is taken up at once after a start: its
//     beginning is among what was loaded. Behind a round to a majority that takes long the
//     engine would have given its processors away before it hears that it still runs.
//   - An attempt is killed at once if the engine says that no fact of the site
//     speaks for it ([meta.Kill].Early): its origin asked, its lease ended, its user
//     cancelled, the operator revoked its origin. What was not launched has nothing to kill: its kill waits its turn
//     behind the launch.
func (b *Barrier) leaves(f meta.Effect) leave {
	switch f := f.(type) {
	case meta.Extend:
		return atOnceAndAfter
	case meta.Adopt:
		if b.shared {
			return atOnce
		}
	case meta.Kill:
		if f.Early && b.launched != nil && b.launched(f.Attempt) {
			return atOnce
		}
	case meta.Send:
		switch m := f.Message.(type) {
		case meta.Renew:
			if b.launched != nil && (b.launched(m.Attempt) || b.runsOf(m.Attempt)) {
				return atOnce
			}
		case meta.Renewed:
			if m.Lease > 0 && !b.shared {
				return atOnce
			}
		}
	}
	return afterCommit
}

// runsOf reports whether the driver has launched a task of a bundle.
func (b *Barrier) runsOf(bundle job.AttemptID) bool {
	h := b.facts.Held(bundle)
	if h == nil {
		return false
	}
	for task := range h.Tasks.All {
		if b.launched(h.RunID(task)) {
			return true
		}
	}
	return false
}
