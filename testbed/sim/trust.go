package sim

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/store"
)

// BundleOf makes the n-th bundle of a site, of one CA that no other has.
func BundleOf(site job.SiteID, n int) store.Bundle {
	b := store.Bundle{Data: fmt.Appendf(nil, "%s/%d", site, n), Sequence: 1}
	var key store.KeyID
	copy(key[:], b.Data)
	b.Keys = []store.KeyID{key}
	return b
}

// trustKey is a site, and another one in its trust table.
type trustKey struct{ at, of job.SiteID }

// trusted watches whom a site trusts and by what, as is durable: a bundle is never
// empty, it is of the site that it stands for, and later than the one before.
func (x *watch) trusted(s *Site, f meta.TrustChanged) {
	if !x.w.cfg.Check || x.liars[s.cfg.ID] || f.Why == meta.TrustRefused || f.Why == meta.TrustForgot {
		return
	}
	t, key := f.Site, trustKey{s.cfg.ID, f.Site.Site}
	old := x.trust[key]
	if t.State == store.SiteKnown {
		of, _, _ := bytes.Cut(t.Bundle.Data, []byte("/"))
		goesBack := old.State == store.SiteKnown && (t.Bundle.Sequence < old.Bundle.Sequence || t.Bundle.Sequence == old.Bundle.Sequence && !bytes.Equal(t.Bundle.Data, old.Bundle.Data))
		switch {
		case len(t.Bundle.Data) == 0 || len(t.Bundle.Keys) == 0 || t.Bundle.Sequence == 0:
			x.violate("trust: site %s knows %s by an empty bundle", s.cfg.ID, t.Site)
		case job.SiteID(of) != t.Site:
			x.violate("trust: site %s knows %s by a bundle of %q", s.cfg.ID, t.Site, of)
		case goesBack:
			x.violate("trust: site %s knows %s by bundle %d, and knew it by bundle %d", s.cfg.ID, t.Site, t.Bundle.Sequence, old.Bundle.Sequence)
		}
		delete(x.revoked, key)
	}
	x.trust[key] = t
	if t.State == store.SiteRevoked {
		x.revokes(s, &t)
	}
}

// revokes notes that a site has revoked another one, durably.
func (x *watch) revokes(s *Site, t *store.TrustedSite) {
	x.stopped(s, t.Site)
	x.tasks.revoked(s, t.Site)
	s.mixed = s.mixed || t.LetRun // a guest of that site stays to its end
	x.givesUp(trustKey{s.cfg.ID, t.Site})
}

// givesUp notes that a site gives up what it has granted to another one, which it has revoked.
func (x *watch) givesUp(key trustKey) {
	for a, holder := range x.grants {
		if a.Job.Origin == key.at && holder == key.of {
			x.givenUp[a] = true
		}
	}
}

// LetRun notes that an operator revokes a site, and lets what runs for that go on.
func (w *World) LetRun(at, of job.SiteID) { w.watch.letRun[trustKey{at, of}] = true }

// undecided reports whether it is not durable yet that a site revoked another one, whose jobs it lets run, or
// admitted it again. Until then it does not hear it.
func (x *watch) undecided(s, other *Site) bool {
	key := trustKey{s.cfg.ID, other.cfg.ID}
	t, durable := s.state.TrustedSite(other.cfg.ID), x.trust[key]
	return x.letRun[key] && t != nil && t.Since != durable.Since
}

// revokedStops is how long what runs for a revoked site may go on, where nothing is wrong
// with its host.
const revokedStops = 2 * time.Second

