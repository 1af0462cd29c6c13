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

// Bounds of a gate. With fewestCalls in hand the slowest disk still has batches
// to write; beyond mostCalls batches become no more efficient.
const (
	fewestCalls = 16
	firstCalls  = 256
	mostCalls   = 1024
	// lateAnswer is how long an answer may take until fewer calls are let in.
	lateAnswer = 300 * time.Millisecond
)

// gate bounds how many calls of a kind are in hand, so that those that are get
// their answers soon; the others are told at once to come back later. How many
// that is depends on the machine and on what else it does, so the gate learns
// it from the answers: one more for a round of answers in time, a third less
// for a late one (additive increase, multiplicative decrease).
type gate struct {
	mu     sync.Mutex
	inHand int
	bound  float64
	cut    time.Time // when the bound was made smaller
}

func newGate() *gate { return &gate{bound: firstCalls} }

// enter reports whether one more call may come in. Who was let in must leave.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inHand >= int(g.bound) {
		return false
	}
	g.inHand++
	return true
}

// leave takes note of an answer to a call that entered at began.
func (g *gate) leave(began, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	full := g.inHand >= int(g.bound)
	g.inHand--
	switch {
	case now.Sub(began) <= lateAnswer:
		if full { // a bound that nobody meets teaches nothing
			g.bound = min(mostCalls, g.bound+1/g.bound)
		}
	case began.After(g.cut): // not those that were in hand then, too
		g.bound, g.cut = max(fewestCalls, g.bound*2/3), now
	}
}

// gates are those of JobService. What operators need to look after a site that
// has too much to do, SiteService and cancelling, is always let in.
type gates struct{ changes, looks *gate }

func newGates() *gates { return &gates{newGate(), newGate()} }

// of returns the gate of a method, nil if it has none.
func (g *gates) of(method string) *gate {
	name, ok := strings.CutPrefix(method, "/"+kithv1.JobService_ServiceDesc.ServiceName+"/")
	switch {
	case !ok || name == "CancelJob":
		return nil
	case strings.HasPrefix(name, "Get") || strings.HasPrefix(name, "List"):
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
	if !gate.enter() {
		return nil, api.Refusal(api.ErrBusy)
	}
	began := time.Now()
	defer func() { gate.leave(began, time.Now()) }()
	return next(ctx, req)
}
