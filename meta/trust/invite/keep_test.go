package invite

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"kith/meta/trust"
)

// atOnce demands that f returns while a disk hangs.
func atOnce(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { f(); close(done) }()
	select {
	case <-done:
	case <-time.After(2 * time.Second):
		t.Fatalf("%s waits for the disk", what)
	}
}

// While a step of one offer is being kept nothing else waits for the disk: not who asks
// whether the desk is open, which each handshake does, nor a step of another offer.
func TestOtherStepsDoNotWaitForTheDisk(t *testing.T) {
	w := newWorld(t)
	other := w.invite("uni-c")
	reached, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w.hang = func(o Offer) {
		if o.ID == w.i.ID() {
			once.Do(func() { close(reached); <-release })
		}
	}
	done := make(chan answer, 1)
	go func() {
		a, err := w.redeem(w.b, w.i)
		done <- answer{a, err}
	}()
	<-reached
	atOnce(t, "IsOpen", func() { w.desk.IsOpen() })
	atOnce(t, "Offers", func() {
		for _, o := range w.desk.Offers() {
			if o.State != Open {
				t.Errorf("invitation %s is %s before that is kept", o.ID, o.State)
			}
		}
	})
	atOnce(t, "Settle", func() { w.desk.Settle(other.ID(), Declined) })
	atOnce(t, "an operator whose patience is at its end", func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		if err := w.desk.Decide(ctx, w.i.ID(), PinOf(w.b.Keys.CA()), true); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
	atOnce(t, "an invitation", func() { w.invite("uni-d") })
	close(release)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if err := w.yes(w.b); err == nil {
			break
		} else if !errors.Is(err, ErrNothingToDecide) || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	if a := <-done; a.err != nil {
		t.Error(a.err)
	}
}

// Wrong proofs that come at once, while the disk is slow, are counted one by one: no more
// than MaxWrong are looked at, and the good proof after them is too late.
func TestWrongProofsAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.hang = func(Offer) { time.Sleep(200 * time.Millisecond) }
		whys := make(chan Reason, 3*MaxWrong)
		for range cap(whys) {
			go func() {
				_, why := w.desk.try(context.Background(), w.i.ID(), "uni-b", Pin{9}, func(Verifier) bool { return false })
				whys <- why
			}()
		}
		count := make(map[Reason]int)
		for range cap(whys) {
			count[<-whys]++
		}
		if count[WrongProof] != MaxWrong || count[WasBurnt] != cap(whys)-MaxWrong {
			t.Errorf("reasons %v", count)
		}
		if k := w.kept[w.i.ID()]; k.State != Burnt || k.Wrong != MaxWrong {
			t.Errorf("kept as %s after %d", k.State, k.Wrong)
		}
		_, err := w.redeem(w.b, w.i)
		refused(t, err, WasBurnt)
	})
}

// Two sites that use one text at once: one comes, and the other one burns the invitation.
func TestTwoJoinersAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.hang = func(Offer) { time.Sleep(200 * time.Millisecond) }
		errs := make(chan error, 2)
		for _, e := range []*trust.Endpoint{w.b, site(t, "uni-b")} {
			go func() { _, err := w.redeem(e, w.i); errs <- err }()
		}
		refused(t, <-errs, WasBurnt)
		refused(t, <-errs, WasBurnt)
		if k := w.kept[w.i.ID()]; k.State != Burnt {
			t.Errorf("kept as %s", k.State)
		}
	})
}

// An offer that is ended elsewhere while a step of it is being kept is over after the step,
// unless that decided it. An offer that is new is nobody's until it is kept.
func TestSettledWhileAStepIsKept(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id, settled := w.i.ID(), Declined
		w.hang = func(Offer) { w.desk.Settle(id, settled) }
		_, err := w.redeem(w.b, w.i)
		refused(t, err, Operator)
		if w.state() != Declined {
			t.Errorf("%s", w.state())
		}
	})
	bubble(t, func(t *testing.T, w *world) {
		done := w.start(w.b, w.i)
		w.hang = func(Offer) { w.desk.Settle(w.i.ID(), Burnt) }
		if err := w.yes(w.b); err != nil || w.state() != Admitted {
			t.Errorf("%v, %s", err, w.state())
		}
		if a := <-done; a.err != nil {
			t.Error(a.err)
		}
	})
	bubble(t, func(t *testing.T, w *world) {
		w.hang = func(o Offer) {
			if _, err := w.desk.Offer(context.Background(), o.ID); !errors.Is(err, ErrNoOffer) || len(w.desk.Offers()) != 1 {
				t.Errorf("an offer is seen before it is kept: %v", err)
			}
			w.desk.Settle(o.ID, Declined)
		}
		i := w.invite("uni-c")
		if o, err := w.desk.Offer(context.Background(), i.ID()); err != nil || o.State != Declined {
			t.Errorf("%v, %v", o.State, err)
		}
	})
}

// Who hears from the facts that a site has come, and decides at once, decides about that site,
// though the desk has yet to learn that this was kept.
func TestDecidedAsSoonAsItIsKept(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		seen := make(chan Offer, 1)
		w.hang = func(o Offer) {
			if o.State != Came || len(seen) > 0 {
				return
			}
			go func() {
				now, err := w.desk.Offer(context.Background(), o.ID)
				if err != nil {
					t.Error(err)
				}
				seen <- now
			}()
			time.Sleep(200 * time.Millisecond)
		}
		done := w.start(w.b, w.i)
		if o := <-seen; o.State != Came || o.Joiner == nil {
			t.Errorf("the offer is %s, with joiner %v", o.State, o.Joiner)
		}
		if err := w.yes(w.b); err != nil {
			t.Error(err)
		}
		if a := <-done; a.err != nil {
			t.Error(a.err)
		}
	})
}
