package sitesched

import (
	"testing"
	"time"

	"kith/internal/job"
)

// FuzzStep feeds random events, sensible or not, and demands that the
// invariants hold after each and that every question is answered.
func FuzzStep(f *testing.F) {
	f.Add([]byte{0, 0, 1, 2, 3, 8, 0, 0, 2, 0, 8, 0})
	f.Add([]byte{0x39, 3, 200, 17, 4, 33, 6, 91, 6, 250, 5, 0, 8, 1, 2, 0, 4, 7, 8, 8, 8, 200, 5, 1, 8, 3})
	f.Add([]byte{
		0x30, 0, 0, 1, 2, 9, 0, 3, 1, 9, 0, 5, 2, 3, 8, 0, 0, 0, 9, 1, 0, 0, 0, 7, 1, 2, 8, 0, 0, 0, 11, 3, 0, 0, 8, 0, 0, 0,
		3, 3, 9, 0, 10, 1, 0, 0, 8, 0, 0, 0,
	})
	f.Add([]byte("000 00C  0v000X000")) // a postponement that ends on a drained site, which makes no passes
	f.Add([]byte("the quick brown fox jumps over the lazy dog, again and again and again, until it is tired"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 2 || len(data) > 800 {
			return
		}
		s := mustNew(t, Config{
			Processors: 1 + int32(data[0]>>4), MemoryBytes: int64(data[1] & 15),
			Backfill: Backfill(data[0] & 3), Queues: Queues((data[0] >> 2 & 3) % 3), Scope: Scope(data[1] >> 7),
			WhatIfSteps: 500,
		})
		feed(t, s, data[2:])
	})
}

func feed(t *testing.T, s *Scheduler, data []byte) {
	t.Helper()
	var now job.Time
	for ; len(data) >= 4; data = data[4:] {
		kind, n, a, b := EventKind(data[0]%16), int(data[1]%32), data[2], data[3]
		if kind >= eventKinds {
			kind = Pass
		}
		now = now.Add(time.Duration(data[0]>>4) * 300 * time.Millisecond)
		c := entry{
			id: attempt(job.SiteID("ab"[n&1:][:1]), n), processors: int32(a & 15), memoryBytes: int64(a >> 4),
			walltime: time.Duration(b&63) * 400 * time.Millisecond, remote: n&1 == 1, arrival: now - job.Time(b>>6)*second,
		}
		if b == 255 {
			c.walltime = 1<<63 - 1 // ends never
		}
		at := now.Add(time.Duration(int8(a)) * 100 * time.Millisecond)
		started := s.Step(now, Event{Kind: kind, ID: c.id, Copy: c, At: at})
		if len(started) > 0 && kind != Pass {
			t.Fatalf("%v starts something", kind)
		}
		if err := s.Check(); err != nil {
			t.Fatalf("after %v of %d at %d: %v", kind, n, now, err)
		}
		if kind != Pass {
			continue
		}
		if again := s.Step(now, Event{Kind: Pass}); len(again) > 0 && !s.run.overdue(now) {
			t.Fatalf("a second pass at %d starts %v", now, again)
		}
		before := sight(s, now)
		c.id.Job.Seq += 1000
		guest := c.copy()
		if _, err := s.WhatIf(now, guest); err != nil && s.Refuse(&guest.Request) == job.NoReason {
			t.Fatal(err)
		}
		s.EarliestStart(now, guest)
		if after := sight(s, now); after != before {
			t.Fatalf("questions changed the site from\n%s\nto\n%s", before, after)
		}
	}
}
