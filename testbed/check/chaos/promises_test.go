package chaos

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kithv1 "kith/proto/gen/kith/v1"
)

// told is what a site says of harm.
type told struct {
	counted, remembered int64
	err                 error
}

func (s told) GetHarm(context.Context, *kithv1.GetHarmRequest, ...grpc.CallOption) (*kithv1.GetHarmResponse, error) {
	if s.err != nil {
		return nil, s.err
	}
	return &kithv1.GetHarmResponse{Counters: &kithv1.HarmCounters{PromisesMoved: s.counted}, Jobs: &kithv1.HarmFigures{PromisesMoved: s.remembered}}, nil
}

// A run in which guests moved a promise is not sound, also if the daemon that counted it was
// killed afterwards.
func TestPromisesThatGuestsMoved(t *testing.T) {
	t.Parallel()
	var p promises
	look := func(name string, s told) {
		t.Helper()
		if err := p.look(t.Context(), name, s); err != nil {
			t.Fatal(err)
		}
	}
	sound := func() *Result {
		c := &checker{result: &Result{}}
		c.promisesKept(&p)
		return c.result
	}
	look("alpha", told{})
	look("old", told{err: status.Error(codes.Unimplemented, "an earlier version")})
	if r := sound(); !r.Sound() || len(r.Problems) > 0 {
		t.Errorf("no promise was moved: %+v", r)
	}
	look("alpha", told{counted: 2})
	look("alpha", told{}) // a new daemon
	look("beta", told{remembered: 1})
	if r := sound(); r.Sound() || r.PromisesMoved != 3 || len(r.Problems) != 2 || !strings.Contains(r.Problems[0], "site alpha: guests moved 2 promises") {
		t.Errorf("three promises were moved: %+v", r)
	}
	if err := p.look(t.Context(), "gamma", told{err: errors.New("gone")}); err == nil || !strings.Contains(err.Error(), "site gamma") {
		t.Errorf("a site that does not answer: %v", err)
	}
}
