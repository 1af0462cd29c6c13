package daemon

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// mostBuckets bounds those whose rates are kept apart; others share one.
const mostBuckets = 4096

// buckets bound how many of something each of many may have in a second, and how many may
// come together, twice as many if nothing else is said. They are safe for use by several goroutines.
type buckets[K comparable] struct {
	perSecond, atOnce int

	mu     sync.Mutex
	of     map[K]*rate.Limiter
	others *rate.Limiter
	looked time.Time // when those at rest were last looked for
}

func newBuckets[K comparable](perSecond int) *buckets[K] {
	return newBucketsOf[K](perSecond, 2*perSecond)
}

func newBucketsOf[K comparable](perSecond, atOnce int) *buckets[K] {
	b := &buckets[K]{perSecond: perSecond, atOnce: atOnce, of: make(map[K]*rate.Limiter)}
	b.others = b.full()
	return b
}

func (b *buckets[K]) full() *rate.Limiter {
	return rate.NewLimiter(rate.Limit(b.perSecond), b.atOnce)
}

// bucketOf returns the bucket of one.
func (b *buckets[K]) bucketOf(k K, now time.Time) *rate.Limiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	if one := b.of[k]; one != nil {
		return one
	}
	if len(b.of) >= mostBuckets && now.Sub(b.looked) >= time.Second {
		b.looked = now
		for other, one := range b.of {
			if one.TokensAt(now) >= float64(one.Burst()) {
				delete(b.of, other) // a full bucket is as good as a new one
			}
		}
	}
	if len(b.of) >= mostBuckets {
		return b.others
	}
	one := b.full()
	b.of[k] = one
	return one
}

// wait takes one for k and returns after how long it counts. It takes none and returns
// false where that would be longer than patience.
func (b *buckets[K]) wait(k K, now time.Time, patience time.Duration) (time.Duration, bool) {
	r := b.bucketOf(k, now).ReserveN(now, 1)
	after := r.DelayFrom(now)
	if after > patience {
		r.CancelAt(now)
		return 0, false
	}
	return after, true
}
