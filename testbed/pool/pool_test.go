package pool

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
)

func TestMap(t *testing.T) {
	for _, workers := range []int{0, 1, 3, 50} {
		var now, most atomic.Int32
		got, err := Map(t.Context(), workers, 20, func(_ context.Context, i int) (int, error) {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			defer now.Add(-1)
			return i * i, nil
		})
		if err != nil || len(got) != 20 || int(most.Load()) > max(workers, 1) {
			t.Fatalf("%d workers: %v, %v, %d at a time", workers, got, err, most.Load())
		}
		for i, v := range got {
			if v != i*i {
				t.Errorf("%d workers: result %d is %d", workers, i, v)
			}
		}
	}
	if got, err := Map(t.Context(), 2, 0, func(context.Context, int) (int, error) { return 1, nil }); err != nil || len(got) != 0 {
		t.Errorf("of nothing: %v, %v", got, err)
	}
}

// The first error ends the rest: those that run are told, the others never begin.
func TestMapStops(t *testing.T) {
	broken := errors.New("broken")
	var begun atomic.Int32
	_, err := Map(t.Context(), 2, 1000, func(ctx context.Context, i int) (int, error) {
		begun.Add(1)
		if i == 5 {
			return 0, broken
		}
		if i > 5 {
			<-ctx.Done()
			return 0, context.Cause(ctx)
		}
		return 0, nil
	})
	if !errors.Is(err, broken) || begun.Load() > 7 {
		t.Errorf("error %v after %d runs", err, begun.Load())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Map(ctx, 2, 10, func(context.Context, int) (int, error) { return 0, nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}
