package lab

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestMapKeepsOrderAndCounts(t *testing.T) {
	for _, workers := range []int{1, 3, 100} {
		last, total := 0, 0
		env := &Env{Workers: workers, Progress: func(done, all int) {
			if done < last {
				t.Errorf("%d workers: %d done after %d", workers, done, last)
			}
			last, total = done, all
		}}
		if err := env.Settle(1); err != nil {
			t.Fatal(err)
		}
		got, err := Map(t.Context(), env, 50, func(_ context.Context, i int) (int, error) { return i * i, nil })
		if err != nil || len(got) != 50 || got[49] != 49*49 || !slices.IsSorted(got) {
			t.Errorf("%d workers: %v, %v", workers, got, err)
		}
		if last != 50 || total != 50 {
			t.Errorf("%d workers: %d of %d told of", workers, last, total)
		}
	}
	if got, err := Map(t.Context(), &Env{}, 0, func(context.Context, int) (int, error) { return 0, nil }); err != nil || len(got) != 0 {
		t.Errorf("nothing to do: %v, %v", got, err)
	}
}

// No more runs go on at a time than there are workers, and the first error ends
// all of it.
func TestMapBoundsAndStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at, most, begun atomic.Int32
		failure := errors.New("the seventh fails")
		_, err := Map(t.Context(), &Env{Workers: 4}, 1000, func(ctx context.Context, i int) (int, error) {
			begun.Add(1)
			most.Store(max(most.Load(), at.Add(1)))
			defer at.Add(-1)
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return 0, ctx.Err()
			}
			if i == 6 {
				return 0, failure
			}
			return 0, nil
		})
		if !errors.Is(err, failure) {
			t.Errorf("error %v", err)
		}
		if most.Load() != 4 || begun.Load() > 12 {
			t.Errorf("%d at a time, %d begun in all", most.Load(), begun.Load())
		}
	})
}

func TestMapEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Map(ctx, &Env{Workers: 2}, 10, func(_ context.Context, i int) (int, error) {
		if i == 3 {
			cancel()
		}
		return i, nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestSettle(t *testing.T) {
	for name, env := range map[string]Env{
		"seeds": {Seeds: MaxSeeds + 1}, "negative seeds": {Seeds: -1}, "jobs": {Jobs: -1}, "workers": {Workers: -1}, "processors": {Processors: -1},
	} {
		if err := env.Settle(1); !errors.Is(err, ErrEnv) {
			t.Errorf("%s: %v", name, err)
		}
	}
	env := Env{FirstSeed: 7}
	if err := env.Settle(3); err != nil || !slices.Equal(env.SeedList(), []uint64{7, 8, 9}) {
		t.Errorf("%v, seeds %v", err, env.SeedList())
	}
	if !env.Wants("C1") {
		t.Error("no claim is wanted though none was chosen")
	}
	env.Statements = []string{"C2"}
	if env.Wants("C1", "C3") || !env.Wants("C1", "C2") {
		t.Error("other claims are wanted than chosen")
	}
}
