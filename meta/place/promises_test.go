package place

import (
	"math"
	"testing"
	"time"

	"kith/internal/job"
)

// Spec 004 section 5 no. 11: the weight of a site that promises half of what
// it needs comes to 2 within 200 jobs, and back when it mends its ways.
func TestRatioFollowsThePromises(t *testing.T) {
	var p Promises
	length := func(i int) time.Duration { return time.Duration(1+i*7919%1000) * time.Second }
	for i := range 200 {
		p.Learn("honest", length(i), length(i))
		p.Learn("liar", length(i), 2*length(i))
	}
	near := func(site job.SiteID, want float64) {
		t.Helper()
		if w := p.Ratio(site); math.Abs(w-want) > 0.2*want {
			t.Errorf("%s weighs %v, want %v", site, w, want)
		}
	}
	near("liar", 2)
	near("honest", 1)
	near("stranger", 1.5)
	for i := range 200 {
		p.Learn("liar", length(i), length(i))
	}
	near("liar", 1)
}

func TestRatioWithoutPromises(t *testing.T) {
	if w := (*Promises)(nil).Ratio("any"); w != 1 {
		t.Errorf("without a record a site weighs %v", w)
	}
}
