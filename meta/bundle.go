package meta

import (
	"errors"
	"slices"

	"kith/internal/job"
	"kith/store"
)

// Rules by which a bundle of a site is refused that may send one.
const (
	ruleOldBundle = "old-bundle" // an earlier one than is known, or another of the same sequence
	ruleBadBundle = "bad-bundle" // empty, or out of bounds
	ruleNotInUse  = "not-in-the-table"
	// Of addresses.
	ruleOldAddresses = "old-addresses" // of an earlier start than is known, or others of the same
	ruleBadAddresses = "bad-addresses" // out of bounds
)

// BundleConfirmed says that a site knows this one by its bundle of a sequence. It is not
// durable: a site confirms whenever it is told.
type BundleConfirmed struct {
	Peer     job.SiteID
	Sequence uint64
}

func (BundleConfirmed) effect()      {}
func (BundleConfirmed) Word() string { return "bundle-confirmed" }

// onSiteBundle has a site known by its later bundle. It is confirmed once that is durable,
// and again when it comes again.
func (e *Engine) onSiteBundle(now job.Time, from job.SiteID, m SiteBundle) {
	old := e.st.TrustedSite(from)
	if err := store.Record(e.st, store.TakeBundle{Site: from, Bundle: m.Bundle, Time: now}); err != nil {
		rule := ruleBadBundle
		switch {
		case errors.Is(err, store.ErrOldBundle):
			rule = ruleOldBundle
		case errors.Is(err, store.ErrUnknown):
			rule = ruleNotInUse
		}
		e.emit(Refused{Peer: from, Kind: m.Word(), Rule: rule})
		return
	}
	if t := e.st.TrustedSite(from); t != old {
		e.emit(TrustChanged{Site: *t, Why: TrustBundle})
	}
	if m.Told != nil {
		e.takeAddresses(from, *m.Told)
	}
	e.peers.send(from, BundleTaken{Sequence: m.Bundle.Sequence})
}

// takeAddresses records where a site says that it can be dialled. What is refused changes
// nothing: the site is dialled where it was.
func (e *Engine) takeAddresses(from job.SiteID, told store.Told) {
	old := e.st.TrustedSite(from)
	if err := store.Record(e.st, store.TakeAddresses{Site: from, Told: told}); err != nil {
		rule := ruleBadAddresses
		if errors.Is(err, store.ErrOldAddresses) {
			rule = ruleOldAddresses
		}
		e.emit(Refused{Peer: from, Kind: SiteBundle{}.Word(), Rule: rule})
		return
	}
	if t := e.st.TrustedSite(from); !slices.Equal(t.Dialled(), old.Dialled()) {
		e.emit(TrustChanged{Site: *t, Why: TrustTold})
	}
}

// setAddresses has a site dialled where the operator says.
func (e *Engine) setAddresses(ev SetAddresses) {
	err := store.Record(e.st, store.SetAddresses{Site: ev.Site, Addresses: ev.Addresses})
	if err == nil {
		e.emit(TrustChanged{Site: *e.st.TrustedSite(ev.Site), Why: TrustAddresses})
	}
	e.reply(ev.Token, job.ID{}, 0, err)
}
