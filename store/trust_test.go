package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/internal/job"
	"kith/store"
	"kith/store/codec"
	"kith/store/storetest"
)

// bundleOf makes a bundle of CAs that are named by a byte each.
func bundleOf(sequence uint64, keys ...byte) store.Bundle {
	b := store.Bundle{Data: keys, Sequence: sequence}
	for _, k := range keys {
		b.Keys = append(b.Keys, store.KeyID{k})
	}
	return b
}

// What was claimed of a site before it was admitted is given up; a later bundle is no admission.
func TestStepsOfAnAdmission(t *testing.T) {
	s := store.NewState("alpha", 1)
	for _, c := range []struct {
		what string
		do   store.Command
		want uint64
	}{
		{"admitted", store.AdmitSite{Site: "beta", Bundle: bundleOf(1, 1), Steps: 5}, 5},
		{"admitted again", store.AdmitSite{Site: "beta", Bundle: bundleOf(2, 1), Steps: 7}, 5},
		{"a later bundle", store.TakeBundle{Site: "beta", Bundle: bundleOf(3, 1)}, 5},
		{"revoked", store.RevokeSite{Site: "beta"}, 5},
		{"admitted after that", store.AdmitSite{Site: "beta", Bundle: bundleOf(4, 1), Steps: 9}, 9},
	} {
		if must(t, s, c.do); s.TrustedSite("beta").Steps != c.want {
			t.Errorf("%s: steps %d, want %d", c.what, s.TrustedSite("beta").Steps, c.want)
		}
	}
	must(t, s, store.RevokeSite{Site: "beta"}, store.ForgetTrust{Site: "beta"}, store.AdmitSite{Site: "beta", Bundle: bundleOf(1, 2), Steps: 11})
	if got := s.TrustedSite("beta").Steps; got != 11 {
		t.Errorf("forgotten and admitted: steps %d, want 11", got)
	}
}

// fails applies c, which must fail with want, say remedy and change nothing.
func fails(t *testing.T, s *store.State, c store.Command, want error, remedy string) {
	t.Helper()
	before := codec.Dump(s)
	err := s.Apply(c)
	if !errors.Is(err, want) || !strings.Contains(err.Error(), remedy) {
		t.Errorf("%T: %v, want %q with %q", c, err, want, remedy)
	}
	if !bytes.Equal(codec.Dump(s), before) {
		t.Errorf("%T failed and changed the state", c)
	}
}

