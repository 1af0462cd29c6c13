package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/protobuf/types/known/timestamppb"

	"kith/internal/identity"
	"kith/internal/job"
	"kith/meta"
	"kith/meta/api"
	"kith/meta/peer"
	"kith/meta/trust"
	"kith/meta/trust/audit"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
)

// A site tells each other one by what it is known: on connecting, when that changes, and
// every few seconds until it is confirmed, as a site drops bundles that come too fast. What
// is confirmed is kept in memory only, as it is said again on each stream.

// bundles knows who has confirmed which bundle of this site. The zero bundles is ready.
type bundles struct {
	mu        sync.Mutex
	confirmed map[job.SiteID]uint64
	recorded  uint64 // the sequence of the latest bundle that is recorded
	// rotating is held while keys are changed, not while that is recorded.
	rotating sync.Mutex
	wakeOnce sync.Once
	wake     chan struct{}
}

// woken returns what is sent to when a site has confirmed a bundle.
func (b *bundles) woken() chan struct{} {
	b.wakeOnce.Do(func() { b.wake = make(chan struct{}, 1) })
	return b.wake
}

func (b *bundles) poke() {
	select {
	case b.woken() <- struct{}{}:
	default:
	}
}

// note takes up that a site knows this one by a bundle. A lie harms the liar only: it may
// not be able to connect any more.
func (b *bundles) note(c meta.BundleConfirmed) {
	b.mu.Lock()
	if b.confirmed == nil {
		b.confirmed = make(map[job.SiteID]uint64)
	}
	b.confirmed[c.Peer] = c.Sequence // of known sites only, so it is bounded
	b.mu.Unlock()
	b.poke()
}

// missing returns the sites that have not confirmed a bundle.
func (b *bundles) missing(sites []job.SiteID, sequence uint64) (missing []job.SiteID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range sites {
		if b.confirmed[s] < sequence {
			missing = append(missing, s)
		}
	}
	return missing
}

// readBundle implements peer.Config.ReadBundle: the bundle is of the stream's site, and a
// CA by which that is known has signed it, unless it is the one that is known.
func (d *Daemon) readBundle(from job.SiteID, m *kithv1.SiteBundle) (meta.SiteBundle, error) {
	b, err := trust.ParseBundle(m.GetBundle())
	if err != nil {
		return meta.SiteBundle{}, fmt.Errorf("%w: %w", peer.ErrBundle, err)
	}
	if b.Site != from {
		return meta.SiteBundle{}, fmt.Errorf("of %s: %w", b.Site, peer.ErrForeignBundle)
	}
	known, ok := d.identity.trusted.Get(from)
	if !ok || !bytes.Equal(known.Marshal(), m.GetBundle()) && !known.Signed(b, m.GetSignature()) {
		return meta.SiteBundle{}, fmt.Errorf("sequence %d: %w", b.Sequence, peer.ErrUnprovenBundle)
	}
	return meta.SiteBundle{Site: from, Bundle: bundleFact(b, store.KeyID{})}, nil
}

// bundleChanged ends the stream of a site that has a later bundle, if the certificate that
// proved it counts no more. The certificates of that bundle count already.
func (d *Daemon) bundleChanged(ch meta.TrustChanged) {
	if d.identity == nil || ch.Why != meta.TrustBundle {
		return
	}
	site := ch.Site.Site
	b, ok := d.identity.trusted.Get(site)
	if !ok {
		return
	}
	d.log.Info("site is known by a later bundle", "peer_id", string(site), "sequence", b.Sequence, "cas", len(b.CAs), "floor", b.Floor)
	d.audit.Record(audit.Entry{Kind: "bundle", Peer: string(site), Text: fmt.Sprintf("sequence %d, %d CAs", b.Sequence, len(b.CAs))})
	d.links.Recheck(site)
}

// proves reports whether what proved the connection of a stream proves it still.
func (d *Daemon) proves(ctx context.Context) bool {
	p, ok := grpcpeer.FromContext(ctx)
	if !ok {
		return false
	}
	c, ok := p.AuthInfo.(peerConnection)
	if !ok {
		return false
	}
	return d.provesChain(c.site, c.chain)
}

// provesChain reports whether a chain of certificates proves a site now.
func (d *Daemon) provesChain(site job.SiteID, chain [][]byte) bool {
	got, err := d.identity.trusted.Verify(chain, time.Now())
	return err == nil && got == site
}

// recheck ends streams and lanes whose certificates count no more: one that its site has
// voided, or that has ended since.
func (d *Daemon) recheck() {
	for _, site := range d.identity.trusted.Sites() {
		d.links.Recheck(site)
	}
	d.gossip.TrustChanged()
}

