package codec

import (
	"reflect"
	"testing"

	"kith/store"
)

// What is read is what was written, to the last field.
func TestTrustIsReadAsWritten(t *testing.T) {
	bundle := store.Bundle{Data: []byte("b"), Keys: []store.KeyID{{1}, {2}}, Sequence: 3, Floor: 4}
	site := store.TrustedSite{
		Site: "beta", State: store.SiteRevoked, Bundle: bundle, Addresses: []string{"b:1", "c:2"}, Version: "v", Since: 5, Actor: "ada", LetRun: true,
		Told: store.Told{Addresses: []string{"d:3"}, Incarnation: 12}, Steps: 13,
	}
	invitation := store.Invitation{
		ID: "i", Name: "gamma", Verifier: []byte("v"), State: store.InvitationCame, Tries: 2, Opened: 6, Expires: 7, Actor: "ada",
		Joiner: store.Joiner{Site: "gamma", Bundle: bundle, Addresses: []string{"g:1"}, Version: "w", Came: 8}, Closed: 9, ClosedBy: "bob",
	}
	token := store.Token{ID: "t", Expires: 10, Revoked: 11, Actor: "eve", User: "ann", Made: 9, Maker: "ada"}
	for _, v := range []any{site, invitation, invitation.Joiner, token, bundle, site.Told} {
		for i := range reflect.TypeOf(v).NumField() {
			if reflect.ValueOf(v).Field(i).IsZero() {
				t.Errorf("%T: %s is not set here, so it is not tested", v, reflect.TypeOf(v).Field(i).Name)
			}
		}
	}
	s := store.NewState("alpha", 3)
	s.RestoreTrusted(site)
	s.RestoreInvitation(invitation)
	s.RestoreToken(token)

	var r Reader
	if err := r.Site(seal(siteMessage(store.Site{ID: "alpha", Generation: 3, NextSeq: 1, BundleSequence: 12})), "alpha"); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{r.Trusted(seal(trustMessage(&site))), r.Invitation(seal(invitationMessage(&invitation))), r.Token(seal(tokenMessage(&token)))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	got, err := r.State()
	if err != nil {
		t.Fatal(err)
	}
	if x := got.TrustedSite("beta"); !reflect.DeepEqual(*x, site) {
		t.Errorf("site %+v, want %+v", *x, site)
	}
	if x := got.Invitation("i"); !reflect.DeepEqual(*x, invitation) {
		t.Errorf("invitation %+v, want %+v", *x, invitation)
	}
	if x := got.Token("t"); !reflect.DeepEqual(*x, token) {
		t.Errorf("token %+v, want %+v", *x, token)
	}
	if n := got.Site().BundleSequence; n != 12 || got.TrustDue() != 7 {
		t.Errorf("bundle sequence %d, due at %d", n, got.TrustDue())
	}
}
