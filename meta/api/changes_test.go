package api

import (
	"errors"
	"testing"

	"kith/internal/job"
)

func numbered(n int) job.ID { return job.ID{Origin: "alpha", Generation: 1, Seq: uint64(n)} }

// A watcher who fell behind by more than the ring holds is told so; others get
// each job once, and a place to go on from.
func TestChanges(t *testing.T) {
	c := NewChanges(1)
	w, at, err := c.follow(nil, "")
	if err != nil || at != 1 {
		t.Fatalf("%d, %v", at, err)
	}
	if changes, err := w.next(); len(changes) != 0 || err != nil {
		t.Errorf("nothing has changed: %v, %v", changes, err)
	}
	for range 3 {
		c.Add(numbered(1))
		c.Add(numbered(2))
	}
	select {
	case <-w.wake:
	default:
		t.Error("a change wakes no watcher")
	}
	changes, err := w.next()
	if err != nil || len(changes) != 2 || w.at != 7 || changes[0].job != numbered(1) || changes[0].next != 2 || changes[1].job != numbered(2) {
		t.Errorf("%v up to %d, %v", changes, w.at, err)
	}
	for n := range keptChanges + 1 {
		c.Add(numbered(n))
	}
	if _, err := w.next(); !errors.Is(err, ErrCursor) {
		t.Errorf("a lost change is not noticed: %v", err)
	}
	if _, _, err := c.follow(nil, c.cursor(7)); !errors.Is(err, ErrCursor) {
		t.Errorf("a cursor of a lost change: %v", err)
	}
	late, at, err := c.follow(nil, c.cursor(8))
	if err != nil || at != 8 {
		t.Fatalf("%d, %v", at, err)
	}
	if changes, err := late.next(); err != nil || len(changes) != largestPage {
		t.Errorf("%d changes, %v", len(changes), err)
	}
}

// A watch of named jobs goes on behind its cursor and has each job once, with the
// place behind its latest change.
func TestWatchersOfNamedJobsGoOnBehindTheirCursor(t *testing.T) {
	c := NewChanges(1)
	for _, n := range []int{1, 2, 3, 1, 2} {
		c.Add(numbered(n))
	}
	w, _, err := c.follow(map[job.ID]bool{numbered(1): true, numbered(3): true}, c.cursor(2))
	if err != nil {
		t.Fatal(err)
	}
	c.Add(numbered(2))
	c.Add(numbered(3))
	changes, err := w.next()
	if want := []change{{numbered(1), 5}, {numbered(3), 8}}; err != nil || len(changes) != 2 || changes[0] != want[0] || changes[1] != want[1] {
		t.Errorf("%v, %v; want %v", changes, err, want)
	}
	w.close()
	if len(c.named) != 0 || len(c.all) != 0 {
		t.Errorf("left behind: %v, %v", c.named, c.all)
	}
}

// Watchers of a job that does not change cost nothing when others do, however many
// there are; a change of theirs wakes each once.
func TestWatchersOfAnIdleJobAreNotWokenByOthers(t *testing.T) {
	const watchers, others = 800, 3000
	c := NewChanges(1)
	idle := numbered(1)
	all := make([]*follower, watchers)
	for i := range all {
		w, _, err := c.follow(map[job.ID]bool{idle: true}, "")
		if err != nil {
			t.Fatal(err)
		}
		all[i] = w
	}
	for n := range others {
		c.Add(numbered(2 + n))
	}
	if n := c.woken.Load(); n != 0 {
		t.Errorf("%d changes of other jobs woke %d watchers", others, n)
	}
	c.Add(idle)
	c.Add(idle)
	if n := c.woken.Load(); n != watchers {
		t.Errorf("two changes of the job woke %d watchers of %d", n, watchers)
	}
	for _, w := range all {
		<-w.wake
		if changes, err := w.next(); err != nil || len(changes) != 1 || changes[0].job != idle {
			t.Fatalf("%v, %v", changes, err)
		}
	}
}
