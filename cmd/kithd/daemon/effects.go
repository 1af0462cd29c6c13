package daemon

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/api"
	"kith/meta/peer"
	"kith/sitesched/runner"
	"kith/store"
)

// effects carries out what the engine decided. carry is called by the dispatcher,
// in order, and must not wait for the loop. The loop itself calls it for what
// need not wait for the disk: renewals of leases.
type effects struct {
	links   *peer.Links
	runs    *runner.Runner
	backend store.Backend
	log     *slog.Logger
	changes *api.Changes
	streams *streams
	spread  func(meta.Advertise) // nil without gossip
}

func (f *effects) carry(ef meta.Effect) {
	switch ef := ef.(type) {
	case meta.Send:
		f.links.Send(ef.To, ef.Message)
	case meta.Grant:
		f.links.Grant(ef)
	case meta.Launch:
		f.runs.Launch(ef)
	case meta.Kill:
		f.runs.Kill(ef)
	case meta.Unstage:
		f.runs.Unstage(ef.Attempt)
	case meta.Extend:
		f.runs.Extend(ef)
	case meta.Adopt:
		f.runs.Adopt(ef)
	case meta.Clear:
		f.runs.Clear(ef.Attempt)
	case meta.Fetch:
		f.runs.Fetch(ef)
	case meta.Unfetch:
		f.runs.Unfetch(ef.Attempt)
	case meta.Changed:
		f.changes.Add(ef.Job)
		f.runs.FilesChanged()
	case meta.Queue:
		f.runs.Queue(ef)
	case meta.Dequeue:
		f.runs.Dequeue(ef)
	case meta.Restored:
		f.runs.Restored()
	case meta.Unlisted:
		f.tellUnlisted(ef)
	case meta.StartsPaused:
		f.tellOfPause(ef)
	case meta.Outgrown:
		f.log.Warn("copies that were taken before the restart no longer fit this site; copies of other sites go back to them, jobs of this site look for another place",
			"copies", ef.Copies, "first", ef.First, "own", ef.Own, "reason", ef.Reason.Sentence())
	case meta.Advertise:
		if f.spread != nil {
			f.spread(ef)
		}
	}
}

// tellUnlisted tells the operator of a site that the configuration does not name and
// that has to do with what is here. With gossip none need be named.
func (f *effects) tellUnlisted(u meta.Unlisted) {
	if f.spread != nil {
		return
	}
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
	if errors.Is(err, store.ErrUnknown) { // purged meanwhile: the next claim is told so
		return nil, peer.ErrNoGrant
	}
	if err != nil {
		f.log.Error("grant not sent: what the job runs cannot be read from the store; tried again",
			"attempt_id", g.Attempt.String(), "job_id", g.Attempt.Job.String(), "host", g.To, "error", err.Error())
	}
	return payload, err
}

// streams knows to which sites a stream is up.
type streams struct {
	mu sync.Mutex
	up map[job.SiteID]bool
}

func (s *streams) set(site job.SiteID, up bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if up {
		s.up[site] = true
	} else {
		delete(s.up, site)
	}
}

func (s *streams) away(site job.SiteID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.up[site]
}

// handler turns what peers do into events.
type handler struct {
	*inbox
	streams *streams
	files   *runner.Files
	turns   *turns
	ahead   *aheadLines
	log     *slog.Logger
}

// PeerUp implements peer.Handler.
func (h handler) PeerUp(site job.SiteID, generation uint32, incarnation uint64) {
	h.streams.set(site, true)
	h.post(meta.PeerUp{Site: site, Generation: generation, Incarnation: incarnation})
}

// PeerDown implements peer.Handler.
func (h handler) PeerDown(site job.SiteID) {
	h.streams.set(site, false)
	h.turns.forget(site)
	h.post(meta.PeerDown{Site: site})
}

// PeerMessages implements peer.Handler.
func (h handler) PeerMessages(site job.SiteID, messages []meta.Message) {
	t := h.turns.get(site)
	for _, m := range messages {
		if r, ok := m.(meta.Result); ok && r.Attempt.Job.Origin != site {
			var err error
			if m, err = h.files.CheckResult(r); err != nil {
				h.log.Error("result not taken: its job cannot be read from the store; the host repeats it",
					"attempt_id", r.Attempt.String(), "peer_id", string(site), "error", err.Error())
				continue
			}
		}
		if v, ok := m.(meta.Verdict); ok && v.Reason == job.ClockAhead {
			h.ahead.denied(site)
		}
		h.postIn(meta.Receive{From: site, Message: m}, t)
	}
}
