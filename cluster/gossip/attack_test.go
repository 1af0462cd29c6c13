package gossip

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"kith/cluster"
	"kith/cluster/wire"
	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

func encoded(t testing.TB, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// noteOf is what a site would spread of a digest, as change left it after signing.
func noteOf(t testing.TB, s *site, d cluster.Digest, change func(*kithv1.SignedDigest)) []byte {
	t.Helper()
	n, _, err := seal(s, &d)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(n.GetDigest())
	}
	return encoded(t, n)
}

func keyNote(t testing.TB, s *site) []byte {
	k := key{chain: [][]byte{[]byte(s.cert)}}
	return encoded(t, k.note(s.name))
}

func notePacket(b []byte) frame { return frame{packet, 0, append([]byte{mlUser}, b...)} }

// What a member, eve, may pass on of bob, whom this site trusts.
func TestHostileDigests(t *testing.T) {
	type attack struct {
		digest func(*cluster.Digest)      // before it is signed by bob himself
		signed func(*kithv1.SignedDigest) // after
		good   bool
		mild   bool // dropped without a word: honest sites come to it, too
		skewed bool // bob's clock is off
	}
	for name, c := range map[string]attack{
		"as bob made it":            {good: true},
		"older incarnation":         {digest: func(d *cluster.Digest) { d.Incarnation, d.Sequence = 4, 100 }, mild: true},
		"older sequence":            {digest: func(d *cluster.Digest) { d.Sequence = 9 }, mild: true},
		"the same again":            {digest: func(d *cluster.Digest) { d.Sequence = 10 }, mild: true},
		"unsigned":                  {signed: func(m *kithv1.SignedDigest) { m.Signature = nil }},
		"unsigned, no key":          {signed: func(m *kithv1.SignedDigest) { m.Signature, m.KeyId = nil, nil }},
		"another signature":         {signed: func(m *kithv1.SignedDigest) { m.Signature[3]++ }},
		"altered":                   {signed: func(m *kithv1.SignedDigest) { m.Digest[len(m.Digest)-1]++ }},
		"more altered":              {signed: func(m *kithv1.SignedDigest) { m.Digest = append(m.Digest, 0x18, 99) }}, // the sequence again
		"under another name":        {signed: func(m *kithv1.SignedDigest) { m.SiteId = "eve" }},
		"a long signature":          {signed: func(m *kithv1.SignedDigest) { m.Signature = make([]byte, 129) }},
		"an unknown key":            {signed: func(m *kithv1.SignedDigest) { m.KeyId = make([]byte, keyIDBytes) }, mild: true},
		"the key of eve":            {signed: func(m *kithv1.SignedDigest) { m.KeyId = keyID([][]byte{[]byte("certificate 2 of eve")}) }, mild: true},
		"an hour ahead":             {digest: func(d *cluster.Digest) { d.Time = d.Time.Add(mostSkew + time.Minute) }, skewed: true},
		"a day old":                 {digest: func(d *cluster.Digest) { d.Time = d.Time.Add(-24 * time.Hour) }, skewed: true},
		"an hour ahead, of another": {digest: func(d *cluster.Digest) { d.Time = d.Time.Add(mostSkew + time.Minute) }, signed: func(m *kithv1.SignedDigest) { m.Signature[3]++ }},
		"at the end of time":        {digest: func(d *cluster.Digest) { d.Time = math.MaxInt64 }, skewed: true},
		"at its beginning":          {digest: func(d *cluster.Digest) { d.Time = math.MinInt64 }, skewed: true},
		"work is no number":         {digest: func(d *cluster.Digest) { d.Load.Work = math.NaN() }},
		"endless work":              {digest: func(d *cluster.Digest) { d.Load.Work = math.Inf(1) }},
		"less than no work":         {digest: func(d *cluster.Digest) { d.Load.Work = math.Inf(-1) }},
		"a hugely negative":         {digest: func(d *cluster.Digest) { d.Load.Procs = -1e300 }},
		"2^30 processors":           {digest: func(d *cluster.Digest) { d.Processors = 1 << 30 }},
		"speed of 1e300":            {digest: func(d *cluster.Digest) { d.Speed = 1e300 }},
		"a speed of a million":      {digest: func(d *cluster.Digest) { d.Speed = 1e6 }},
		"a long policy":             {digest: func(d *cluster.Digest) { d.Policy = strings.Repeat("x", 300) }},
		"the last incarnation":      {digest: func(d *cluster.Digest) { d.Incarnation = math.MaxUint64 }, good: true}, // bob's own doing
	} {
		t.Run(name, func(t *testing.T) {
			alone(t, func(n *network, s *site, e *eve) {
				bob := n.member("bob")
				n.newCert("eve")
				trust(s, bob)
				e.say(notePacket(keyNote(t, bob)))
				bob.start, bob.seq = 5, 9
				first := bob.digest()
				first.Processors = 7
				e.say(notePacket(noteOf(t, bob, first, nil)))
				synctest.Wait()
				if s.of("bob") != first {
					t.Fatalf("bob's digest is not heard: %+v", s.of("bob"))
				}
				d := bob.digest()
				if c.digest != nil {
					c.digest(&d)
				}
				e.say(notePacket(noteOf(t, bob, d, c.signed)))
				// In a push/pull, too.
				m := new(kithv1.GossipNote)
				if err := proto.Unmarshal(noteOf(t, bob, d, c.signed), m); err != nil {
					t.Fatal(err)
				}
				state := encoded(t, &kithv1.GossipState{Notes: []*kithv1.GossipNote{m}})
				e.say(frame{lastRequest, 1, append(ml(mlPushPull, mlHeader{UserStateLen: len(state)}), state...)})
				time.Sleep(time.Second)
				if heard := s.of("bob") == d; heard != c.good || !c.good && s.of("bob") != first {
					t.Errorf("heard: %v; now %+v", heard, s.of("bob"))
				}
				refused := s.refused.Load()
				if want := !c.good && !c.mild; (refused == 2) != want || refused != 0 && !want {
					t.Errorf("%d notes were refused", refused)
				}
				if s.Skewed("bob") != c.skewed {
					t.Errorf("bob's clock is off: %v", !c.skewed)
				}
				again := bob.digest() // with the right time
				e.say(notePacket(noteOf(t, bob, again, nil)))
				time.Sleep(time.Second)
				if d.Incarnation == again.Incarnation && (s.of("bob") != again || s.Skewed("bob")) {
					t.Errorf("after the clock was set: %+v, off %v", s.of("bob"), s.Skewed("bob"))
				}
			})
		})
	}
}

