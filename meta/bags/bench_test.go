package bags

import (
	"fmt"
	"testing"

	"kith/internal/job"
)

// An ask of a node with 64 places among bags of ten users.
func BenchmarkAnswer(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var works []Work
			for i := range n {
				works = append(works, workOf(uint64(i), fmt.Sprint("user", i%10), 1e6))
			}
			d, ask := newDesk(), Ask{Site: "gamma", Shape: hour, Places: 64, Want: 64}
			d.Answer(ask, works, 0)
			b.ReportAllocs()
			for b.Loop() {
				if len(d.Answer(ask, works, 1)) != 1 {
					b.Fatal("no bundle")
				}
			}
		})
	}
}

// A look for offers that are due among bags that three sites are offered.
func BenchmarkBoardDue(b *testing.B) {
	var works []Work
	for i := range 100 {
		w := workOf(uint64(i), "ann", 1e6)
		w.Sites = []job.SiteID{"beta", "gamma", "delta"}
		works = append(works, w)
	}
	var board Board
	board.Due(works, everywhere)
	b.ReportAllocs()
	for b.Loop() {
		if len(board.Due(works, everywhere)) != 0 {
			b.Fatal("an offer is due again")
		}
	}
}

// Taking tasks from a stock, bundle by bundle.
func BenchmarkStockNext(b *testing.B) {
	var s Stock
	number := uint32(0)
	b.ReportAllocs()
	for b.Loop() {
		if s.Count() == 0 {
			number++
			s.Add(bundleOf(1, number), 1, job.TaskRange(0, 256))
		}
		if _, _, ok := s.Next(1); !ok {
			b.Fatal("no task")
		}
	}
}
