// Package pause waits without outliving a context.
package pause

import (
	"context"
	"time"
)

// For waits for d, and returns false as soon as ctx is done. If d is not
// positive it returns at once.
func For(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