// stopped sees to it that what runs at a site for one that it has revoked is stopped.
func (x *watch) stopped(s *Site, origin job.SiteID) {
	life := s.life
	outlaw := func() bool {
		t := s.state
		return s.life == life && s.calm() && t.TrustedSite(origin) != nil && t.TrustedSite(origin).State == store.SiteRevoked && !t.TrustedSite(origin).LetRun
	}
	x.w.agenda.add(x.w.now.Add(revokedStops/2), housekeeping, 0, call(func() {
		if !outlaw() {
			return
		}
		x.w.agenda.add(x.w.now.Add(revokedStops/2), housekeeping, 0, call(func() {
			if !outlaw() {
				return
			}
			for c := range s.state.Copies() {
				if c.ID.Job.Origin == origin && c.Phase == store.CopyQueued {
					x.violate("trust: copy %v waits at %s, which revoked its origin %v ago", c.ID, s.cfg.ID, revokedStops)
					break
				}
			}
			for _, a := range slices.SortedFunc(maps.Keys(x.running), job.AttemptID.Compare) {
				// What runs of a data folder that is gone no daemon knows of.
				if p := x.running[a]; p.s == s && !p.orphan && a.Job.Origin == origin {
					x.violate("trust: %v still runs at %s, which revoked its origin %v ago", a, s.cfg.ID, revokedStops)
				}
			}
		}))
	}))
}

// restoredTrust takes whom a site trusts from its disk: a batch of which nobody was told
// may be there. What an operator was told is.
func (x *watch) restoredTrust(s *Site) {
	for _, other := range x.w.sites {
		key := trustKey{s.cfg.ID, other.cfg.ID}
		old, knew := x.trust[key]
		if !knew || x.liars[key.at] {
			continue
		}
		t := s.state.TrustedSite(key.of)
		switch {
		case t == nil:
			x.violate("S5: site %s knew %s, and has forgotten it in a restart", key.at, key.of)
			return
		case t.State == store.SiteRevoked:
			x.revokes(s, t)
		case x.revoked[key] && bytes.Equal(t.Bundle.Data, old.Bundle.Data):
			x.violate("S5: site %s has revoked %s, and trusts it after a restart", key.at, key.of)
			return
		default:
			delete(x.revoked, key)
		}
		x.trust[key] = *t
	}
}

// Revoked notes that an operator was told that a site is revoked. A daemon that was stopped may
// say so when the site is admitted again.
func (w *World) Revoked(at, of job.SiteID) {
	key := trustKey{at, of}
	w.watch.revoked[key] = w.watch.trust[key].State == store.SiteRevoked
}

// outlawed watches that nothing starts of a site that is durably revoked.
func (x *watch) outlawed(p *process) {
	if t := x.trust[trustKey{p.s.cfg.ID, p.attempt.Job.Origin}]; t.State == store.SiteRevoked && !x.liars[p.s.cfg.ID] {
		x.violate("trust: %v starts at %s, which has revoked its origin", p.attempt, p.s.cfg.ID)
	}
}

// forgetTrust forgets what a disk knew that is gone.
func (x *watch) forgetTrust(s *Site) {
	for key := range x.trust {
		if key.at == s.cfg.ID {
			delete(x.trust, key)
			delete(x.revoked, key)
		}
	}
}

// bars reports whether a site lets no stream to another one up: it has revoked it. What
// its memory says counts; a crash may take back only what no other site has seen.
func (s *Site) bars(other *Site) bool {
	if s.state == nil {
		return false
	}
	t := s.state.TrustedSite(other.cfg.ID)
	return t != nil && t.State == store.SiteRevoked
}

// trustChanged ends the stream to a site that is not trusted any more, or lets there be
// one again.
func (s *Site) trustChanged(f meta.TrustChanged) {
	s.w.watch.trusted(s, f)
	other := s.w.byID[f.Site.Site]
	if other == nil {
		return
	}
	p, _ := s.w.net.pair(s, other)
	if f.Site.State == store.SiteRevoked { // though it may be admitted again by now
		s.w.trace("%s: revokes %s", s.cfg.ID, other.cfg.ID)
		s.w.net.breakStream(p, [2]time.Duration{})
		return
	}
	s.w.net.reconnectLater(p)
}
