package faults

import "testing"

// Schedules in which jobs move inside a level are some of those of levels, and jobs do move in them.
func TestPushingSchedules(t *testing.T) {
	pushed, played := 0, 0
	for seed := *firstSeed; played < min(short(100), 40); seed++ {
		if !pushing(seed) {
			continue
		}
		played++
		r := Run(Leveled(seed, Size{}), nil)
		if r.Violation != nil {
			t.Errorf("seed %d: %v", seed, r.Violation)
		}
		pushed += r.Pushed
	}
	if t.Logf("%d moves in %d schedules", pushed, played); pushed < played {
		t.Errorf("%d moves in %d schedules", pushed, played)
	}
}

// TestLeveledSchedules is a short form of "kith-lab faults --levels".
func TestLeveledSchedules(t *testing.T) {
	searchFor(t, Search{Seeds: short(100), FirstSeed: *firstSeed, Levels: true, Workers: 2}, []Kind{Crash, Freeze, Reboot})
}

// TestLeveledSeedsThatFoundSomething plays schedules of levels that broke a promise once.
func TestLeveledSeedsThatFoundSomething(t *testing.T) {
	for seed, what := range map[uint64]string{
		701:      "the product: a job that was asked to leave its level while its estimator ran counted as ended by its estimate, whatever that was",
		41006083: "the watch: the same, by an estimate of an earlier attempt that is too much there",
	} {
		if v := Run(Leveled(seed, Size{}), nil).Violation; v != nil {
			t.Errorf("seed %d, which found %s: %v", seed, what, v)
		}
	}
}

// TestLeveledTextForm reads schedules of levels as they were written, and finds levels, jobs that begin
// at one, estimators that jobs bring and users who ask in them.
func TestLeveledTextForm(t *testing.T) {
	ranks, jobs, asks, estimators, alphas := 0, 0, 0, 0, 0
	for seed := range uint64(200) {
		again := readBack(t, seed, Leveled(seed, Size{}).String())
		for i := range again.Sites {
			ranks += min(again.Sites[i].Rank, 1)
			if again.Sites[i].Alpha > 0 {
				alphas++
			}
		}
		for i := range again.Jobs {
			jobs += again.Jobs[i].Level
			estimators += len(again.Jobs[i].Estimators)
		}
		for i := range again.Acts {
			if again.Acts[i].Kind == Checkpoint {
				asks++
			}
		}
	}
	if ranks < 400 || jobs < 1000 || asks < 300 || estimators < 1000 || alphas < 200 {
		t.Errorf("%d levels, %d jobs of them, %d asks, %d estimators, %d levels where some run", ranks, jobs, asks, estimators, alphas)
	}
}