// tellBundle tells a site by what this one is known.
func (d *Daemon) tellBundle(site job.SiteID) {
	if d.identity == nil {
		return
	}
	b, sig := d.identity.keys.SignedBundle()
	d.links.SendBundle(site, b.Marshal(), sig, addressesFor(d.links.Addresses(site), d.advertisedAll()))
}

// unconfirmed returns the sites that have not confirmed the present bundle.
func (d *Daemon) unconfirmed() []job.SiteID {
	return d.bundles.missing(d.identity.trusted.Sites(), d.identity.keys.Bundle().Sequence)
}

// keepBundles repeats what is not confirmed, and ends a change of CA when all have
// confirmed it, or after [trust.OverlapLimit].
func (d *Daemon) keepBundles(ctx context.Context) {
	if err := d.recordBundle(ctx); errors.Is(err, store.ErrOldBundle) {
		d.log.Error("the folder keys is an older copy: other sites may refuse its certificate", "folder", d.cfg.KeysPath(), "error", err.Error(),
			"remedy", olderRemedy(d.identity.keys))
	}
	tick, repeat := time.NewTicker(keysEvery), time.NewTicker(bundleEvery)
	defer tick.Stop()
	defer repeat.Stop()
	for due := true; ; {
		if due {
			if err := d.finishCA(ctx, time.Now()); err != nil && ctx.Err() == nil {
				d.log.Error("the old CA is not dropped yet; tried again", "error", err.Error())
			}
			d.recordLate(ctx)
		}
		due = true
		select {
		case <-tick.C:
			d.recheck()
		case <-repeat.C:
			for _, site := range d.unconfirmed() {
				d.tellBundle(site)
			}
			due = false
		case <-d.bundles.woken():
		case <-ctx.Done():
			return
		}
	}
}

// finishCA ends a change of CA that is due.
func (d *Daemon) finishCA(ctx context.Context, now time.Time) error {
	done, missing, err := d.dropOldCA(now)
	if err != nil || done == nil {
		return err
	}
	if len(missing) > 0 {
		d.log.Warn("the old CA is dropped, and some sites have not heard of the new one: invite them again", "sites", fmt.Sprint(missing))
	}
	d.rotated(ctx, identity.Actor("kithd"), *done) //nolint:errcheck // the old CA is dropped, and the log says what failed
	return nil
}

// dropOldCA drops the old CA if a change is due. It returns what was done, nil if nothing,
// and the sites that have not confirmed the new one.
func (d *Daemon) dropOldCA(now time.Time) (*rotation, []job.SiteID, error) {
	d.bundles.rotating.Lock()
	defer d.bundles.rotating.Unlock()
	keys := d.identity.keys
	since, ok := keys.Rotating()
	if !ok {
		return nil, nil, nil
	}
	missing := d.unconfirmed()
	if len(missing) > 0 && now.Sub(since) < trust.OverlapLimit {
		return nil, nil, nil
	}
	if err := keys.FinishCA(now); err != nil {
		return nil, nil, err
	}
	return &rotation{"rotate-ca-end", keys.Bundle().Sequence}, missing, nil
}

// rotateKeys replaces the leaf and voids those of before (leafs), begins to replace the CA
// (ca), or both. It returns the sites that are to confirm the new bundle. An error is of
// what was not done; what was done is told to the others, and recorded later if not now.
func (d *Daemon) rotateKeys(ctx context.Context, leafs, ca bool, by identity.Actor) ([]job.SiteID, error) {
	if d.identity == nil {
		return nil, trust.ErrNoKeys
	}
	if d.options.lead != nil {
		return nil, api.ErrMembersKeys
	}
	done, err := d.changeKeys(leafs, ca)
	if len(done) == 0 {
		return nil, err
	}
	err = errors.Join(err, d.rotated(ctx, by, done...))
	d.bundles.poke()
	return d.unconfirmed(), err
}

// changeKeys changes the keys and returns what was done. The leaf comes first: a call that
// ended after it can be repeated, one that began a change of CA cannot.
func (d *Daemon) changeKeys(leafs, ca bool) (done []rotation, err error) {
	d.bundles.rotating.Lock()
	defer d.bundles.rotating.Unlock()
	now, keys := time.Now(), d.identity.keys
	if _, under := keys.Rotating(); ca && (under || keys.Offline()) {
		return nil, keys.BeginCA(now) // which says why not
	}
	// Others may have voided the leaf of an older copy.
	if leafs || keys.Outdated() {
		if err := keys.RotateLeaf(now); err != nil {
			return nil, err
		}
		done = append(done, rotation{"rotate-now", keys.Bundle().Sequence})
	}
	if ca {
		if err := keys.BeginCA(now); err != nil {
			return done, err
		}
		done = append(done, rotation{"rotate-ca", keys.Bundle().Sequence})
	}
	return done, nil
}

