package invite

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kith/internal/job"
	"kith/meta/trust"
)

// site is one with keys, whose clock is that of the bubble.
func site(t testing.TB, name job.SiteID) *trust.Endpoint {
	t.Helper()
	keys, err := trust.Init(filepath.Join(t.TempDir(), "keys"), name, trust.Options{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return &trust.Endpoint{Keys: keys, Trusted: new(trust.Set), Now: time.Now, JoinOpen: func() bool { return true }}
}

func selfOf(e *trust.Endpoint) Self {
	return Self{CA: e.Keys.CA(), Bundle: e.Keys.Bundle(), Addresses: []string{string(e.Keys.Site()) + ".example.org:7410"}, Version: "1.2"}
}

// world is uni-a, which invited uni-b, and uni-b.
type world struct {
	t        testing.TB
	a, b     *trust.Endpoint
	desk     *Desk
	i        Invitation
	mu       sync.Mutex
	kept     map[ID]Offer
	keepErr  error
	hang     func(Offer) // called before an offer is kept; nil for nothing
	checkErr error
	attempts []Attempt
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, a: site(t, "uni-a"), b: site(t, "uni-b"), kept: make(map[ID]Offer)}
	w.desk = NewDesk(Config{
		Site: "uni-a", Self: func() Self { return selfOf(w.a) }, Now: time.Now,
		Keep: func(_ context.Context, _, o Offer) error {
			if w.hang != nil {
				w.hang(o)
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.keepErr == nil {
				w.kept[o.ID] = o
			}
			return w.keepErr
		},
		Check:  func(Joiner) error { return w.checkErr },
		Report: func(a Attempt) { w.mu.Lock(); defer w.mu.Unlock(); w.attempts = append(w.attempts, a) },
	}, nil)
	w.i = w.invite("uni-b")
	return w
}

func (w *world) invite(to job.SiteID) Invitation {
	w.t.Helper()
	i, err := New("uni-a", PinOf(w.a.Keys.CA()), []string{"a:1"}, Lifetime, time.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	o, err := i.Offer(to)
	if err == nil {
		err = w.desk.Add(context.Background(), o)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return i
}

// dial connects a client to the desk.
func (w *world) dial(client *tls.Config) *tls.Conn {
	return w.dialCtx(context.Background(), client)
}

func (w *world) dialCtx(ctx context.Context, client *tls.Config) *tls.Conn {
	near, far := net.Pipe()
	go func() { _ = w.desk.Serve(ctx, tls.Server(far, w.a.ServerTLS())) }()
	return tls.Client(near, client)
}

// redeem has a site redeem an invitation.
func (w *world) redeem(e *trust.Endpoint, i Invitation) (Admission, error) {
	return Redeem(context.Background(), w.dial(e.JoinTLS(i.Check)), i, Joining{Site: e.Keys.Site(), Self: selfOf(e), Now: e.Now})
}

type answer struct {
	Admission
	err error
}

// start redeems in the background.
func (w *world) start(e *trust.Endpoint, i Invitation) <-chan answer {
	done := make(chan answer, 1)
	go func() {
		a, err := w.redeem(e, i)
		done <- answer{a, err}
	}()
	synctest.Wait()
	return done
}

func (w *world) state() State { return w.desk.Offers()[0].State }

func (w *world) yes(e *trust.Endpoint) error {
	return w.desk.Decide(context.Background(), w.i.ID(), PinOf(e.Keys.CA()), true)
}

func (w *world) last() Attempt {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.attempts) == 0 {
		return Attempt{}
	}
	return w.attempts[len(w.attempts)-1]
}

// refused demands that an exchange ended with a reason.
func refused(t testing.TB, err error, want Reason) {
	t.Helper()
	var r Refusal
	if !errors.As(err, &r) || r.Reason != want {
		t.Errorf("got %v, want reason %d: %v", err, want, Refusal{want})
	}
}

func bubble(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newWorld(t)) })
}

