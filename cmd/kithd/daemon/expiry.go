package daemon

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"strings"
	"time"

	grpcpeer "google.golang.org/grpc/peer"

	"kith/internal/job"
	"kith/meta/api"
	"kith/meta/trust"
)

// tellExpiries logs which certificates have less than a third of their life left.
func tellExpiries(log *slog.Logger, keys *trust.Keys, now time.Time) {
	for _, e := range keys.Expiries(now) {
		if !e.Soon {
			continue
		}
		level, text := slog.LevelWarn, "certificate ends soon"
		if e.Left(now) <= 0 {
			level, text = slog.LevelError, "certificate has ended; other sites and users do not talk to this one"
		}
		log.Log(context.Background(), level, text, "certificate", e.What, "until", e.At, "left", e.Left(now).Round(time.Minute).String(), "remedy", remedyOf(e, keys, now))
	}
}

// remedyOf says what to do about a certificate that ends soon or has ended.
func remedyOf(e trust.Expiry, keys *trust.Keys, now time.Time) string {
	switch {
	case e.What == "ca" && e.Left(now) <= 0: // no stream is up that could bring another one
		return "kith site leave, make new keys with kithd init, and join the other sites anew"
	case keys.Offline() && e.What == "ca":
		return "kithd renew --ca-key FILE --next-ca-key FILE, then SIGHUP"
	case keys.Offline():
		return "kithd renew --ca-key FILE, then SIGHUP"
	case e.What == "ca":
		return "kith site rotate --ca"
	}
	return "the site renews it by itself at half of its life, which has failed: look for \"certificate not renewed\" in the log"
}

// olderRemedy says what to do about a folder of keys that is an older copy.
func olderRemedy(keys *trust.Keys) string {
	if keys.Offline() {
		return fmt.Sprintf("put the latest copy back; without one, kithd renew --ca-key FILE --void --above %d; then SIGHUP", keys.Latest())
	}
	return "put the latest copy back, then SIGHUP; without one, kith site rotate --now"
}

// expiry says by which CAs others know the site and when its certificates end, nil if it has none.
func (d *Daemon) expiry(now time.Time) *api.Expiry {
	if d.identity == nil {
		return nil
	}
	keys := d.identity.keys
	bundle := keys.Bundle()
	k := api.Expiry{Bundle: bundle.Sequence}
	for _, ca := range bundle.CAs {
		k.Fingerprints = append(k.Fingerprints, trust.Fingerprint(ca))
	}
	var troubles []string
	for _, e := range keys.Expiries(now) {
		name, at := "its certificate", &k.Leaf
		if e.What == "ca" {
			name, at = "its CA", &k.CA
		}
		*at = e.At
		if e.Soon {
			word := "ends"
			if e.Left(now) <= 0 {
				word = "ended"
			}
			troubles = append(troubles, fmt.Sprintf("%s %s on %s: %s", name, word, e.At.Local().Format("2006-01-02 15:04"), remedyOf(e, keys, now)))
		}
	}
	if keys.Older() {
		troubles = append(troubles, "its folder "+keys.Dir()+" is an older copy: "+olderRemedy(keys))
	}
	k.Trouble = strings.Join(troubles, "; ")
	return &k
}

// shown returns when the certificate ends that a site has shown on its stream, false if none is up.
func (d *Daemon) shown(site job.SiteID) (end time.Time, ok bool) {
	ctx, ok := d.links.Connection(site)
	if !ok {
		return time.Time{}, false
	}
	p, ok := grpcpeer.FromContext(ctx)
	if !ok {
		return time.Time{}, false
	}
	c, ok := p.AuthInfo.(peerConnection)
	if !ok || len(c.chain) == 0 {
		return time.Time{}, false
	}
	leaf, err := x509.ParseCertificate(c.chain[0])
	if err != nil {
		return time.Time{}, false
	}
	return leaf.NotAfter, true
}
