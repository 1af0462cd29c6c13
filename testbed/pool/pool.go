// Package pool carries out independent pieces of work, several at a time.
package pool

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// Map runs f for each i below n in this order, as many at a time as there are
// workers, one at least, and returns the results in order. The first error, by
// time, ends all of it; f should return soon when its context ends, and must not
// depend on what other runs do.
func Map[T any](ctx context.Context, workers, n int, f func(ctx context.Context, i int) (T, error)) ([]T, error) {
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(max(workers, 1))
	results := make([]T, n)
	for i := range n {
		if inner.Err() != nil {
			break
		}
		g.Go(func() error {
			if inner.Err() == nil { // else another has failed
				r, err := f(inner, i)
				results[i] = r
				return err
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return results, nil
}
