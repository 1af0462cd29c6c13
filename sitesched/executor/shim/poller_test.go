package shim

import (
	"fmt"
	"os"
	"regexp"
	"testing"
	"time"

	"kith/internal/clock"
)

// clockOf returns by which clock a timer counts.
func clockOf(t *testing.T, timer int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", timer))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`clockid: (\d+)`).FindSubmatch(text)
	if m == nil {
		t.Skipf("this kernel does not tell in /proc/self/fdinfo which clock a timer has: %s", text)
	}
	return string(m[1])
}

// Leases are counted by a clock that goes on while the machine sleeps, what a
// job may run by one that does not. No test can send the machine to sleep.
func TestTimers(t *testing.T) {
	p, err := newPoller()
	if err != nil {
		t.Fatal(err)
	}
	defer p.file.Close() //nolint:errcheck // it was only read
	const monotonic, boottime = "1", "7"
	if got := clockOf(t, p.timer); got != monotonic {
		t.Errorf("the timer counts by clock %s, want %s", got, monotonic)
	}
	if got := clockOf(t, p.alarm); got != boottime {
		t.Errorf("the alarm counts by clock %s, want %s", got, boottime)
	}
	p.wakeAt(time.Hour)
	at := clock.SinceBoot() + 50*time.Millisecond
	p.alarmAt(at)
	p.alarmAt(at + time.Hour) // the earlier one stays
	for p.alarmed != 0 {
		if err := p.wait(); err != nil {
			t.Fatal(err)
		}
		p.clearTimers()
	}
	if now := clock.SinceBoot(); now < at || p.armed == 0 {
		t.Errorf("the alarm came %v early, or cleared the timer", at-now)
	}
	p.alarmAt(0) // a time that has passed
	if err := p.wait(); err != nil {
		t.Fatal(err)
	}
}
