package invite

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"kith/internal/job"
	"kith/meta/trust"
	kithv1 "kith/proto/gen/kith/v1"
)

// careless is a client's configuration that takes any site for the inviter.
func careless(e *trust.Endpoint) *tls.Config {
	return e.JoinTLS(func(job.SiteID, *x509.Certificate) error { return nil })
}

// raw is a joiner that sends what it likes.
type raw struct {
	t    testing.TB
	conn *tls.Conn
	b    binding
}

// rawJoiner connects as a site and knows what an honest one would prove.
func (w *world) rawJoiner(e *trust.Endpoint, i Invitation) *raw {
	w.t.Helper()
	conn := w.dial(careless(e))
	return &raw{w.t, conn, bindingOf(w.t, conn, i, e, w.a.Keys.CA())}
}

func bindingOf(t testing.TB, conn *tls.Conn, i Invitation, e *trust.Endpoint, inviterCA *x509.Certificate) binding {
	t.Helper()
	if err := conn.Handshake(); err != nil {
		t.Fatal(err)
	}
	secret, err := exporter(conn.ConnectionState())
	if err != nil {
		t.Fatal(err)
	}
	return binding{secret, inviterCA, e.Keys.CA(), "uni-a", e.Keys.Site(), i.ID()}
}

// hello sends a hello and returns the answer.
func (r *raw) hello(m *kithv1.JoinHello) (*kithv1.JoinReply, error) {
	if err := writeFrame(r.conn, m, maxFrame); err != nil {
		return nil, err
	}
	reply, err := readReply(r.conn)
	if err != nil {
		_ = r.conn.Close()
	}
	return reply, err
}

func helloOf(i Invitation, b binding) *kithv1.JoinHello {
	id := i.ID()
	return &kithv1.JoinHello{Protocol: protocol, InvitationId: id[:], Proof: i.joinerProof(b)}
}

func TestGuessedSecret(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		for n := range MaxWrong {
			r := w.rawJoiner(w.b, w.i)
			guess := w.i
			guess.Secret[0] += byte(n + 1)
			m := helloOf(guess, r.b)
			id := w.i.ID()
			m.InvitationId = id[:]
			_, err := r.hello(m)
			refused(t, err, WrongProof)
		}
		_, err := w.redeem(w.b, w.i)
		refused(t, err, WasBurnt)
		if k := w.kept[w.i.ID()]; k.State != Burnt || k.Wrong != MaxWrong {
			t.Errorf("kept as %s after %d", k.State, k.Wrong)
		}
	})
	bubble(t, func(t *testing.T, w *world) {
		guess := w.i
		guess.Secret[0]++
		for range 2 * MaxWrong {
			_, err := w.redeem(w.b, guess)
			refused(t, err, UnknownInvitation)
		}
		if w.state() != Open || w.last().Reason != UnknownInvitation {
			t.Errorf("%s, %+v", w.state(), w.last())
		}
	})
}

func TestHellosThatProveNothing(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*kithv1.JoinHello)
		want   Reason
	}{
		"no proof":      {func(m *kithv1.JoinHello) { m.Proof = nil }, WrongProof},
		"half a proof":  {func(m *kithv1.JoinHello) { m.Proof = m.Proof[:16] }, WrongProof},
		"zeros":         {func(m *kithv1.JoinHello) { m.Proof = make([]byte, 32) }, WrongProof},
		"no invitation": {func(m *kithv1.JoinHello) { m.InvitationId = nil }, UnknownInvitation},
		"a short name":  {func(m *kithv1.JoinHello) { m.InvitationId = m.InvitationId[:7] }, UnknownInvitation},
		"version 2":     {func(m *kithv1.JoinHello) { m.Protocol = 2 }, OtherProtocol},
	} {
		bubble(t, func(t *testing.T, w *world) {
			r := w.rawJoiner(w.b, w.i)
			m := helloOf(w.i, r.b)
			c.change(m)
			_, err := r.hello(m)
			if refused(t, err, c.want); t.Failed() {
				t.Log(name)
			}
		})
	}
}

// A recorded hello is worth nothing on another connection, and nothing for another CA.
func TestReplayedHello(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.rawJoiner(w.b, w.i)
		recorded := helloOf(w.i, r.b)
		if reply, err := r.hello(recorded); err != nil || reply.GetProof() == nil {
			t.Fatalf("the first time: %v, %v", reply, err)
		}
		_ = r.conn.Close()
		_, err := w.rawJoiner(w.b, w.i).hello(recorded)
		refused(t, err, WrongProof)
	})
}

