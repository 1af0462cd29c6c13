package storetest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"kith/internal/job"
	"kith/store"
	"kith/store/codec"
)

// WalkTrust returns a command about the trust table that could be next in s, as [Walk]
// does for jobs. Its times grow with step.
func WalkTrust(rng *rand.Rand, s *store.State, step int) store.Command {
	now := job.Time(step+1) * job.Time(5*time.Second)
	site := []job.SiteID{"alpha", "beta", "gamma", "delta"}[rng.IntN(4)]
	id := fmt.Sprint("i", rng.IntN(5))
	b := walkBundle(rng, s, site)
	switch rng.IntN(14) {
	case 12:
		if rng.IntN(3) == 0 {
			return store.SetAddresses{Site: site, Addresses: []string{"b.example:7411"}}
		}
		if rng.IntN(2) == 0 {
			return store.MakeToken{ID: fmt.Sprint("t", rng.IntN(40)), User: "ann", Expires: now.Add(time.Duration(rng.IntN(100)) * time.Minute), Actor: "ada", Time: now}
		}
		return store.TakeAddresses{Site: site, Told: store.Told{Addresses: []string{fmt.Sprint("c.example:", 1+rng.IntN(3))}, Incarnation: rng.Uint64N(5)}}
	case 0, 1:
		return store.AdmitSite{Site: site, Bundle: b, Addresses: []string{"a.example:7411"}, Version: "1", Actor: "ada", Time: now}
	case 2:
		return store.TakeBundle{Site: site, Bundle: b, Time: now}
	case 3:
		return store.RevokeSite{Site: site, LetRun: rng.IntN(2) == 0, Actor: "bob", Time: now}
	case 4:
		return store.ForgetTrust{Site: site}
	case 5:
		return store.SetBundleSequence{Sequence: rng.Uint64N(20)}
	case 6, 7:
		return store.OpenInvitation{ID: id, Name: site, Verifier: []byte("verifier"), Expires: now.Add(30 * time.Minute), Actor: "ada", Time: now}
	case 8:
		return store.TryInvitation{ID: id, Time: now}
	case 9:
		if i := s.Invitation(id); i != nil && rng.IntN(4) != 0 {
			site = i.Name
		}
		return store.ComeByInvitation{ID: id, Joiner: store.Joiner{Site: site, Bundle: walkBundle(rng, s, site), Version: "2"}, Time: now}
	case 10:
		if rng.IntN(3) == 0 {
			return store.PruneTrust{Time: now}
		}
		state := store.InvitationOpen + store.InvitationState(rng.IntN(6))
		if i := s.Invitation(id); i != nil && i.State == store.InvitationCame && rng.IntN(2) == 0 {
			state = store.InvitationAdmitted
		}
		return store.CloseInvitation{ID: id, State: state, Actor: "ada", Time: now}
	default:
		return store.RevokeToken{ID: fmt.Sprint("t", rng.IntN(40)), Unlisted: step%2 == 0, Expires: now.Add(time.Duration(rng.IntN(100)) * time.Minute), Actor: "eve", Time: now}
	}
}

func walkBundle(rng *rand.Rand, s *store.State, site job.SiteID) store.Bundle {
	b := store.Bundle{Data: []byte{byte(rng.IntN(3))}, Keys: []store.KeyID{{byte(rng.IntN(3))}}, Sequence: 1 + rng.Uint64N(3), Floor: job.Time(rng.IntN(2))}
	if t := s.TrustedSite(site); t != nil {
		b.Sequence += t.Bundle.Sequence - 1
		if rng.IntN(2) == 0 {
			b.Keys = append(b.Keys, t.Bundle.Keys[0])
		}
		if rng.IntN(8) != 0 {
			b.Floor += t.Bundle.Floor
		}
	}
	if rng.IntN(20) == 0 {
		b.Data = nil
	}
	return b
}

// testTrust checks that of the trust table, too, what was committed is there again.
func testTrust(t *testing.T, open Opener) {
	const seed = 1
	rng := rand.New(rand.NewPCG(seed, 0))
	b := open(t)
	s := load(t, b)
	seen := map[string]int{}
	for round := range 60 {
		for i := range rng.IntN(30) {
			s.Apply(WalkTrust(rng, s, round*30+i)) //nolint:errcheck // a walk takes wrong steps too
		}
		if err := b.Seal(s).Commit(); err != nil {
			t.Fatal(err)
		}
		want := codec.Dump(s)
		s.Apply(WalkTrust(rng, s, round*30+30)) //nolint:errcheck // never committed
		closed(t, b)
		b = open(t)
		s = load(t, b)
		if got := codec.Dump(s); !bytes.Equal(got, want) {
			t.Fatalf("seed %d, round %d: reopened with another trust table than was committed", seed, round)
		}
		for _, x := range s.TrustedSites() {
			seen[x.State.String()]++
		}
		for _, x := range s.Invitations() {
			seen["invitation "+x.State.String()]++
		}
		for _, x := range s.Tokens() {
			if x.Revoked == 0 {
				seen["token"]++
			} else {
				seen["revoked token"]++
			}
		}
	}
	for _, what := range []string{"known", "revoked", "invitation open", "invitation came", "invitation admitted", "invitation refused", "invitation expired", "invitation burnt", "token", "revoked token"} {
		if seen[what] == 0 {
			t.Errorf("seed %d: the walk came to no %s", seed, what)
		}
	}
	closed(t, b)
}
