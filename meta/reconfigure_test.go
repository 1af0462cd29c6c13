package meta

import (
	"slices"
	"testing"
	"time"

	"kith/sitesched/batch"
	"kith/store"
)

// Other sites hear of a new configuration at once, not with the next load.
func TestReloadIsToldAtOnce(t *testing.T) {
	cfg := Default()
	cfg.Self = Self{Processors: 4, Speed: 1}
	e, err := New(cfg, store.NewState("alpha", 1), batch.New(4))
	if err != nil {
		t.Fatal(err)
	}
	e.Restore(1, nil)
	e.Step(2, PeerUp{Site: "beta", Generation: 1})
	cfg.NoHarm.GuestWalltime = time.Hour
	effects := e.Step(3, Reconfigure{Placement: cfg.Placement, Limits: cfg.Limits, Timing: cfg.Timing, Bags: cfg.Bags, NoHarm: cfg.NoHarm})
	if !slices.ContainsFunc(effects, func(f Effect) bool {
		s, is := f.(Send)
		m, told := s.Message.(LoadDigest)
		return is && told && s.To == "beta" && m.Digest.Settings == 1 && m.Digest.GuestWalltime == time.Hour
	}) {
		t.Errorf("effects %+v", effects)
	}
}
