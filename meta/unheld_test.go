package meta

import (
	"slices"
	"testing"

	"kith/internal/job"
	"kith/sitesched/batch"
	"kith/store"
)

// mistaken is a local scheduler that proposes what it was never given.
type mistaken struct {
	Batch
	proposes  []job.AttemptID
	withdrawn []job.AttemptID
}

func (m *mistaken) Pass(job.Time) []job.AttemptID {
	p := m.proposes
	m.proposes = nil
	return p
}

func (m *mistaken) Withdraw(now job.Time, id job.AttemptID) {
	m.withdrawn = append(m.withdrawn, id)
	m.Batch.Withdraw(now, id)
}

// A copy that the local scheduler proposes and that is not held here is not started: the
// scheduler is told to forget it, and the operator of it. So it is while starts fail, too.
func TestProposalOfWhatIsNotHeld(t *testing.T) {
	unknown := job.AttemptID{Job: job.ID{Origin: "alpha", Generation: 1, Seq: 7}, Number: 1}
	for name, starts := range map[string]starting{
		"starts succeed":     {},
		"starts are paused":  {pause: firstPause, until: 100, pausing: true},
		"one start is tried": {pause: firstPause},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := Default()
			cfg.Self = Self{Processors: 4, Speed: 1}
			site := &mistaken{Batch: batch.New(4)}
			e, err := New(cfg, store.NewState("beta", 1), site)
			if err != nil {
				t.Fatal(err)
			}
			e.Restore(1, nil)
			e.host.starting, site.proposes = starts, []job.AttemptID{unknown}
			e.host.wantPass()
			out := e.Step(2, Pass{})
			if !slices.Contains(out, Effect(NotHeld{Attempt: unknown})) {
				t.Errorf("effects: %v", out)
			}
			if !slices.Equal(site.withdrawn, []job.AttemptID{unknown}) || e.host.starting.probe == unknown {
				t.Errorf("withdrawn: %v; probe: %v", site.withdrawn, e.host.starting.probe)
			}
		})
	}
}
