package forecast

import (
	"slices"
	"time"
)

// endLevels is at how many levels of the wait and of the run time their sum is looked at.
const endLevels = 24

// EndsOf returns the quantiles of a wait and a run time together, as if neither said anything
// about the other. limit is that of the run time where it runs, and most is when it is stopped
// there, if that is sooner.
func EndsOf(w *Waits, runs *Runs, limit, most time.Duration) (ends Waits) {
	wait, run := CurveOf(w), runs.Curve(limit)
	var sums [endLevels * endLevels]time.Duration
	for i := range endLevels {
		a := wait.Quantile((float64(i) + 0.5) / endLevels)
		for k := range endLevels {
			sums[i*endLevels+k] = a + min(run.Quantile((float64(k)+0.5)/endLevels), most)
		}
	}
	slices.Sort(sums[:])
	for i, p := range Levels {
		ends[i] = max(w[i], sums[min(int(p*float64(len(sums))), len(sums)-1)]) // the levels are coarse
	}
	return ends
}

// Mean returns the mean of what lies between the outer levels, the tenth part beyond which says
// little: by it numbers of copies are compared.
func (w *Waits) Mean() time.Duration {
	sum := 0.0
	for i := 1; i < len(w); i++ {
		sum += (Levels[i] - Levels[i-1]) * (float64(w[i-1]) + float64(w[i])) / 2
	}
	return time.Duration(sum / (Levels[len(w)-1] - Levels[0]))
}
