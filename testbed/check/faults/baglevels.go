package faults

import (
	"math/rand/v2"
	"time"

	"kith/internal/job"
)

// LeveledBags makes a schedule of a seed with bags, most of which go from level to level: [Bagged], with
// sites that are levels as in [Leveled]. Its draws are its own, so that all else is as it was.
func LeveledBags(seed uint64, size Size) *Schedule {
	s := Bagged(seed, size)
	d := rand.New(rand.NewPCG(s.Seed, 0x6261676c6576))
	s.rank(d)
	for i := range s.Sites {
		if x := &s.Sites[i]; x.Rank == 3 { // what is left of a large bag may end there
			x.Use *= time.Duration(1 + d.IntN(12))
			x.Stay = max(x.Stay, x.Use)
		}
	}
	for i := range s.Bags {
		if b := &s.Bags[i]; d.IntN(4) > 0 {
			b.Level, b.OnSiteLost, b.Replicas, b.Tail = 1, job.Rerun, 0, 0
			b.Run = time.Duration(1+d.IntN(180)) * time.Second
		}
	}
	return s
}

// asks sets what a bag of a hierarchy asks for: nobody knows how long a task takes.
func (b *Bag) asks(r *job.Request) {
	if b.Level > 0 {
		r.Level, r.Unknown, r.Walltime = uint8(b.Level), true, job.MaxWalltime
	}
}
