package faults

import "testing"

// TestLeveledBagSchedules is a short form of "kith-lab faults --bags --levels".
func TestLeveledBagSchedules(t *testing.T) {
	searchFor(t, Search{Seeds: short(60), FirstSeed: *firstSeed, Bags: true, Levels: true, Workers: 2}, []Kind{Crash, Reboot, Cut, FullDisk})
}

// Bags of a hierarchy are read as they were written, and what a schedule has beside them is that of the
// same seed without levels.
func TestLeveledBagTextForm(t *testing.T) {
	ranks, bags := 0, 0
	for seed := range uint64(200) {
		s, without := LeveledBags(seed, Size{}), Bagged(seed, Size{})
		if len(s.Bags) != len(without.Bags) || len(s.Jobs) != len(without.Jobs) || len(s.Acts) != len(without.Acts) || len(s.Faults) != len(without.Faults) || s.End != without.End {
			t.Errorf("seed %d: with levels it is another schedule", seed)
		}
		text := s.String()
		again, err := Parse(text)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		if got := again.String(); got != text {
			t.Fatalf("seed %d: written\n%s\nread as\n%s", seed, text, got)
		}
		for i := range again.Sites {
			ranks += min(again.Sites[i].Rank, 1)
		}
		for i := range again.Bags {
			bags += again.Bags[i].Level
		}
	}
	if ranks < 400 || bags < 200 {
		t.Errorf("%d levels, %d bags of them", ranks, bags)
	}
}
