package api

import (
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/store"
)

// What a bag left a level for is said of the bag: a level that it passed over had no site.
func TestBagLevel(t *testing.T) {
	t.Parallel()
	if m := bagLevel(&meta.BagView{Record: store.Bag{}}); m != nil {
		t.Errorf("of no hierarchy: %v", m)
	}
	v := meta.BagView{Record: store.Bag{BagLevel: store.BagLevel{Level: 3, Since: 5, Demotions: []store.BagDemotion{
		{From: 1, To: 2, Reason: job.LevelFull, Site: "beta", Used: time.Minute}, {From: 2, To: 3, Reason: job.Level},
	}}}}
	m := bagLevel(&v)
	d := m.GetDemotions()
	if m.GetLevel() != 3 || m.GetBeginTime() != nil || m.GetRunLimit() != nil || len(d) != 2 {
		t.Fatalf("%v", m)
	}
	if d[0].GetReason() != job.LevelFull.Sentence() || d[0].GetSiteId() != "beta" || d[0].GetUsedTime().AsDuration() != time.Minute {
		t.Errorf("%v", d[0])
	}
	if d[1].GetReason() != "no site of that level was in reach" {
		t.Errorf("%v", d[1])
	}
}
