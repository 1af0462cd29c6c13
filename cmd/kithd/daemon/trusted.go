package daemon

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"kith/cmd/kithd/config"
	"kith/internal/identity"
	"kith/internal/job"
	"kith/meta"
	"kith/meta/trust"
	"kith/meta/trust/audit"
	"kith/meta/trust/token"
	"kith/store"
)

// The trust table is facts. What this file keeps beside it, whose certificates count and
// which sites are dialled, is made of the facts at the start and follows them.

// asKnown is the actor of the sites of [Options].Known.
const asKnown identity.Actor = "kithd"

// restoreTrust makes the sites that the facts know those whose certificates count. It is
// called before anything listens.
func (d *Daemon) restoreTrust() error {
	i := d.identity
	if i == nil {
		return nil
	}
	i.keys.StepOver(d.state.Site().BundleSequence)
	d.cfg.Peers = nil
	for _, t := range d.state.TrustedSites() {
		if t.State != store.SiteKnown {
			continue
		}
		if err := i.take(t); err != nil {
			return fmt.Errorf("trust table: site %s: %w; revoke it and invite it again", t.Site, err)
		}
		d.cfg.Peers = append(d.cfg.Peers, config.Peer{Site: string(t.Site)})
	}
	for _, t := range d.state.Tokens() {
		if t.Revoked == 0 {
			continue
		}
		if err := i.revokedTokens.Revoke(token.Revocation{ID: t.ID, Expires: t.Expires.Wall()}, time.Now()); err != nil {
			return fmt.Errorf("revoked tokens: %w", err)
		}
	}
	d.running.Peers = d.cfg.Peers
	d.peers.Store(&d.cfg.Peers)
	return nil
}

// take makes the certificates of a site count.
func (i *siteIdentity) take(t *store.TrustedSite) error {
	b, err := trust.ParseBundle(t.Bundle.Data)
	if err != nil {
		return err
	}
	if b.Site != t.Site {
		return fmt.Errorf("its bundle is that of %s: %w", b.Site, trust.ErrBundle)
	}
	return i.trusted.Put(b)
}

// bundleFact returns a bundle as it is kept. first is the key to be listed first, that
// of the CA that a connection has proved; zero for any.
func bundleFact(b trust.Bundle, first store.KeyID) store.Bundle {
	f := store.Bundle{Data: b.Marshal(), Sequence: b.Sequence}
	if !b.Floor.IsZero() {
		f.Floor = job.Instant(b.Floor)
	}
	for _, ca := range b.CAs {
		f.Keys = append(f.Keys, trust.KeyOf(ca))
	}
	if at := slices.Index(f.Keys, first); at > 0 {
		f.Keys[0], f.Keys[at] = f.Keys[at], f.Keys[0]
	}
	return f
}

// unknownYet returns the sites of [Options].Known that the table does not have.
func (d *Daemon) unknownYet() (events []meta.AdmitSite) {
	if d.identity == nil {
		return nil
	}
	for _, k := range d.options.Known() {
		if k.Bundle.Site == d.siteID() || d.state.TrustedSite(k.Bundle.Site) != nil {
			continue
		}
		ev := meta.AdmitSite{Site: k.Bundle.Site, Bundle: bundleFact(k.Bundle, store.KeyID{}), Actor: asKnown}
		if k.Address != "" {
			ev.Addresses = []string{k.Address}
		}
		events = append(events, ev)
	}
	return events
}

// admitKnown has the engine admit sites. They are trusted when it returns.
func (d *Daemon) admitKnown(events []meta.AdmitSite) error {
	for _, ev := range events {
		ctx, cancel := context.WithTimeout(d.background, keepWait)
		_, err := d.loop.Ask(ctx, func(token uint64) meta.Event {
			ev.Token = token
			return ev
		})
		cancel()
		if err != nil {
			return fmt.Errorf("admit site %s: %w", ev.Site, err)
		}
	}
	return nil
}

// trustChanged makes keys, streams and gossip agree with what the facts say of a site. It
// is called by the dispatcher alone, and waits for nothing.
func (d *Daemon) trustChanged(ch meta.TrustChanged) {
	if d.identity == nil {
		if ch.Site.State == store.SiteRevoked {
			d.links.Leave(ch.Site.Site)
		}
		return
	}
	site := ch.Site.Site
	known := ch.Site.State == store.SiteKnown
	if ch.Why == meta.TrustAdmitted {
		d.audit.Admitted(site)
	}
	if known {
		if err := d.identity.take(&ch.Site); err != nil {
			d.log.Error("site is in the trust table and cannot be trusted", "peer_id", string(site), "error", err.Error())
			known = false
		}
	}
	peers := slices.DeleteFunc(slices.Clone(*d.peers.Load()), func(p config.Peer) bool { return p.Site == string(site) })
	if known {
		peers = append(peers, config.Peer{Site: string(site)})
		slices.SortFunc(peers, func(a, b config.Peer) int { return strings.Compare(a.Site, b.Site) })
	}
	d.peers.Store(&peers)
	if !known {
		d.identity.trusted.Remove(site)
		d.links.Leave(site)
		d.links.Forget(site) // admitted again it may have another data folder
	} else {
		d.links.Dial(site, ch.Site.Dialled()...)
	}
	if ch.Why != meta.TrustRestored {
		d.log.Info("trust changed", "peer_id", string(site), "why", string(ch.Why), "state", ch.Site.State.String())
	}
	if ch.Why == meta.TrustTold {
		told := strings.Join(ch.Site.Told.Addresses, " ")
		d.log.Info("site says where it can be dialled", "peer_id", string(site), "addresses", told)
		d.audit.Record(audit.Entry{Kind: "told-address", Peer: string(site), Text: cmp.Or(told, "none: it dials out only")})
	}
	select {
	case d.identity.changed <- struct{}{}:
	default:
	}
}

// keepGossipTrusted has gossip follow the trust table.
func (d *Daemon) keepGossipTrusted(ctx context.Context) {
	for {
		select {
		case <-d.identity.changed:
			d.gossip.TrustChanged()
		case <-ctx.Done():
			return
		}
	}
}

// tokenRevoked makes a token count no more.
func (d *Daemon) tokenRevoked(t meta.TokenRevoked) {
	if d.identity == nil {
		return
	}
	if err := d.identity.revokedTokens.Revoke(token.Revocation{ID: t.ID, Expires: t.Expires.Wall()}, time.Now()); err != nil {
		d.log.Error("token not revoked", "token", t.ID, "error", err.Error())
	}
}