func TestTwoSitesJoin(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		done := w.start(w.b, w.i)
		if w.state() != Came {
			t.Fatalf("%s", w.state())
		}
		o := w.desk.Offers()[0]
		if j := o.Joiner; j.Site != "uni-b" || j.Fingerprint != trust.Fingerprint(w.b.Keys.CA()) || j.Addresses[0] != "uni-b.example.org:7410" || j.Version != "1.2" {
			t.Errorf("the operator sees %+v", j)
		}
		time.Sleep(Lifetime - time.Minute) // the operator is at lunch
		if err := w.yes(w.b); err != nil {
			t.Fatal(err)
		}
		a := <-done
		if a.err != nil || a.Site != "uni-a" || !a.Bundle.Holds(w.a.Keys.CA()) || a.Addresses[0] != "uni-a.example.org:7410" || a.Version != "1.2" {
			t.Errorf("the joiner got %+v", a)
		}
		if k := w.kept[o.ID]; k.State != Admitted || !k.Joiner.Bundle.Holds(w.b.Keys.CA()) {
			t.Errorf("kept %+v", k)
		}
		if l := w.last(); l.State != Admitted || l.Reason != NoReason || l.Err != nil || l.Site != "uni-b" || l.Invitation != o.ID {
			t.Errorf("reported %+v", l)
		}
	})
}

// An operator whose text came into wrong hands ends the invitation before anybody has come by it,
// and after that.
func TestWithdrawnInvitation(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		if err := w.desk.Withdraw(context.Background(), w.i.ID()); err != nil || w.state() != Declined {
			t.Fatalf("%s, %v", w.state(), err)
		}
		_, err := w.redeem(w.b, w.i)
		refused(t, err, Operator)
		if err := w.desk.Withdraw(context.Background(), w.i.ID()); !errors.Is(err, ErrNothingToDecide) {
			t.Errorf("again: %v", err)
		}
		if k := w.kept[w.i.ID()]; k.State != Declined {
			t.Errorf("kept %+v", k)
		}
	})
	bubble(t, func(t *testing.T, w *world) {
		done := w.start(w.b, w.i)
		if err := w.desk.Withdraw(context.Background(), w.i.ID()); err != nil {
			t.Fatal(err)
		}
		refused(t, (<-done).err, Operator)
	})
}

func TestOperatorSaysNo(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		done := w.start(w.b, w.i)
		if err := w.desk.Decide(context.Background(), w.i.ID(), PinOf(w.b.Keys.CA()), false); err != nil {
			t.Fatal(err)
		}
		refused(t, (<-done).err, Operator)
		_, err := w.redeem(w.b, w.i)
		refused(t, err, Operator)
	})
}

// A joiner that lost its connection comes again: while it waits, after the decision,
// and after a restart of the inviter.
func TestJoinerComesAgain(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		lost := w.start(w.b, w.i)
		done := w.start(w.b, w.i)
		if a := <-lost; a.err == nil {
			t.Error("two connections wait for one invitation")
		}
		if err := w.yes(w.b); err != nil {
			t.Fatal(err)
		}
		if a := <-done; a.err != nil {
			t.Error(a.err)
		}
		w.desk = NewDesk(w.desk.cfg, []Offer{w.kept[w.i.ID()]})
		if a, err := w.redeem(w.b, w.i); err != nil || a.Site != "uni-a" {
			t.Errorf("again: %+v, %v", a, err)
		}
	})
}

func TestSecondUse(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		thief := site(t, "uni-b")
		done := w.start(w.b, w.i)
		_, err := w.redeem(thief, w.i)
		refused(t, err, WasBurnt)
		refused(t, (<-done).err, WasBurnt)
		if k := w.kept[w.i.ID()]; k.State != Burnt {
			t.Errorf("kept as %s", k.State)
		}
		if err := w.yes(w.b); !errors.Is(err, ErrNothingToDecide) {
			t.Errorf("yes to a burnt one: %v", err)
		}
	})
	bubble(t, func(t *testing.T, w *world) {
		thief := site(t, "uni-b")
		done := w.start(w.b, w.i)
		if err := w.yes(w.b); err != nil {
			t.Fatal(err)
		}
		<-done
		_, err := w.redeem(thief, w.i)
		refused(t, err, Used)
		if l := w.last(); l.Reason != Used || l.Fingerprint != trust.Fingerprint(thief.Keys.CA()) {
			t.Errorf("reported %+v", l)
		}
		if _, err := w.redeem(w.b, w.i); err != nil {
			t.Errorf("the first one: %v", err)
		}
	})
}

