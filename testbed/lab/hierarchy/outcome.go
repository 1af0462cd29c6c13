package hierarchy

import (
	"time"
)

// outcome is what came of a play, in figures.
type outcome struct {
	Levels [4]float64 // processor-hours by level, from 1
	Tasks  [4]float64 // tasks that ended at it
	Queues [4]perQueue
	// Small are tasks that are small enough for level 1, SmallBelow those of them that ran below it.
	Small, SmallBelow float64
	// Medium are tasks of level 2, MediumBelow those of them that went to level 3.
	Medium, MediumBelow float64
	// Hours are by fate, and ended tasks.
	Hours, Ended [4]float64
	// Sizes are tasks by their time on one processor, see sizeLimits.
	Sizes [6]float64
}

// perQueue are the tasks that ended done in one queue.
type perQueue struct {
	N, Time, Expected float64 // sums of s
	Cost              overheads
	Parallel          struct {
		N, Sub, Evicted, Ran, Lost, Held, OfAll float64
	}
}

var sizeLimits = [...]time.Duration{3 * time.Minute, 30 * time.Minute, 3 * time.Hour, 30 * time.Hour, 300 * time.Hour}

// levelOf is the level of each queue.
func (p *play) levelOf(q int) int { return int(p.queues[q].limits.Rank) }

// outcome reads the figures off a play that is over.
func (p *play) outcome() *outcome {
	o := &outcome{}
	first := float64(p.queues[0].limits.TaskLimit(share))
	second := 0.0
	for i := range p.queues {
		if p.levelOf(i) == 2 {
			second = max(second, float64(p.queues[i].limits.TaskLimit(share)))
		}
	}
	for _, t := range p.tasks {
		q := t.visits[len(t.visits)-1]
		o.Ended[t.fate]++
		o.Hours[t.fate] += t.used / 3600
		o.Tasks[p.levelOf(q)]++
		below := len(t.visits) > 1
		deep := p.levelOf(q) == 3
		switch {
		case t.work <= first:
			o.Small++
			o.SmallBelow += one(below)
		case t.work <= second:
			o.Medium++
			o.MediumBelow += one(deep)
		}
		k := 0
		for k < len(sizeLimits) && t.work/hourly > sizeLimits[k].Seconds() {
			k++
		}
		o.Sizes[k]++
		for i, used := range t.usedAt[:len(p.queues)] {
			o.Levels[p.levelOf(i)] += used / 3600
		}
		for i := range p.queues {
			x := &t.seen[i]
			if x.subjobs < 2 || !p.queues[i].parallel {
				continue
			}
			y := &o.Queues[i].Parallel
			y.N++
			y.Sub += float64(x.subjobs)
			y.Evicted += float64(x.evicted)
			y.Ran += x.ran
			y.Lost += x.lost
			if x.samples > 0 {
				y.Held += x.held / float64(x.samples)
				y.OfAll += x.held / float64(x.samples) / float64(x.all)
			}
		}
		if t.fate != done {
			continue
		}
		x := &o.Queues[q]
		x.N++
		x.Time += t.end.Sub(t.at).Seconds()
		x.Expected += t.work / p.best(q)
		x.Cost.add(&t.cost)
	}
	return o
}

// best is the speed of the whole of a queue.
func (p *play) best(q int) float64 {
	l := &p.queues[q].limits
	if !p.queues[q].parallel {
		return l.Speed * share
	}
	return l.Speed * share * float64(l.Processors)
}

func (o *overheads) add(x *overheads) {
	o.estimation += x.estimation
	o.migration += x.migration
	o.flow += x.flow
	o.local += x.local
	o.grid += x.grid
	o.eviction += x.eviction
	o.run += x.run
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
