package daemon

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// What is refused for lack of room is told for a minute, or until a job is taken.
func TestLowRoomIsTold(t *testing.T) {
	now := time.Unix(1000, 0)
	var full error
	r := &lowRoom{check: func() error { return full }, now: func() time.Time { return now }}
	ask := func(want string) {
		t.Helper()
		if got := r.tells(); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("it tells %q, want %q", got, want)
		}
	}
	refuse := func() {
		t.Helper()
		if err := r.room(); !errors.Is(err, full) {
			t.Errorf("refused with %v", err)
		}
	}
	ask("")
	refuse()
	ask("")
	full = errors.New("the disk is full")
	refuse()
	now = now.Add(20 * time.Second)
	refuse()
	now = now.Add(5 * time.Second)
	ask("new jobs are refused (2, the latest 5s ago): the disk is full")
	now = now.Add(lowTold)
	ask("")
	refuse()
	ask("(1, the latest 0s ago)")
	full = nil
	refuse()
	ask("")
}