func TestExpiredInvitation(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		time.Sleep(Lifetime)
		_, err := w.redeem(w.b, w.i)
		if !errors.Is(err, ErrOver) {
			t.Errorf("by the joiner's own clock: %v", err)
		}
		w.b.Now = func() time.Time { return time.Now().Add(-time.Minute) }
		_, err = w.redeem(w.b, w.i)
		refused(t, err, TimeOver)
		time.Sleep(AnswerFor)
		w.b.Now = func() time.Time { return time.Now().Add(-time.Hour) }
		if w.desk.IsOpen() {
			t.Error("the desk is open for an invitation that is over")
		}
	})
	bubble(t, func(t *testing.T, w *world) {
		before := time.Now()
		done := w.start(w.b, w.i)
		refused(t, (<-done).err, TimeOver)
		if d := time.Since(before); d < Lifetime || d > Lifetime+2*stepWait {
			t.Errorf("told after %s", d)
		}
	})
}

func TestOtherName(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		_, err := w.redeem(site(t, "uni-c"), w.i)
		refused(t, err, OtherName)
		if w.state() != Open {
			t.Errorf("%s", w.state())
		}
	})
}

func TestNameTaken(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.checkErr = errors.New("uni-b has another bundle here")
		_, err := w.redeem(w.b, w.i)
		refused(t, err, NameTaken)
		w.checkErr = nil
		done := w.start(w.b, w.i)
		w.checkErr = errors.New("taken meanwhile")
		if err := w.yes(w.b); !errors.Is(err, w.checkErr) || w.state() != Came {
			t.Errorf("yes: %v, %s", err, w.state())
		}
		w.checkErr = nil
		if err := w.yes(w.b); err != nil {
			t.Error(err)
		}
		<-done
	})
}

// What cannot be written is not told.
func TestNothingIsToldBeforeItIsKept(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.keepErr = errors.New("disk full")
		_, err := w.redeem(w.b, w.i)
		refused(t, err, Unavailable)
		if w.state() != Open {
			t.Errorf("%s", w.state())
		}
		w.keepErr = nil
		done := w.start(w.b, w.i)
		w.keepErr = errors.New("disk full")
		if err := w.yes(w.b); !errors.Is(err, w.keepErr) || w.state() != Came {
			t.Errorf("yes: %v, %s", err, w.state())
		}
		i, err := New("uni-a", Pin{}, []string{"a:1"}, Lifetime, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if o, err := i.Offer("uni-c"); err != nil || !errors.Is(w.desk.Add(context.Background(), o), w.keepErr) {
			t.Errorf("an offer that is not kept is held (%v)", err)
		}
		w.keepErr = nil
		if err := w.yes(w.b); err != nil {
			t.Error(err)
		}
		if a := <-done; a.err != nil {
			t.Error(a.err)
		}
	})
}

func TestEndsOfContexts(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() {
			_, err := Redeem(ctx, w.dial(w.b.JoinTLS(w.i.Check)), w.i, Joining{Site: "uni-b", Self: selfOf(w.b), Now: time.Now})
			done <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("joiner: %v", err)
		}
		ctx, cancel = context.WithCancel(context.Background())
		asked := 0
		go func() {
			_, err := Redeem(context.Background(), w.dialCtx(ctx, w.b.JoinTLS(w.i.Check)), w.i,
				Joining{Site: "uni-b", Self: selfOf(w.b), Now: time.Now, Waiting: func() { asked++ }})
			done <- err
		}()
		time.Sleep(time.Minute + time.Second) // between two frames, not within one
		cancel()
		refused(t, <-done, Unavailable)
		if asked != 1 {
			t.Errorf("told %d times that the operator is asked", asked)
		}
	})
}

func TestDeskIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		for n := range MaxOffers - 1 {
			w.invite(siteID(fmt.Sprintf("site-%d", n)))
		}
		i, err := New("uni-a", Pin{}, []string{"a:1"}, Lifetime, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		o, err := i.Offer("late")
		if err != nil {
			t.Fatal(err)
		}
		if err := w.desk.Add(context.Background(), o); !errors.Is(err, ErrDeskFull) {
			t.Errorf("one more: %v", err)
		}
		time.Sleep(Lifetime + AnswerFor)
		w.invite("later")
		if n := len(w.desk.Offers()); n != 1 {
			t.Errorf("after the others %d are held", n)
		}
		if err := w.yes(w.b); !errors.Is(err, ErrNoOffer) {
			t.Errorf("yes to a forgotten one: %v", err)
		}
	})
}
