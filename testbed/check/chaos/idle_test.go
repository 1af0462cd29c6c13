package chaos

import (
	"testing"
	"time"
)

// A site that is free for longer than the bound while one job waits all along is
// told once; one that is busy in between, or whose waiting jobs change, is not.
func TestIdleWatch(t *testing.T) {
	for name, c := range map[string]struct {
		free    func(second int) bool
		waiting func(second int) string
		want    int
	}{
		"one job waits": {func(int) bool { return true }, func(int) string { return "a" }, 1},
		"busy at times": {func(s int) bool { return s%20 != 0 }, func(int) string { return "a" }, 0},
		"others wait":   {func(int) bool { return true }, func(s int) string { return string(rune('a' + s/20)) }, 0},
		"none waits":    {func(int) bool { return true }, func(int) string { return "" }, 0},
	} {
		l := newLogs()
		w := &idleWatch{campaign: &campaign{bed: &bed{logs: l}}, since: map[string]time.Time{}, with: map[string]string{}, told: map[string]bool{}}
		began := time.Now()
		for s := range 120 {
			waiting := map[string]bool{}
			if id := c.waiting(s); id != "" {
				waiting[id] = true
			}
			w.look("x", c.free(s), waiting, began.Add(time.Duration(s)*time.Second))
		}
		if len(l.problems) != c.want {
			t.Errorf("%s: %q, want %d", name, l.problems, c.want)
		}
	}
}
