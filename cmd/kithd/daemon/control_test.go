package daemon

import (
	"context"
	"log/slog"
	"net"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"google.golang.org/genproto/googleapis/rpc/errdetails"

	"kith/internal/identity"
	"kith/internal/job"
	"kith/meta"
)

func as(t *testing.T, name string, proof identity.Proof, address string) context.Context {
	return identity.With(t.Context(), identity.Caller{Actor: identity.Actor(name), Proof: proof, Address: address})
}

// While all places of callers are taken by submissions and questions of one of them, its
// own cancel is taken next, and so is what an operator asks.
func TestControlComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newInbox(0, nil, slog.New(slog.DiscardHandler))
		ctx, end := context.WithCancel(as(t, "ada", identity.Token, ""))
		root, stop := context.WithCancel(as(t, "root", identity.PeerCredential, ""))
		defer synctest.Wait()
		defer end()
		defer stop()
		ask := func(ctx context.Context, ev meta.Event) {
			go in.Ask(ctx, func(uint64) meta.Event { return ev }) //nolint:errcheck // nobody answers
			synctest.Wait()
		}
		for i := range waitingInputs + 100 {
			if i%2 == 0 {
				go in.Ask(ctx, func(uint64) meta.Event { return meta.Submit{} }) //nolint:errcheck // nobody answers
			} else {
				go in.Look(ctx, func(job.Time, meta.Views) {}) //nolint:errcheck // nobody answers
			}
		}
		synctest.Wait()
		if n := in.lanes.waiting(); n != waitingInputs {
			t.Fatalf("%d inputs wait, want %d", n, waitingInputs)
		}
		ask(ctx, meta.CancelBag{})
		ask(root, meta.SetDrain{})
		ask(root, meta.SubmitBag{})
		go in.Look(root, func(job.Time, meta.Views) {}) //nolint:errcheck // nobody answers
		synctest.Wait()
		var got [4]meta.Event
		var places [4]turn
		for i := range got {
			next, _ := in.lanes.take()
			got[i], places[i] = next.event, next.turn
		}
		if _, ok := got[0].(meta.CancelBag); !ok {
			t.Errorf("first came %T, want the cancel", got[0])
		}
		if _, ok := got[1].(meta.SetDrain); !ok {
			t.Errorf("second came %T, want the drain", got[1])
		}
		if got[2] != nil || places[2] != in.controls {
			t.Errorf("third came %T, want the operator's look", got[2])
		}
		if places[3] != in.places {
			t.Errorf("fourth came %T, want one of the others", got[3])
		}
	})
}

// However much control there is, others get one input of four, and it is bounded.
func TestControlLeavesOthersTheirPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newInbox(0, nil, slog.New(slog.DiscardHandler))
		ctx, end := context.WithCancel(as(t, "ada", identity.Token, ""))
		defer synctest.Wait()
		defer end()
		for range waitingControls + 100 {
			go in.Ask(ctx, func(uint64) meta.Event { return meta.Cancel{} }) //nolint:errcheck // nobody answers
		}
		synctest.Wait()
		if n := in.lanes.waiting(); n != waitingControls {
			t.Errorf("%d cancels wait, want %d", n, waitingControls)
		}
		for n := range 100 {
			in.lanes.put(lane{peer: "beta"}, marked("beta", n))
		}
		others := 0
		for range 40 {
			next, _ := in.lanes.take()
			if _, ok := next.event.(meta.Receive); ok {
				others++
			}
		}
		if others != 10 {
			t.Errorf("others got %d of 40 inputs, want 10", others)
		}
		// An instant is the same for control: what is left is for the next one.
		for _, ok := in.lanes.take(); ok; _, ok = in.lanes.take() {
		}
		left := in.lanes.waiting()
		in.lanes.end()
		if _, ok := in.lanes.take(); left != waitingControls-mostInInstant || !ok {
			t.Errorf("%d cancels are left for later instants, want %d, and the next has some: %v", left, waitingControls-mostInInstant, ok)
		}
		in.lanes.end()
		n := 0
		for _, ok := in.lanes.take(); ok; _, ok = in.lanes.take() {
			n++
		}
		if n != mostInInstant {
			t.Errorf("after an instant with one cancel the next takes %d, want %d", n, mostInInstant)
		}
	})
}

