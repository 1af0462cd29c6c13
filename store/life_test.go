package store

import (
	"testing"
	"time"

	"kith/internal/job"
)

// A start is counted, and its steps begin above those of every start before,
// whatever a clock shows.
func TestBeginLife(t *testing.T) {
	s := NewState("alpha", 1)
	begin := func(first uint64, name byte) Site {
		t.Helper()
		if err := s.Apply(BeginLife{First: first, Folder: Folder{name}}); err != nil || !s.Dirty() {
			t.Fatal(err)
		}
		return s.Site()
	}
	one := begin(1000, 'a')
	if one.Incarnation != 1001 || one.Steps != LifeSteps || one.Folder != (Folder{'a'}) {
		t.Errorf("first start: %+v", one)
	}
	two := begin(5_000_000, 'b')
	if two.Incarnation != 1002 || two.Steps != 2*LifeSteps || two.Folder != (Folder{'a'}) {
		t.Errorf("second start: %+v", two)
	}
	if err := s.Apply(MoreSteps{}); err != nil {
		t.Fatal(err)
	}
	if three := begin(0, 0); three.Steps != 4*LifeSteps {
		t.Errorf("a start after a life of many steps: %+v", three)
	}
}

// What a version said whose numbers were times of the wall clock is below what is
// said after it, although that clock was a year ahead.
func TestBeginLifeAfterAnEarlierVersion(t *testing.T) {
	s := NewState("alpha", 1)
	ahead := job.Time(365 * 24 * time.Hour)
	if err := s.Apply(NoteTime{Time: ahead}); err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(BeginLife{First: uint64(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	said := uint64(ahead.Add(Late))
	if site := s.Site(); site.Incarnation <= said || site.Steps <= said {
		t.Errorf("%+v, %d may have been said", site, said)
	}
}
