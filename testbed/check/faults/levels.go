package faults

import (
	"math/rand/v2"
	"slices"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/testbed/sim"
)

// Checkpoint has a user have a job save what it has done and go on elsewhere.
const Checkpoint ActKind = "checkpoint"

const (
	// levelGrace is what a job has to save what it has done where sites are levels, levelSaves how
	// long that takes.
	levelGrace = 10 * time.Second
	levelSaves = 2 * time.Second
	// levelTries is how often as long as it runs a job of a hierarchy may take at most: it begins
	// again at each level if it writes no checkpoints, and after each loss.
	levelTries = 12
)

// Leveled makes a schedule of a seed in which sites are levels of a hierarchy: [Random], with jobs of
// unknown length that begin at the smallest level, and users who have jobs go on elsewhere. One
// of the widest sites is the last level, where most of them end; up to two ranks are below it, and
// a rank may have several sites or none.
func Leveled(seed uint64, size Size) *Schedule {
	s := Random(seed, size)
	d := rand.New(rand.NewPCG(s.Seed, 0x6c6576656c73))
	s.rank(d)
	for i := range s.Jobs {
		j := &s.Jobs[i]
		if j.OnSiteLost == job.Race || d.IntN(3) == 0 {
			continue
		}
		j.Level, j.Run = 1, time.Duration(1+d.IntN(240))*time.Second
		if j.Pieces = 1; d.IntN(4) == 0 {
			j.Pieces, j.OnSiteLost, j.Every = 0, job.Rerun, 0
		}
		if d.IntN(3) == 0 {
			s.Acts = append(s.Acts, Act{At: j.At + time.Duration(d.IntN(120))*time.Second, Kind: Checkpoint, Job: j.Number})
		}
	}
	if s.estimates() {
		s.bringEstimators()
	}
	if pushing(seed) {
		s.pushJobs()
	}
	return s
}

// rank draws which sites are levels.
func (s *Schedule) rank(d *rand.Rand) {
	widest := slices.MaxFunc(s.Sites, func(a, b Site) int { return int(a.Processors) - int(b.Processors) }).Name
	for i := range s.Sites {
		x := &s.Sites[i]
		switch {
		case x.Name == widest:
			x.Rank, x.Use, x.Stay = 3, 10*time.Minute, 2*time.Hour
		case d.IntN(5) > 0:
			x.Rank = 1 + d.IntN(3)
			x.Use = time.Duration(x.Rank) * time.Duration(15+d.IntN(30)) * time.Second
			x.Stay = x.Use * time.Duration(1+d.IntN(20))
		}
	}
}

// leveled reports whether a site is a level of a hierarchy.
func (s *Schedule) leveled() bool {
	return slices.ContainsFunc(s.Sites, func(x Site) bool { return x.Rank > 0 })
}

// level sets what a site does as a level.
func (s *Schedule) level(x *Site, m *meta.Config) {
	if !s.leveled() {
		return
	}
	m.MaxGrace, m.Self.Speed = levelGrace, 1
	if x.Rank > 0 {
		m.Level = meta.LevelPolicy{Rank: x.Rank, Queue: x.Stay, Run: x.Use, Beta: 1, EstimateShare: x.Alpha}
	}
	x.push(m)
}

// saving has jobs of a hierarchy do only the rest after a checkpoint.
func (s *Schedule) saving(cfg *sim.Config) {
	if s.leveled() {
		saves := levelSaves
		cfg.Saves = &saves
	}
}

// asks sets what a job of a hierarchy asks for: nobody knows how long it takes.
func (j *Job) asks(r *job.Request) {
	if j.Level > 0 {
		r.Level, r.Unknown, r.Walltime, r.Estimate = uint8(j.Level), true, job.MaxWalltime, len(j.Estimators) > 0
	}
}
