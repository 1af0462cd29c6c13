package faults

import (
	"math/rand/v2"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/store"
	"kith/testbed/sim"
)

// Who trusts whom, in schedules where that is at stake: the sites know each other by
// bundles from the beginning, an operator revokes a site and admits it again, and an
// enemy tells bundles that are none. Sites do not rotate their own.

// trusts reports whether the sites of a schedule know each other by bundles.
func (s *Schedule) trusts() bool {
	for i := range s.Faults {
		if k := s.Faults[i].Kind; k == Revoke || k == Hostile {
			return true
		}
	}
	return false
}

// admitAll has a site trust all that it does not know, and those that it has revoked if
// again is set.
func (x *run) admitAll(at job.SiteID, again bool) {
	site := x.w.Site(at)
	if !x.s.trusts() {
		return
	}
	for i := range x.s.Sites {
		other := x.s.Sites[i].Name
		if !site.Up() { // it was killed while it was told
			return
		}
		t := site.State().TrustedSite(other)
		if other != at && (t == nil || again && t.State == store.SiteRevoked) {
			x.admit(at, other)
		}
	}
}

// admitAgain has all sites trust all, after a while and so many times: a site of several members may
// have been about to elect another leader, and its operator got no answer.
func (x *run) admitAgain(times int) {
	if x.s.membersRound() == 0 || times == 0 {
		return
	}
	x.at(x.since()+forgetAgain, func() {
		for i := range x.s.Sites {
			if at := x.s.Sites[i].Name; !x.w.Site(at).Gone() {
				x.admitAll(at, true)
			}
		}
		x.admitAgain(times - 1)
	})
}

// admit has an operator trust a site, by a CA that was not known before.
func (x *run) admit(at, other job.SiteID) {
	x.admitted++
	x.w.Ask(at, func(token uint64) meta.Event {
		return meta.AdmitSite{Token: token, Site: other, Bundle: sim.BundleOf(other, x.admitted), Actor: "ada"}
	}, func(meta.Reply) {})
}

// revoke has an operator end the trust in a site, for a while.
func (x *run) revoke(f *Fault) bool {
	site := x.w.Site(f.Site)
	if !site.Up() || x.w.Site(f.Other).Gone() {
		return false
	}
	letRun := x.rng.IntN(4) == 0
	x.outlaws[[2]job.SiteID{f.Site, f.Other}] = true
	if letRun {
		x.w.LetRun(f.Site, f.Other)
	}
	x.w.Ask(f.Site, func(token uint64) meta.Event {
		return meta.RevokeSite{Token: token, Site: f.Other, LetRun: letRun, Actor: "ada"}
	}, func(r meta.Reply) {
		if r.Err == nil {
			x.w.Revoked(f.Site, f.Other)
		}
	})
	x.in(f.For, func() { x.readmit(f.Site, f.Other) })
	return true
}

// readmit has an operator trust a site again, as soon as its own daemon runs.
func (x *run) readmit(at, other job.SiteID) {
	site := x.w.Site(at)
	switch {
	case site.Gone() || x.over:
	case !site.Up() || site.Frozen():
		x.in(time.Second, func() { x.readmit(at, other) })
	default:
		if t := site.State().TrustedSite(other); t != nil && t.State == store.SiteRevoked {
			x.admit(at, other)
		}
	}
}

// What is out of bounds in a bundle. Nobody keeps it.
var (
	endless = make([]byte, store.MaxBundle+1)
	tooMany = make([]store.KeyID, store.MaxBundleKeys+1)
)

