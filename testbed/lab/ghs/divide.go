package ghs

import (
	"context"
	"fmt"
	"math/rand/v2"

	"kith/internal/harvest"
	"kith/testbed/lab"
)

// warm is how long owners have come before guest work begins, in s.
const warm = 2 * hour

// division is a way to divide work.
type division struct {
	name string
	of   func(ms []harvest.Machine, work float64) ([]float64, error)
}

var (
	meanTime   = division{"mean-time", harvest.MeanTime}
	speedEqual = division{"equal by speed", harvest.SpeedEqual}
	equal      = division{"equal", harvest.Equal}
)

// play runs works on machines whose owners are made anew, with the randomness of that number, and
// returns when the last has ended. The same number has the same owners.
func play(ms []harvest.Machine, works []float64, seed uint64, number int, ownerOf func(rng *rand.Rand, m harvest.Machine) *owner) float64 {
	last := 0.0
	for i, m := range ms {
		if works[i] == 0 {
			continue
		}
		o := ownerOf(random(seed, "play", number*1000+i), m)
		start := o.idleFrom(warm)
		last = max(last, o.run(start, works[i]/m.Speed)-start)
	}
	return last
}

// livelyOwner is the owner with the source's life times of a machine.
func livelyOwner(rng *rand.Rand, m harvest.Machine) *owner {
	o, _ := lively(rng, m.Rho)
	return o
}

// livelyMachine is a machine of a speed with such an owner.
func livelyMachine(rho, speed float64) harvest.Machine {
	lambda := rho / meanLife
	return harvest.Machine{Lambda: lambda, Rho: rho, Sigma: sigmaLife, Speed: speed}
}

// pairHours are the sizes of what two machines divide, in hours of speed 1.
var pairHours = []int{1, 2, 4, 8}

// pair are the two machines, with the busy one fast, or the other one.
func pair(fastIsIdle int) []harvest.Machine {
	busy, idle := 1.33, 1.0
	if fastIsIdle == 1 {
		busy, idle = idle, busy
	}
	return []harvest.Machine{livelyMachine(0.5, busy), livelyMachine(0.2, idle)}
}

func tookName(d division, hours int) string { return fmt.Sprintf("%s, %d h", d.name, hours) }

// runDivided runs work on two machines, divided in three ways.
func runDivided(ctx context.Context, t trial, b *bench) (outcome, error) {
	return timesOf(ctx, b, b.runs, pairHours, []division{meanTime, speedEqual, equal}, func(int) []harvest.Machine { return pair(t.size) })
}

// runEqualNodes runs work on 64 machines of one speed, divided in two ways.
func runEqualNodes(ctx context.Context, t trial, b *bench) (outcome, error) {
	const nodes = 64
	return timesOf(ctx, b, max(1, b.runs/5), []int{t.size}, []division{meanTime, equal}, func(r int) []harvest.Machine {
		rng := random(b.seed, t.what, r)
		ms := make([]harvest.Machine, nodes)
		for i := range ms {
			ms[i] = livelyMachine(0.1+0.4*rng.Float64(), 1)
		}
		return ms
	})
}

// timesOf are the mean times of works of so many hours, divided in these ways.
func timesOf(ctx context.Context, b *bench, runs int, hours []int, by []division, machines func(run int) []harvest.Machine) (outcome, error) {
	o := make(outcome)
	for r := range runs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		ms := machines(r)
		for _, h := range hours {
			for _, d := range by {
				works, err := d.of(ms, float64(h)*hour)
				if err != nil {
					return nil, err
				}
				o[tookName(d, h)] += play(ms, works, b.seed, r, livelyOwner) / float64(runs)
			}
		}
	}
	return o, nil
}

// pairs are the two ways round, with what is saved if owners took their shares evenly.
var pairs = []struct {
	name               string
	trial              trial
	overEqual, overFit float64
}{{"fast one busy", trial{divided, 0}, 9.2, 20.5}, {"fast one idle", trial{divided, 1}, 36, 25.5}}

// savingAt is what mean-time division saves at a size over another one.
func (a *answers) savingAt(t trial, over division, hours int) lab.Spread {
	return a.saved(t, tookName(meanTime, hours), tookName(over, hours))
}

func divisionQuestions() []question {
	return []question{{
		ID: "S6", Kind: lab.Exact, Text: "Two machines, shares of 0.5 and 0.2, speeds 1.33 : 1: dividing by mean time saves a fifth to a quarter of the time of large tasks.",
		Source: "20–25 %", Band: "at 8 h within 5 points of what owners who take their shares evenly would give: fast one busy 9.2 % over equal, 20.5 % over equal by speed; fast one idle 36 % and 25.5 %",
		Needs: []trial{pairs[0].trial, pairs[1].trial}, Judge: func(a *answers) lab.Finding {
			var parts []lab.Reading
			for _, p := range pairs {
				parts = append(parts,
					lab.Within(p.name+", over equal (%)", a.savingAt(p.trial, equal, 8), p.overEqual-5, p.overEqual+5),
					lab.Within("over equal by speed (%)", a.savingAt(p.trial, speedEqual, 8), p.overFit-5, p.overFit+5))
			}
			return lab.Conclude(parts...).Noted("", "The last of two that are expected to end together ends later than either is expected to, by a part of their deviations; of two that are not, the slow one decides nearly alone. With the source's life times deviations are large even at 8 h, so that less is saved than means alone say.")
		},
	}, {
		ID: "S7", Kind: lab.Exact, Text: "64 equal nodes, 16 and 32 h in all: it saves a quarter to two fifths over equal division.",
		Source: "≈ 25–40 %", Band: "≥ 15 % at both",
		Needs: trialsOf(equalNodes, 16, 32), Judge: func(a *answers) lab.Finding {
			var parts []lab.Reading
			for _, h := range []int{16, 32} {
				parts = append(parts, lab.Within(fmt.Sprintf("%d h (%%)", h), a.savingAt(trial{equalNodes, h}, equal, h), 15, 100))
			}
			return lab.Conclude(parts...).Noted("", "A node has 15 or 30 min of work, in which few owners have a job of an hour, but one of 64 does: how long it is, and not how the work is divided, decides. How much the shares of the source's nodes differ is not known.")
		},
	}}
}