// A name belongs to the CAs that it was admitted with until it is revoked.
func TestNamesBelongToABundle(t *testing.T) {
	s := store.NewState("alpha", 1)
	admit := func(sequence uint64, keys ...byte) store.AdmitSite {
		return store.AdmitSite{Site: "beta", Bundle: bundleOf(sequence, keys...), Addresses: []string{"b.example:7411"}, Version: "1.0", Actor: "ada", Time: 5}
	}
	must(t, s, admit(3, 1, 2))
	fails(t, s, admit(9, 7), store.ErrNameTaken, "revoke beta first")
	fails(t, s, store.ComeByInvitation{ID: "x"}, store.ErrUnknown, "x")
	fails(t, s, admit(2, 1), store.ErrOldBundle, "known is 3")
	fails(t, s, admit(3, 1), store.ErrOldBundle, "another bundle")
	must(t, s, admit(3, 1, 2), admit(4, 2, 3))
	own := admit(1, 9)
	own.Site = "alpha"
	fails(t, s, own, store.ErrNameTaken, "this site")

	// Over a stream that the known one proved, the bundle may have no CA in common.
	must(t, s, store.TakeBundle{Site: "beta", Bundle: bundleOf(5, 4)}, store.TakeBundle{Site: "beta", Bundle: bundleOf(5, 4)})
	fails(t, s, store.TakeBundle{Site: "beta", Bundle: bundleOf(5, 5)}, store.ErrOldBundle, "5")
	fails(t, s, store.TakeBundle{Site: "beta", Bundle: bundleOf(4, 4)}, store.ErrOldBundle, "known is 5")
	fails(t, s, store.TakeBundle{Site: "beta", Bundle: store.Bundle{Sequence: 9}}, store.ErrBounds, "by nothing")
	fails(t, s, store.TakeBundle{Site: "gamma", Bundle: bundleOf(1, 1)}, store.ErrUnknown, "gamma")
	floor := bundleOf(6, 4)
	floor.Floor = 100
	must(t, s, store.TakeBundle{Site: "beta", Bundle: floor})
	fails(t, s, store.TakeBundle{Site: "beta", Bundle: bundleOf(7, 4)}, store.ErrOldBundle, "floor")

	fails(t, s, store.ForgetTrust{Site: "beta"}, store.ErrState, "revoke it first")
	must(t, s, store.RevokeSite{Site: "beta", LetRun: true, Actor: "bob", Time: 9})
	fails(t, s, store.TakeBundle{Site: "beta", Bundle: bundleOf(8, 4)}, store.ErrRevoked, "invite it again")
	must(t, s, store.RevokeSite{Site: "beta", Time: 10}, store.RevokeSite{Site: "beta", LetRun: true, Time: 11})
	if b := s.TrustedSite("beta"); b.State != store.SiteRevoked || b.LetRun || b.Since != 10 {
		t.Errorf("revoked for good: %+v", b)
	}
	fails(t, s, admit(1, 4), store.ErrOldBundle, "known is 6") // the CA that was revoked
	must(t, s, admit(1, 8))                                    // another one, whose fingerprint the operator has seen
	if b := s.TrustedSite("beta"); b.State != store.SiteKnown || b.Bundle.Sequence != 1 || b.Bundle.Floor != 0 {
		t.Errorf("admitted by another CA: %+v", b)
	}
	must(t, s, store.RevokeSite{Site: "beta"}, store.ForgetTrust{Site: "beta"})
	if s.TrustedSiteCount() != 0 {
		t.Error("a forgotten site is in the table")
	}
	must(t, s, store.SetBundleSequence{Sequence: 4}, store.SetBundleSequence{Sequence: 4})
	fails(t, s, store.SetBundleSequence{Sequence: 3}, store.ErrOldBundle, "latest is 4")
}

// Where a site is: what it says itself is believed from later starts only, takes the place
// of what it said before and of nothing else, and the operator's word takes that of all.
func TestAddressesOfASite(t *testing.T) {
	s := store.NewState("alpha", 1)
	must(t, s, store.AdmitSite{Site: "beta", Bundle: bundleOf(1, 1), Addresses: []string{"nat:1", "own:1"}, Told: []string{"own:1"}})
	told := func(incarnation uint64, addresses ...string) store.TakeAddresses {
		return store.TakeAddresses{Site: "beta", Told: store.Told{Addresses: addresses, Incarnation: incarnation}}
	}
	dialled := func(want ...string) {
		t.Helper()
		if got := s.TrustedSite("beta").Dialled(); !slices.Equal(got, want) {
			t.Errorf("dialled at %q, want %q", got, want)
		}
	}
	dialled("nat:1", "own:1")
	must(t, s, told(3, "own:2"), told(3, "own:2"))
	dialled("nat:1", "own:2")
	fails(t, s, told(2, "own:1"), store.ErrOldAddresses, "start 3")
	fails(t, s, told(3, "own:1"), store.ErrOldAddresses, "same start 3")
	must(t, s, told(4))
	dialled("nat:1") // it only dials out now
	must(t, s, told(1<<63, "thief:1"))
	fails(t, s, told(5, "own:3"), store.ErrOldAddresses, "start")
	must(t, s, store.TakeBundle{Site: "beta", Bundle: bundleOf(2, 1)}, told(5, "own:3")) // after rotate --now
	dialled("nat:1", "own:3")
	must(t, s, store.SetAddresses{Site: "beta", Addresses: []string{"said:1"}})
	dialled("said:1")
	must(t, s, told(5, "own:3"))
	dialled("said:1", "own:3")
	var many []string
	for n := range store.MaxAddresses + 1 {
		many = append(many, fmt.Sprint("a:", n+1))
	}
	fails(t, s, told(6, many...), store.ErrBounds, "addresses")
	fails(t, s, told(6, "a\nb:1"), store.ErrBounds, "host:port")
	fails(t, s, told(6, strings.Repeat("a", store.MaxAddress+1)), store.ErrBounds, "host:port")
	fails(t, s, store.SetAddresses{Site: "beta", Addresses: many}, store.ErrBounds, "addresses")
	fails(t, s, store.SetAddresses{Site: "beta"}, store.ErrBounds, "no address")
	fails(t, s, store.SetAddresses{Site: "gamma", Addresses: many[:1]}, store.ErrUnknown, "gamma")
	must(t, s, store.RevokeSite{Site: "beta"})
	fails(t, s, told(7, "own:7"), store.ErrRevoked, "invite it again")
	fails(t, s, store.SetAddresses{Site: "beta", Addresses: many[:1]}, store.ErrRevoked, "invite it again")
	must(t, s, store.AdmitSite{Site: "beta", Bundle: bundleOf(2, 1), Addresses: []string{"new:1"}})
	dialled("new:1")
}

