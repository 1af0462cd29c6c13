package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"kith/cmd/kithd/config"
	"kith/testbed/local"
)

// tlsRounds is how often sites with keys and sites without take turns.
const tlsRounds = 3

// tlsTarget is how much more, in %, mutual TLS and signatures may cost.
const tlsTarget = 20

// tls measures starts at another site, and throughput, with keys and without. In both
// cases clients call over unix sockets, so that what differs is between the sites alone.
func (b *bench) tls(ctx context.Context) error {
	defer func(was bool) { b.insecure = was }(b.insecure)
	var waits [2][]time.Duration
	var rates [2][]float64
	for round := range tlsRounds {
		for turn := range 2 {
			k := (round + turn) % 2
			b.insecure = k == 0
			w, err := b.startsAway(ctx)
			if err != nil {
				return err
			}
			waits[k] = append(waits[k], w...)
			r, _, err := b.rate(ctx, withSocket)
			if err != nil {
				return err
			}
			rates[k] = append(rates[k], r)
		}
	}
	for k := range 2 {
		slices.Sort(waits[k])
		slices.Sort(rates[k])
	}
	for k, how := range []string{"plaintext", "mutual TLS"} {
		b.add("submission to process at another site, median, "+how, milliseconds(median(waits[k])), "ms")
		b.add("the same, 99 of 100, "+how, milliseconds(quantile(waits[k], 0.99)), "ms")
	}
	plain, secure := milliseconds(median(waits[0])), milliseconds(median(waits[1]))
	b.addTarget("what TLS adds to the median", 100*(secure/plain-1), "%", tlsTarget, true)
	for k, how := range []string{"plaintext", "mutual TLS"} {
		b.add(fmt.Sprintf("%d jobs over %d sites, K=%d, median of %d, %s", b.opt.Jobs, b.opt.Sites, b.opt.Copies, tlsRounds, how), rates[k][tlsRounds/2], "jobs/s")
	}
	b.addTarget("what TLS takes from the throughput", 100*(1-rates[1][tlsRounds/2]/rates[0][tlsRounds/2]), "%", tlsTarget, true)
	return nil
}

// startsAway returns how long submissions take to run at a site that they do not come to.
func (b *bench) startsAway(ctx context.Context) ([]time.Duration, error) {
	f, stop, err := b.federation(ctx, []local.Site{
		{Name: "narrow", Tune: func(c *config.Config) { c.Scheduler.Processors = 1; withSocket(c) }},
		{Name: "wide", Tune: func(c *config.Config) { c.Scheduler.Processors = 4; withSocket(c) }},
	})
	if err != nil {
		return nil, err
	}
	defer stop() //nolint:errcheck // what was measured counts
	waits, _, err := b.starts(ctx, f.Nodes()[0], 2, b.opt.Starts)
	return waits, err
}

// withSocket gives a site the socket that one with keys has by itself.
func withSocket(c *config.Config) {
	c.Listen.Socket, c.Listen.AllowOwnUID = filepath.Join(c.Data, "kith.sock"), true
}
