package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"kith/cluster"
	"kith/internal/job"
	"kith/meta"
	"kith/meta/api"
	"kith/meta/peer"
	"kith/meta/trust/audit"
	"kith/sitesched/runner"
	"kith/store"
)

// effects carries out what the engine decided. carry is called by the dispatcher,
// in order, and must not wait for the loop. The loop itself calls it for what
// need not wait for the disk: renewals of leases.
type effects struct {
	links   *peer.Links
	runs    *runner.Runner
	tries   attempts
	backend store.Backend
	log     *slog.Logger
	changes *api.Changes // of jobs
	bags    *api.Changes
	streams *streams
	spread  *spread
	refused refusals
	audit   *audit.Log
	site    *Daemon
}

func (f *effects) carry(ef meta.Effect) {
	switch ef := ef.(type) {
	case meta.Send:
		if _, load := ef.Message.(meta.LoadDigest); load && !f.spread.needsStream(ef.To) {
			return
		}
		switch m := ef.Message.(type) { // what may be read of the attempt is other than before
		case meta.Result:
			f.site.files.Grown(m.Attempt)
		case meta.Saved:
			f.site.files.Grown(m.Attempt)
		}
		f.links.Send(ef.To, ef.Message)
	case meta.Grant:
		f.links.Grant(ef)
	case meta.GrantTasks:
		f.links.GrantTasks(ef)
	case meta.FetchTasks:
		f.runs.FetchTasks(ef)
	case meta.BagChanged:
		f.bags.Add(ef.Bag)
		f.runs.JobChanged(ef.Bag)
	case meta.Launch:
		f.tries.Launch(ef)
	case meta.Foresee:
		f.site.foresight <- ef // has room for the one that may be under way
	case meta.Kill:
		f.tries.Kill(ef)
	case meta.AskCheckpoint:
		f.tries.Ask(ef)
	case meta.CopySaved:
		f.tries.CopySaved(ef.Attempt)
	case meta.FetchSaved:
		f.runs.FetchSaved(ef)
	case meta.Unstage:
		f.tries.Unstage(ef.Attempt)
	case meta.Extend:
		f.tries.Extend(ef)
	case meta.Adopt:
		f.tries.Adopt(ef)
	case meta.Clear:
		f.tries.Clear(ef.Attempt)
	case meta.Fetch:
		f.runs.Fetch(ef)
	case meta.Unfetch:
		f.runs.Unfetch(ef.Attempt)
	case meta.Changed:
		f.changes.Add(ef.Job)
		f.runs.JobChanged(ef.Job)
	case meta.Queue:
		f.runs.Queue(ef)
	case meta.Dequeue:
		f.runs.Dequeue(ef)
	case meta.Restored:
		f.runs.Restored()
	case meta.Unlisted:
		f.tellUnlisted(ef)
	case meta.GivenUp:
		f.log.Warn("jobs that a site did not end in time are given up there", "peer_id", string(ef.Site), "jobs", ef.Jobs, "remedy", "ask its operator; kith site revoke "+string(ef.Site)+" if it goes on")
		f.audit.Record(audit.Entry{Kind: "given-up", Peer: string(ef.Site), Text: fmt.Sprintf("%d jobs that it did not end in time", ef.Jobs)})
	case meta.StartsPaused:
		f.tellOfPause(ef)
	case meta.Outgrown:
		f.log.Warn("copies that were taken before the restart no longer fit this site; copies of other sites go back to them, jobs of this site look for another place",
			"copies", ef.Copies, "first", ef.First.String(), "own", ef.Own, "reason", ef.Reason.Sentence())
	case meta.LevelSkipped:
		f.log.Warn("no site of a level of the hierarchy is in reach: jobs go past it", "level", ef.Level, "first", ef.Job.String(), "remedy", "see kith sites")
	case meta.NotHeld:
		f.log.Error("the local scheduler proposed a copy that this site does not hold; nothing was started", "attempt_id", ef.Attempt.String())
	case meta.Refused:
		f.refused.note(f.log, time.Now(), ef)
		if !ef.Late {
			f.site.links.Refused(ef.Peer)
			f.audit.Refuse(audit.Entry{Kind: "refused-right", Rule: ef.Rule, Peer: string(ef.Peer), Text: ef.Kind})
		}
	case meta.TrustChanged:
		f.site.trustChanged(ef)
		f.site.bundleChanged(ef)
	case meta.BundleConfirmed:
		f.site.bundles.note(ef)
	case meta.InvitationChanged:
		if f.site.desk != nil {
			f.site.desk.invitationChanged(ef)
		}
	case meta.TokenRevoked:
		f.site.tokenRevoked(ef)
	case meta.Advertise:
		// Others compare the time with their clocks. The engine's goes on from where it was
		// when the wall's is set back.
		ef.Digest.Time = job.Instant(time.Now())
		ef.Digest.Head = f.site.headToTell()
		f.spread.gossip.Advertise(ef.Digest)
	}
}

