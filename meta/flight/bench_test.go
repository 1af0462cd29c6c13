package flight_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/flight"
	"kith/sitesched"
	"kith/store"
)

// null takes a recording and keeps nothing.
type null struct{ begun bool }

func (s *null) Wants() bool    { return !s.begun }
func (s *null) Open() bool     { return s.begun }
func (s *null) Write([]byte)   {}
func (s *null) Fail(err error) { panic(err) }
func (s *null) Begin(head func(uint64) ([]byte, error)) {
	s.begun = true
	if _, err := head(1); err != nil {
		panic(err)
	}
}

// site is an engine of its own, whose jobs all end at once.
type site struct {
	now    job.Time
	facts  *store.State
	engine *meta.Engine
	plan   *sitesched.Scheduler
	record *flight.Recorder
	cfg    meta.Config
	count  uint64 // of steps
}

func (s *site) steps() uint64 { return s.count }

func newSite(b testing.TB) *site {
	s := &site{now: 1, cfg: meta.Default(), facts: store.NewState("alpha", 1)}
	s.cfg.Self = meta.Self{Processors: 4, Speed: 1}
	s.cfg.Limits.ClosedJobs = 1000
	var err error
	if s.plan, err = sitesched.New(sitesched.Config{Processors: 4}); err != nil {
		b.Fatal(err)
	}
	if s.engine, err = meta.New(s.cfg, s.facts, s.plan); err != nil {
		b.Fatal(err)
	}
	return s
}

func (s *site) recorded(b *testing.B) *site {
	s.recordTo(b, &null{})
	return s
}

func (s *site) recordTo(b testing.TB, to flight.Sink) {
	b.Helper()
	var err error
	s.record, err = flight.NewRecorder(flight.Subject{Engine: s.engine, Meta: s.cfg, Site: s.plan, ID: "alpha", Generation: 1}, to)
	if err != nil {
		b.Fatal(err)
	}
}

func (s *site) step(ev meta.Event) []meta.Effect {
	s.now++
	s.count++
	s.record.Event(s.now, ev)
	effects := s.engine.Step(s.now, ev)
	s.record.Effects(effects)
	return effects
}

// turn ends a turn of the loop.
func (s *site) turn() {
	s.step(meta.Pass{})
	s.facts.DropChanges()
	s.record.Sealed()
	s.record.Wake(s.now, s.engine.NextWake(s.now))
	s.record.Turn()
}

// job has a job submitted, started and ended, as a daemon does in six turns.
func (s *site) job() {
	var id job.ID
	for _, f := range s.step(meta.Submit{Request: job.Request{Name: "x", User: "ada", Processors: 1, Walltime: 1e9}, Payload: make([]byte, 300)}) {
		if r, is := f.(meta.Reply); is {
			id = r.Job
		}
	}
	s.turn()
	a := job.AttemptID{Job: id, Number: 1}
	s.turn()
	s.step(meta.AttemptStarted{Attempt: a, At: s.now})
	s.turn()
	s.step(meta.AttemptOver{Attempt: a})
	s.turn()
	s.step(meta.AttemptEnded{Attempt: a, Outcome: job.Outcome{Kind: job.Success, Start: s.now, End: s.now}})
	s.turn()
	s.turn()
}

// BenchmarkJob is what the engines of a job cost, and with all of it recorded. The difference
// is the recorder's part, but for its writes.
func BenchmarkJob(b *testing.B) {
	b.Run("plain", func(b *testing.B) {
		s := newSite(b)
		for b.Loop() {
			s.job()
		}
	})
	b.Run("recorded", func(b *testing.B) {
		s := newSite(b).recorded(b)
		for b.Loop() {
			s.job()
		}
	})
}

// BenchmarkImage is what a file begins with, with 10,000 jobs in the queue, which the loop waits for when
// a daemon starts.
func BenchmarkImage(b *testing.B) {
	s := newSite(b).recorded(b)
	for range 10_000 {
		s.step(meta.Submit{Request: job.Request{Name: "x", User: "ada", Processors: 1, Walltime: 1e9}, Payload: make([]byte, 300)})
	}
	s.turn()
	n := 0
	for b.Loop() {
		head, err := flight.Head(s.record)
		if err != nil {
			b.Fatal(err)
		}
		n = len(head)
	}
	b.ReportMetric(float64(n)/10_000, "B/job")
}

// BenchmarkNextFile is what a loop with 100,000 jobs in the queue waits for while it is recorded, from the begin of a file
// until the next one has all: held-ms is the longest turn, its step included, and next-s how long it
// takes to make the next file, beside the loop.
func BenchmarkNextFile(b *testing.B) {
	s := newSite(b)
	for range 100_000 {
		s.step(meta.Submit{Request: job.Request{Name: "x", User: "ada", Processors: 1, Walltime: 1e9}, Payload: make([]byte, 300)})
	}
	s.turn()
	var held, took time.Duration
	for b.Loop() {
		data := b.TempDir()
		ring, err := flight.OpenRing(flight.RingConfig{Data: data, SizeBytes: 1 << 30, Files: 4, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			b.Fatal(err)
		}
		s.recordTo(b, ring)
		s.turn() // the first file, for which nobody waits
		made := time.Time{}
		for followed := false; !followed; {
			begin := time.Now()
			s.step(meta.Cancel{Job: job.ID{Origin: "alpha", Seq: 1 << 40}, Reason: strings.Repeat("y", 4000)})
			s.turn()
			held = max(held, time.Since(begin))
			time.Sleep(20 * time.Microsecond) // others have the processor, too
			if f := ring.Figures(); f.Failures > 0 {
				b.Fatalf("%+v", f)
			} else if f.Next && made.IsZero() {
				made = time.Now()
			} else if !f.Next && !made.IsZero() {
				followed = true
			}
		}
		took = time.Since(made)
		ring.Close()
	}
	b.ReportMetric(float64(held.Microseconds())/1000, "held-ms")
	b.ReportMetric(took.Seconds(), "next-s")
}
