package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"kith/cmd/kithd/config"
	"kith/internal/job"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/testbed/local"
)

// claims lets two hosts that do nothing but the protocol hold copies of all
// jobs of a site, and claim them as fast as the answers come, each one half.
// Every grant is on the origin's disk before it is answered.
func (b *bench) claims(ctx context.Context) error {
	f, stop, err := b.federation(ctx, []local.Site{
		{Name: "origin", Tune: func(c *config.Config) { withRoomFor(c, b.opt.Claims) }},
		{Name: "hosta"}, {Name: "hostb"},
	})
	if err != nil {
		return err
	}
	defer stop() //nolint:errcheck // what was measured counts
	n := f.Nodes()[0]
	// A drained site keeps no copies: all go to the two hosts.
	if _, err := n.Sites.DrainSite(ctx, &kithv1.DrainSiteRequest{Reason: "bench"}); err != nil {
		return err
	}
	rate, err := b.claimed(ctx, n, f.Nodes()[1:])
	if err != nil {
		return err
	}
	b.addTarget(fmt.Sprintf("claims granted durably by one origin, %d in flight", b.opt.InFlight), rate, "claims/s", 10_000, false)
	return nil
}

// claimed has programs take the place of hosts and claim all jobs of an origin, and returns how many it grants
// in a second.
func (b *bench) claimed(ctx context.Context, n *local.Node, places []*local.Node) (rate float64, err error) {
	var hosts []*claimant
	for _, h := range places {
		h.Stop()
		c, err := newClaimant(h, n)
		if err != nil {
			return 0, err
		}
		defer c.links.Close()
		hosts = append(hosts, c)
	}
	if err := known(ctx, n, len(hosts)); err != nil {
		return 0, err
	}
	if err := fill(ctx, n, b.opt.Claims, 2); err != nil {
		return 0, err
	}
	for _, h := range hosts {
		if err := h.awaitCopies(ctx, b.opt.Claims); err != nil {
			return 0, err
		}
	}
	began := time.Now()
	errs := make([]error, len(hosts))
	var wg sync.WaitGroup
	for i, h := range hosts {
		wg.Go(func() { errs[i] = h.claimAll(ctx, i, len(hosts), b.opt.InFlight/len(hosts)) })
	}
	wg.Wait()
	took := time.Since(began)
	if err := errors.Join(errs...); err != nil {
		return 0, err
	}
	s, err := n.Sites.GetSite(ctx, &kithv1.GetSiteRequest{})
	if err != nil {
		return 0, err
	}
	if granted := s.GetCounters().GetClaimsGranted(); granted != int64(b.opt.Claims) {
		return 0, fmt.Errorf("the origin counts %d grants of %d claims", granted, b.opt.Claims)
	}
	return float64(b.opt.Claims) / took.Seconds(), nil
}

// claimant is a host that holds copies and claims them, and runs nothing.
type claimant struct {
	*speaker

	mu      sync.Mutex
	copies  []job.AttemptID
	granted chan meta.Verdict
	changed chan struct{}
}

// newClaimant takes the place of a host whose kithd does not run.
func newClaimant(host, origin *local.Node) (*claimant, error) {
	c := &claimant{granted: make(chan meta.Verdict, 1024), changed: make(chan struct{}, 1)}
	var err error
	if c.speaker, err = newSpeaker(host, origin, c.hear); err != nil {
		return nil, err
	}
	c.dial()
	return c, nil
}

// hear takes up what the origin says.
func (c *claimant) hear(m meta.Message) {
	switch m := m.(type) {
	case meta.PlaceCopy:
		c.mu.Lock()
		c.copies = append(c.copies, m.Attempt)
		c.mu.Unlock()
		c.send(meta.CopyAnswer{Attempt: m.Attempt, Accepted: true})
		select {
		case c.changed <- struct{}{}:
		default:
		}
	case meta.Withdraw:
		c.send(meta.WithdrawAck(m))
	case meta.Verdict:
		c.granted <- m
	}
}

// awaitCopies waits until the host holds n copies.
func (c *claimant) awaitCopies(ctx context.Context, n int) error {
	for {
		c.mu.Lock()
		have := len(c.copies)
		c.mu.Unlock()
		if have >= n {
			return nil
		}
		select {
		case <-c.changed:
		case <-time.After(30 * time.Second):
			return fmt.Errorf("site %s: %d of %d copies came within 30 s", c.site, have, n)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// claimAll claims every copy whose sequence number leaves this remainder, so
// many at a time.
func (c *claimant) claimAll(ctx context.Context, remainder, of, inFlight int) error {
	var mine []job.AttemptID
	for _, a := range c.copies {
		if int(a.Job.Seq)%of == remainder {
			mine = append(mine, a)
		}
	}
	sent, answered := 0, 0
	for answered < len(mine) {
		for sent < len(mine) && sent-answered < inFlight {
			c.send(meta.Claim{Attempt: mine[sent], Stamp: uint64(sent + 1)})
			sent++
		}
		select {
		case v := <-c.granted:
			if !v.Granted {
				return fmt.Errorf("claim of %s denied: %s", v.Attempt, v.Reason)
			}
			answered++
		case <-time.After(30 * time.Second):
			return fmt.Errorf("%d of %d claims were answered, then none for 30 s", answered, len(mine))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
