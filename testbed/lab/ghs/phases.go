package ghs

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"kith/internal/harvest"
	"kith/testbed/lab"
)

// What the source says of its simulation: machines and the length of a phase, in s.
const (
	phaseMachines = 20
	phaseLength   = 500
)

// subtaskCounts are the sizes of the source's first table.
var subtaskCounts = []int{250, 500, 1000, 2000}

// table1 is the source's first table: mean times of GHS and AppLeS, in s.
var table1 = map[int][2]float64{250: {3892.0, 4567.6}, 500: {6636.7, 8553.2}, 1000: {12819.4, 16399.2}, 2000: {24717.2, 32121.2}}

// runPhases runs independent subtasks, planned once by what owners do in the long run, and planned
// in phases by what is available just then, in two readings. There are two runs for each seed.
func runPhases(ctx context.Context, t trial, b *bench) (outcome, error) {
	runs := max(1, b.runs/50)
	o := make(outcome)
	for r := range runs {
		rng := random(b.seed, t.what, t.size*100+r)
		ms := generated(rng, phaseMachines)
		tasks := make([]float64, t.size)
		for i := range tasks {
			tasks[i] = 50 + 200*rng.Float64()
		}
		where, err := harvest.MinMin(ms, nil, tasks)
		if err != nil {
			return nil, err
		}
		once := make([]float64, len(ms))
		for i, k := range where {
			once[k] += tasks[i]
		}
		o["GHS"] += play(ms, once, b.seed, r, steady) / float64(runs)
		for name, whole := range map[string]bool{"AppLeS": true, "AppLeS, within phases": false} {
			took, err := playPhases(ctx, ms, tasks, b.seed, r, whole)
			if err != nil {
				return nil, err
			}
			o[name] += took / float64(runs)
		}
	}
	return o, nil
}

// guest is a machine as AppLeS uses it.
type guest struct {
	owner  *owner
	sensor *sensor
	runs   []visit   // of subtasks
	last   float64   // work of the last of them
	queue  []float64 // subtasks that the plan gives it
}

// left is the work of the subtask that runs at t, by the part of its time that is left.
func (g *guest) left(t float64) float64 {
	if len(g.runs) == 0 {
		return 0
	}
	r := g.runs[len(g.runs)-1]
	if r.end <= t {
		return 0
	}
	return g.last * (r.end - t) / (r.end - r.at)
}

// playPhases plans all subtasks that have not begun anew every 500 s, by min-min on what is
// available beside the owner and AppLeS' own subtasks. Unless whole, it plans only those that are
// forecast to end within the phase, and one for a machine that is idle.
func playPhases(ctx context.Context, ms []harvest.Machine, tasks []float64, seed uint64, number int, whole bool) (float64, error) {
	guests := make([]guest, len(ms))
	for i, m := range ms {
		o := steady(random(seed, "play", number*1000+i), m)
		guests[i] = guest{owner: o, sensor: watch(o)}
		o.until(warm)
	}
	waiting := tasks
	for t := float64(warm); len(waiting) > 0; t += phaseLength {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		seen, have := make([]harvest.Machine, len(ms)), make([]float64, len(ms))
		for i := range guests {
			g := &guests[i]
			g.owner.until(t)
			available := g.sensor.available(t, 300, g.runs)
			seen[i] = harvest.Machine{Lambda: 1, Rho: 1 - available, Speed: ms[i].Speed}
			have[i] = g.left(t)
			g.queue = g.queue[:0]
		}
		where, err := harvest.MinMin(seen, have, waiting)
		if err != nil {
			return 0, err
		}
		var later []float64
		for _, i := range sortedBySize(waiting) { // the order in which min-min assigns
			k, w := where[i], waiting[i]
			g := &guests[k]
			idle := len(g.queue) == 0 && have[k] == 0
			have[k] += w
			if whole || idle || have[k]/seen[k].Rate() <= phaseLength {
				g.queue = append(g.queue, w)
			} else {
				later = append(later, w)
			}
		}
		for i := range guests {
			later = append(later, guests[i].work(ms[i].Speed, t, t+phaseLength)...)
		}
		waiting = later
	}
	last := 0.0
	for i := range guests {
		for _, r := range guests[i].runs {
			last = max(last, r.end-warm)
		}
	}
	return last, nil
}

// sortedBySize are the places of tasks, the smallest first.
func sortedBySize(tasks []float64) []int {
	list := make([]int, len(tasks))
	for i := range list {
		list[i] = i
	}
	slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(tasks[a], tasks[b]) })
	return list
}

// work runs the queue from t on and returns what has not begun before end.
func (g *guest) work(speed, t, end float64) []float64 {
	for n, w := range g.queue {
		start := t
		if len(g.runs) > 0 {
			start = max(start, g.runs[len(g.runs)-1].end)
		}
		if start >= end {
			return g.queue[n:]
		}
		g.runs = append(g.runs, visit{start, g.owner.run(start, w/speed)})
		g.last = w
	}
	return nil
}

func phaseQuestion() question {
	return question{
		ID: "S11", Kind: lab.Exact, Text: "20 machines, 250 to 2000 subtasks by min-min: one plan by GHS's prediction is faster than AppLeS' plans in phases of 500 s, whose forecasts see its own subtasks.",
		Source: "14.8, 22.4, 21.8 and 23.1 % less", Band: "saving 8–35 % at every size",
		Needs: trialsOf(phases, subtaskCounts...), Judge: func(a *answers) lab.Finding {
			var parts []lab.Reading
			for _, n := range subtaskCounts {
				t := trial{phases, n}
				parts = append(parts, lab.Within(fmt.Sprintf("%d subtasks (%%)", n), a.saved(t, "GHS", "AppLeS"), 8, 35))
			}
			f := lab.Conclude(parts...).Noted("", "We think that the machines whose owners take nearly all of them decide: busy periods of hours come there at times. GHS gives such a machine its part of all subtasks at the begin, and the more there are the more it can be late. AppLeS has at most one subtask there, which costs it much of a short run and little of a long one, and plans what has not begun anew every 500 s, which makes up for errors of its forecasts. That its own subtasks are in what it sees halves the forecasts of nearly all machines alike, which changes hardly any order. The source's gain must come from how it cut the work into phases, which it does not say.")
			f.Measured += ". Second reading:"
			for _, n := range subtaskCounts {
				v := a.saved(trial{phases, n}, "GHS", "AppLeS, within phases")
				f.Measured += fmt.Sprintf(" %d subtasks %s;", n, v.Text("%"))
				f.Values = append(f.Values, lab.Value{Name: fmt.Sprintf("%d subtasks, second reading", n), Value: v.Mean(), Unit: "%"})
			}
			f.Measured = f.Measured[:len(f.Measured)-1]
			return f
		},
	}
}
