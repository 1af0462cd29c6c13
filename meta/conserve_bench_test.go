package meta_test

import (
	"fmt"
	"testing"
	"time"

	"kith/cluster"
	"kith/internal/job"
	"kith/meta"
	"kith/sitesched"
	"kith/store"
)

// manyJobs is a site with many jobs that wait, and 20 others with which it is connected.
type manyJobs struct {
	engine *meta.Engine
	state  *store.State
	now    job.Time
	seq    uint64
}

func newManyJobs(b *testing.B, jobs int, copies int32) *manyJobs {
	b.Helper()
	site, err := sitesched.New(sitesched.Config{Processors: 4, GuaranteeDepth: 1000})
	if err != nil {
		b.Fatal(err)
	}
	cfg := meta.Default()
	cfg.Self = meta.Self{Processors: 4, Speed: 1}
	cfg.Timing.Load, cfg.Timing.AntiEntropy, cfg.Timing.Resend = 1000*time.Hour, 1000*time.Hour, 1000*time.Hour
	m := &manyJobs{state: store.NewState("alpha", 1), now: job.Time(time.Hour)}
	if m.engine, err = meta.New(cfg, m.state, site); err != nil {
		b.Fatal(err)
	}
	m.engine.Restore(m.now, nil)
	for i := range 20 {
		m.engine.Step(m.now, meta.PeerUp{Site: name(i), Generation: 1})
		m.load(i, 4, 0)
	}
	for range jobs {
		m.engine.Step(m.now, meta.Submit{Request: job.Request{Processors: 4, Walltime: time.Hour, Copies: copies}})
		m.engine.Step(m.now, meta.Pass{})
		id := m.state.NextID()
		id.Seq--
		for i := range 20 {
			m.engine.Step(m.now, meta.Receive{From: name(i), Message: meta.CopyAnswer{Attempt: job.AttemptID{Job: id, Number: 1}, Accepted: true}})
		}
		m.state.DropChanges()
	}
	return m
}

func name(i int) job.SiteID { return job.SiteID(fmt.Sprintf("site-%02d", i)) }

// load has a site say that it has so many processors, and how many are free.
func (m *manyJobs) load(i int, processors, free int32) {
	m.seq++
	m.engine.Step(m.now, meta.LoadSeen{Digest: cluster.Digest{
		Site: name(i), Incarnation: 1, Sequence: m.seq, Processors: processors, Speed: 1, Load: job.Load{Work: 1e9, Free: free},
	}})
}

// round lets so much time pass that a round is due, and makes it.
func (m *manyJobs) round() (effects int) {
	m.now = m.now.Add(6 * time.Second)
	effects = len(m.engine.Step(m.now, meta.Tick{}))
	effects += len(m.engine.Step(m.now, meta.Pass{}))
	m.state.DropChanges()
	return effects
}

// BenchmarkRound is one round of the conservation of work over 100,000 jobs that wait.
func BenchmarkRound(b *testing.B) {
	const jobs = 100_000
	b.Run("idle-but-too-narrow", func(b *testing.B) { // every job is looked at, none fits
		m := newManyJobs(b, jobs, 3)
		for b.Loop() {
			m.load(0, 2, 2)
			m.round()
		}
	})
	b.Run("short-without-sites", func(b *testing.B) { // more copies wanted than there are sites
		m := newManyJobs(b, jobs, 30)
		for b.Loop() {
			m.round()
		}
	})
	b.Run("feeding", func(b *testing.B) { // an idle site is given what it can take
		m := newManyJobs(b, jobs, 3)
		effects := 0
		for b.Loop() {
			m.load(0, 4, 4)
			effects += m.round()
		}
		b.ReportMetric(float64(effects)/float64(b.N), "effects/round")
	})
}
