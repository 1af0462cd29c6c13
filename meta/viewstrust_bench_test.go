package meta_test

import (
	"fmt"
	"testing"

	"kith/internal/job"
	"kith/meta"
)

// BenchmarkDealings is what `kith site show SITE` and `kith site peers` have the loop do
// (peers), and `kith site show` (own), with so many jobs that wait, 1,000 of which others
// hold.
func BenchmarkDealings(b *testing.B) {
	for _, jobs := range []int{20_000, 100_000} {
		m := newManyJobs(b, jobs, 3)
		m.grant(b, 1000)
		for name, look := range map[string]func(meta.Views){
			"peers": func(v meta.Views) {
				v.TrustedSites()
				v.Sites(m.now)
				if d := v.Dealings(m.now); len(d) == 0 {
					b.Fatal("no site has anything")
				}
			},
			"own": func(v meta.Views) { v.Sites(m.now) },
		} {
			b.Run(fmt.Sprintf("%s/%d", name, jobs), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					look(m.engine.Views())
				}
			})
		}
	}
}

// grant has other sites claim n of the jobs that wait.
func (m *manyJobs) grant(b *testing.B, n int) {
	b.Helper()
	stamp := uint64(0)
	for j := range m.state.OpenJobs(job.ID{}) {
		if n == 0 {
			break
		}
		if j.State != job.Queued {
			continue
		}
		for _, s := range j.Sites {
			if s == "alpha" {
				continue
			}
			stamp++
			m.engine.Step(m.now, meta.Receive{From: s, Message: meta.Claim{Attempt: j.AttemptID(), Stamp: stamp, Sent: m.now}})
			n--
			break
		}
	}
	m.state.DropChanges()
	if n > 0 {
		b.Fatalf("%d claims were not granted", n)
	}
}
