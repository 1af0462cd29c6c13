package api

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
)

// What guests cost is told of what is past and of what runs; an answer that is fresh enough is
// told again, with counts of now.
func TestGetHarm(t *testing.T) {
	s, m := serve(t)
	for range 3 {
		submit(t, s, nil)
		m.end()
	}
	submit(t, s, nil)
	r, err := s.GetHarm(t.Context(), &kithv1.GetHarmRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if r.GetMode() != "promise" || len(r.GetClasses()) != 4 || r.GetFirstTime() == nil || r.GetShadowTime() == nil || !r.GetCounters().GetMeasured() || len(r.GetCounters().GetLeftCopies()) != 6 {
		t.Errorf("%v", r)
	}
	f := r.GetJobs()
	if f.GetJobs() != 3 || f.GetComparedJobs() != 3 || f.GetBlockedJobs() != 0 || f.GetPromisesMoved() != 0 || r.GetGuestAttempts() != 0 {
		t.Errorf("%v", f)
	}
	if got := r.GetCounters().GetLeftCopies()[0]; got != 4 {
		t.Errorf("%d copies have left the queue, want 4", got)
	}
	submit(t, s, nil)
	again, err := s.GetHarm(t.Context(), &kithv1.GetHarmRequest{MaxAge: durationpb.New(time.Hour)})
	if err != nil || !again.GetTime().AsTime().Equal(r.GetTime().AsTime()) || again.GetCounters().GetLeftCopies()[0] != 5 {
		t.Errorf("again: %v, %v", again, err)
	}
	if other, err := s.GetHarm(t.Context(), &kithv1.GetHarmRequest{Days: 1, MaxAge: durationpb.New(time.Hour)}); err != nil || other.GetSinceTime().AsTime().Equal(r.GetSinceTime().AsTime()) {
		t.Errorf("of one day: %v, %v", other, err)
	}
	for _, bad := range []*kithv1.GetHarmRequest{{Days: -1}, {Days: 3661}, {MaxAge: durationpb.New(-1)}, {MaxAge: durationpb.New(2 * time.Hour)}} {
		if _, err := s.GetHarm(t.Context(), bad); err == nil {
			t.Errorf("%v is taken", bad)
		} else if _, ok := errors.AsType[*FieldError](err); !ok {
			t.Errorf("%v: %v", bad, err)
		}
	}
	// Whoever does not want to wait for another one's answer goes away.
	s.reckoned.busy <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.GetHarm(ctx, &kithv1.GetHarmRequest{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// A drain keeps home jobs waiting without guests, too, while it lasts and when it is past: it is no
// harm. It is no attempt in the history.
func TestHarmOfADrain(t *testing.T) {
	s, m := serve(t)
	drain := func(on bool) {
		m.now = m.now.Add(10 * time.Minute)
		m.settle(m.engine.Step(m.now, meta.SetDrain{On: on}))
	}
	drain(true)
	submit(t, s, nil)
	r, err := s.GetHarm(t.Context(), &kithv1.GetHarmRequest{})
	if err != nil || r.GetJobs().GetJobs() != 0 {
		t.Fatalf("while it drains: %v, %v", r, err)
	}
	drain(false)
	for range 3 { // it is placed again
		m.now = m.now.Add(time.Minute)
		m.settle(m.engine.Step(m.now, meta.Tick{}))
	}
	m.end()
	m.now = m.now.Add(time.Hour)
	if r, err = s.GetHarm(t.Context(), &kithv1.GetHarmRequest{}); err != nil {
		t.Fatal(err)
	}
	if f := r.GetJobs(); f.GetJobs() != 1 || f.GetComparedJobs() != 1 || f.GetAloneWaitSeconds() != 600 {
		t.Errorf("of a job that has waited for the end of a drain: %v", f)
	}
	list, err := s.ListHistory(t.Context(), &kithv1.ListHistoryRequest{})
	if err != nil || len(list.GetAttempts()) != 1 {
		t.Errorf("the history is %v, %v", list, err)
	}
}
