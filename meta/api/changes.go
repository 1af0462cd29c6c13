package api

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"kith/internal/job"
)

// keptChanges is how many changes a watcher may fall behind.
const keptChanges = 1 << 16

// Changes remembers which jobs changed last, in a ring of fixed size, and who
// watches which: a change costs those who watch the job, and no others.
type Changes struct {
	incarnation uint64
	// woken counts how often a watcher was woken.
	woken atomic.Uint64

	mu   sync.Mutex
	ring []job.ID
	next uint64 // number of the next change, from 1
	// named are the watchers of named jobs, by job; all those of all jobs.
	named map[job.ID]map[*follower]struct{}
	all   map[*follower]struct{}
}

// NewChanges returns an empty ring. Cursors of another incarnation are too old.
func NewChanges(incarnation uint64) *Changes {
	return &Changes{incarnation: incarnation, next: 1, named: make(map[job.ID]map[*follower]struct{}), all: make(map[*follower]struct{})}
}

// Add records that a job has changed.
func (c *Changes) Add(id job.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.ring) < keptChanges {
		c.ring = append(c.ring, id)
	} else {
		c.ring[(c.next-1)%keptChanges] = id
	}
	c.next++
	for w := range c.named[id] {
		w.changed[id] = c.next
		c.rouse(w)
	}
	for w := range c.all {
		c.rouse(w)
	}
}

// rouse wakes a watcher that is not awake.
func (c *Changes) rouse(w *follower) {
	select {
	case w.wake <- struct{}{}:
		c.woken.Add(1)
	default:
	}
}

// change is a job that changed, and the position behind the change.
type change struct {
	job  job.ID
	next uint64
}

// follower is one watcher's place. It is used by one goroutine.
type follower struct {
	c      *Changes
	wanted map[job.ID]bool // empty: all
	wake   chan struct{}
	at     uint64 // of a watcher of all jobs: what it has seen
	// changed are the named jobs that have changed since the watcher saw them, and
	// the position behind their latest change. The mutex of the ring is theirs.
	changed map[job.ID]uint64
}

// follow returns the place of a watcher of the wanted jobs, all if there are none, from
// a cursor on, and the position where it begins. It is to be closed. An empty cursor
// stands for now. The error wraps [ErrCursor] if the cursor is too old.
func (c *Changes) follow(wanted map[job.ID]bool, cursor string) (w *follower, at uint64, err error) {
	w = &follower{c: c, wanted: wanted, wake: make(chan struct{}, 1), changed: make(map[job.ID]uint64)}
	c.mu.Lock()
	defer c.mu.Unlock()
	w.at = c.next
	if cursor != "" {
		if w.at, err = c.parse(cursor); err != nil {
			return nil, 0, err
		}
		w.at = min(w.at, c.next)
		if c.next-w.at > keptChanges {
			return nil, 0, ErrCursor
		}
	}
	if len(wanted) == 0 {
		c.all[w] = struct{}{}
		return w, w.at, nil
	}
	for n := w.at; n < c.next; n++ { // once, for a cursor; from here on Add does it
		if id := c.ring[(n-1)%keptChanges]; wanted[id] {
			w.changed[id] = n + 1
		}
	}
	for id := range wanted {
		if c.named[id] == nil {
			c.named[id] = make(map[*follower]struct{})
		}
		c.named[id][w] = struct{}{}
	}
	return w, w.at, nil
}

// close gives the place up.
func (w *follower) close() {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	delete(w.c.all, w)
	for id := range w.wanted {
		if delete(w.c.named[id], w); len(w.c.named[id]) == 0 {
			delete(w.c.named, id)
		}
	}
}

// next returns the jobs that changed since the last call, each once, at most
// [largestPage] of them, in the order of their changes; none if there are no more at
// the moment. It returns [ErrCursor] if they are not all remembered.
func (w *follower) next() ([]change, error) {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	if len(w.wanted) == 0 {
		return w.nextOfAll()
	}
	var changes []change
	for id, next := range w.changed {
		changes = append(changes, change{id, next})
	}
	clear(w.changed)
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.next, b.next) })
	return changes, nil
}

func (w *follower) nextOfAll() (changes []change, err error) {
	if w.c.next-w.at > keptChanges {
		return nil, ErrCursor
	}
	seen := make(map[job.ID]bool)
	for ; w.at < w.c.next && len(changes) < largestPage; w.at++ {
		if id := w.c.ring[(w.at-1)%keptChanges]; !seen[id] {
			seen[id] = true
			changes = append(changes, change{job: id, next: w.at + 1})
		}
	}
	return changes, nil
}

func (c *Changes) cursor(next uint64) string { return fmt.Sprintf("%d-%d", c.incarnation, next) }

func (c *Changes) parse(cursor string) (uint64, error) {
	incarnation, n, ok := strings.Cut(cursor, "-")
	i, err1 := strconv.ParseUint(incarnation, 10, 64)
	next, err2 := strconv.ParseUint(n, 10, 64)
	if !ok || err1 != nil || err2 != nil || next == 0 {
		return 0, &FieldError{Field: "cursor", Reason: "is not one that WatchJobs returned"}
	}
	if i != c.incarnation {
		return 0, fmt.Errorf("site was restarted since: %w", ErrCursor)
	}
	return next, nil
}
