package forecasts

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"kith/internal/forecast"
	"kith/internal/job"
)

// item is something that is forecast, and what came true, and when that was known.
type item struct {
	asked, known job.Time
	truth        time.Duration
}

// method makes forecasts of items, in the order in which they are asked for.
type method interface {
	// ask makes d the distribution of item i and returns its class.
	ask(i int, d *forecast.Dist) forecast.Class
	// learn tells that the truth of item i is known now.
	learn(i int)
}

// scored is how a forecast did, and which part of the truth lay below each of the levels, as
// they were told and before they were recalibrated.
type scored struct {
	forecast.Score
	below, raw [len(forecast.Levels)]float64
}

// score lets a method forecast all items, in the order in which they were asked for, each with
// what was known then, and recalibrates it by class.
func score(items []item, m method, classes int, fade float64, seed uint64) []scored {
	ends := make([]int, len(items))
	for i := range ends {
		ends[i] = i
	}
	slices.SortStableFunc(ends, func(a, b int) int { return cmp.Compare(items[a].known, items[b].known) })
	recal := make([]*forecast.Recalibration, classes)
	for c := range recal {
		recal[c] = forecast.NewRecalibration(fade)
	}
	type pit struct{ below, upto float64 }
	pits, scores := make([]pit, len(items)), make([]scored, len(items))
	rng := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // A simulation, no secret.
	var d forecast.Dist
	next := 0
	for i := range items {
		for ; next < len(ends) && items[ends[next]].known <= items[i].asked && ends[next] < i; next++ {
			k := ends[next]
			m.learn(k)
			recal[scores[k].Class].Add(pits[k].below, pits[k].upto, rng)
		}
		c := m.ask(i, &d)
		s := &scores[i]
		s.Score = forecast.Judge(&d, recal[c], items[i].truth)
		s.Class = c
		pits[i].below, pits[i].upto = d.PIT(items[i].truth)
		for k, p := range forecast.Levels {
			s.raw[k] = partBelow(p, pits[i].below, pits[i].upto)
			s.below[k] = partBelow(recal[c].Level(p), pits[i].below, pits[i].upto)
		}
	}
	return scores
}

// partBelow is the part of a truth between two levels that is below a level.
func partBelow(level, below, upto float64) float64 {
	switch {
	case level >= upto && upto > below, level > below && upto == below:
		return 1
	case level <= below:
		return 0
	}
	return (level - below) / (upto - below)
}

// record sums scores up.
func record(list []scored) forecast.Record {
	var r forecast.Record
	for i := range list {
		r.Add(&list[i].Score)
	}
	return r
}

// classRecord sums those of one class up.
func classRecord(list []scored, c forecast.Class) forecast.Record {
	var r forecast.Record
	for i := range list {
		if list[i].Class == c {
			r.Add(&list[i].Score)
		}
	}
	return r
}

// windowSize is how many forecasts in a row are looked at together.
const windowSize = 1000

// windows returns the shares that held, of each full window.
func windows(list []scored) []float64 {
	var shares []float64
	for ; len(list) >= windowSize; list = list[windowSize:] {
		r := record(list[:windowSize])
		shares = append(shares, r.Share())
	}
	return shares
}
