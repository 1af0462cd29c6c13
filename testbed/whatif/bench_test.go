package whatif

import (
	"context"
	"testing"
)

// BenchmarkFullPast asks about all that a site remembers, 100,000 attempts on 430 processors,
// with a fifth more load: two replays, and all figures.
func BenchmarkFullPast(b *testing.B) {
	cfg := site(430)
	past := month(b, 100_000, cfg, 500)
	b.ReportAllocs()
	for b.Loop() {
		s, err := Open(ask(cfg, Changes{AddLoad: 0.2}), past)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.Run(context.Background(), nil); err != nil {
			b.Fatal(err)
		}
	}
}
