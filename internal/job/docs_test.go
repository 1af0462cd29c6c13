package job

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func protocolPage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// docs/protocol.md has a row for every reason, and says what to do about it.
func TestProtocolNamesEveryReason(t *testing.T) {
	page := protocolPage(t)
	for r := NoReason + 1; r < reasonCount; r++ {
		row := fmt.Sprintf("\n| %d | `%v` | %s | ", r, r, r.Sentence())
		_, rest, found := strings.Cut(page, row)
		if remedy, _, _ := strings.Cut(rest, "\n"); !found || len(remedy) < 10 {
			t.Errorf("docs/protocol.md lacks a row %q with what to do", row)
		}
	}
	if strings.Contains(page, fmt.Sprintf("\n| %d | `", reasonCount)) {
		t.Errorf("docs/protocol.md knows a reason %d", reasonCount)
	}
}

// The table of transitions in docs/protocol.md is the one of this package.
func TestProtocolHasTheLifeCycle(t *testing.T) {
	page := protocolPage(t)
	for s := Pending; s < stateCount; s++ {
		var moves []string
		for ev := range eventCount {
			if to, ok := s.Next(ev); ok {
				moves = append(moves, fmt.Sprintf("%v → `%v`", ev, to))
			}
		}
		row := fmt.Sprintf("\n| `%v` | %s |\n", s, strings.Join(moves, " · "))
		if len(moves) > 0 && !strings.Contains(page, row) {
			t.Errorf("docs/protocol.md lacks the row %q", row)
		}
		if n := strings.Count(page, fmt.Sprintf("\n| `%v` | ", s)); n < 1 {
			t.Errorf("docs/protocol.md does not explain %v", s)
		}
	}
}

// So is that of a bag.
func TestProtocolHasTheLifeCycleOfBags(t *testing.T) {
	page := protocolPage(t)
	for s := BagOpen; s < bagStateCount; s++ {
		var moves []string
		for ev := range bagEventCount {
			if to, ok := s.Next(ev); ok {
				moves = append(moves, fmt.Sprintf("%v → `%v`", ev, to))
			}
		}
		if row := fmt.Sprintf("\n| `%v` | %s |\n", s, strings.Join(moves, " · ")); !strings.Contains(page, row) {
			t.Errorf("docs/protocol.md lacks the row %q", row)
		}
	}
}
