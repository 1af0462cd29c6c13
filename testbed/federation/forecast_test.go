package federation_test

import (
	"testing"

	"kith/meta"
	"kith/sitesched"
	"kith/testbed/federation"
)

// Where sites are ranked by forecasts they are asked by messages, also where messages take no
// time, and two runs are the same. Jobs wait less than if they stayed where they are submitted.
func TestRankForecast(t *testing.T) {
	t.Parallel()
	ws := loads(t, 5, 4, 200, 64, 0.9)
	cfg := federation.Config{Sites: sites(4, 64, sitesched.DualBackfill), Invariants: true}
	cfg.Sites[1].Speed = 1.5
	cfg.Placement = meta.Placement{Scheme: meta.Independent}
	alone := run(t, cfg, ws)
	cfg.Placement = meta.Placement{Scheme: meta.KDistributed, Rank: meta.RankForecast, Copies: 1, Risk: 0.5}
	a, b := run(t, cfg, ws), run(t, cfg, ws)
	equalRecords(t, a.Records, b.Records, "again")
	if n := a.Messages.ByKind["start-query"]; n == 0 || a.Messages.ByKind["start-answer"] != n {
		t.Errorf("%d queries, %d answers", n, a.Messages.ByKind["start-answer"])
	}
	wait := func(r federation.Result) (sum float64) {
		for i := range r.Records {
			sum += r.Records[i].Wait().Seconds()
		}
		return sum
	}
	if x, y := wait(a), wait(alone); x >= y {
		t.Errorf("jobs wait for %.0f s, alone for %.0f s", x, y)
	}
}
