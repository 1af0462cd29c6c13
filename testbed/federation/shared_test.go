package federation_test

import (
	"testing"
	"time"

	"kith/meta"
	"kith/sitesched"
	"kith/testbed/federation"
)

// Where messages take no time, start queries are answered without one. That
// changes nothing but the time it takes: not a record, not a count. (Hierarchical
// breaks ties by load, K-Dual goes by load where a job can start at home, and
// loads are old in one of the two.)
func TestQueriesWithoutMessagesChangeNothing(t *testing.T) {
	ws := loads(t, 4, 4, 200, 64, 0.9)
	for _, p := range []meta.Placement{
		{Scheme: meta.MCT, Weight: 1.3}, {Scheme: meta.MCT, Adaptive: true}, {Scheme: meta.KDistributed, Rank: meta.RankStart, Copies: 2},
	} {
		cfg := federation.Config{Sites: sites(4, 64, sitesched.DualBackfill), Placement: p, Invariants: true}
		cfg.Sites[1].Queues, cfg.Sites[1].Speed = sitesched.DualStrict, 1.5
		cfg.Sites[2].Queues, cfg.Sites[2].Backfill = sitesched.Single, sitesched.NoBackfill
		at := run(t, cfg, ws)
		cfg.LoadMessages, cfg.LoadPeriod = true, 24*time.Hour // then nothing is shared
		sent := run(t, cfg, ws)
		equalRecords(t, at.Records, sent.Records, string(p.Scheme))
		for _, kind := range []string{"start-query", "start-answer", "place-copy", "claim"} {
			if at.Messages.ByKind[kind] != sent.Messages.ByKind[kind] || at.Messages.ByKind[kind] == 0 {
				t.Errorf("%s: %d and %d messages of kind %s", p.Scheme, at.Messages.ByKind[kind], sent.Messages.ByKind[kind], kind)
			}
		}
		if at.Events >= sent.Events {
			t.Errorf("%s: %d events, with messages %d: nothing was saved", p.Scheme, at.Events, sent.Events)
		}
	}
}
