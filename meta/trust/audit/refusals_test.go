package audit

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

var discard = slog.New(slog.DiscardHandler)

func TestRefusalsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		l := open(t, Config{Dir: dir})
		began := time.Now()
		const every = 70 * time.Millisecond // no minute is a multiple of it
		for time.Since(began) < 150*time.Second {
			l.Refuse(Entry{Kind: "refused-message", Peer: "beta", Text: "no number"})
			time.Sleep(every)
		}
		l.Refuse(Entry{Kind: "refused-message", Peer: "gamma"})
		l.Refuse(Entry{Kind: "refused-hello", Peer: "beta"})
		time.Sleep(5 * time.Minute)
		l.Refuse(Entry{Kind: "refused-message", Peer: "beta"})
		closeLog(t, l)
		var counts []uint64
		for _, line := range linesOf(t, dir, "refused-message") {
			if line.Peer == "beta" {
				counts = append(counts, line.Count)
			}
		}
		if fmt.Sprint(counts) != "[1 857 857 428 1]" {
			t.Errorf("lines for %v refusals; want the first, one a minute, the rest, and the first of the next time", counts)
		}
		if got := len(linesOf(t, dir, "refused-message", "refused-hello")); got != 7 {
			t.Errorf("%d lines of refusals, want 7", got)
		}
		whole(t, dir)
	})
}

// A million strangers write few lines and take little memory; all of them are counted.
func TestStrangersAreBounded(t *testing.T) {
	var r refusals
	now := time.Unix(1e9, 0)
	var lines int
	var counts uint64
	note := func(c counted) { lines++; counts += max(1, c.count) }
	const all = 200_000
	for i := range all {
		e, begins := r.add(now, Entry{Kind: "refused-hello", From: fmt.Sprint("10.0.0.", i)})
		if begins {
			note(counted{e, 1})
		}
		if len(r.of) > mostPeers+mostStrangers+mostKinds || r.strangers > mostStrangers {
			t.Fatalf("%d sources, %d strangers", len(r.of), r.strangers)
		}
		now = now.Add(time.Millisecond)
		if i%1000 == 0 {
			for _, c := range r.due(now, false) {
				note(c)
			}
		}
	}
	if lines > 5*mostStrangers {
		t.Errorf("%d lines in 200 s, want at most %d", lines, 5*mostStrangers)
	}
	for _, c := range r.due(now, true) {
		note(c)
	}
	if counts != all {
		t.Errorf("%d of %d refusals are in lines", counts, all)
	}
	for range 10 {
		now = now.Add(2 * refusalEvery)
		r.due(now, false)
	}
	if len(r.of) != 0 || r.strangers != 0 {
		t.Errorf("%d sources and %d strangers are still known after silence", len(r.of), r.strangers)
	}
}

// Strangers do not take the places of sites that were admitted.
func TestPeersHavePlacesOfTheirOwn(t *testing.T) {
	var r refusals
	now := time.Unix(1e9, 0)
	for i := range 2000 {
		r.add(now, Entry{Kind: "refused-hello", From: fmt.Sprint("10.0.0.", i)})
	}
	if e, begins := r.add(now, Entry{Kind: "refused-message", Peer: "beta"}); !begins || e.Peer != "beta" {
		t.Errorf("among strangers a peer is written as %+v, %v", e, begins)
	}
	for i := range 2 * mostPeers {
		r.add(now, Entry{Kind: "refused-message", Peer: fmt.Sprint("site-", i)})
	}
	if len(r.of) > mostPeers+mostStrangers+mostKinds {
		t.Errorf("%d sources", len(r.of))
	}
}
