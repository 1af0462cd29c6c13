package peer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kith/cluster/wire"
	"kith/internal/job"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
)

// Errors of a bundle that a site sends.
var (
	// ErrBundle is returned for bytes that are not a bundle.
	ErrBundle = errors.New("not a bundle")
	// ErrForeignBundle is returned for the bundle of another site than the stream's.
	ErrForeignBundle = errors.New("the bundle of another site")
	// ErrUnprovenBundle is returned for a bundle that no CA has signed by which the site is known.
	ErrUnprovenBundle = errors.New("no CA by which the site is known has signed the bundle")
)

// siteBundle is the message with a bundle of this site.
func siteBundle(b *kithv1.SiteBundle) *kithv1.PeerMessage {
	return &kithv1.PeerMessage{Message: &kithv1.PeerMessage_SiteBundle{SiteBundle: b}}
}

// SendBundle tells a site by what this one is known and where it can be dialled, if
// anywhere. Without a stream it is dropped.
func (l *Links) SendBundle(to job.SiteID, bundle, signature []byte, addresses []string) {
	if s := l.session(to); s != nil {
		s.enqueue(siteBundle(&kithv1.SiteBundle{Bundle: bundle, Signature: signature, Addresses: &kithv1.SiteAddresses{Addresses: addresses}}))
	}
}

// takeBundle reads the bundle that a site sent. One that breaks a rule is refused, and what
// is known of the site stays as it is.
func (l *Links) takeBundle(s *session, now time.Time, p *kithv1.PeerMessage, b *bill) (meta.Message, error) {
	if broken := wire.Check(p); len(broken) > 0 {
		return nil, fmt.Errorf("%w: %w", ErrMessage, broken[0])
	}
	if !s.limits.allows(Bundles, now) {
		l.overRate(s, Bundles, b)
		return nil, nil
	}
	if l.cfg.ReadBundle == nil {
		return nil, fmt.Errorf("bundle: this site knows others by its configuration: %w", ErrMessage)
	}
	m, err := l.cfg.ReadBundle(s.site, p.GetSiteBundle())
	if err != nil {
		return nil, err
	}
	if a := p.GetSiteBundle().GetAddresses(); a != nil {
		for _, address := range a.GetAddresses() {
			if err := wire.CheckAddress(address); err != nil {
				return nil, fmt.Errorf("addresses: %.64q %w: %w", address, err, ErrMessage)
			}
		}
		// They are those of the daemon that said hello: an earlier one cannot come later.
		m.Told = &store.Told{Addresses: a.GetAddresses(), Incarnation: s.hello.GetIncarnation()}
	}
	return m, nil
}

// Recheck ends the stream to a site if what proved it proves it no more. The site may come
// back at once by another certificate.
func (l *Links) Recheck(site job.SiteID) {
	if s := l.session(site); s != nil && !l.proves(s) {
		s.cancel(ErrOutdated)
	}
}

// Connection returns the context of the connection that the stream to a site is on, false if
// none is up.
func (l *Links) Connection(site job.SiteID) (context.Context, bool) {
	if s := l.session(site); s != nil {
		return s.ctx, true
	}
	return nil, false
}

// ErrOutdated is the cause of closing a stream whose certificate its site has replaced.
var ErrOutdated = errors.New("the certificate of the stream is valid no more; the site comes back by its new one")
