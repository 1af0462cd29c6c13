package chaos

import (
	"strings"
	"testing"

	"kith/internal/job"
)

// Each ledger is told as jobs write it, and names what is wrong with it.
func TestLedger(t *testing.T) {
	for name, c := range map[string]struct {
		text             string
		double, overlaps int
		after            int // with attempt 1 as the last
	}{
		"one attempt": {
			text: "start a.1.7#1 a\nend a.1.7#1 a\n",
		},
		"a second attempt after the first was killed": {
			text: "start a.1.7#1 b\nstart a.1.7#2 a\nend a.1.7#2 a\n", after: 1,
		},
		"an attempt that starts twice": {
			text: "start a.1.7#1 b\nend a.1.7#1 b\nstart a.1.7#1 c\nend a.1.7#1 c\n", double: 1,
		},
		"an attempt that starts three times": {
			text: strings.Repeat("start a.1.7#1 b\n", 3), double: 2,
		},
		"an earlier attempt ends after a later one began": {
			text: "start a.1.7#1 b\nstart a.1.7#2 c\nend a.1.7#1 b\nend a.1.7#2 c\n", overlaps: 1, after: 1,
		},
		"a lock that was held": {
			text: "start a.1.7#1 b\nstart a.1.7#2 c\noverlap a.1.7#2 c\n", overlaps: 1, after: 1,
		},
		"other jobs do not matter": {
			text: "start a.1.7#1 b\nstart a.1.8#2 c\nend a.1.7#1 b\nend a.1.8#2 c\nstart a.2.7#1 a\n",
		},
	} {
		l, err := readLedger(strings.NewReader(c.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		id := job.ID{Origin: "a", Generation: 1, Seq: 7}
		if got := len(l.doubleStarts(id)); got != c.double {
			t.Errorf("%s: %d double starts, want %d: %v", name, got, c.double, l.doubleStarts(id))
		}
		if got := len(l.overlaps(id)); got != c.overlaps {
			t.Errorf("%s: %d overlaps, want %d: %v", name, got, c.overlaps, l.overlaps(id))
		}
		if got := len(l.startsAfter(id, 1)); got != c.after {
			t.Errorf("%s: %d starts after the end, want %d", name, got, c.after)
		}
	}
}

func TestLedgerRefusesOtherLines(t *testing.T) {
	for _, text := range []string{"start a.1.7#1\n", "begin a.1.7#1 a\n", "start a.1.7 a\n", "start  a.1.7#1 a b\n", "\n"} {
		if _, err := readLedger(strings.NewReader(text)); err == nil {
			t.Errorf("%q was taken for an entry", text)
		}
	}
}