// tellUnlisted tells the operator of a site that the configuration does not name and
// that has to do with what is here.
func (f *effects) tellUnlisted(u meta.Unlisted) {
	f.log.Warn("jobs wait for a site that is not among the peers",
		"remedy", "name it in [[peers]], or give it up: kith site forget "+string(u.Site), "peer_id", string(u.Site), "its_copies_here", u.Copies, "jobs_it_holds", u.Held, "jobs_waiting_there", u.Waiting)
}

// tellOfPause tells the operator that this site cannot start jobs, or can again.
func (f *effects) tellOfPause(p meta.StartsPaused) {
	if p.Until == 0 {
		f.log.Info("jobs can be started again")
		return
	}
	f.log.Warn("jobs cannot be started here and go back to their origins",
		"reason", p.Reason, "until", p.Until.Wall().Format(time.RFC3339))
}

// payload reads what the job of a grant runs.
func (f *effects) payload(g meta.Grant) ([]byte, error) {
	payload, err := f.backend.Payload(g.Attempt.Job)
	if err == nil {
		payload, err = f.site.files.Resumed(g.Attempt.Job, payload, g.Resume)
	}
	if errors.Is(err, store.ErrUnknown) { // purged meanwhile: the next claim is told so
		return nil, peer.ErrNoGrant
	}
	if err != nil {
		f.log.Error("grant not sent: what the job runs cannot be read from the store; tried again",
			"attempt_id", g.Attempt.String(), "job_id", g.Attempt.Job.String(), "host", g.To, "error", err.Error())
	}
	return payload, err
}

// bundle makes what the tasks of a bundle run.
func (f *effects) bundle(bundle job.AttemptID, tasks *job.TaskSet) ([]byte, error) {
	payload, err := f.site.files.BundlePayload(bundle, tasks)
	if errors.Is(err, store.ErrUnknown) { // purged meanwhile
		return nil, peer.ErrNoGrant
	}
	if err != nil {
		f.log.Error("bundle not sent: what its tasks run cannot be read from the store; tried again",
			"bundle_id", bundle.String(), "bag_id", bundle.Job.String(), "error", err.Error())
	}
	return payload, err
}

// attemptsOf says which attempts, and runs of tasks, the facts know of.
func attemptsOf(state *store.State) func(job.AttemptID) bool {
	copies := make(map[job.AttemptID]bool)
	for c := range state.Copies() {
		copies[c.ID] = true
	}
	return func(a job.AttemptID) bool {
		bundle, _ := state.TaskOfRun(a)
		return copies[a] || bundle != nil
	}
}

// handler turns what peers do into events.
type handler struct {
	*inbox
	streams *streams
	files   *runner.Files
	turns   *turns
	ahead   *aheadLines
	log     *slog.Logger
	met     func(job.SiteID) // called when a stream is up
}

// PeerUp implements peer.Handler.
func (h handler) PeerUp(site job.SiteID, generation uint32, incarnation uint64, knows peer.Knows) {
	h.streams.set(site, true)
	h.postIn(lane{peer: site}, meta.PeerUp{
		Site: site, Generation: generation, Incarnation: incarnation,
		NoTasks: !knows.Tasks,
		Lacks:   cluster.Lacks{NoCheckpoints: !knows.Checkpoints, NoEstimators: !knows.Estimates, NoSaves: !knows.Saves},
	}, h.turns.get(site))
	h.met(site)
}

// PeerDown implements peer.Handler.
func (h handler) PeerDown(site job.SiteID) {
	h.streams.set(site, false)
	h.postIn(lane{peer: site}, meta.PeerDown{Site: site}, h.turns.get(site))
	h.turns.forget(site)
}

// PeerMessages implements peer.Handler.
func (h handler) PeerMessages(site job.SiteID, messages []meta.Message) {
	t := h.turns.get(site)
	for _, m := range messages {
		if r, ok := m.(meta.Result); ok && r.Attempt.Job.Origin != site {
			var err error
			if m, err = h.files.CheckResult(site, r); err != nil {
				h.log.Error("result not taken: its job cannot be read from the store; the host repeats it",
					"attempt_id", r.Attempt.String(), "peer_id", string(site), "error", err.Error())
				continue
			}
		}
		if v, ok := m.(meta.Saved); ok && v.Attempt.Job.Origin != site {
			var err error
			if m, err = h.files.CheckSaved(site, v); err != nil {
				h.log.Error("checkpoint not taken: its job cannot be read from the store; the host repeats it",
					"attempt_id", v.Attempt.String(), "peer_id", string(site), "error", err.Error())
				continue
			}
		}
		if r, ok := m.(meta.TaskResults); ok && r.Bundle.Job.Origin != site {
			var err error
			if m, err = h.files.CheckTaskResults(site, r); err != nil {
				h.log.Error("results of tasks not taken: their bag cannot be read from the store; the host repeats them",
					"bundle_id", r.Bundle.String(), "peer_id", string(site), "error", err.Error())
				continue
			}
		}
		m, replaced := runner.CheckTimes(m, job.Instant(time.Now()))
		if replaced {
			h.ahead.impossible(site)
		}
		if v, ok := m.(meta.Verdict); ok && v.Reason == job.ClockAhead {
			h.ahead.denied(site)
		}
		h.postIn(lane{peer: site}, meta.Receive{From: site, Message: m}, t)
	}
}
