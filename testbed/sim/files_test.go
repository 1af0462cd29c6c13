package sim_test

import (
	"testing"
	"time"

	"kith/internal/job"
	"kith/testbed/sim"
)

// starts returns a configuration that notes when each job began, by tag.
func starts(cfg sim.Config) (sim.Config, map[int]time.Duration, **sim.World) {
	began, w := make(map[int]time.Duration), new(*sim.World)
	cfg.Began = func(_ job.SiteID, _ job.AttemptID, tag int) { began[tag] = (*w).Now().Sub(sim.Start) }
	return cfg, began, w
}

// A job whose processes are gone has no processors while its output is collected, and
// ends when that is done, whatever becomes of the daemon meanwhile.
func TestProcessorsAreFreeWhileOutputIsCollected(t *testing.T) {
	cfg, began, w := starts(kept(1, 1))
	cfg.Collecting = func(tag int) time.Duration {
		if tag == 1 {
			return time.Hour
		}
		return 0
	}
	*w = newWorld(t, cfg)
	for tag := 1; tag <= 2; tag++ {
		r := request(1, time.Hour)
		r.Copies = 1
		submitAt(*w, time.Duration(tag)*time.Second, "s0", sim.Submission{Request: r, RunTime: 10 * time.Minute, Tag: tag})
	}
	(*w).At(sim.Start.Add(30*time.Minute), (*w).Site("s0").Crash)
	(*w).At(sim.Start.Add(31*time.Minute), func() {
		if err := (*w).Site("s0").Restart(); err != nil {
			t.Error(err)
		}
	})
	finish(t, *w)
	if began[2] < 10*time.Minute || began[2] > 11*time.Minute {
		t.Errorf("the second job began after %v, with the output of the first on its way", began[2])
	}
	if end := (*w).Now().Sub(sim.Start); end < 91*time.Minute {
		t.Errorf("all ended after %v, before the output was collected", end)
	}
}

// Input that takes longer than the bound holds no processors: another job has them until
// it is here.
func TestProcessorsAreFreeWhileInputIsBrought(t *testing.T) {
	cfg, began, w := starts(kept(1, 1, 1))
	cfg.StagingBound = time.Minute
	cfg.Staging = func(tag int) time.Duration {
		if tag == 2 {
			return 30 * time.Minute
		}
		return 0
	}
	*w = newWorld(t, cfg)
	// One job of s0 keeps it busy, the second goes to s1, the third is s1's own.
	for tag, from := range map[int]job.SiteID{1: "s0", 2: "s0", 3: "s1"} {
		r := request(1, 10*time.Hour)
		r.Copies = 2
		if tag == 3 {
			r.Copies = 1
		}
		run := map[int]time.Duration{1: 8 * time.Hour, 2: time.Minute, 3: 5 * time.Minute}[tag]
		submitAt(*w, time.Duration(tag)*10*time.Second, from, sim.Submission{Request: r, RunTime: run, Tag: tag})
	}
	finish(t, *w)
	if began[3] < time.Minute || began[3] > 3*time.Minute {
		t.Errorf("the job of s1 began after %v: input on its way held its processor", began[3])
	}
	if began[2] < 30*time.Minute || began[2] > 32*time.Minute {
		t.Errorf("the job of s0 began after %v: its input was there after half an hour", began[2])
	}
}
