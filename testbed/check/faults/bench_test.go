package faults

import (
	"context"
	"testing"
)

// BenchmarkSearch is the speed of one search on one processor. An iteration is
// ten schedules.
func BenchmarkSearch(b *testing.B) {
	for name, x := range map[string]Search{
		"plain": {}, "hostile": {Hostile: true}, "wide": {Wide: true}, "members": {Members: true}, "levels": {Levels: true},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			x.Workers, x.Seeds = 1, 10
			for x.FirstSeed = 0; b.Loop(); x.FirstSeed += uint64(x.Seeds) {
				if r := x.Run(context.Background()); r.Failed() > 0 {
					b.Fatalf("seeds from %d: %d failed", x.FirstSeed, r.Failed())
				}
			}
			b.ReportMetric(float64(x.Seeds*b.N)/b.Elapsed().Seconds(), "schedules/s")
		})
	}
}
