package meta_test

import (
	"fmt"
	"testing"
	"time"

	"kith/meta"
	"kith/store"
)

// A host whose clock was an hour fast, and is set right while its daemon is
// down, does not repeat the numbers of its steps: its origin would take what it
// says for old.
func TestStampsAfterTheClockWasSetBack(t *testing.T) {
	s := &stage{t: t}
	stamp := func(lines ...string) (last uint64) {
		for _, line := range lines {
			a := parse(line)
			switch a.words[0] {
			case "recv":
				for _, f := range s.engine.Step(s.now, meta.Receive{From: "beta", Message: s.message(a)}) {
					last = max(last, stampOf(f))
				}
				for _, f := range s.engine.Step(s.now, meta.Pass{}) {
					last = max(last, stampOf(f))
				}
			default:
				s.do(line)
			}
		}
		return last
	}
	// Nothing of the copy is left on the disk that could tell the time.
	before := stamp("site processors=4", "up beta", "recv beta place beta.1.1#1")
	if before == 0 {
		t.Fatal("no claim")
	}
	before = max(before, stamp("recv beta withdraw beta.1.1#1", "wait 20s", "recv beta place beta.1.2#1", "recv beta withdraw beta.1.2#1"))
	// Neither does a clock that was ahead for one life take part in the numbers.
	for i, step := range []time.Duration{-time.Hour + time.Second, 365 * 24 * time.Hour, -365 * 24 * time.Hour} {
		s.now = s.now.Add(step)
		after := stamp("restart", "up beta", fmt.Sprintf("recv beta place beta.1.%d#1", 3+i))
		if after <= before || after > before+2*store.LifeSteps {
			t.Errorf("stamp %d after a restart and a step of the clock of %v, %d before", after, step, before)
		}
		before = after
	}
}

func stampOf(f meta.Effect) uint64 {
	if s, ok := f.(meta.Send); ok {
		if c, ok := s.Message.(meta.Claim); ok {
			return c.Stamp
		}
	}
	return 0
}
