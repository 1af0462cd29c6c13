package daemon

import (
	"os"
	"testing"

	kithv1 "kith/proto/gen/kith/v1"
)

// forecasts returns how forecasts of this site did.
func (s *testSite) forecasts() *kithv1.GetForecastsResponse {
	s.t.Helper()
	r, err := s.sites.GetForecasts(s.t.Context(), &kithv1.GetForecastsRequest{})
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// A clean restart forgets nothing of how forecasts did, nor what run times were learnt. A site whose
// folder is lost begins anew, and shows it.
func TestForecastsOverRestarts(t *testing.T) {
	t.Parallel()
	s := federation(t, nil, "alpha")[0]
	for range 3 {
		s.waitState(s.submit(shell("true")), completed)
	}
	before := s.forecasts()
	if before.GetLearnt() != 3 || before.GetRuns()[0].GetForecasts() != 3 {
		t.Fatalf("after three jobs: %v", before)
	}
	s.restart()
	if after := s.forecasts(); after.GetLearnt() != 3 || after.GetRuns()[0].GetForecasts() != 3 || after.GetRuns()[0].GetHeld() != before.GetRuns()[0].GetHeld() {
		t.Errorf("after a restart: %v; before: %v", after, before)
	}
	if err := s.d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(s.cfg.Data, s.cfg.Data+".lost"); err != nil {
		t.Fatal(err)
	}
	s.d = nil
	s.open()
	if anew := s.forecasts(); !anew.GetEnabled() || anew.GetLearnt() != 0 || len(anew.GetRuns()) == 0 || anew.GetRuns()[0].GetForecasts() != 0 {
		t.Errorf("without its folder: %v", anew)
	}
}