// Nothing is proved over a connection that is not of this protocol, or resumed.
func TestOtherConnections(t *testing.T) {
	good := tls.ConnectionState{Version: tls.VersionTLS13, NegotiatedProtocol: trust.ALPNJoin}
	for name, change := range map[string]func(*tls.ConnectionState){
		"TLS 1.2": func(s *tls.ConnectionState) { s.Version = tls.VersionTLS12 },
		"peers":   func(s *tls.ConnectionState) { s.NegotiatedProtocol = trust.ALPNPeer },
		"resumed": func(s *tls.ConnectionState) { s.DidResume = true },
	} {
		s := good
		change(&s)
		if _, err := exporter(s); err == nil || !strings.Contains(err.Error(), "want TLS 1.3 with kith-join/1, not resumed") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Each part of a binding counts.
func TestProofsHoldForOneBinding(t *testing.T) {
	i, _ := sample(t)
	a, b := site(t, "uni-a").Keys.CA(), site(t, "uni-b").Keys.CA()
	good := binding{[]byte("exporter"), a, b, "uni-a", "uni-b", i.ID()}
	v := i.Verifier()
	if !v.checkJoiner(good, i.joinerProof(good)) || !v.checkInviter(good, v.inviterProof(good)) {
		t.Fatal("a good proof does not fit")
	}
	for name, change := range map[string]func(*binding){
		"exporter":   func(b *binding) { b.exporter = []byte("Exporter") },
		"inviter CA": func(g *binding) { g.inviterCA = b },
		"joiner CA":  func(g *binding) { g.joinerCA = a },
		"inviter":    func(b *binding) { b.inviter = "uni-c" },
		"joiner":     func(b *binding) { b.joiner = "uni-c" },
		"invitation": func(b *binding) { b.invitation[0]++ },
		"boundaries": func(b *binding) { b.inviter, b.joiner = "uni-au", "ni-b" },
	} {
		other := good
		change(&other)
		if v.checkJoiner(other, i.joinerProof(good)) || v.checkInviter(other, v.inviterProof(good)) {
			t.Errorf("a proof fits with another %s", name)
		}
	}
	if v.checkInviter(good, i.joinerProof(good)) || v.checkJoiner(good, v.inviterProof(good)) {
		t.Error("a proof of one role fits the other")
	}
	// What the inviter keeps is not what the joiner proves with, nor the secret.
	thief := Invitation{Secret: Secret(v.Joiner)}
	if v.checkJoiner(good, thief.joinerProof(good)) || v.Joiner == [32]byte(i.Secret) || v.Inviter == [32]byte(i.Secret) || bytes.Equal(i.joinerKey(), v.Joiner[:]) {
		t.Error("who reads the inviter's disk can join")
	}
	made := make([]byte, 32) // the proof of one who takes what is kept for the key
	copy(made, v.Joiner[:])
	for k, c := range good.sum(v.Joiner[:], "joiner") {
		made[k] ^= c
	}
	if v.checkJoiner(good, made) {
		t.Error("what is kept proves the secret")
	}
}

// relay is a man in the middle: he ends the joiner's TLS with his own certificate for
// the inviter's name, and the inviter's with his own for the joiner's.
func (w *world) relay(t *testing.T, client *tls.Config) *tls.Conn {
	t.Helper()
	asA, asB := site(t, "uni-a"), site(t, "uni-b")
	near, far := net.Pipe()
	victim := tls.Server(far, asA.ServerTLS())
	target := w.dial(careless(asB))
	copyAll := func(to, from *tls.Conn) {
		_, _ = io.Copy(to, from)
		_ = to.Close()
		_ = from.Close()
	}
	go copyAll(target, victim)
	go copyAll(victim, target)
	return tls.Client(near, client)
}

func TestManInTheMiddle(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		conn := w.relay(t, w.b.JoinTLS(w.i.Check))
		_, err := Redeem(context.Background(), conn, w.i, Joining{Site: "uni-b", Self: selfOf(w.b), Now: time.Now})
		if !errors.Is(err, ErrOtherInviter) {
			t.Errorf("with the pin: %v", err)
		}
		// The configuration is the wrong one: Redeem looks itself.
		conn = w.relay(t, careless(w.b))
		_, err = Redeem(context.Background(), conn, w.i, Joining{Site: "uni-b", Self: selfOf(w.b), Now: time.Now})
		if !errors.Is(err, ErrOtherInviter) {
			t.Errorf("with the pin in Redeem: %v", err)
		}
		if w.state() != Open {
			t.Errorf("the man in the middle brought it to %s", w.state())
		}
		// A joiner that looks at nothing proves for its own connection only.
		conn = w.relay(t, careless(w.b))
		r := &raw{t, conn, bindingOf(t, conn, w.i, w.b, w.a.Keys.CA())}
		_, err = r.hello(helloOf(w.i, r.b))
		refused(t, err, WrongProof)
	})
}

