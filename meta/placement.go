package meta

import (
	"cmp"
	"slices"
	"time"

	"kith/internal/job"
	"kith/meta/place"
	"kith/store"
)

// The origin's side of a placement: what package place is told, and what is
// kept of its decisions. Asking sites for starts is in ask.go.

// decide decides on a pending job.
func (or *origin) decide(now job.Time, o *openJob, answers []place.Answer) *store.Decision {
	or.beginRound(now, o, nil)
	return or.decideRound(now, o, answers)
}

// beginRound lists and filters the sites for a job. tried are those that get no
// copy.
func (or *origin) beginRound(now job.Time, o *openJob, tried []job.SiteID) {
	tried = o.unwilling(now, o.lost.avoided(now, tried))
	if o.rec.Level == 0 {
		or.beginRoundFor(now, o.rec.ID, &o.rec.Request, nil, tried)
		return
	}
	r, before := o.rec.Asked(), o.rec.Before()
	if or.cfg.pushes() {
		r.Copies = int32(or.cfg.CopiesOf(&r)) //nolint:gosec // It is 1.
	}
	or.beginRoundFor(now, o.rec.ID, &r, &before, tried)
}

// beginRoundFor is beginRound for a job or a bag. before is what a job of a hierarchy did before, nil for a bag.
func (or *origin) beginRoundFor(now job.Time, id job.ID, r *job.Request, before *job.Progress, tried []job.SiteID) {
	v := place.View{Own: or.host.describe(now), Refusal: or.site.Refuse(r), Peers: or.peers.view.PeersAt(now), Promises: &or.promises}
	switch {
	case v.Refusal != job.NoReason:
	case v.Own.Draining:
		v.Refusal = job.Draining
	case r.Directory != "" && (or.cfg.AllowDirectory == nil || !or.cfg.AllowDirectory(r.Directory)):
		v.Refusal = job.Directory
	case v.Own.Owner.TooBusy(r.Processors, v.Own.Processors):
		v.Refusal = job.BusyOwner
	case r.Level > 0 && before == nil: // a bag: what else its level says is for all of it
		if or.host.ownLevel() != r.Level {
			v.Refusal = job.Level
		}
	case r.Level > 0:
		v.Refusal, _ = or.host.levelRefusal(now, r, before)
	}
	or.round.Begin(place.Job{Request: r, Tried: tried, Seed: seedOf(id)}, v, now, &or.policy)
}

// decideRound decides on the job of [origin.beginRound]. answers are what sites
// said about the start, if they were asked; nil if not.
func (or *origin) decideRound(now job.Time, o *openJob, answers []place.Answer) *store.Decision {
	or.round.View.Answers = answers
	d := or.round.Decide()
	for i := range d.Sites {
		if v := &d.Sites[i]; v.Reason == job.HasCopy {
			v.Reason = cmp.Or(o.lost.avoids(now, v.Site), v.Reason)
		}
	}
	or.notePromises(now, o)
	return d
}

// nextSite returns the best site that an open attempt has no copy at, that has not
// refused it, and that no withdrawal of it is on its way to, or "".
func (or *origin) nextSite(now job.Time, o *openJob) job.SiteID {
	tried := slices.Clone(o.rec.Sites)
	for i := range o.refused {
		if r := &o.refused[i]; now < r.keeps {
			tried = append(tried, r.site)
		}
	}
	key := outKey{withdrawal, o.rec.AttemptID()}
	for _, l := range or.peers.linked {
		if len(l.waiting) > 0 && l.waits(key) {
			tried = append(tried, l.site)
		}
	}
	or.beginRound(now, o, tried)
	return or.round.Next()
}

// chosen returns the sites that get a copy, in rank order. That the origin
// goes first when several could start the job at once (spec 001 section 2.5)
// is not in this order: copies leave behind the origin's own pass.
func chosen(d *store.Decision) []job.SiteID {
	n := 0
	for n < len(d.Sites) && d.Sites[n].Chosen {
		n++
	}
	if n == 0 {
		return nil
	}
	sites := make([]job.SiteID, n)
	for i := range sites {
		sites[i] = d.Sites[i].Site
	}
	return sites
}

// promise is what a site promised of a job: its completion after so long.
type promise struct {
	site job.SiteID
	in   time.Duration
}

// promises are what the sites of an attempt promised at decided.
type promises struct {
	decided job.Time
	of      []promise
}

// notePromises keeps what the chosen sites promised, for [origin.learn].
func (or *origin) notePromises(now job.Time, o *openJob) {
	if !or.cfg.Placement.Adaptive {
		return
	}
	o.promises = &promises{decided: now}
	for i := range or.round.Sites {
		if c := &or.round.Sites[i]; c.Chosen && c.Promised > 0 {
			o.promises.of = append(o.promises.of, promise{site: c.Site, in: c.Promised})
		}
	}
}

// learn compares when a job was completed with what its holder had promised.
// Jobs that were stopped or lost say nothing.
func (or *origin) learn(now job.Time, o *openJob, kind job.OutcomeKind) {
	if o.promises == nil {
		return
	}
	i := slices.IndexFunc(o.promises.of, func(p promise) bool { return p.site == o.rec.Holder })
	if i < 0 || kind == job.Cancel || kind == job.Loss || kind == job.Demoted {
		return
	}
	or.promises.Learn(o.rec.Holder, o.promises.of[i].in, now.Sub(o.promises.decided))
}