// anyBundle makes up a bundle of a liar: a later one, an earlier one, one of another site,
// one that is empty or out of bounds.
func (x *run) anyBundle(liar, to job.SiteID) meta.Message {
	m := meta.SiteBundle{Site: []job.SiteID{liar, liar, liar, to, "nowhere", ""}[x.rng.IntN(6)]}
	if x.rng.IntN(4) == 0 {
		m.Site = x.s.Sites[x.rng.IntN(len(x.s.Sites))].Name
	}
	m.Bundle = sim.BundleOf(liar, 1_000_000+x.rng.IntN(1000)) // no CA that an operator admits
	switch x.rng.IntN(8) {
	case 0:
		m.Bundle.Data = nil
	case 1:
		m.Bundle.Keys = nil
	case 2:
		m.Bundle = store.Bundle{}
	case 3:
		m.Bundle.Data = endless
	case 4:
		m.Bundle.Keys = tooMany
	}
	m.Bundle.Sequence, m.Bundle.Floor = uint64(x.rng.IntN(4*max(1, x.strokes))), job.Time(x.rng.IntN(3))
	if x.rng.IntN(50) == 0 {
		m.Bundle.Sequence = x.anyNumber() // there is nothing later than that
	}
	return m
}

// themeRevoke is an operator who ends the trust in a site, in an enemy if there is one,
// while jobs of both run and wait there.
func (d *draw) themeRevoke() {
	bad := d.site()
	for i := range d.s.Faults {
		if f := &d.s.Faults[i]; f.Kind == Hostile && d.one(2) {
			bad = f.Site
		}
	}
	by := d.other(bad)
	at := d.span(d.s.End / 2)
	for _, from := range []job.SiteID{bad, by} {
		d.burst(max(0, at-d.span(20*time.Second)), from, 5+d.IntN(20))
		x := &d.s.Streams[len(d.s.Streams)-1]
		x.Copies, x.Run, x.Walltime = int32(len(d.s.Sites)), 4*x.Run, 4*x.Walltime
		if x.OnSiteLost = job.OnSiteLost(d.IntN(3)); d.one(2) {
			x.OnSiteLost = job.Rerun
		}
	}
	d.revocation(by, bad, at)
	if d.one(3) {
		d.revocation(bad, by, at+d.span(10*time.Second))
	}
	if d.one(3) {
		d.revocation(d.other(bad), bad, d.span(d.s.End/2))
	}
	if d.one(3) { // before, while or after it is on disk
		d.add(Fault{Kind: Crash, Site: by, At: at + d.span(50*time.Millisecond), For: time.Second + d.upTo(10*time.Second)})
	}
}

func (d *draw) revocation(by, other job.SiteID, at time.Duration) {
	d.add(Fault{Kind: Revoke, Site: by, Other: other, At: at, For: time.Second + d.upTo(d.s.End/2)})
}

// WideAttacked makes a wide schedule of a seed with an enemy among the sites, which
// operators revoke in half of them.
func WideAttacked(seed uint64, size Size) *Schedule {
	s := wide(seed, size, []func(*draw){(*draw).themeHostile})
	d := &draw{Rand: rand.New(rand.NewPCG(seed, 0x656e656d79)), s: s}
	if d.one(2) {
		d.themeRevoke()
	}
	s.someBags()
	return s
}

// Attacked makes a schedule of a seed as [Random] does, with an enemy among the sites for
// a while, or two, and operators who revoke sites.
func Attacked(seed uint64, size Size) *Schedule {
	s := Random(seed, size)
	d := &draw{Rand: rand.New(rand.NewPCG(seed, 0x656e656d69)), s: s}
	bad := d.site()
	d.siege(bad)
	if len(s.Sites) > 2 && d.one(3) {
		d.siege(d.other(bad))
	}
	for range d.IntN(4) {
		by, at := d.site(), d.span(s.End)
		if d.one(2) { // while a job of its own runs somewhere
			j := &s.Jobs[d.IntN(len(s.Jobs))]
			by, at = j.From, j.At+d.span(j.Run)
		}
		other := d.other(by)
		if by != bad && d.one(3) {
			other = bad
		}
		d.revocation(by, other, at)
	}
	s.someBags()
	return s
}

// siege makes a site an enemy for a while.
func (d *draw) siege(site job.SiteID) {
	d.add(Fault{Kind: Hostile, Site: site, At: d.span(d.s.End), For: 5*time.Second + d.upTo(2*time.Minute), By: 200*time.Millisecond + d.upTo(5*time.Second)})
}
