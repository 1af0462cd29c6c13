package kdistributed

import (
	"fmt"
	"slices"
	"time"

	"kith/testbed/lab"
	"kith/testbed/metrics"
)

func staleTrials() []trial {
	list := []trial{ind, cen, hier}
	for _, p := range periods {
		list = append(list, dist.aged(p), kd4.aged(p))
	}
	for _, l := range siteLoads {
		list = append(list, ind.loaded(l))
		for _, p := range periods {
			list = append(list, dist.aged(p).loaded(l))
		}
	}
	return list
}

// judgeStale sweeps the age of loads at the load of the main comparison and at
// the ends of the range of site loads that the band is from. It asks for growth
// at each and for a ratio above 1 at one of them.
func judgeStale(a *answers) lab.Finding {
	var parts []lab.Reading
	highest, highestMain := 0.0, 0.0
	for _, l := range append([]float64{0}, siteLoads...) {
		where := fmt.Sprintf("site load %.2f", l)
		if l == 0 {
			where = "main comparison"
		}
		var means []float64
		text := where + ": Distributed ÷ Independent"
		for _, p := range periods {
			v := a.Ratio(dist.aged(p).loaded(l), ind.loaded(l), meanSlowdown)
			means = append(means, v.Mean())
			text += fmt.Sprintf(" %.2f at %s,", v.Mean(), hours(p))
		}
		slope := trend(periods, means)
		highest = max(highest, slices.Max(means))
		if l == 0 {
			highestMain = slices.Max(means)
		}
		parts = append(parts, lab.Reading{Name: fmt.Sprintf("%s growing by %.3f an hour", text, slope), Met: slope > 0 && means[len(means)-1] > means[0]})
	}
	parts = append(parts, lab.Check("highest", lab.Spread{highest}, "", highest > 1))
	worse := lab.Reading{Name: "main comparison: worse than Centralized, Hierarchical and K-Distributed(4) at every age", Met: true}
	for _, p := range periods {
		for _, other := range []trial{cen, hier, kd4.aged(p)} {
			if r := a.Ratio(dist.aged(p), other, meanSlowdown); !(r.Mean() > 1) {
				worse.Met = false
				worse.Name += fmt.Sprintf(" (÷ %s %.2f at %s)", other.scheme, r.Mean(), hours(p))
			}
		}
	}
	main := a.Ratio(dist, ind, meanSlowdown)
	stays := ""
	if highestMain <= 1 {
		stays = fmt.Sprintf(" It stays so with loads up to %s old (%.2f at most): what exceeds 1 is another load of the sites.", hours(slices.Max(periods)), highestMain)
	}
	return lab.Conclude(append(parts, worse)...).Noted(
		"Whether old loads make Distributed worse than Independent depends on how loaded the sites are, so that ages are swept at the load of the main comparison and at the ends of the range of the band: "+
			"a line is fitted to each sweep and must rise, and one of them must exceed 1. A site ranks itself by its present load, as kithd does; only what it knows of others is old.",
		"").Differing(main.Mean() <= 1, fmt.Sprintf(
		"In the main comparison, where loads are fresh, Distributed is better than Independent (%s), not worse as in the source. It does not say how old its loads were; we think hours.%s", main.Text(""), stays))
}

// trend returns the slope of the line through values at times, an hour, by
// least squares.
func trend(times []time.Duration, values []float64) float64 {
	var x []float64
	for _, t := range times {
		x = append(x, t.Hours())
	}
	mx, my := metrics.Mean(x), metrics.Mean(values)
	sxy, sxx := 0.0, 0.0
	for i := range x {
		sxy += (x[i] - mx) * (values[i] - my)
		sxx += (x[i] - mx) * (x[i] - mx)
	}
	return sxy / sxx
}

func hours(d time.Duration) string { return fmt.Sprintf("%.3g h", d.Hours()) }
