package place

import (
	"fmt"
	"testing"
	"time"

	"kith/internal/job"
)

// A decision among 20 and 200 sites that keeps five sites.
func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{20, 200} {
		for _, c := range []struct {
			name string
			o    Options
		}{
			{"k-dual", Options{Scheme: KDual, Copies: 3}},
			{"k-distributed", Options{Scheme: KDistributed, Copies: 3}},
			{"weighted", Options{Scheme: KDistributed, Copies: 3, Weight: 1.3}},
			{"mct", Options{Scheme: MCT, Rank: RankCompletion, Weight: 1.3}},
		} {
			b.Run(fmt.Sprintf("%s/%d", c.name, n), func(b *testing.B) {
				p, v, r := policyOf(c.o), manySites(n), Round{}
				p.Kept = 5
				j := Job{Request: &job.Request{Processors: 16, Walltime: time.Hour}}
				b.ReportAllocs()
				for b.Loop() {
					r.Begin(j, v, 1, &p)
					if d := r.Decide(); !d.Sites[0].Chosen {
						b.Fatal("no site was chosen")
					}
				}
			})
		}
	}
}
