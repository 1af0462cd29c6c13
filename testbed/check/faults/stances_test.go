package faults

import (
	"testing"

	"kith/meta/policy"
	"kith/store"
)

// Every stance is one that a site takes, and each is drawn.
func TestStances(t *testing.T) {
	for i := range stances {
		if _, err := policy.New().Compile(&store.BagPolicies{Texts: texts(i, 60)}); err != nil {
			t.Errorf("stance %d: %v", i, err)
		}
	}
	drawn, replaced, stale, without := make(map[int]bool), 0, 0, 0
	for seed := range uint64(300) {
		s := Bagged(seed, Size{})
		if !s.states() {
			without++
		}
		for i := range s.Bags {
			drawn[s.Bags[i].Stance] = true
		}
		for i := range s.Acts {
			if a := &s.Acts[i]; a.Kind == PolicyBag && a.Stale {
				stale++
			} else if a.Kind == PolicyBag {
				replaced++
			}
		}
	}
	if len(drawn) != len(stances) || replaced < 50 || stale < 10 || without < 50 {
		t.Errorf("%d of %d stances, %d replaced, %d of another version, %d schedules without", len(drawn), len(stances), replaced, stale, without)
	}
}
