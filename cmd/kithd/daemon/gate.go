package daemon

import (
	"context"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"

	"kith/meta/api"
	kithv1 "kith/proto/gen/kith/v1"
)

// Bounds of a gate. Beyond mostCalls batches become no more efficient. An
// answer may take from soonAnswer to lastAnswer until fewer calls are let in.
const (
	fewestCalls = 16
	firstCalls  = 256
	mostCalls   = 1024
	soonAnswer  = 300 * time.Millisecond
	lastAnswer  = 10 * time.Second
)

// gate bounds how many calls of a kind are in hand, so that those that are get
// their answers soon; the others are told at once to come back later. How many
// that is depends on the machine and on what else it does, so the gate learns
// it from the answers: one more for a round of answers in time, a third less
// for a late one (additive increase, multiplicative decrease). Where answers
// are late even to the fewest calls it is not the calls that are too many but
// the disk that is slow, and what counts as late becomes later.
type gate struct {
	mu     sync.Mutex
	inHand int
	bound  float64
	late   time.Duration
	met    time.Time // when as many were in hand as may be
	cut    time.Time // when the bound was made smaller
}

func newGate() *gate { return &gate{bound: firstCalls, late: soonAnswer} }

// enter reports whether one more call may come in. A call that was let in must leave.
func (g *gate) enter(now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	free := int(g.bound) - g.inHand
	if free <= 1 {
		g.met = now
	}
	if free <= 0 {
		return false
	}
	g.inHand++
	return true
}

// leave takes note of an answer to a call that entered at began.
func (g *gate) leave(began, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inHand--
	took := now.Sub(began)
	switch {
	case took <= g.late:
		if !g.met.Before(began) { // a bound that was not reached teaches nothing
			g.bound = min(mostCalls, g.bound+1/g.bound)
		}
		if took < g.late/4 {
			g.late = max(soonAnswer, g.late/2)
		}
	case !began.After(g.cut): // it was in hand when the bound was made smaller
	case g.bound > fewestCalls:
		g.bound, g.cut = max(fewestCalls, g.bound*2/3), now
	default:
		g.late, g.cut = min(2*g.late, lastAnswer), now
	}
}

// gates are those of JobService and BagService. What operators need to look after a site
// that has too much to do, SiteService and cancelling, is always let in. A forecast waits for
// other sites: how soon it is there says nothing of this one, and it has a bound of its own
// ([meta.ErrManyQuestions]).
type gates struct{ changes, looks *gate }

func newGates() *gates { return &gates{newGate(), newGate()} }

// of returns the gate of a method, nil if it has none.
func (g *gates) of(method string) *gate {
	name, ok := strings.CutPrefix(method, "/"+kithv1.JobService_ServiceDesc.ServiceName+"/")
	if !ok {
		name, ok = strings.CutPrefix(method, "/"+kithv1.BagService_ServiceDesc.ServiceName+"/")
	}
	switch {
	case !ok || name == "CancelJob" || name == "CancelBag" || name == "ForecastJob":
		return nil
	case strings.HasPrefix(name, "Get") || strings.HasPrefix(name, "List") || name == "CheckPolicies":
		return g.looks
	}
	return g.changes
}

// unary is an interceptor.
func (g *gates) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	gate := g.of(info.FullMethod)
	if gate == nil {
		return next(ctx, req)
	}
	began := time.Now()
	if !gate.enter(began) {
		return nil, api.Refusal(api.ErrBusy)
	}
	defer func() { gate.leave(began, time.Now()) }()
	return next(ctx, req)
}