// What eve says of sites that this one does not trust, of this one, and of bob after he
// was revoked, is not heard and takes no memory.
func TestDigestsOfStrangers(t *testing.T) {
	alone(t, func(n *network, s *site, e *eve) {
		bob, me, stranger := n.member("bob"), &site{net: n, name: "me", cert: s.cert}, n.member("stranger")
		trust(s, bob)
		e.say(notePacket(keyNote(t, bob)), notePacket(keyNote(t, stranger)), notePacket(keyNote(t, me)))
		for _, o := range []*site{bob, stranger, me} {
			e.say(notePacket(noteOf(t, o, o.digest(), nil)))
		}
		time.Sleep(time.Second)
		if s.of("bob").Sequence != 1 || s.of("stranger").Sequence != 0 || s.of("me").Sequence != 0 || len(s.digests.of) > 1 {
			t.Errorf("heard %v; known are %d", s.heard, len(s.digests.of))
		}
		n.mu.Lock()
		n.bad[bob.cert] = true // his certificate is revoked, or below the floor
		n.mu.Unlock()
		e.say(notePacket(noteOf(t, bob, bob.digest(), nil)))
		time.Sleep(time.Second)
		if s.of("bob").Sequence != 1 {
			t.Error("a digest by a certificate that does not count any more was heard")
		}
		s.mu.Lock()
		delete(s.trusts, "bob")
		s.mu.Unlock()
		s.TrustChanged()
		n.mu.Lock()
		bob.cert = n.newCert("bob")
		n.mu.Unlock()
		e.say(notePacket(keyNote(t, bob)), notePacket(noteOf(t, bob, bob.digest(), nil)))
		time.Sleep(time.Second)
		if s.of("bob").Sequence != 1 || len(s.digests.of) != 0 {
			t.Error("a site that is not trusted any more was heard")
		}
	})
}

// A state of more notes than sites could have is refused as a whole.
func TestStateOfTooManyNotes(t *testing.T) {
	alone(t, func(_ *network, s *site, e *eve) {
		state := encoded(t, &kithv1.GossipState{Notes: slices.Repeat([]*kithv1.GossipNote{{}}, 2*cluster.MaxSites+1)})
		b := append(ml(mlPushPull, mlHeader{UserStateLen: len(state)}), state...)
		for ; len(b) > maxPiece; b = b[maxPiece:] {
			e.say(frame{request, 1, b[:maxPiece]})
		}
		e.say(frame{lastRequest, 1, b})
		time.Sleep(time.Second)
		if refused := s.refused.Load(); refused != 1 {
			t.Errorf("%d notes were looked at and refused, not the state", refused)
		}
	})
}

