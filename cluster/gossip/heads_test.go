package gossip

import (
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kith/cluster"
	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

// headOf is a head of the audit log of a site, signed by it.
func headOf(s *site, number uint64) *cluster.AuditHead {
	h := &cluster.AuditHead{Number: number, Hash: [32]byte{byte(number)}, Time: job.Instant(time.Now())}
	h.Signature, h.Chain = s.Sign(headText(h))
	return h
}

// The head of an audit log is heard with the digest, by who hears it from a third site,
// too, and only if the key of the digest has signed it.
func TestHeadsRideOnDigests(t *testing.T) {
	for name, c := range map[string]struct {
		change func(bob, eve *site, h *cluster.AuditHead)
		heard  bool
	}{
		"as bob made it":     {func(*site, *site, *cluster.AuditHead) {}, true},
		"an old one":         {func(bob, _ *site, h *cluster.AuditHead) { h.Time = h.Time.Add(-900 * time.Hour) }, true},
		"unsigned":           {func(_, _ *site, h *cluster.AuditHead) { h.Signature = nil }, false},
		"another signature":  {func(_, _ *site, h *cluster.AuditHead) { h.Signature[7]++ }, false},
		"another line":       {func(_, _ *site, h *cluster.AuditHead) { h.Number++ }, false},
		"another hash":       {func(_, _ *site, h *cluster.AuditHead) { h.Hash[31]++ }, false},
		"signed by eve":      {func(_, eve *site, h *cluster.AuditHead) { h.Signature, _ = eve.Sign(headText(h)) }, false},
		"from a later day":   {func(_, _ *site, h *cluster.AuditHead) { h.Time = h.Time.Add(24 * time.Hour) }, false},
		"from the last hour": {func(_, _ *site, h *cluster.AuditHead) { h.Time = math.MaxInt64 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			alone(t, func(n *network, s *site, e *eve) {
				bob, eve := n.member("bob"), n.member("eve")
				trust(s, bob)
				e.say(notePacket(keyNote(t, bob)))
				d := bob.digest()
				d.Head = headOf(bob, 7)
				c.change(bob, eve, d.Head)
				e.say(notePacket(noteOf(t, bob, d, nil)))
				time.Sleep(time.Second)
				s.mu.Lock()
				h := s.heads["bob"]
				s.mu.Unlock()
				if heard := h != nil && h.Number == 7 && len(h.Chain) == 1 && string(h.Chain[0]) == bob.cert; heard != c.heard {
					t.Errorf("heard %v", h)
				}
				if got := s.of("bob"); (got.Sequence == 1) != c.heard || got.Head != nil {
					t.Errorf("the digest that is told on: %+v", got)
				}
				if found := n.refusals(); c.heard && len(found) > 0 || !c.heard && (len(found) != 1 || found[0].Rule != "audit-head" || found[0].Site != "eve") {
					t.Errorf("refused: %+v", found)
				}
			})
		})
	}
}

// A head that was signed while the clock was ahead is not told once that is set: who
// heard it would take the digest for a false one.
func TestHeadOfAClockThatWasAheadIsLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		defer n.end()
		bob, me := n.member("bob"), n.member("me")
		trust(bob, me)
		bob.begin()
		me.begin()
		until(t, 10*time.Second, "a lane", func() bool { return me.Up("bob") })
		for _, ahead := range []time.Duration{2 * mostSkew, 0} {
			d := bob.digest()
			d.Head = headOf(bob, 7)
			d.Head.Time = d.Head.Time.Add(ahead)
			bob.Advertise(d)
			until(t, 10*time.Second, "the digest heard", func() bool { return me.of("bob").Sequence == d.Sequence })
			me.mu.Lock()
			told := me.heads["bob"] != nil
			me.mu.Unlock()
			if told != (ahead == 0) {
				t.Errorf("%v ahead: the head is told: %v", ahead, told)
			}
		}
	})
}

