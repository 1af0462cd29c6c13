package invite

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"kith/meta/trust"
	kithv1 "kith/proto/gen/kith/v1"
)

// An inviter that has the pinned certificate and not the secret is none: here another
// desk of the same site, and one that answers a proof with noise.
func TestInviterWithoutTheSecret(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		for _, reply := range []*kithv1.JoinReply{
			{Reply: &kithv1.JoinReply_Proof{Proof: &kithv1.JoinProof{Proof: make([]byte, 32)}}},
			{Reply: &kithv1.JoinReply_Proof{Proof: &kithv1.JoinProof{}}},
			{Reply: &kithv1.JoinReply_Waiting{Waiting: &kithv1.JoinWaiting{}}},
			{Reply: &kithv1.JoinReply_Admitted{Admitted: &kithv1.JoinAdmitted{Bundle: w.a.Keys.Bundle().Marshal()}}},
			{},
		} {
			conn := fakeInviter(w.a, func(conn *tls.Conn) { _ = writeFrame(conn, reply, maxDetails) })
			_, err := Redeem(context.Background(), conn(w.b.JoinTLS(w.i.Check)), w.i, Joining{Site: "uni-b", Self: selfOf(w.b), Now: time.Now})
			if !errors.Is(err, ErrSecret) {
				t.Errorf("%v: %v", reply, err)
			}
		}
	})
}

// fakeInviter is a server that reads a frame and then does as it likes.
func fakeInviter(e *trust.Endpoint, then func(*tls.Conn)) func(*tls.Config) *tls.Conn {
	return func(client *tls.Config) *tls.Conn {
		near, far := net.Pipe()
		go func() {
			conn := tls.Server(far, e.ServerTLS())
			defer conn.Close() //nolint:errcheck // a pipe
			var hello kithv1.JoinHello
			_ = conn.SetDeadline(time.Now().Add(2 * Lifetime))
			if readFrame(conn, &hello, maxFrame) == nil {
				then(conn)
			}
		}()
		return tls.Client(near, client)
	}
}

// An inviter that is hostile keeps the joiner no longer than the invitation, and gets
// none of its lies in.
func TestHostileInviter(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		third := site(t, "uni-c")
		admitted := func(m *kithv1.JoinAdmitted) *kithv1.JoinReply {
			return &kithv1.JoinReply{Reply: &kithv1.JoinReply_Admitted{Admitted: m}}
		}
		own := w.a.Keys.Bundle().Marshal()
		for name, c := range map[string]struct {
			replies []*kithv1.JoinReply
			want    error
		}{
			"the bundle of a third site": {[]*kithv1.JoinReply{admitted(&kithv1.JoinAdmitted{Bundle: third.Keys.Bundle().Marshal()})}, trust.ErrBundle},
			"another CA of the name":     {[]*kithv1.JoinReply{admitted(&kithv1.JoinAdmitted{Bundle: site(t, "uni-a").Keys.Bundle().Marshal()})}, trust.ErrBundle},
			"no bundle":                  {[]*kithv1.JoinReply{admitted(&kithv1.JoinAdmitted{})}, trust.ErrBundle},
			"an escape":                  {[]*kithv1.JoinReply{admitted(&kithv1.JoinAdmitted{Bundle: own, Version: "\x1b[2J"})}, ErrFrame},
			"a proof again":              {[]*kithv1.JoinReply{{Reply: &kithv1.JoinReply_Proof{Proof: &kithv1.JoinProof{}}}}, ErrFrame},
			"nothing":                    {[]*kithv1.JoinReply{{}}, ErrFrame},
			"a reason of a later version": {[]*kithv1.JoinReply{{Reply: &kithv1.JoinReply_Refused{Refused: &kithv1.JoinRefused{Reason: 4711}}}},
				Refusal{reasons}},
		} {
			err := w.lie(c.replies, 0)
			if !errors.Is(err, c.want) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	bubble(t, func(t *testing.T, w *world) {
		waiting := make([]*kithv1.JoinReply, 1000)
		for k := range waiting {
			waiting[k] = &kithv1.JoinReply{Reply: &kithv1.JoinReply_Waiting{Waiting: &kithv1.JoinWaiting{}}}
		}
		before := time.Now()
		if err := w.lie(waiting[:1], 2*patience); err == nil || !strings.Contains(err.Error(), "timeout") {
			t.Errorf("silence: %v", err)
		}
		if err := w.lie(waiting, keepalive); !errors.Is(err, ErrOver) || time.Since(before) < Lifetime {
			t.Errorf("for ever: %v after %s", err, time.Since(before))
		}
	})
}

// lie redeems with an inviter that knows the secret, and then sends replies.
func (w *world) lie(replies []*kithv1.JoinReply, pause time.Duration) error {
	conn := fakeInviter(w.a, func(conn *tls.Conn) {
		secret, _ := exporter(conn.ConnectionState())
		b := binding{secret, w.a.Keys.CA(), w.b.Keys.CA(), "uni-a", "uni-b", w.i.ID()}
		first := &kithv1.JoinReply{Reply: &kithv1.JoinReply_Proof{Proof: &kithv1.JoinProof{Proof: w.i.Verifier().inviterProof(b)}}}
		var details kithv1.JoinDetails
		if writeFrame(conn, first, maxDetails) != nil || readFrame(conn, &details, maxDetails) != nil {
			return
		}
		for _, r := range replies {
			if writeFrame(conn, r, maxDetails) != nil {
				return
			}
			time.Sleep(pause)
		}
	})
	_, err := Redeem(context.Background(), conn(w.b.JoinTLS(w.i.Check)), w.i, Joining{Site: "uni-b", Self: selfOf(w.b), Now: time.Now})
	time.Sleep(pause + time.Minute) // until the other one has noticed
	return err
}
