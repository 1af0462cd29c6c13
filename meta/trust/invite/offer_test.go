package invite

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/internal/job"
)

func siteID(s string) job.SiteID { return job.SiteID(s) }

func newOffer(t testing.TB) Offer {
	t.Helper()
	i, _ := sample(t)
	o, err := i.Offer("uni-b")
	if err != nil {
		t.Fatal(err)
	}
	return o
}

var (
	one = Joiner{Site: "uni-b", CA: Pin{1}, Version: "v1"}
	two = Joiner{Site: "uni-b", CA: Pin{2}}
)

// in brings an offer into a state.
func in(t testing.TB, s State) Offer {
	t.Helper()
	o := newOffer(t)
	if s == Open {
		return o
	}
	if s == Expired {
		return o.At(o.Expires)
	}
	o, why := o.Come(one, noon)
	if why != NoReason {
		t.Fatal(why)
	}
	switch s {
	case Admitted, Declined:
		var err error
		if o, err = o.Decide(one.CA, s == Admitted, noon); err != nil {
			t.Fatal(err)
		}
	case Burnt:
		o, _ = o.Come(two, noon)
	}
	return o
}

// TestEveryTrial is the life of an invitation: each state, each kind of attempt.
func TestEveryTrial(t *testing.T) {
	for s, want := range map[State]string{
		// wrong proof, other name, the first site, the same again, a second CA
		Open:     "open 2, open 6, came 0, came 0, came 0",
		Came:     "came 2, came 6, came 0, came 0, burnt 4",
		Admitted: "admitted 2, admitted 6, admitted 0, admitted 0, admitted 5",
		Declined: "declined 2, declined 6, declined 7, declined 7, declined 5",
		Expired:  "expired 3, expired 3, expired 3, expired 3, expired 3",
		Burnt:    "burnt 4, burnt 4, burnt 4, burnt 4, burnt 4",
	} {
		o := in(t, s)
		if o.State != s {
			t.Fatalf("%s instead of %s", o.State, s)
		}
		var got []string
		add := func(o Offer, why Reason) { got = append(got, fmt.Sprintf("%s %d", o.State, why)) }
		add(o.Try("uni-b", one.CA, false, noon))
		add(o.Come(Joiner{Site: "uni-c", CA: one.CA}, noon))
		add(o.Come(one, noon))
		add(o.Come(one, noon))
		add(o.Come(two, noon))
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%s: %s\nwant %s", s, text, want)
		}
	}
}

func TestFiveWrongProofsBurn(t *testing.T) {
	for _, s := range []State{Open, Came} {
		o := in(t, s)
		for n := range MaxWrong {
			if o.State != s {
				t.Errorf("%s after %d wrong proofs", o.State, n)
			}
			var why Reason
			if o, why = o.Try("uni-b", Pin{byte(n)}, false, noon); why != WrongProof {
				t.Errorf("wrong proof %d: %d", n, why)
			}
		}
		if o.State != Burnt {
			t.Errorf("%s after five", o.State)
		}
		if _, why := o.Come(one, noon); why != WasBurnt {
			t.Errorf("the right one after five wrong ones: %d", why)
		}
	}
	o := in(t, Admitted)
	for range 2 * MaxWrong {
		o, _ = o.Try("uni-b", two.CA, false, noon)
	}
	if _, why := o.Come(one, noon); why != NoReason || o.State != Admitted {
		t.Errorf("wrong proofs undid what the operator decided: %s, %d", o.State, why)
	}
}

func TestDecisions(t *testing.T) {
	for _, s := range []State{Open, Admitted, Declined, Expired, Burnt} {
		if o, err := in(t, s).Decide(one.CA, true, noon); !errors.Is(err, ErrNothingToDecide) || o.State != s {
			t.Errorf("%s: %s, %v", s, o.State, err)
		}
	}
	o := in(t, Came)
	if again, err := o.Decide(two.CA, true, noon); !errors.Is(err, ErrNothingToDecide) || again.State != Came {
		t.Errorf("yes to a site that did not come: %s, %v", again.State, err)
	}
	if late, err := o.Decide(one.CA, true, o.Expires); !errors.Is(err, ErrNothingToDecide) || late.State != Expired {
		t.Errorf("yes at the end: %s, %v", late.State, err)
	}
}

func TestLaterDetailsCountUntilTheDecision(t *testing.T) {
	later := one
	later.Version = "v2"
	o, _ := in(t, Came).Come(later, noon)
	if o.Joiner.Version != "v2" {
		t.Errorf("before: %+v", o.Joiner)
	}
	o, _ = in(t, Admitted).Come(later, noon)
	if o.Joiner.Version != "v1" {
		t.Errorf("after: %+v", o.Joiner)
	}
}

func TestForgettable(t *testing.T) {
	for _, s := range []State{Open, Came, Admitted, Declined, Burnt, Expired} {
		o := in(t, s)
		if o.Forgettable(o.Expires.Add(-time.Second)) {
			t.Errorf("%s is forgotten before its end", s)
		}
		if !o.Forgettable(o.Expires.Add(AnswerFor)) {
			t.Errorf("%s is never forgotten", s)
		}
	}
	late, err := in(t, Came).Decide(one.CA, true, noon.Add(Lifetime-1))
	if err != nil || late.Forgettable(late.Expires.Add(AnswerFor/2)) {
		t.Errorf("a late decision is forgotten at once (%v)", err)
	}
}

func TestOfferToOneself(t *testing.T) {
	i, _ := sample(t)
	for _, to := range []job.SiteID{"uni-a", "", "Uni B"} {
		if _, err := i.Offer(to); err == nil {
			t.Errorf("an offer to %q", to)
		}
	}
}

// Offers returns what the desk holds, the first to end first.
func (d *Desk) Offers() []Offer {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forget()
	all := make([]Offer, 0, len(d.offer))
	for _, e := range d.offer {
		if !e.isNew {
			all = append(all, e.At(d.cfg.Now()))
		}
	}
	slices.SortFunc(all, func(a, b Offer) int {
		if c := a.Expires.Compare(b.Expires); c != 0 {
			return c
		}
		return strings.Compare(a.ID.String(), b.ID.String())
	})
	return all
}
