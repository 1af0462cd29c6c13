package forecast

import (
	"strconv"
	"testing"
	"time"

	"kith/internal/job"
)

// known is a history of 200 users with 100 jobs each.
func known() *History {
	h, rng := NewHistory(), newRand(1)
	for i := range 20_000 {
		limit := time.Duration(1+rng.IntN(12)) * time.Hour
		h.Ended(&Past{User: strconv.Itoa(i % 200), Procs: 1 << rng.IntN(4), Limit: limit, Run: time.Duration(rng.Float64() * float64(limit))})
	}
	return h
}

// What is done often allocates nothing.
func TestNothingIsAllocated(t *testing.T) {
	h, rng := known(), newRand(2)
	q, p := Question{User: "7", Procs: 4, Limit: time.Hour}, Past{User: "7", Limit: time.Hour, Run: time.Minute}
	var d Dist
	r := NewRecalibration(FadeRuns)
	var l Ledger
	for range LedgerSize {
		l.Add(&Score{})
	}
	h.Runs(&q, &d)
	var c Cast
	c.Reset(2)
	c.Set(0, &d, time.Hour, "7")
	var days Days
	for i := range 10_000 {
		days.Add(Arrival{At: job.Time(i) * job.Time(time.Minute)})
	}
	var s Stream
	samples := make(Samples, 50)
	var o Dist
	samples.Dist(&o)
	for name, f := range map[string]func(){
		"Runs":    func() { h.Runs(&q, &d) },
		"Ended":   func() { h.Ended(&p) },
		"Judge":   func() { s := Judge(&d, r, time.Minute); l.Add(&s) },
		"Add":     func() { below, upto := d.PIT(time.Minute); r.Add(below, upto, rng) },
		"RunsOf":  func() { RunsOf(&d, time.Hour) },
		"Cast":    func() { c.Begin(rng); c.Run(0, time.Minute) },
		"Draw":    func() { days.Draw(job.Time(166*time.Hour), rng, &s); s.Next() },
		"Samples": func() { samples.Dist(&o) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkRuns(b *testing.B) {
	h := known()
	q := Question{User: "7", Procs: 4, Limit: 3 * time.Hour}
	var d Dist
	b.ReportAllocs()
	for b.Loop() {
		h.Runs(&q, &d)
	}
}

func BenchmarkEnded(b *testing.B) {
	h := known()
	p := Past{User: "7", Procs: 4, Limit: 3 * time.Hour, Run: time.Hour}
	b.ReportAllocs()
	for b.Loop() {
		h.Ended(&p)
	}
}

func BenchmarkCastRun(b *testing.B) {
	var d Dist
	known().Runs(&Question{User: "7", Procs: 4, Limit: 3 * time.Hour}, &d)
	var c Cast
	c.Reset(1)
	c.Set(0, &d, 3*time.Hour, "7")
	c.Begin(newRand(3))
	b.ReportAllocs()
	for b.Loop() {
		c.Run(0, time.Minute)
	}
}

func BenchmarkJudge(b *testing.B) {
	s, rng, r := make(Samples, DefaultScenarios), newRand(4), NewRecalibration(FadeStarts)
	for i := range s {
		s[i] = time.Duration(rng.Int64N(int64(Day)))
	}
	var d Dist
	b.ReportAllocs()
	for b.Loop() {
		s.Dist(&d)
		Judge(&d, r, time.Hour)
		r.Add(.3, .4, rng)
	}
}