// A state full of notes that are refused takes its time to read, which ends with the lane.
func TestStateOfALaneThatEnded(t *testing.T) {
	alone(t, func(_ *network, s *site, e *eve) {
		bad := &kithv1.GossipNote{Note: &kithv1.GossipNote_Digest{Digest: &kithv1.SignedDigest{}}}
		state := encoded(t, &kithv1.GossipState{Notes: slices.Repeat([]*kithv1.GossipNote{bad}, 2*cluster.MaxSites)})
		b := append(ml(mlPushPull, mlHeader{UserStateLen: len(state)}), state...)
		for ; len(b) > maxPiece; b = b[maxPiece:] {
			e.say(frame{request, 1, b[:maxPiece]})
		}
		e.say(frame{lastRequest, 1, b})
		time.Sleep(time.Second)
		refused := s.refused.Load()
		if most := uint64(time.Second/refusalPause) + 1; refused == 0 || refused > most {
			t.Errorf("%d notes were refused within a second, not 1 to %d", refused, most)
		}
		s.mu.Lock()
		delete(s.trusts, "eve")
		s.mu.Unlock()
		s.TrustChanged()
		time.Sleep(time.Minute)
		if more := s.refused.Load() - refused; more > 1 {
			t.Errorf("%d more notes were read after the lane had ended", more)
		}
	})
}

// Keys: only those that are the site's, few of them, and a digest that overtook its key
// is heard when that comes.
func TestKeys(t *testing.T) {
	alone(t, func(n *network, s *site, e *eve) {
		bob := n.member("bob")
		trust(s, bob)
		bad := key{chain: [][]byte{[]byte("certificate 2 of eve")}}
		e.say(notePacket(encoded(t, bad.note("bob"))), notePacket(encoded(t, (&key{}).note("bob"))),
			notePacket(encoded(t, (&key{chain: make([][]byte, 5)}).note("bob"))))
		time.Sleep(time.Second)
		if s.refused.Load() != 3 || len(s.digests.of["bob"].keys) != 0 {
			t.Errorf("%d of 3 were refused", s.refused.Load())
		}
		e.say(notePacket(noteOf(t, bob, bob.digest(), nil)))
		time.Sleep(time.Second)
		if s.of("bob").Sequence != 0 {
			t.Error("a digest without a key was heard")
		}
		e.say(notePacket(keyNote(t, bob)))
		time.Sleep(time.Second)
		if s.of("bob").Sequence != 1 {
			t.Error("the digest was not heard when its key had come")
		}
		for range 10 {
			n.mu.Lock()
			bob.cert = n.newCert("bob")
			n.mu.Unlock()
			e.say(notePacket(keyNote(t, bob)))
		}
		e.say(notePacket(noteOf(t, bob, bob.digest(), nil)))
		time.Sleep(time.Second)
		if got := len(s.digests.of["bob"].keys); got != mostKeys || s.of("bob").Sequence != 2 {
			t.Errorf("%d keys are kept, heard %d", got, s.of("bob").Sequence)
		}
	})
}

// After a restart of this site a digest from long ago is not taken for news, nor after it
// was forgotten.
func TestReplayAfterForgetting(t *testing.T) {
	alone(t, func(n *network, s *site, e *eve) {
		bob := n.member("bob")
		trust(s, bob)
		old, late := noteOf(t, bob, bob.digest(), nil), noteOf(t, bob, bob.digest(), nil)
		e.say(notePacket(keyNote(t, bob)), notePacket(late))
		time.Sleep(time.Second)
		for range 10 * 60 / 20 * 60 { // ten hours
			if !e.say(frame{}) {
				t.Fatal("eve's lane ended")
			}
			time.Sleep(20 * time.Second)
			e.say(notePacket(old), notePacket(late))
		}
		if d := s.of("bob"); d.Sequence != 2 {
			t.Errorf("heard %d", d.Sequence)
		}
		if s.digests.of["bob"].has {
			t.Error("it is not forgotten")
		}
	})
}

// A member that floods with true digests of its own is heard four times a second.
func TestFloodOfDigests(t *testing.T) {
	alone(t, func(n *network, s *site, e *eve) {
		own := n.member("eve")
		heard := 0
		e.say(notePacket(keyNote(t, own)))
		var last uint64
		for range 2000 {
			e.say(notePacket(noteOf(t, own, own.digest(), nil)))
			synctest.Wait()
			if d := s.of("eve"); d.Sequence != last {
				heard, last = heard+1, d.Sequence
			}
			time.Sleep(time.Millisecond)
		}
		if heard > atOnce+8+1 || heard < atOnce {
			t.Errorf("%d of 2000 in two seconds were heard", heard)
		}
	})
}