// A head that was signed by a certificate of before is not told: nobody could check it.
func TestHeadOfAnEarlierKeyIsLeftOut(t *testing.T) {
	alone(t, func(n *network, _ *site, _ *eve) {
		bob := n.member("bob")
		d := bob.digest()
		d.Head = headOf(bob, 7)
		note, _, err := seal(bob, &d)
		if err != nil {
			t.Fatal(err)
		}
		if u, err := unseal(note.GetDigest()); err != nil || u.digest.Head == nil {
			t.Errorf("the head is not told: %v", err)
		}
		n.mu.Lock()
		bob.cert = n.newCert("bob")
		n.mu.Unlock()
		if note, _, err = seal(bob, &d); err != nil {
			t.Fatal(err)
		}
		if u, err := unseal(note.GetDigest()); err != nil || u.digest.Head != nil {
			t.Errorf("the head is told: %v", err)
		}
	})
}

// What is refused is told under its rule and the site of the lane. What honest sites come
// to is not: repeated and late notes, and those of sites that only the other one trusts.
func TestRefusalsHaveRules(t *testing.T) {
	digest := func(change func(*cluster.Digest)) func(*testing.T, *network, *site) frame {
		return func(t *testing.T, _ *network, bob *site) frame {
			d := bob.digest()
			change(&d)
			return notePacket(noteOf(t, bob, d, nil))
		}
	}
	signed := func(change func(*kithv1.SignedDigest)) func(*testing.T, *network, *site) frame {
		return func(t *testing.T, _ *network, bob *site) frame {
			return notePacket(noteOf(t, bob, bob.digest(), change))
		}
	}
	is := func(f frame) func(*testing.T, *network, *site) frame {
		return func(*testing.T, *network, *site) frame { return f }
	}
	for name, c := range map[string]struct {
		says func(*testing.T, *network, *site) frame
		rule string // empty: not refused
	}{
		"unsigned":              {signed(func(m *kithv1.SignedDigest) { m.Signature = nil }), "unproven"},
		"altered":               {signed(func(m *kithv1.SignedDigest) { m.Digest = append(m.Digest, 0x18, 99) }), "unproven"},
		"under another name":    {signed(func(m *kithv1.SignedDigest) { m.SiteId = "eve" }), "other-site"},
		"too long":              {signed(func(m *kithv1.SignedDigest) { m.Signature = make([]byte, 129) }), "note"},
		"replayed a day later":  {digest(func(d *cluster.Digest) { d.Time = d.Time.Add(-24 * time.Hour) }), "clock"},
		"no number":             {digest(func(d *cluster.Digest) { d.Load.Work = math.NaN() }), "impossible"},
		"out of bounds":         {digest(func(d *cluster.Digest) { d.Speed = 1e6 }), "impossible"},
		"a long text":           {digest(func(d *cluster.Digest) { d.Policy = strings.Repeat("x", 300) }), "note"},
		"a name that is none":   {digest(func(d *cluster.Digest) { d.Site = "No Site" }), "site-name"},
		"nonsense":              {is(notePacket([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f})), "note"},
		"that bob is dead":      {is(frame{packet, 0, ml(mlDead, mlSuspectBody{3, "bob", "eve"})}), "membership"},
		"that a stranger lives": {is(frame{packet, 0, ml(mlAlive, aliveOf("nobody"))}), "membership"},
		"a request of nonsense": {is(frame{lastRequest, 1, []byte{99, 1}}), "membership"},
		"a frame that is none":  {is(frame{kind(77), 0, nil}), "lane"},
		"the digest of no friend": {func(t *testing.T, n *network, _ *site) frame {
			o := n.member("carl")
			return notePacket(noteOf(t, o, o.digest(), nil))
		}, ""},
		"the key of no friend": {func(t *testing.T, n *network, _ *site) frame { return notePacket(keyNote(t, n.member("carl"))) }, ""},
		"as bob made it":       {digest(func(*cluster.Digest) {}), ""},
		"earlier than heard":   {digest(func(d *cluster.Digest) { d.Sequence = 0 }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			alone(t, func(n *network, s *site, e *eve) {
				bob := n.member("bob")
				trust(s, bob)
				e.say(notePacket(keyNote(t, bob)))
				e.say(notePacket(noteOf(t, bob, bob.digest(), nil)))
				e.say(c.says(t, n, bob))
				time.Sleep(time.Second)
				synctest.Wait()
				found := n.refusals()
				if c.rule == "" && len(found) > 0 || c.rule != "" && (len(found) != 1 || found[0].Rule != c.rule || found[0].Site != "eve" || found[0].Err == nil) {
					t.Errorf("refused: %+v, want %q", found, c.rule)
				}
			})
		})
	}
}