// A token is remembered from its making to its end, revoked or not.
func TestTokens(t *testing.T) {
	s := store.NewState("alpha", 1)
	made := store.MakeToken{ID: "a", User: "ann", Expires: 100, Actor: "ada", Time: 5}
	must(t, s, made)
	fails(t, s, made, store.ErrExists, "a")
	fails(t, s, store.MakeToken{ID: "b", Expires: 100, Time: 5}, store.ErrBounds, "user")
	fails(t, s, store.MakeToken{ID: "b", User: "ann", Expires: 5, Time: 5}, store.ErrBounds, "some time")
	fails(t, s, store.MakeToken{ID: "b c", User: "ann", Expires: 100, Time: 5}, store.ErrBounds, "letters")
	must(t, s, store.RevokeToken{ID: "a", Expires: 1000, Actor: "bob", Time: 7}, store.RevokeToken{ID: "a", Expires: 1000, Actor: "eve", Time: 8})
	if got, want := *s.Token("a"), (store.Token{ID: "a", User: "ann", Expires: 100, Made: 5, Maker: "ada", Revoked: 7, Actor: "bob"}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	stranger := store.RevokeToken{ID: "stolen", Expires: 1000, Time: 9}
	fails(t, s, stranger, store.ErrNoToken, `"stolen"`)
	if s.Token("stolen") != nil {
		t.Error("a token that was not made here is revoked")
	}
	stranger.Unlisted = true
	for n := range store.MaxTokens {
		must(t, s, store.MakeToken{ID: fmt.Sprint(n), User: "ann", Expires: 200, Time: 9})
	}
	fails(t, s, store.MakeToken{ID: "one-more", User: "ann", Expires: 200, Time: 9}, store.ErrTrustFull, "revoke some")
	must(t, s, stranger, store.MakeToken{ID: "later", User: "ann", Expires: 300, Time: 200})
	must(t, s, store.PruneTrust{Time: 200})
	if n := len(s.Tokens()); n != 2 {
		t.Errorf("%d tokens, want the stolen and the later one", n)
	}
}

// Each field of the table has its bound, and meeting it is an answer.
func TestTrustBounds(t *testing.T) {
	s := store.NewState("alpha", 1)
	site := func(change func(*store.AdmitSite)) store.AdmitSite {
		c := store.AdmitSite{Site: "beta", Bundle: bundleOf(1, 1)}
		change(&c)
		return c
	}
	for name, c := range map[string]store.AdmitSite{
		"bundle":     site(func(c *store.AdmitSite) { c.Bundle.Data = make([]byte, store.MaxBundle+1) }),
		"CAs":        site(func(c *store.AdmitSite) { c.Bundle = bundleOf(1, 1, 2, 3, 4, 5, 6, 7, 8, 9) }),
		"sequence":   site(func(c *store.AdmitSite) { c.Bundle.Sequence = 0 }),
		"without":    site(func(c *store.AdmitSite) { c.Bundle.Data = nil }),
		"addresses":  site(func(c *store.AdmitSite) { c.Addresses = strings.Fields(strings.Repeat("a:1 ", store.MaxAddresses+1)) }),
		"address":    site(func(c *store.AdmitSite) { c.Addresses = []string{"a\nb:1"} }),
		"version":    site(func(c *store.AdmitSite) { c.Version = strings.Repeat("v", store.MaxTrustText+1) }),
		"CA":         site(func(c *store.AdmitSite) { c.Bundle.Keys = nil }),
		"characters": site(func(c *store.AdmitSite) { c.Addresses = []string{strings.Repeat("a", store.MaxAddress+1)} }),
	} {
		fails(t, s, c, store.ErrBounds, name)
	}
	fails(t, s, site(func(c *store.AdmitSite) { c.Site = "No Site" }), job.ErrBadSiteID, "No Site")
	open := func(id string) store.OpenInvitation {
		return store.OpenInvitation{ID: id, Name: "beta", Verifier: []byte("v"), Expires: 100, Time: 1}
	}
	long := open("a")
	long.Verifier = make([]byte, store.MaxVerifier+1)
	late := open("a")
	late.Expires = 1
	fails(t, s, open("a b"), store.ErrBounds, "letters")
	fails(t, s, open(strings.Repeat("a", store.MaxTrustID+1)), store.ErrBounds, "letters")
	fails(t, s, long, store.ErrBounds, "65 bytes")
	fails(t, s, late, store.ErrBounds, "minutes")
	for n := range store.MaxInvitations {
		must(t, s, open(fmt.Sprint("i", n)))
	}
	fails(t, s, open("one-more"), store.ErrTrustFull, "refuse some")
	for n := range 2 * store.MaxInvitations {
		id := fmt.Sprint("i", n)
		if n >= store.MaxInvitations {
			must(t, s, open(id))
		}
		must(t, s, store.CloseInvitation{ID: id, State: store.InvitationRefused, Time: job.Time(n)})
	}
	if n := len(s.Invitations()); n != store.MaxInvitations || s.Invitation("i0") != nil || s.Invitation(fmt.Sprint("i", 2*store.MaxInvitations-1)) == nil {
		t.Errorf("%d invitations are remembered, want the latest %d", n, store.MaxInvitations)
	}
	for n := range store.MaxTrustedSites {
		c := site(func(c *store.AdmitSite) { c.Site = job.SiteID(fmt.Sprint("s", n)) })
		must(t, s, c)
	}
	fails(t, s, site(func(*store.AdmitSite) {}), store.ErrTrustFull, "kith site forget SITE --revoked")
	must(t, s, store.RevokeSite{Site: "s7", Time: 1}, store.ForgetTrust{Site: "s7"}, site(func(*store.AdmitSite) {}))
	for n := range store.MaxRevokedTokens {
		must(t, s, store.RevokeToken{ID: fmt.Sprint(n), Unlisted: true, Expires: job.Time(100 + n), Time: 1})
	}
	fails(t, s, store.RevokeToken{ID: "x", Unlisted: true, Expires: 1 << 40, Time: 1}, store.ErrTrustFull, "token key")
	must(t, s, store.RevokeToken{ID: "x", Unlisted: true, Expires: 1 << 40, Time: 101}) // room is made of what has expired
	if s.Token("0") != nil || s.Token("2") == nil || s.Token("x") == nil {
		t.Error("the expired tokens, and only those, should have made room")
	}
	must(t, s, store.PruneTrust{Time: 1<<40 - 1})
	if n := len(s.Tokens()); n != 1 || s.TrustDue() != 1<<40 {
		t.Errorf("%d revoked tokens, next due at %d", n, s.TrustDue())
	}
}

// An invitation is used once, by the site that it is for.
func TestInvitations(t *testing.T) {
	minute := job.Time(time.Minute)
	s := store.NewState("alpha", 1)
	open := func(id string) store.OpenInvitation {
		return store.OpenInvitation{ID: id, Name: "beta", Verifier: []byte("v"), Expires: 30 * minute, Actor: "ada", Time: minute}
	}
	come := func(id string, site job.SiteID, key byte) store.ComeByInvitation {
		return store.ComeByInvitation{ID: id, Joiner: store.Joiner{Site: site, Bundle: bundleOf(1, key)}, Time: 2 * minute}
	}
	state := func(id string, want store.InvitationState) {
		t.Helper()
		if i := s.Invitation(id); i == nil || i.State != want || (want.Over() && want != store.InvitationAdmitted) != (i.Verifier == nil) {
			t.Errorf("invitation %s is %+v, want %v", id, i, want)
		}
	}
	must(t, s, open("used"), open("tried"), open("twice"), open("old"), open("waits"))
	fails(t, s, open("used"), store.ErrExists, "used")
	fails(t, s, come("used", "gamma", 1), store.ErrNameTaken, "for site beta")
	fails(t, s, store.CloseInvitation{ID: "used", State: store.InvitationAdmitted}, store.ErrState, "none has come")
	must(t, s, come("used", "beta", 1), come("used", "beta", 1))
	state("used", store.InvitationCame)
	must(t, s, store.CloseInvitation{ID: "used", State: store.InvitationAdmitted, Actor: "ada", Time: 3 * minute})
	state("used", store.InvitationAdmitted)
	fails(t, s, come("used", "beta", 1), store.ErrInvitationOver, "ask for another")
	fails(t, s, store.TryInvitation{ID: "used", Time: 3 * minute}, store.ErrInvitationOver, "admitted")
	fails(t, s, store.CloseInvitation{ID: "used", State: store.InvitationRefused}, store.ErrInvitationOver, "admitted")

	for n := range store.MaxTries {
		state("tried", store.InvitationOpen)
		if got := s.Invitation("tried").Tries; got != uint32(n) {
			t.Errorf("%d tries are counted, want %d", got, n)
		}
		must(t, s, store.TryInvitation{ID: "tried", Time: 3 * minute})
	}
	state("tried", store.InvitationBurnt)

	must(t, s, come("twice", "beta", 1), come("twice", "beta", 2)) // by another CA: somebody has the text
	state("twice", store.InvitationBurnt)

	must(t, s, come("waits", "beta", 1))
	fails(t, s, store.ComeByInvitation{ID: "old", Joiner: store.Joiner{Site: "beta", Bundle: bundleOf(1, 1)}, Time: 30 * minute}, store.ErrInvitationOver, "expired")
	if at := s.TrustDue(); at != 30*minute {
		t.Errorf("due at %v, want the end of the texts", at)
	}
	must(t, s, store.PruneTrust{Time: 30 * minute})
	state("old", store.InvitationExpired)
	state("waits", store.InvitationExpired) // the joiner waits no longer than its text holds
	must(t, s, store.PruneTrust{Time: 100 * 24 * 60 * minute})
	if n := len(s.Invitations()); n != 0 || s.TrustDue() != job.Never {
		t.Errorf("%d invitations, next due at %v", n, s.TrustDue())
	}
}

// Random walks: what fails changes nothing, and no bundle of a known site goes back.
func TestTrustWalks(t *testing.T) {
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s := store.NewState("alpha", 1)
		for step := range 400 {
			c := storetest.WalkTrust(rng, s, step)
			before, sequence, keys := codec.Dump(s), map[job.SiteID]uint64{}, map[job.SiteID]store.KeyID{}
			for _, x := range s.TrustedSites() {
				if x.State == store.SiteKnown {
					sequence[x.Site], keys[x.Site] = x.Bundle.Sequence, x.Bundle.Keys[0]
				}
			}
			if err := s.Apply(c); err != nil && !bytes.Equal(before, codec.Dump(s)) {
				t.Fatalf("seed %d, step %d: %#v failed with %v and changed the state", seed, step, c, err)
			}
			if err := s.Check(); err != nil {
				t.Fatalf("seed %d, step %d: %#v: %v", seed, step, c, err)
			}
			for site, n := range sequence {
				if x := s.TrustedSite(site); x != nil && x.Bundle.Sequence < n {
					t.Fatalf("seed %d, step %d: %#v took the bundle of %s back from %d to %d", seed, step, c, site, n, x.Bundle.Sequence)
				}
			}
		}
	}
}