// What eve says about bob, about strangers and about addresses changes nothing, and
// nothing is dialled for it.
func TestHostileMembership(t *testing.T) {
	alone(t, func(n *network, s *site, e *eve) {
		bob := n.member("bob")
		trust(s, bob)
		bob.begin()
		until(t, 10*time.Second, "bob a member", func() bool { return len(s.Members()) == 1 && s.Members()[0] == "bob" })
		dialled := n.dials["bob"]
		eves := func(change func(*mlAliveBody)) frame {
			a := aliveOf("eve")
			change(&a)
			return frame{packet, 0, ml(mlAlive, a)}
		}
		e.say(
			frame{packet, 0, ml(mlDead, mlSuspectBody{1 << 20, "bob", "eve"})},
			frame{packet, 0, ml(mlDead, mlSuspectBody{1 << 20, "bob", "bob"})},
			frame{packet, 0, ml(mlSuspect, mlSuspectBody{1 << 20, "bob", "eve"})},
			frame{packet, 0, ml(mlAlive, aliveOf("stranger"))},
			frame{packet, 0, ml(mlDead, mlSuspectBody{1<<32 - 1, "me", "eve"})},
			eves(func(a *mlAliveBody) { a.Addr = []byte{10, 0, 0, 9} }),
			eves(func(a *mlAliveBody) { a.Port = 22 }),
			eves(func(a *mlAliveBody) { a.Meta = make([]byte, 512) }),
			eves(func(a *mlAliveBody) { a.Vsn = []uint8{5, 5, 5, 0, 0, 0} }),
			eves(func(a *mlAliveBody) { a.Vsn = []uint8{1, 5, 2, 3, 3, 3} }),
			eves(func(a *mlAliveBody) { a.Vsn = nil }),
		)
		synctest.Wait()
		if got := s.Members(); len(got) != 1 || got[0] != "bob" {
			t.Errorf("members are %v", got)
		}
		for i, st := range []int{0, 1, 2, 3} {
			b := ml(mlPushPull, mlHeader{Nodes: 2, Join: i%2 == 0})
			for _, name := range []string{"bob", "stranger"} {
				b = append(b, ml(0, mlState{Name: name, Addr: []byte{10, 0, 0, 9}, Port: 22, Incarnation: 1 << 20, State: st, Vsn: versions})[1:]...)
			}
			e.say(frame{lastRequest, uint32(i), b})
			time.Sleep(time.Second)
		}
		for range 12 {
			e.say(frame{})
			time.Sleep(10 * time.Second)
			bob.advertise()
		}
		time.Sleep(time.Second)
		if got := s.Members(); len(got) != 1 || got[0] != "bob" || s.of("bob").Sequence != bob.seq {
			t.Errorf("members are %v, heard of bob %d", got, s.of("bob").Sequence)
		}
		if n.dials["stranger"] != 0 || n.dials["bob"] != dialled || len(n.dials) > 3 {
			t.Errorf("dialled: %v", n.dials)
		}
		// She is a member when she says no more than she may.
		e.say(eves(func(*mlAliveBody) {}))
		synctest.Wait()
		if got := s.Members(); len(got) != 2 {
			t.Errorf("members are %v", got)
		}
	})
}

// Whatever notes come, nothing breaks, and what is recorded is signed.
func FuzzNotes(f *testing.F) {
	n := newNetwork(f)
	bob := n.member("bob")
	me := n.member("me")
	trust(me, bob)
	f.Add(noteOf(f, bob, bob.digest(), nil))
	f.Add(keyNote(f, bob))
	with := bob.digest()
	with.Head = headOf(bob, 7)
	f.Add(noteOf(f, bob, with, nil))
	f.Add([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f})
	stranger := bob.digest()
	stranger.Site = "carol"
	f.Add(noteOf(f, bob, stranger, nil))
	trusted := me.config().Trusted
	left := []error{errDigest, errOld, errUnknownKey, errStranger}
	f.Fuzz(func(t *testing.T, b []byte) {
		d := newDigests("me", trusted, me)
		d.take(keyNote(t, bob)) //nolint:errcheck // it is right
		site, _, err := d.take(b)
		if err != nil && !slices.ContainsFunc(left, func(e error) bool { return errors.Is(err, e) }) {
			t.Errorf("%v", err)
		}
		if errors.Is(err, errStranger) && trusted(site) {
			t.Errorf("%s is a stranger", site)
		}
		for site, k := range d.of {
			if site != "bob" || k.has && k.digest.Site != job.SiteID("bob") {
				t.Errorf("%q is known", site)
			}
		}
		d.state()
	})
}

// A digest that is too long is not made.
func TestLongDigestIsNotSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		defer n.end()
		s := n.member("me")
		s.begin()
		d := s.digest()
		d.Policy = strings.Repeat("x", 2*maxDigestBytes)
		s.Advertise(d)
		if got := s.queue.len(); got != 0 {
			t.Errorf("%d notes are queued", got)
		}
		if wire.DigestMessage(&d) == nil {
			t.Error("no digest")
		}
	})
}
