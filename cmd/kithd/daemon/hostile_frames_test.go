package daemon

import (
	"context"
	"slices"
	"testing"
	"time"

	"kith/cmd/kithd/config"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/testbed/check/flood"
)

// A connection that sends nothing but frames that gRPC answers by itself is read slowly and
// then closed, and the audit log says of whom. Calls from another address, another peer and
// the unix socket are not held.
func TestHostileFrames(t *testing.T) {
	t.Parallel()
	for kind, peer := range map[string]string{
		"pings": "", "resets": "", "settings": "", "windows": "", "priorities": "", "data without a call": "", "empty data": "beta", "resets of a peer": "beta",
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			a := attack(t, func(c *config.Config) { c.Rates.Frames = 2000 })
			f := &flooded{attacked: a, other: a.joined(a.gamma)}
			kinds := flood.Kinds()
			i := slices.IndexFunc(kinds, func(k flood.Kind) bool { return k.Name == kind })
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			began := time.Now()
			under := flood.Start(ctx, flood.Target{Site: "alpha", Address: a.d.Address(), As: a.beta.end, From: "127.0.0.2"}, kinds[i], 0)
			f.ask(20)
			a.tells("refused-bound", "frames in a second", peer)
			if kind != "pings" { // gRPC counts these, too
				a.tells("refused-bound", "frames that bring nothing", peer)
			}
			f.ask(20)
			t.Logf("%d sent in %v", under.Sent(), time.Since(began))
			stop()
			under.Wait()
			for _, l := range a.audited("refused-bound") {
				if l.Peer != peer || l.From != "127.0.0.2" {
					t.Errorf("%s: %q of %q", l.From, l.Rule, l.Peer)
				}
			}
		})
	}
}

// A peer's frames are counted wherever they come from, and those of a user by address. What
// a refused call costs is taken from the address.
func TestFramesHaveBuckets(t *testing.T) {
	p := newFramePace(40_000, nil)
	now := time.Now()
	if a, b := p.of.bucketOf(lane{peer: "beta"}, now), p.of.bucketOf(lane{caller: "beta"}, now); a == b || a != p.of.bucketOf(lane{peer: "beta"}, now) {
		t.Error("a peer and an address share a bucket")
	}
	one := p.of.bucketOf(lane{caller: "192.0.2.1"}, now)
	if one.Burst() != 4000 || one.Limit() != 40_000 {
		t.Errorf("a bucket holds %d and gets %v a second", one.Burst(), one.Limit())
	}
	one.SetLimit(0)
	for range 10 {
		p.refused("192.0.2.1")
	}
	if left := one.Tokens(); left > 4000-10*refusedCost+1 {
		t.Errorf("after ten refused calls %v are left", left)
	}
	if left := p.of.bucketOf(lane{caller: "192.0.2.2"}, now).Tokens(); left < 4000 {
		t.Errorf("another address has %v left", left)
	}
}

// The unix socket has no bound of frames: many calls over it meet none.
func TestSocketHasNoBoundOfFrames(t *testing.T) {
	t.Parallel()
	a := attack(t, func(c *config.Config) { c.Rates.Frames = 1000 })
	began := time.Now()
	for range 1500 { // of at least three frames each
		if _, err := a.sites.GetSite(a.ctx(), &kithv1.GetSiteRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	if lines := a.audited("refused-bound"); len(lines) > 0 {
		t.Errorf("after %v: %+v", time.Since(began), lines)
	}
}
