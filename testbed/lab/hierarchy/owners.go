package hierarchy

import (
	"cmp"
	"math"
	"slices"

	"kith/internal/job"
)

// moveOwners lets the owners of a grid take and give processors.
func (p *play) moveOwners(i int) {
	g := p.sites[i]
	g.walk = 0.95*g.walk + p.rng.NormFloat64()*g.swing*math.Sqrt(1-0.95*0.95)
	held := int32(math.Round(float64(g.processors) * min(max(g.grid.owners+g.walk*3, 0), 0.97)))
	if held != g.owners {
		p.take(i, held)
	}
	p.at(p.now.Add(ownersMove), event{kind: moves, n: i})
}

// take gives owners that many processors. Who started last has to go.
func (p *play) take(i int, held int32) {
	g := p.sites[i]
	if g.owners > 0 {
		g.s.Finish(p.now, g.owner)
	}
	g.owners = held
	type running struct {
		n     int32
		since job.Time
	}
	var list []running
	for r := range g.s.Running {
		if !r.Copy.Remote {
			list = append(list, running{int32(r.Copy.ID.Job.Seq), r.Since}) //nolint:gosec // See put.
		}
	}
	slices.SortFunc(list, func(a, b running) int { return cmp.Or(cmp.Compare(b.since, a.since), cmp.Compare(a.n, b.n)) })
	for k := 0; k < len(list) && len(list)-k > int(g.processors-held); k++ {
		p.evict(i, list[k].n)
	}
	g.owner = job.AttemptID{Job: job.ID{Origin: "owners", Generation: 1, Seq: p.seq}, Number: 1}
	if held > 0 {
		g.s.Adopt(p.now, job.Copy{ID: g.owner, Request: job.Request{Processors: held, Walltime: job.MaxWalltime}}, p.now)
	}
	g.dirty = true
}
