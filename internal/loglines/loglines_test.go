package loglines

import (
	"testing"
	"time"
)

func TestPacer(t *testing.T) {
	var p Pacer[string]
	now := time.Unix(1000, 0)
	for n := range 5 {
		if held, ok := p.Pass("a", now.Add(time.Duration(n)), time.Second); ok != (n == 0) || held != 0 {
			t.Errorf("line %d: %v, %d held", n, ok, held)
		}
	}
	if held, ok := p.Pass("b", now, time.Second); !ok || held != 0 {
		t.Errorf("another thing: %v, %d held", ok, held)
	}
	if held, ok := p.Pass("a", now.Add(time.Second), time.Second); !ok || held != 4 {
		t.Errorf("a second later: %v, %d held, want 4", ok, held)
	}
}

// Things without end take bounded memory and make few lines more than there are places.
func TestPacerOfManyThings(t *testing.T) {
	var p Pacer[int]
	now := time.Unix(1000, 0)
	lines := 0
	for n := range 10 * mostThings {
		if _, ok := p.Pass(n, now, time.Minute); ok {
			lines++
		}
	}
	if lines != mostThings+1 || len(p.of) != mostThings {
		t.Errorf("%d lines, %d things are kept in mind, at most %d", lines, len(p.of), mostThings)
	}
	if held, ok := p.Pass(-1, now.Add(time.Minute), time.Minute); !ok || held != 0 || len(p.of) != 1 {
		t.Errorf("when all are over: %v, %d held, %d are kept", ok, held, len(p.of))
	}
}