// Rotate implements api.Trust.
func (k *desk) Rotate(ctx context.Context, now, ca bool) (*kithv1.RotateKeysResponse, error) {
	missing, err := k.d.rotateKeys(ctx, now, ca, identity.From(ctx).Actor)
	if err != nil {
		return nil, err
	}
	keys := k.d.identity.keys
	r := &kithv1.RotateKeysResponse{
		BundleSequence: int64(keys.Bundle().Sequence), CertificateExpireTime: timestamppb.New(keys.Leaf().Leaf.NotAfter), //nolint:gosec // a bundle's sequence is at most 2^62
	}
	for _, s := range missing {
		r.UnconfirmedSiteIds = append(r.UnconfirmedSiteIds, string(s))
	}
	return r, nil
}

// reloadKeys takes up what the operator has made by another program: a leaf, and a bundle
// that voids those of before or has the next CA. The rest does not wait for the engine.
func (d *Daemon) reloadKeys() {
	keys := d.identity.keys
	before := keys.Bundle()
	switch err := keys.Reload(); {
	case errors.Is(err, trust.ErrOlder):
		d.log.Error("keys not reloaded; the site goes on with those it has: the folder keys is an older copy", "error", err.Error(), "remedy", olderRemedy(keys))
		return
	case err != nil:
		d.log.Warn("keys not reloaded; the site goes on with those it has", "error", err.Error())
		return
	}
	now := keys.Bundle()
	if now.Sequence <= before.Sequence {
		return
	}
	var kinds []string
	if len(now.CAs) > len(before.CAs) {
		kinds = append(kinds, "rotate-ca")
	}
	if len(kinds) == 0 || now.Floor.After(before.Floor) {
		kinds = append(kinds, "rotate-now")
	}
	var done []rotation
	for _, kind := range kinds {
		done = append(done, rotation{kind, now.Sequence})
	}
	d.wg.Go(func() {
		d.rotated(d.background, identity.Actor("kithd"), done...) //nolint:errcheck // the log says it
		d.bundles.poke()
	})
}

// rotation is a change of the keys: its kind in the audit log, and the sequence of the
// bundle after it.
type rotation struct {
	kind   string
	bundle uint64
}

// rotated tells the new bundle to all sites and records it. An error is that of the record,
// and is in the log; keepBundles tries that again.
func (d *Daemon) rotated(ctx context.Context, by identity.Actor, done ...rotation) error {
	until := d.identity.keys.Leaf().Leaf.NotAfter
	for _, r := range done {
		d.log.Info("keys rotated", "what", r.kind, "bundle", r.bundle, "until", until, "actor", by.String())
		d.audit.Record(audit.Entry{Kind: r.kind, User: by.String(), Text: fmt.Sprintf("bundle %d", r.bundle)})
	}
	for _, site := range d.identity.trusted.Sites() {
		d.tellBundle(site)
	}
	if err := d.recordBundle(ctx); err != nil {
		bundle := done[len(done)-1].bundle
		d.log.Error("the sequence of the bundle is not recorded", "bundle", bundle, "error", err.Error())
		return fmt.Errorf("bundle %d is in use and its sequence is not recorded, which is tried again: %w", bundle, err)
	}
	return nil
}

// recordBundle records the sequence of this site's bundle. The error wraps
// [store.ErrOldBundle] if a later one was recorded before.
func (d *Daemon) recordBundle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, keepWait)
	defer cancel()
	keys := d.identity.keys
	sequence := keys.Bundle().Sequence
	_, err := d.loop.Ask(ctx, func(token uint64) meta.Event { return meta.SetBundleSequence{Token: token, Sequence: sequence} })
	if errors.Is(err, store.ErrOldBundle) && keys.Bundle().Sequence > sequence {
		return nil // the keys were changed again meanwhile, and who did that was faster
	}
	if err != nil {
		return err
	}
	keys.StepOver(sequence)
	d.bundles.mu.Lock()
	defer d.bundles.mu.Unlock()
	d.bundles.recorded = max(d.bundles.recorded, sequence)
	return nil
}

// recordLate records a bundle whose record failed. An older copy of the keys is left alone.
func (d *Daemon) recordLate(ctx context.Context) {
	d.bundles.mu.Lock()
	late := d.bundles.recorded < d.identity.keys.Bundle().Sequence
	d.bundles.mu.Unlock()
	if !late || d.identity.keys.Outdated() {
		return
	}
	if err := d.recordBundle(ctx); err != nil && ctx.Err() == nil {
		d.log.Error("the sequence of the bundle is not recorded", "bundle", d.identity.keys.Bundle().Sequence, "error", err.Error())
	}
}
