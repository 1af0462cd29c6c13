package faults

import (
	"math/rand/v2"
	"time"

	"kith/meta"
	"kith/sitesched/level"
)

// pushing reports whether sites of a schedule of levels move what waits inside a level. No seed that a
// test or a mutant names is one.
func pushing(seed uint64) bool {
	switch seed % 20 {
	case 2, 8, 9, 15, 18:
		return true
	}
	return false
}

// pushJobs has most sites of a schedule move their jobs inside a level, which has more sites and is more
// crowded than else. It has draws of its own, so that other schedules are what they were.
func (s *Schedule) pushJobs() {
	d := rand.New(rand.NewPCG(s.Seed, 0x70757368))
	for i := range s.Sites {
		x := &s.Sites[i]
		if d.IntN(4) > 0 {
			x.Share = time.Duration(1+d.IntN(10)) * time.Second
		}
		if x.Rank != 3 && d.IntN(4) > 0 {
			x.Rank, x.Use = 1, time.Duration(20+d.IntN(60))*time.Second
			x.Stay = x.Use * time.Duration(10+d.IntN(30))
		}
	}
	number := 0
	for i := range s.Jobs {
		number = max(number, s.Jobs[i].Number)
	}
	for i := range len(s.Jobs) { // they come together, and more of them
		for range min(s.Jobs[i].Level, 1) * d.IntN(4) {
			j := s.Jobs[i]
			number++
			j.Number, j.Waits = number, Waits{}
			s.Jobs = append(s.Jobs, j)
		}
	}
}

// push sets how jobs that are submitted at a site are shared.
func (x *Site) push(m *meta.Config) {
	if x.Share > 0 {
		m.Level.Share, m.Level.SharePeriod = level.SharePush, x.Share
	}
}
