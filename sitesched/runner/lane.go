package runner

import (
	"context"
	"slices"
	"sync"

	"kith/internal/job"
)

// A lane lets a number of attempts through at a time. Those that wait are taken by
// their origins in turn, so that one site with many delays the others by no more than
// one each.
type lane struct {
	mu      sync.Mutex
	free    int
	turn    []job.SiteID // origins that wait, the next one first
	waiting map[job.SiteID][]chan struct{}
}

func newLane(slots int) *lane {
	return &lane{free: slots, waiting: make(map[job.SiteID][]chan struct{})}
}

// enter waits for a place. It reports false, and there is none to leave, if ctx is
// done before.
func (l *lane) enter(ctx context.Context, origin job.SiteID) bool {
	l.mu.Lock()
	if l.free > 0 {
		l.free--
		l.mu.Unlock()
		return true
	}
	mine := make(chan struct{})
	if len(l.waiting[origin]) == 0 {
		l.turn = append(l.turn, origin)
	}
	l.waiting[origin] = append(l.waiting[origin], mine)
	l.mu.Unlock()
	select {
	case <-mine:
		return true
	case <-ctx.Done():
	}
	l.mu.Lock()
	i := slices.Index(l.waiting[origin], mine)
	if i >= 0 {
		l.remove(origin, i)
	}
	l.mu.Unlock()
	if i < 0 {
		l.leave() // the place came at the same time
	}
	return false
}

// leave gives a place to the next in turn.
func (l *lane) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.turn) == 0 {
		l.free++
		return
	}
	origin := l.turn[0]
	next := l.waiting[origin][0]
	l.remove(origin, 0)
	if len(l.waiting[origin]) > 0 { // to the end of the line
		l.turn = append(slices.Delete(l.turn, 0, 1), origin)
	}
	close(next)
}

// remove takes the i-th of an origin out of the line.
func (l *lane) remove(origin job.SiteID, i int) {
	l.waiting[origin] = slices.Delete(l.waiting[origin], i, i+1)
	if len(l.waiting[origin]) == 0 {
		delete(l.waiting, origin)
		at := slices.Index(l.turn, origin)
		l.turn = slices.Delete(l.turn, at, at+1)
	}
}
