package daemon

import (
	"crypto/tls"
	"errors"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kith/meta"
	"kith/meta/trust"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
)

// What is open when a certificate is voided, a site is revoked or this one leaves is closed:
// streams and lanes. A connection that is left opens no stream any more.
func TestHostileOpenConnections(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*attacked) error{
		"rotate --now there": func(a *attacked) error {
			if err := a.beta.keys.RotateLeaf(time.Now()); err != nil {
				return err
			}
			// As if beta had told it on a stream of its own.
			later := bundleFact(a.beta.keys.Bundle(), store.KeyID{})
			a.d.loop.post(meta.Receive{From: "beta", Message: meta.SiteBundle{Site: "beta", Bundle: later}})
			return nil
		},
		"revoke": func(a *attacked) error {
			_, err := a.trustClient().RevokeSite(a.ctx(), &kithv1.RevokeSiteRequest{SiteId: "beta"})
			return err
		},
		"leave": func(a *attacked) error {
			_, err := a.trustClient().LeaveFederation(a.ctx(), &kithv1.LeaveFederationRequest{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := attack(t, nil)
			conn := a.peers(a.beta)
			open := func(conn *grpc.ClientConn) *rogue {
				r := a.stream(conn)
				r.say(helloOf("beta"))
				return r
			}
			r := open(conn)
			r.hear(func(m *kithv1.PeerMessage) bool { return m.GetHello() != nil })
			lane, err := a.dialTLS(a.beta.end.ClientTLS("alpha", trust.ALPNGossip))
			if err != nil {
				t.Fatal(err)
			}
			a.eventually("a lane is up", func() bool { return a.d.gossip.Up("beta") })
			if err := end(a); err != nil {
				t.Fatal(err)
			}
			if !ended(lane) {
				t.Error("the lane is open")
			}
			again := func() *rogue { return open(conn) }
			for n, next := range []func() *rogue{func() *rogue { return r }, again, again} {
				if code := next().ended(); code != codes.Aborted && code != codes.PermissionDenied {
					t.Errorf("stream %d was not ended by the site: %v", n, code)
				}
			}
			a.eventually("nothing is open", func() bool {
				_, up := a.d.links.Connection("beta")
				return !up && !a.d.gossip.Up("beta")
			})
			if name == "rotate --now there" {
				back := a.joined(a.beta) // by its new certificate
				for range 3 {            // who has stolen the old one, and a connection by it, takes nobody's place
					if code := open(conn).ended(); code != codes.Aborted {
						t.Errorf("a stream on the connection of before: %v", code)
					}
				}
				back.settled()
			}
		})
	}
}

// ended waits until the stream has ended, and returns with which code.
func (r *rogue) ended() codes.Code {
	for {
		if _, err := r.stream.Recv(); err != nil {
			return status.Code(err)
		}
	}
}

// ended reads a connection and reports whether it is ended within a minute.
func ended(c *tls.Conn) bool {
	c.SetDeadline(time.Now().Add(time.Minute)) //nolint:errcheck // a TCP connection takes it
	for {
		_, err := c.Read(make([]byte, 4096))
		e, ok := errors.AsType[net.Error](err)
		switch {
		case ok && e.Timeout():
			return false
		case err != nil:
			return true
		}
	}
}
