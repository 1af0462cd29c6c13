package daemon

import (
	"sync"

	"kith/internal/job"
)

// mostOfPeer is how many messages of one peer wait for the loop. With the queue in
// common and no such bound, a peer that sends as fast as it can fills it, and whatever
// anybody else asks waits behind thousands of its messages.
const mostOfPeer = 256

// turn holds a token for each input of one sender that waits for the loop.
type turn chan struct{}

// turns are those of the peers to which a stream is up.
type turns struct {
	mu sync.Mutex
	of map[job.SiteID]turn
}

func (t *turns) get(site job.SiteID) turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = make(map[job.SiteID]turn)
	}
	if t.of[site] == nil {
		t.of[site] = make(turn, mostOfPeer)
	}
	return t.of[site]
}

func (t *turns) forget(site job.SiteID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of, site)
}
