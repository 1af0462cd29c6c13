package daemon

import (
	"context"
	"crypto/tls"
	"net"
	"runtime"
	"slices"
	"testing"
	"time"

	"kith/cmd/kithd/config"
	"kith/meta/trust"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/testbed/check/flood"
)

// mostOverIdle is how much more memory than at rest a flood may make a site use.
const mostOverIdle = 64 << 20

// memory is what is in use: what is garbage is not, so it does not depend on when that is
// collected. The other end of a flood is in it.
func memory() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse) //nolint:gosec // it fits
}

// flooded is a site during a flood, with what others get of it.
type flooded struct {
	*attacked
	other *rogue // a stream of gamma, which is honest here
}

// ask returns how long an operator and an honest peer wait for an answer, in the middle.
func (f *flooded) ask(rounds int) time.Duration {
	f.t.Helper()
	took := make([]time.Duration, rounds)
	for i := range took {
		began := time.Now()
		if _, err := f.sites.GetSite(f.ctx(), &kithv1.GetSiteRequest{}); err != nil {
			f.t.Fatalf("an operator is not answered: %v", err)
		}
		f.other.settled()
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	return took[rounds/2]
}

// Whatever one peer, or a stranger, sends as fast as it can: an operator and another peer
// get their answers, the site's memory and its logs stay within bounds, and afterwards
// all is as before. How long answers take is told, it decides nothing. Not in parallel:
// memory is that of the process.
func TestHostileFloods(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: it takes a minute")
	}
	for _, kind := range flood.Kinds() {
		t.Run(kind.Name, func(t *testing.T) {
			a := attack(t, nil)
			f := &flooded{attacked: a, other: a.joined(a.gamma)}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			before, idle := f.ask(9), memory()
			a.begin()
			under := flood.Start(ctx, flood.Target{Site: "alpha", Address: a.d.Address(), As: a.beta.end, From: "127.0.0.2"}, kind, 0)
			a.eventually("the flood is under way", func() bool { // some kinds are let in slowly
				return under.Sent() > 100 || under.Sent() > 0 && time.Since(a.since) > 2*time.Second
			})
			during, peak := f.ask(9), int64(0)
			for range 3 {
				peak = max(peak, memory()-idle)
				f.ask(3)
			}
			sent, took := under.Sent(), time.Since(a.since)
			a.quiet(kind.Name)
			stop()
			under.Wait()
			t.Logf("%d sent in %v; an answer took %v before and %v during it; %d KiB over idle", sent, took.Round(time.Millisecond), before, during, peak>>10)
			if peak > mostOverIdle {
				t.Errorf("%d MiB over idle, at most %d", peak>>20, mostOverIdle>>20)
			}
			f.ask(1)
			a.close()
		})
	}
}

// A connection that has spoken TLS and HTTP/2 and has made no call holds little memory. Not in
// parallel: memory is that of the process, with the other end.
func TestConnectionsWithoutACallAreSmall(t *testing.T) {
	const many, most = 200, 64 << 10
	a := attack(t, func(c *config.Config) { c.Rates.Handshakes = 100 * many })
	idle := memory()
	for range many {
		c, err := net.Dial("tcp", a.d.Address())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()                                                                                        //nolint:errcheck // a connection of this test
		secured := tls.Client(c, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{trust.ALPNUsers}}) //nolint:gosec // it tells nothing that is secret
		if _, err := secured.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")); err != nil {
			t.Fatal(err)
		}
		if _, err := secured.Read(make([]byte, 9)); err != nil { // its settings
			t.Fatal(err)
		}
	}
	each := (memory() - idle) / many
	t.Logf("%d bytes for each, with its other end", each)
	if each > most {
		t.Errorf("%d bytes for each, at most %d", each, most)
	}
}
