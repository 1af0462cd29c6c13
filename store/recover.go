package store

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"kith/internal/identity"
	"kith/internal/job"
)

// RecoverGap is how many numbers of attempts of a job, and of bundles of a bag, are left out
// when facts come back from a backup: more than may have been used since it was made.
const RecoverGap = 1 << 10

// RecoverSite records that the facts of a site come from a backup and go on in a data folder of
// another generation. What was done since the backup nobody here knows, so that nothing that may
// have been done since is done again by itself:
//
//   - Jobs and bags that have not begun are held, with Reason: whoever knows releases or cancels
//     them. A job whose attempt a site had claimed counts as begun there, and goes on if that
//     site still has it.
//   - What ran at this site is lost, as its processes and their folders are: its jobs end as
//     lost or, where their users let them run again, are held.
//   - Copies and bundles of other sites are forgotten. By the new generation their origins learn
//     that this site cannot know what it began.
//   - Numbers of attempts and bundles leave a gap, and job ids carry the new generation: no name
//     that was given since the backup is given again.
//
// It fails with [ErrState] unless the generation is another one, and with [ErrBounds] for none.
type RecoverSite struct {
	Generation uint32
	Actor      identity.Actor
	// Reason is why things are held, in words.
	Reason string
	Time   job.Time
}

func (c RecoverSite) apply(s *State) error {
	if c.Generation == 0 {
		return fmt.Errorf("generation 0: %w", ErrBounds)
	}
	if c.Generation == s.site.Generation {
		return fmt.Errorf("generation %s is that of the facts: %w", job.GenerationText(c.Generation), ErrState)
	}
	for _, j := range slices.Clone(s.order) {
		if s.jobs.Get(j.ID) == j && !j.State.Terminal() {
			if err := c.recoverJob(s, j); err != nil {
				return fmt.Errorf("job %v: %w", j.ID, err)
			}
		}
	}
	for _, b := range slices.Clone(s.bags.order) {
		if !b.State.Terminal() {
			if err := c.recoverBag(s, b); err != nil {
				return fmt.Errorf("bag %v: %w", b.ID, err)
			}
		}
	}
	copies := slices.Collect(s.copies.All)
	slices.SortFunc(copies, func(a, b *Copy) int { return a.ID.Compare(b.ID) })
	for _, cp := range copies {
		s.forgetCopy(cp)
	}
	for _, h := range slices.Clone(s.HeldBundles()) {
		if err := s.Apply(ForgetTasks{Bundle: h.ID, All: true}); err != nil {
			return err
		}
	}
	s.site.Generation, s.site.Folder, s.site.NextSeq = c.Generation, Folder{}, 1
	s.changes.Site = true
	return nil
}

// recoverJob deals with a job that has not ended.
func (c RecoverSite) recoverJob(s *State, j *Job) error {
	number := j.NextAttempt()
	held, here := j.State.Claim() == job.ClaimTaken, j.Holder == s.site.ID
	switch {
	case held && here && j.Outcome == nil && (j.Request.OnSiteLost != job.Wait || j.CancelRequested):
		if err := s.Apply(RevokeClaim{Attempt: j.AttemptID(), Site: j.Holder, Reason: job.LostByHost, Time: c.Time}); err != nil {
			return err
		}
	case held && here && j.Outcome == nil:
		lost := job.Outcome{Kind: job.Loss, End: c.Time, Reason: "the disk of its site was lost while it ran, and facts came back from a backup"}
		if err := s.Apply(RecordOutcome{Attempt: j.AttemptID(), Site: j.Holder, Outcome: lost, Time: c.Time}); err != nil {
			return err
		}
		return s.Apply(CloseJob{Job: j.ID, Time: c.Time})
	case j.State == job.Claimed:
		if err := s.Apply(RecordStart{Attempt: j.AttemptID(), Site: j.Holder, Started: c.Time}); err != nil {
			return err
		}
	}
	switch j.State {
	case job.Pending, job.Queued, job.Blocked:
		if err := s.Apply(HoldJob{Job: j.ID, Actor: c.Actor, Time: c.Time}); err != nil {
			return err
		}
		j.Acts[len(j.Acts)-1].Reason = c.Reason // the list is new
	}
	if j.State.Terminal() || number > math.MaxUint32-RecoverGap {
		return nil
	}
	if len(j.Earlier) >= MaxEarlier {
		j.Earlier = slices.Delete(slices.Clone(j.Earlier), 0, 1)
	}
	j.Earlier = append(j.Earlier, Holding{Attempt: number + RecoverGap})
	s.touchJob(j)
	return nil
}

// recoverBag deals with a bag that has not ended.
func (c RecoverSite) recoverBag(s *State, b *Bag) error {
	if b.State == job.BagOpen || b.State == job.BagBlocked {
		if err := s.Apply(HoldBag{Bag: b.ID, Actor: c.Actor, Reason: c.Reason, Time: c.Time}); err != nil {
			return err
		}
	}
	if b.Number <= math.MaxUint32-RecoverGap {
		b.Number += RecoverGap
		s.touchBag(b)
	}
	for _, number := range slices.Sorted(maps.Keys(b.Live)) {
		t := b.Live[number]
		if t == nil || t.Site != s.site.ID {
			continue
		}
		if err := s.Apply(RevokeBundle{Bundle: job.AttemptID{Job: b.ID, Number: number}, Site: t.Site, Time: c.Time}); err != nil {
			return err
		}
	}
	return nil
}

// RecoverReason is the [RecoverSite.Reason] of a backup that was made at a time.
func RecoverReason(made time.Time) string {
	return "restored from the backup of " + made.UTC().Format(time.RFC3339) + ": it may have run since; release it if it has not, else cancel it"
}
