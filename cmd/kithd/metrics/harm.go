package metrics

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/types/known/durationpb"

	kithv1 "kith/proto/gen/kith/v1"
)

// harmAge is how old what is reckoned of harm may be: it is about days, and takes a while.
const harmAge = 10 * time.Minute

func harmGauge(name, help string, of func(*kithv1.GetHarmResponse) float64) figure[*kithv1.GetHarmResponse] {
	return gauge("home_"+name, help, of)
}

func harmCounter(name, help string, of func(*kithv1.HarmCounters) int64) figure[*kithv1.GetHarmResponse] {
	desc := prometheus.NewDesc("kith_home_"+name+"_total", help, nil, nil)
	return figure[*kithv1.GetHarmResponse]{desc, prometheus.CounterValue, func(r *kithv1.GetHarmResponse) float64 { return float64(of(r.GetCounters())) }}
}

// harmed are told of what guests cost the site's own jobs; what is not counted since the
// daemon started is about the last 7 days.
var harmed = []figure[*kithv1.GetHarmResponse]{
	harmCounter("promises_moved", "Guarantees of home jobs that guests moved back: none, unless the scheduler has a fault.", (*kithv1.HarmCounters).GetPromisesMoved),
	harmCounter("delay_violations", "Home jobs that guests alone kept waiting for longer than no_harm.bound.", (*kithv1.HarmCounters).GetViolations),
	harmGauge("blocked_jobs", "Home jobs that guests alone keep waiting now.", func(r *kithv1.GetHarmResponse) float64 { return float64(r.GetCounters().GetBlockedNow()) }),
	harmGauge("delay_seconds", "Mean delay of home jobs against a schedule without guests and other sites; below zero they gained.",
		func(r *kithv1.GetHarmResponse) float64 { return r.GetJobs().GetDelaySeconds() }),
	harmGauge("shadow_lag_seconds", "How far the schedule without guests is behind, as run times are not known yet.", func(r *kithv1.GetHarmResponse) float64 {
		if r.GetShadowTime() == nil {
			return math.NaN()
		}
		return r.GetTime().AsTime().Sub(r.GetShadowTime().AsTime()).Seconds()
	}),
}

var blockedDesc = prometheus.NewDesc("kith_home_blocked_seconds", "For how long guests alone kept a home job waiting in the queue that it has left.", nil, nil)

// blockedBounds are the upper bounds of HarmCounters.left_copies, in seconds.
var blockedBounds = []float64{0, 60, 600, 3600, 21600}

// harmQuestion is what is asked of the site.
func harmQuestion() *kithv1.GetHarmRequest {
	return &kithv1.GetHarmRequest{Days: 7, MaxAge: durationpb.New(harmAge)}
}

func tellHarm(to chan<- prometheus.Metric, r *kithv1.GetHarmResponse) {
	tell(to, harmed, r)
	buckets, count := make(map[float64]uint64), uint64(0)
	for i, n := range r.GetCounters().GetLeftCopies() {
		count += uint64(max(n, 0)) //nolint:gosec // Not below zero.
		if i < len(blockedBounds) {
			buckets[blockedBounds[i]] = count
		}
	}
	to <- prometheus.MustNewConstHistogram(blockedDesc, count, r.GetCounters().GetBlockedSeconds(), buckets)
}
