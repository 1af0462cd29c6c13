package daemon

import (
	"sync"
	"time"
)

// Who is closed for a flood comes back at once if it can, and what its next connection
// costs is a handshake, more than most of what it floods with. So its address has to wait for
// the next handshake: firstPause, and twice as long each time it is closed again within
// pausesFor, up to mostPause. That is less than handshakePatience: others who call from the same
// address wait, too, and are let in.
const (
	firstPause = 250 * time.Millisecond
	mostPause  = 2 * time.Second
	pausesFor  = time.Minute
)

// comebacks are the pauses of addresses whose connections were closed for a flood. It is
// safe for use by several goroutines; the zero comebacks is ready.
type comebacks struct {
	mu sync.Mutex
	of map[string]comeback
}

type comeback struct {
	pause time.Duration // the latest
	at    time.Time     // when it began
}

// closed returns for how long an address that was closed now has to wait.
func (c *comebacks) closed(address string, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, again := c.of[address]
	pause := firstPause
	if again && now.Sub(last.at) < pausesFor {
		pause = min(2*last.pause, mostPause)
	}
	if c.of == nil || len(c.of) >= mostBuckets && !again {
		c.of = make(map[string]comeback)
	}
	c.of[address] = comeback{pause, now}
	return pause
}

// owe takes as many of k as come within a time, but for those that it owes already.
func (b *buckets[K]) owe(k K, now time.Time, within time.Duration) {
	one := b.bucketOf(k, now)
	least := -within.Seconds() * float64(b.perSecond)
	for n := int(one.TokensAt(now) - least); n > 0; n -= b.atOnce {
		one.ReserveN(now, min(n, b.atOnce))
	}
}
