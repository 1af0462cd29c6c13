package meta

import (
	"testing"

	"kith/sitesched/batch"
	"kith/store"
)

// To look at the sites makes no load digest: neither its number nor the time of the
// latest one moves, by which the next one is delayed.
func TestSitesMakesNoDigest(t *testing.T) {
	cfg := Default()
	cfg.Self = Self{Processors: 4, Speed: 1}
	e, err := New(cfg, store.NewState("alpha", 1), batch.New(4))
	if err != nil {
		t.Fatal(err)
	}
	e.Restore(1, nil)
	made, told := e.host.loadSeq, e.host.dry
	if own := e.Views().Sites(5)[0]; own.Processors != 4 || own.Load.Free != 4 {
		t.Errorf("the site shows %+v", own)
	}
	if e.host.loadSeq != made || e.host.dry != told {
		t.Errorf("%d digests and %+v before, %d and %+v after", made, told, e.host.loadSeq, e.host.dry)
	}
}