// Calls at the port leave places for those at the socket.
func TestSocketHasPlacesOfItsOwn(t *testing.T) {
	b := newBorder(borderBounds{calls: 2, callsOne: 2, callsSocket: 2, slow: 9, slowOne: 9, soon: time.Hour, whole: time.Hour}, slog.New(slog.DiscardHandler))
	call := func(a net.Addr) (context.CancelFunc, error) {
		ctx, end := context.WithCancel(peer.NewContext(t.Context(), &peer.Peer{Addr: a}))
		_, err := b.tap(ctx, nil)
		return end, err
	}
	port, socket := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)}, &net.UnixAddr{Net: "unix"}
	for range 2 {
		end, err := call(port)
		defer end()
		if err != nil {
			t.Fatal(err)
		}
	}
	end, err := call(port)
	end()
	if err == nil {
		t.Error("a call at the port too many")
	}
	var ends []context.CancelFunc
	for n := range 3 {
		end, err := call(socket)
		defer end()
		ends = append(ends, end)
		if (err != nil) != (n == 2) {
			t.Errorf("call %d at the socket: %v", n, err)
		}
	}
	ends[0]()
	soon(t, "a place is free again", func() bool {
		end, err := call(socket)
		end()
		return err == nil
	})
}

// A user who asks more often than it may is told when to come back, and nobody else is;
// what is control goes on.
func TestRateOfAUser(t *testing.T) {
	refused := 0
	u := newUserRates(10, func(identity.Caller) { refused++ })
	const get, submit, cancel, health = "/kith.v1.JobService/GetJob", "/kith.v1.JobService/SubmitJob", "/kith.v1.JobService/CancelJob", "/grpc.health.v1.Health/Check"
	now := time.Unix(1_800_000_000, 0)
	ada, stranger := as(t, "ada", identity.Token, "10.0.0.1:1"), as(t, "anonymous", identity.NoProof, "10.0.0.1:1")
	root := as(t, "root", identity.PeerCredential, "")
	for n := range 30 {
		if err := u.admit(ada, get, now); (err != nil) != (n >= 20) {
			t.Fatalf("request %d: %v", n, err)
		}
	}
	err := u.admit(as(t, "ada", identity.Token, "10.0.0.2:1"), submit, now)
	retry := false
	for _, d := range status.Convert(err).Details() {
		info, ok := d.(*errdetails.RetryInfo)
		retry = retry || ok && info.GetRetryDelay().AsDuration() > 0
	}
	if status.Code(err) != codes.ResourceExhausted || !retry || refused != 11 {
		t.Errorf("from another address: %v, to try again: %v, %d refused", err, retry, refused)
	}
	for name, err := range map[string]error{
		"another user": u.admit(stranger, get, now), "a cancel": u.admit(ada, cancel, now), "health": u.admit(ada, health, now),
		"a second later": u.admit(ada, get, now.Add(time.Second)),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if u.admit(as(t, "anonymous", identity.NoProof, "10.0.0.1:9"), get, now) != nil || len(u.of) != 2 {
		t.Errorf("connections of one address are kept apart: %d users", len(u.of))
	}
	var submits error
	for range 100 {
		if err := u.admit(root, get, now); err != nil {
			t.Fatalf("at the socket: %v", err)
		}
		submits = u.admit(root, submit, now)
	}
	if submits == nil {
		t.Error("submissions at the socket have no bound")
	}
}

// Users that are at rest are forgotten; while there are too many, the others share a rate.
func TestUsersAreBounded(t *testing.T) {
	u := newUserRates(10, nil)
	now := time.Unix(1_800_000_000, 0)
	ask := func(user int, now time.Time) error {
		return u.admit(as(t, "u"+strconv.Itoa(user), identity.Token, ""), "/kith.v1.JobService/GetJob", now)
	}
	for n := range mostBuckets {
		if err := ask(n, now); err != nil {
			t.Fatal(err)
		}
	}
	refused := 0
	for n := range 100 {
		if ask(mostBuckets+n, now) != nil {
			refused++
		}
	}
	if len(u.of) != mostBuckets || refused != 80 {
		t.Errorf("%d users are kept, %d of the others were refused, want %d and 80", len(u.of), refused, mostBuckets)
	}
	if err := ask(2*mostBuckets, now.Add(time.Minute)); err != nil || len(u.of) != 1 {
		t.Errorf("later %d users are kept, %v", len(u.of), err)
	}
}
