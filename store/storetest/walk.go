// Package storetest is the suite that every back end of package store passes,
// and the random walks through the facts of a site that it is built on.
package storetest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"kith/internal/job"
	"kith/store"
)

// Sites are the hosts that a walk places copies at.
func Sites() []job.SiteID { return []job.SiteID{"alpha", "beta", "gamma"} }

// Walk returns a command that could be next in s: mostly one that succeeds,
// sometimes one that is late, doubled or wrong. The same rng and state give
// the same command.
func Walk(rng *rand.Rand, s *store.State) store.Command {
	now := job.Time(rng.Int64N(1 << 40))
	j, c := anyJob(rng, s), anyCopy(rng, s)
	if j == nil || rng.IntN(24) == 0 {
		return submit(rng, s, now)
	}
	switch rng.IntN(12) {
	case 0, 1, 2, 3:
		return atHost(rng, s, c, now)
	case 4:
		return resolve(rng, s, now)
	}
	return atOrigin(rng, s, j, now)
}

func anyJob(rng *rand.Rand, s *store.State) *store.Job {
	next := s.NextID()
	if next.Seq == 1 {
		return nil
	}
	// The last few jobs are where things happen.
	next.Seq -= 1 + rng.Uint64N(min(next.Seq-1, 12))
	return s.Job(next)
}

func anyCopy(rng *rand.Rand, s *store.State) *store.Copy {
	if s.CopyCount() == 0 {
		return nil
	}
	var least *store.Copy
	// Any rule that does not depend on the order of a map will do.
	pivot := uint64(rng.IntN(64))
	for c := range s.Copies() {
		if least == nil || less(c.ID, least.ID, pivot) {
			least = c
		}
	}
	return least
}

func less(a, b job.AttemptID, pivot uint64) bool {
	if x, y := a.Job.Seq^pivot, b.Job.Seq^pivot; x != y {
		return x < y
	}
	return a.Compare(b) < 0
}

func submit(rng *rand.Rand, s *store.State, now job.Time) store.Command {
	id := s.NextID()
	if rng.IntN(10) == 0 {
		id.Seq += rng.Uint64N(3) // sometimes not the next
	}
	cmd := store.SubmitJob{
		ID: id, Actor: "ada", Time: now,
		Request: job.Request{Name: fmt.Sprint("job-", rng.IntN(5)), User: "ada", Processors: 1 + rng.Int32N(8), Walltime: time.Hour},
		Payload: fmt.Appendf(nil, "payload of %v", id),
	}
	cmd.Guess = float64(rng.IntN(3)) * 1e4
	if rng.IntN(2) == 0 {
		cmd.RequestID = fmt.Sprint("request-", rng.IntN(200))
		cmd.BodyHash[0] = byte(rng.IntN(256))
	}
	cmd.After = someAfter(rng, s)
	return cmd
}

// someAfter returns what a new job or bag is to wait for, now and then something that is
// not there.
func someAfter(rng *rand.Rand, s *store.State) []job.Dependency {
	var after []job.Dependency
	for range max(0, rng.IntN(6)-2) {
		on := s.NextID()
		on.Seq -= min(on.Seq, rng.Uint64N(9)*rng.Uint64N(3)+min(1, uint64(rng.IntN(40))))
		after = append(after, job.Dependency{On: on, Condition: job.AfterOK + job.Condition(rng.IntN(3))})
	}
	if rng.IntN(8) == 0 {
		after = append(after, job.Dependency{Condition: job.Singleton, State: job.DependencyWaits + job.DependencyState(rng.IntN(2))})
	}
	return after
}

// resolve returns the fact that something has ended that another waits for: mostly it has.
func resolve(rng *rand.Rand, s *store.State, now job.Time) store.Command {
	c := store.ResolveDependency{ID: s.NextID(), Time: now}
	ready := rng.IntN(10) > 0
	n := 0
	for id, after := range s.Dependants {
		for _, d := range after {
			_, ended, _ := s.Ending(d.On)
			if d.State == job.DependencyWaits && (ended || !ready) {
				if n++; rng.IntN(n) == 0 {
					c.ID, c.On = id, d.On
				}
			}
		}
	}
	return c
}

