package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"kith/cmd/kithd/config"
	"kith/internal/job"
	"kith/meta/trust"
	"kith/meta/trust/token"
)

// Known is another site that this one knows: what its certificates must come from and
// where it is reached, nowhere if it dials this site.
type Known struct {
	Bundle  trust.Bundle
	Address string // host:port
}

// siteIdentity is what a site with keys has beside one without; nil without.
type siteIdentity struct {
	keys     *trust.Keys
	trusted  *trust.Set
	endpoint *trust.Endpoint
	// revokedTokens are those among the facts.
	revokedTokens *token.List
	// changed wakes what makes gossip follow trusted.
	changed chan struct{}
}

// openIdentity opens the keys of a site. A site that is
// configured to serve without keys has no identity.
func (d *Daemon) openIdentity() error {
	if d.cfg.Listen.InsecureLoopback {
		return nil
	}
	if err := fitsKeys(&d.cfg); err != nil {
		return err
	}
	keys, err := d.openKeys()
	if errors.Is(err, trust.ErrNoKeys) {
		return fmt.Errorf("site %s has no keys in %s: make them with `kithd init --site %s --data %s`; "+
			"to try it out without, on loopback only, start kithd with --insecure-loopback",
			d.cfg.Site, d.cfg.KeysPath(), d.cfg.Site, d.cfg.Data)
	}
	if err != nil {
		return err
	}
	d.identity = &siteIdentity{keys: keys, trusted: new(trust.Set), revokedTokens: new(token.List), changed: make(chan struct{}, 1)}
	d.identity.endpoint = &trust.Endpoint{Keys: keys, Trusted: d.identity.trusted, Now: time.Now}
	if d.options.Tokens == nil {
		d.options.Tokens, err = token.NewVerifier(d.siteID(), d.identity.revokedTokens, &keys.TokenKey().PublicKey)
	}
	return err
}

// openKeys opens the keys of the site, unless the member that leads has.
func (d *Daemon) openKeys() (*trust.Keys, error) {
	if l := d.options.lead; l != nil {
		return l.keys, nil
	}
	return trust.Open(d.cfg.KeysPath(), d.siteID(), time.Now())
}

// fitsKeys says what of a configuration does not go with keys, nil if nothing.
func fitsKeys(c *config.Config) error {
	if len(c.Peers) > 0 {
		return errors.New("[[peers]] is for listen.insecure_loopback: with keys a site knows others by what proves their names; take it out")
	}
	return nil
}

// knows reports whether a site may connect by its certificate.
func (i *siteIdentity) knows(site job.SiteID) bool {
	_, ok := i.trusted.Get(site)
	return ok
}

// How often a site looks at its certificates, and how often it logs that one ends.
const (
	keysEvery   = time.Minute
	bundleEvery = 5 * time.Second // that is not confirmed is told again
	expiryEvery = 24 * time.Hour
)

// keepKeys renews the leaf at half of its life, and logs what ends soon.
func (d *Daemon) keepKeys(ctx context.Context) {
	tick := time.NewTicker(keysEvery)
	defer tick.Stop()
	d.wg.Go(func() { d.keepBundles(ctx) })
	var told, failed time.Time
	for {
		now := time.Now()
		renewed, err := d.identity.keys.Renew(now)
		switch {
		case renewed:
			d.log.Info("certificate renewed", "until", d.identity.keys.Leaf().Leaf.NotAfter)
		case err != nil && now.Sub(failed) > time.Hour:
			d.log.Error("certificate not renewed", "error", err.Error())
			failed = now
		}
		if h, ok := d.audit.Head(); ok && !bytes.Equal(h.Chain[0], d.identity.keys.Leaf().Certificate[0]) {
			d.audit.SignSoon() // others check heads by the present certificate
		}
		if now.Sub(told) > expiryEvery {
			tellExpiries(d.log, d.identity.keys, now)
			told = now
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