func TestOtherInviter(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		wrongPin, wrongName := w.i, w.i
		wrongPin.CA[0]++
		wrongName.Site = "uni-x"
		for _, i := range []Invitation{wrongPin, wrongName} {
			if _, err := w.redeem(w.b, i); !errors.Is(err, ErrOtherInviter) {
				t.Errorf("%v", err)
			}
			if a := w.last(); a.Invitation != (ID{}) {
				t.Errorf("the wrong inviter was told %+v", a)
			}
		}
	})
}

func TestBadDetails(t *testing.T) {
	for name, change := range map[string]func(*kithv1.JoinDetails, *world){
		"no bundle":              func(d *kithv1.JoinDetails, _ *world) { d.Bundle = nil },
		"another site's":         func(d *kithv1.JoinDetails, w *world) { d.Bundle = w.a.Keys.Bundle().Marshal() },
		"another CA's":           func(d *kithv1.JoinDetails, w *world) { d.Bundle = site(w.t, "uni-b").Keys.Bundle().Marshal() },
		"an address that is one": func(d *kithv1.JoinDetails, _ *world) { d.Addresses = []string{"example.org"} },
		"a port":                 func(d *kithv1.JoinDetails, _ *world) { d.Addresses = []string{"example.org:0"} },
		"a line break":           func(d *kithv1.JoinDetails, _ *world) { d.Addresses = []string{"example\n.org:1"} },
		"an escape":              func(d *kithv1.JoinDetails, _ *world) { d.Version = "\x1b[2J" },
	} {
		bubble(t, func(t *testing.T, w *world) {
			r := w.rawJoiner(w.b, w.i)
			if _, err := r.hello(helloOf(w.i, r.b)); err != nil {
				t.Fatal(err)
			}
			d := &kithv1.JoinDetails{Bundle: w.b.Keys.Bundle().Marshal(), Addresses: []string{"b:1"}, Version: "1"}
			change(d, w)
			if err := writeFrame(r.conn, d, maxDetails); err != nil {
				t.Fatal(err)
			}
			_, err := readReply(r.conn)
			if refused(t, err, BadDetails); t.Failed() {
				t.Log(name)
			}
			_ = r.conn.Close()
			if w.state() != Open {
				t.Errorf("%s brought it to %s", name, w.state())
			}
		})
	}
}

// Without a certificate, or with another protocol, nothing of the exchange begins.
func TestConnectionsThatAreNone(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		bare := careless(w.b)
		bare.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return new(tls.Certificate), nil }
		users := careless(w.b)
		users.NextProtos, users.VerifyConnection = []string{trust.ALPNUsers}, nil
		for name, client := range map[string]*tls.Config{"no certificate": bare, "of users": users} {
			conn := w.dial(client)
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
			if _, err := conn.Read(make([]byte, 1)); err == nil {
				t.Errorf("%s: the inviter speaks", name)
			}
			_ = conn.Close()
			if a := w.last(); a.Err == nil || a.Site != "" {
				t.Errorf("%s: reported %+v", name, a)
			}
		}
	})
}

// Whoever says nothing, or one byte a second, is let go after 5 s, and holds one of 16
// places until then.
func TestSlowJoiners(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		before := time.Now()
		r := w.rawJoiner(w.b, w.i)
		var frame bytes.Buffer
		if err := writeFrame(&frame, helloOf(w.i, r.b), maxFrame); err != nil {
			t.Fatal(err)
		}
		for _, c := range frame.Bytes() {
			if _, err := r.conn.Write([]byte{c}); err != nil {
				break
			}
			time.Sleep(time.Second)
		}
		_ = r.conn.Close()
		if d := time.Since(before); d > 3*stepWait {
			t.Errorf("byte by byte held its place for %s", d)
		}
		var silent []*tls.Conn
		for range maxConnections {
			silent = append(silent, w.dial(careless(w.b)))
		}
		synctest.Wait()
		if _, err := w.redeem(w.b, w.i); err == nil || !errors.Is(w.last().Err, ErrCrowded) {
			t.Errorf("one more: %v, %v", err, w.last().Err)
		}
		time.Sleep(2 * stepWait)
		done := w.start(w.b, w.i)
		if w.state() != Came {
			t.Errorf("%s after the silent ones", w.state())
		}
		if err := w.yes(w.b); err != nil {
			t.Error(err)
		}
		if a := <-done; a.err != nil {
			t.Error(a.err)
		}
		for _, conn := range silent {
			_ = conn.Close()
		}
	})
}