func atOrigin(rng *rand.Rand, s *store.State, j *store.Job, now job.Time) store.Command {
	a := job.AttemptID{Job: j.ID, Number: j.Attempt}
	if rng.IntN(8) == 0 {
		a.Number += rng.Uint32N(3) - 1 // sometimes stale or from nowhere
	}
	site := Sites()[rng.IntN(3)]
	holder := j.Holder
	if holder == "" || rng.IntN(6) == 0 {
		holder = site
	}
	switch rng.IntN(14) {
	case 0, 1, 2:
		sites := Sites()[:rng.IntN(4)]
		d := &store.Decision{Rank: 1}
		for _, s := range sites {
			d.Sites = append(d.Sites, store.SiteDecision{Site: s, Chosen: true, Score: rng.Float64(), Weight: 1})
		}
		return store.OpenAttempt{Attempt: job.AttemptID{Job: j.ID, Number: j.NextAttempt()}, Sites: sites, Decision: d, Time: now}
	case 3, 4:
		return store.GrantClaim{Attempt: a, Site: site, Stamp: rng.Uint64(), Time: now}
	case 5:
		to := job.SiteID("")
		if rng.IntN(2) == 0 {
			to = Sites()[rng.IntN(3)]
		}
		return store.MoveCopy{Attempt: a, From: site, To: to, Kind: store.CopyReturned, Reason: job.Full, Time: now}
	case 6:
		return store.RecordStart{Attempt: a, Site: holder, Started: now}
	case 7:
		return store.ReturnClaim{Attempt: a, Site: holder, Reason: job.Draining, Time: now}
	case 8, 9:
		return store.RecordOutcome{Attempt: a, Site: holder, Outcome: outcome(rng, now), Time: now}
	case 10:
		filesError := ""
		if rng.IntN(3) == 0 {
			filesError = "the disk is full"
		}
		if j.Outcome != nil && j.Outcome.Kind == job.Demoted && rng.IntN(6) > 0 {
			return store.RequeueJob{Attempt: a, Site: holder, FilesError: filesError, Time: now}
		}
		return store.CloseJob{Job: j.ID, FilesError: filesError, Time: now}
	case 11:
		return [...]store.Command{
			store.CancelJob{Job: j.ID, Actor: "bob", Reason: "walk", Time: now}, store.HoldJob{Job: j.ID, Actor: "ada", Time: now},
			store.ReleaseJob{Job: j.ID, Time: now}, store.NoteForgotten{Job: j.ID, Site: site, Actor: "eve", Time: now},
			store.AskJob{Job: j.ID, Actor: "mia", Time: now},
		}[rng.IntN(5)]
	case 12:
		return [...]store.Command{
			store.UnplaceJob{Attempt: a}, store.SetDrain{Draining: rng.IntN(2) == 0, Reason: "walk", Actor: "eve", Time: now},
			store.NoteClaim{Job: j.ID, Event: store.ClaimEvent{Time: now, Attempt: a.Number, Kind: store.ClaimDenied, Site: site}},
		}[rng.IntN(3)]
	default:
		return store.PurgeJob{Job: j.ID}
	}
}

func atHost(rng *rand.Rand, s *store.State, c *store.Copy, now job.Time) store.Command {
	if c == nil || rng.IntN(3) == 0 {
		origin := Sites()[rng.IntN(3)]
		return store.AcceptCopy{
			Attempt: job.AttemptID{Job: job.ID{Origin: origin, Generation: 7, Seq: 1 + rng.Uint64N(40)}, Number: rng.Uint32N(3)},
			Request: job.Request{Name: "copy", Processors: 1, Walltime: time.Minute}, Time: now,
			OriginTooSmall: now%2 == 0, Stays: now%3 == 0, LimitSeconds: uint32(now%3) * 3600,
		}
	}
	switch rng.IntN(6) {
	case 5:
		return store.RequeueCopy{Attempt: c.ID}
	case 0, 1:
		return store.BeginAttempt{Attempt: c.ID, BootID: "boot-1", Time: now}
	case 2, 3:
		if c.Phase == store.CopyEnded {
			return store.ForgetAttempt{Attempt: c.ID}
		}
		return store.EndAttempt{Attempt: c.ID, Outcome: outcome(rng, now)}
	default:
		return store.DropCopy{Attempt: c.ID}
	}
}

func outcome(rng *rand.Rand, now job.Time) job.Outcome {
	o := job.Outcome{Kind: job.Success + job.OutcomeKind(rng.IntN(6)), Start: now, End: now + 5, CPUTime: 3}
	if o.Kind == job.Failure {
		o.ExitCode, o.Reason = 1+rng.Int32N(255), "it failed"
	}
	if o.Kind == job.Demoted {
		o.Checkpoint = rng.Uint64N(5)
	}
	if rng.IntN(3) == 0 {
		o.Files, o.FilesRemain = []byte("files"), rng.IntN(2) == 0
	}
	return o
}
