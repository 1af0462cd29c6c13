package daemon

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"kith/cluster"
	"kith/cluster/gossip"
	"kith/internal/job"
	"kith/meta/trust"
	"kith/meta/trust/audit"
)

// tlsLanes opens lanes of gossip as connections of their own on the port of the other
// site, which must prove its name.
type tlsLanes struct {
	endpoint *trust.Endpoint
	// addresses returns where a site is dialled, in the order to try.
	addresses func(job.SiteID) []string
}

// Dial implements gossip.Lanes.
func (l tlsLanes) Dial(ctx context.Context, site job.SiteID) (c gossip.Conn, err error) {
	err = fmt.Errorf("%s: no address of the site is known; it has to dial this one", site)
	addresses := l.addresses(site)
	for _, address := range addresses {
		if c, err = l.dial(ctx, site, address, max(time.Second, 2*tlsWait/time.Duration(len(addresses)))); err == nil || ctx.Err() != nil {
			break
		}
	}
	return c, err
}

func (l tlsLanes) dial(ctx context.Context, site job.SiteID, address string, wait time.Duration) (gossip.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	raw, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("open a lane to %s at %s: %w", site, address, err)
	}
	c := tls.Client(raw, l.endpoint.ClientTLS(site, trust.ALPNGossip))
	if err := c.HandshakeContext(ctx); err != nil {
		raw.Close() //nolint:errcheck // the handshake failed
		return nil, fmt.Errorf("open a lane to %s at %s: %w", site, address, err)
	}
	return c, nil
}

// provesLane reports whether the certificate that a lane was opened by counts still.
func (d *Daemon) provesLane(site job.SiteID, c gossip.Conn) bool {
	conn, ok := c.(*tls.Conn)
	return ok && d.provesChain(site, chainOf(conn.ConnectionState()))
}

// acceptLane takes a lane that another site has opened.
func (d *Daemon) acceptLane(c *tls.Conn) {
	site, err := trust.PeerSite(c.ConnectionState())
	if err != nil {
		c.Close() //nolint:errcheck // its certificate was verified, so this cannot be
		return
	}
	d.gossip.Accept(site, c)
}

// proofs checks the signatures of digests that gossip brings.
type proofs struct{ trusted *trust.Set }

// CheckKey implements gossip.Verifier.
func (p proofs) CheckKey(site job.SiteID, chain [][]byte) error {
	got, err := p.trusted.Verify(chain, time.Now())
	return ofSite(site, got, err)
}

// Verify implements gossip.Verifier.
func (p proofs) Verify(site job.SiteID, chain [][]byte, msg, signature []byte) error {
	got, err := p.trusted.VerifyMessage(msg, signature, chain, time.Now())
	return ofSite(site, got, err)
}

// VerifyHead implements gossip.Verifier.
func (p proofs) VerifyHead(site job.SiteID, sent *cluster.AuditHead) error {
	h := audit.Received(site, sent)
	return p.Verify(site, h.Chain, h.Message(), h.Signature)
}

func ofSite(want, got job.SiteID, err error) error {
	if err == nil && got != want {
		return fmt.Errorf("signed by site %s: %w", got, trust.ErrOtherSite)
	}
	return err
}