// counted tells how many bytes were read.
type counted struct {
	io.Reader
	n int
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n += n
	return n, err
}

// zeros has no end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestHugeFrame(t *testing.T) {
	for _, length := range []uint32{maxFrame + 1, 1 << 31, 1<<32 - 1} {
		r := &counted{Reader: io.MultiReader(bytes.NewReader(binary.BigEndian.AppendUint32(nil, length)), io.LimitReader(zeros{}, 1<<20))}
		if err := readFrame(r, &kithv1.JoinHello{}, maxFrame); !errors.Is(err, ErrFrame) || r.n != 4 {
			t.Errorf("%d bytes: %v after %d bytes", length, err, r.n)
		}
	}
	for name, m := range map[string]proto.Message{
		"a long proof":   &kithv1.JoinHello{Proof: make([]byte, 33)},
		"many addresses": &kithv1.JoinDetails{Addresses: make([]string, 9)},
		"a long version": &kithv1.JoinDetails{Version: strings.Repeat("x", 257)},
		"a long bundle":  &kithv1.JoinDetails{Bundle: make([]byte, 16<<10+1)},
	} {
		var b bytes.Buffer
		if err := writeFrame(&b, m, maxDetails); err != nil {
			t.Fatal(err)
		}
		if err := readFrame(&b, m, maxDetails); !errors.Is(err, ErrFrame) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := writeFrame(io.Discard, &kithv1.JoinDetails{Bundle: make([]byte, maxDetails)}, maxDetails); !errors.Is(err, ErrFrame) {
		t.Errorf("a frame that would not be read is sent: %v", err)
	}
}

// Whatever comes in a frame, both sides read it within bounds and do not fail.
func FuzzFrames(f *testing.F) {
	a := site(f, "uni-a")
	for _, m := range []proto.Message{
		&kithv1.JoinHello{Protocol: 1, InvitationId: make([]byte, 8), Proof: make([]byte, 32)},
		&kithv1.JoinDetails{Bundle: a.Keys.Bundle().Marshal(), Addresses: []string{"a:1"}, Version: "1"},
		&kithv1.JoinReply{Reply: &kithv1.JoinReply_Admitted{Admitted: &kithv1.JoinAdmitted{Bundle: a.Keys.Bundle().Marshal()}}},
		&kithv1.JoinReply{Reply: &kithv1.JoinReply_Refused{Refused: &kithv1.JoinRefused{Reason: 5}}},
	} {
		var b bytes.Buffer
		if err := writeFrame(&b, m, maxDetails); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		var hello kithv1.JoinHello
		if readFrame(bytes.NewReader(b), &hello, maxFrame) == nil && (len(b) > 4+maxFrame && len(hello.GetProof()) > 32) {
			t.Errorf("read %v", &hello)
		}
		var details kithv1.JoinDetails
		if readFrame(bytes.NewReader(b), &details, maxDetails) == nil {
			if checkAbout(details.GetAddresses(), details.GetVersion()) == nil && strings.ContainsAny(strings.Join(details.GetAddresses(), "")+details.GetVersion(), "\n\x1b\x00") {
				t.Errorf("%v passes", &details)
			}
			_, _ = bundleOf(details.GetBundle(), "uni-a", a.Keys.CA())
		}
		var reply kithv1.JoinReply
		if readFrame(bytes.NewReader(b), &reply, maxDetails) == nil {
			if got, err := admission(reply.GetAdmitted(), "uni-a", a.Keys.CA()); err == nil && !got.Bundle.Holds(a.Keys.CA()) {
				t.Errorf("admitted by %v", got)
			}
			if text := (Refusal{reasonOf(reply.GetRefused().GetReason())}).Error(); text == "" {
				t.Error("a refusal without a text")
			}
		}
	})
}
