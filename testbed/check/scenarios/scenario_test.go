package scenarios

import (
	"errors"
	"testing"

	"kith/testbed/check/faults"
)

func TestScenarios(t *testing.T) {
	list, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list {
		t.Run(s.Name, func(t *testing.T) {
			if err := s.Run(nil); err != nil {
				t.Errorf("%v\nits story: kith-lab faults --replay testbed/check/scenarios/%s.txt", err, s.Name)
			}
			// A fault that never strikes tests nothing.
			r := faults.Run(s.Schedule, nil)
			for i := range s.Schedule.Faults {
				if k := s.Schedule.Faults[i].Kind; r.Injected[k] == 0 {
					t.Errorf("fault %s never struck", k)
				}
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	for _, text := range []string{"expect 1", "expect x COMPLETED", "expect 1 COMPLETED starts=many", "expect 1 COMPLETED when=now", "nonsense", ""} {
		if _, err := Parse("x", text); !errors.Is(err, faults.ErrSchedule) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
