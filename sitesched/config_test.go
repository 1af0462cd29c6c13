package sitesched

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"kith/internal/job"
)

func TestConfigValidate(t *testing.T) {
	good := Config{Processors: 1}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for field, c := range map[string]Config{
		"processors 0":           {},
		"processors 16777217":    {Processors: job.MaxProcessors + 1},
		"memory_bytes -1":        {Processors: 1, MemoryBytes: -1},
		"backfill unknown(4)":    {Processors: 1, Backfill: 4},
		"queues unknown(4)":      {Processors: 1, Queues: 4},
		"scope unknown(2)":       {Processors: 1, Scope: 2},
		"keep_free -1":           {Processors: 1, KeepFree: -1, Queues: DualBackfill},
		"keep_free 2":            {Processors: 1, KeepFree: 2, Queues: DualBackfill},
		"keep_free 1":            {Processors: 1, KeepFree: 1, Queues: DualStrict},
		"keep_free 3":            {Processors: 1, KeepFree: 3, Queues: DualPreempt},
		"what_if_steps -3":       {Processors: 1, WhatIfSteps: -3},
		"memory_bytes 115292150": {Processors: 1, MemoryBytes: MaxMemoryBytes + 1},
	} {
		if err := c.Validate(); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), field) {
			t.Errorf("%+v: %v, want an error about %q", c, err, field)
		}
		if s, err := New(c); err == nil {
			t.Errorf("New(%+v) = %v", c, s)
		}
	}
}

func TestConfigWords(t *testing.T) {
	for b := range Backfill(len(backfillNames)) {
		if got, err := ParseBackfill(b.String()); err != nil || got != b {
			t.Errorf("ParseBackfill(%q) = %v, %v", b, got, err)
		}
	}
	for q := range DualPreempt + 1 {
		if got, err := ParseQueues(q.String()); err != nil || got != q {
			t.Errorf("ParseQueues(%q) = %v, %v", q, got, err)
		}
	}
	for c := range Scope(len(scopeNames)) {
		if got, err := ParseScope(c.String()); err != nil || got != c {
			t.Errorf("ParseScope(%q) = %v, %v", c, got, err)
		}
	}
	if _, err := ParseBackfill("Easy"); !errors.Is(err, ErrUnknownWord) || !strings.Contains(err.Error(), `backfill "Easy"`) {
		t.Errorf("ParseBackfill(Easy): %v", err)
	}
	for want, c := range map[string]Config{
		"easy, dual-backfill, scope all":  {Backfill: EASY, Queues: DualBackfill, Scope: ScopeAll},
		"none, dual-backfill, scope head": {Queues: DualBackfill},
		"none, dual-strict":               {Queues: DualStrict, Scope: ScopeAll},
		"easy, dual-preempt, scope head":  {Backfill: EASY, Queues: DualPreempt},
		"conservative, dual-backfill":     {Backfill: Conservative, Queues: DualBackfill},
		"conservative-replan, single":     {Backfill: ConservativeReplan},
	} {
		if got := c.Policy(); got != want {
			t.Errorf("Policy is %q, want %q", got, want)
		}
		if got := c.HomeFirst(); got != strings.Contains(want, "dual-") {
			t.Errorf("%s: local jobs go first: %v", want, got)
		}
	}
}

func TestCharge(t *testing.T) {
	c := Config{Processors: 4, MemoryBytes: 1000}
	for _, m := range []struct {
		procs  int32
		memory int64
		want   int32
		fits   bool
	}{
		{1, 0, 1, true}, {0, 0, 1, true}, {4, 0, 4, true}, {1, 250, 1, true}, {1, 251, 2, true}, {1, 1000, 4, true},
		{3, 1, 3, true}, {5, 0, 5, false}, {1, 1001, math.MaxInt32, false}, {math.MaxInt32, 1, math.MaxInt32, false},
	} {
		x := &job.Request{Processors: m.procs, MemoryBytes: m.memory}
		if got := c.Charge(x); got != m.want {
			t.Errorf("%d processors, %d bytes are charged %d, want %d", m.procs, m.memory, got, m.want)
		}
		if err := c.Fits(x); (err == nil) != m.fits || err != nil && !errors.Is(err, ErrTooWide) {
			t.Errorf("%d processors, %d bytes: %v", m.procs, m.memory, err)
		}
	}
	if got := (&Config{Processors: 4}).Charge(&job.Request{Processors: 1, MemoryBytes: 1 << 50}); got != 1 {
		t.Errorf("without a limit, memory is charged %d", got)
	}
}

// Whatever fits by its charge fits by its memory, with the largest numbers, too.
func TestChargeNeverOvercommitsMemory(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 9))
	for range 100_000 {
		c := Config{Processors: 1 + rng.Int32N(job.MaxProcessors), MemoryBytes: 1 + rng.Int64N(MaxMemoryBytes)>>rng.IntN(60)}
		left, memory := c.Processors, int64(0)
		for range 10 {
			x := &job.Request{Processors: 1, MemoryBytes: rng.Int64N(c.MemoryBytes + 1)}
			charge := c.Charge(x)
			if c.Fits(x) != nil || charge > c.Processors {
				t.Fatalf("%+v does not fit into %+v", x, c)
			}
			if charge > left {
				continue
			}
			left -= charge
			if memory += x.MemoryBytes; memory > c.MemoryBytes {
				t.Fatalf("%d bytes of %d promised", memory, c.MemoryBytes)
			}
		}
	}
}

// The sums of the load neither overflow nor drift.
func TestLoadOfAGiant(t *testing.T) {
	s := mustNew(t, Config{Processors: job.MaxProcessors, Backfill: EASY})
	now := job.Instant(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC))
	for n := range 1000 {
		s.Step(now, Event{Kind: Enqueue, Copy: entry{id: attempt("a", n), processors: job.MaxProcessors, walltime: job.MaxWalltime}})
	}
	s.Step(now, Event{Kind: Pass})
	want := 1000 * job.MaxWalltime.Seconds()
	if l := s.Load(now); l.Work != want || l.Procs != 1000 || l.Queued != 999 || l.Running != 1 || l.Free != 0 {
		t.Errorf("load %+v, want %g s", l, want)
	}
	for n := range 1000 {
		s.Step(now, Event{Kind: Withdraw, ID: attempt("a", n)})
	}
	if l := s.Load(now); l != (job.Load{Free: job.MaxProcessors}) || s.sums != (sums{}) {
		t.Errorf("load of the empty site %+v, %+v", l, s.sums)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

func TestWide(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 10))
	var w wide
	var terms [][2]int64
	for range 1000 {
		a, b := rng.Int64()>>rng.IntN(63), rng.Int64()>>rng.IntN(63)
		if rng.IntN(2) == 0 {
			a = -a
		}
		terms = append(terms, [2]int64{a, b})
		w.addProduct(a, b)
	}
	for _, x := range terms {
		w.addProduct(-x[0], x[1])
	}
	if w != (wide{}) {
		t.Errorf("adding and taking away leaves %+v", w)
	}
	w.addProduct(-3, 5)
	if got := w.float(); got != -15 {
		t.Errorf("-3 × 5 = %g", got)
	}
	w = wide{}
	w.addProduct(1<<62, 1<<40)
	if got := w.float(); got != math.Ldexp(1, 102) {
		t.Errorf("2^62 × 2^40 = %g", got)
	}
}
