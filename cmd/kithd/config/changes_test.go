package config

import (
	"testing"
	"time"
)

// What a running site takes up is told apart from what needs a restart.
func TestReloaded(t *testing.T) {
	running := Default()
	running.Site = "alpha"
	next := running
	next.Limits.Jobs, next.Timing.Vanish, next.Placement.Copies, next.Log.Level = 7, time.Second, 5, "debug"
	next.Peers = []Peer{{"beta", "b:1"}, {"gamma", ""}}
	next.Data, next.Timing.Claim = "/elsewhere", time.Hour

	got := Reloaded(&running, &next)
	if got.Limits.Jobs != 7 || got.Timing.Vanish != time.Second || got.Placement.Copies != 5 || got.Log.Level != "debug" || len(got.Peers) != 2 {
		t.Errorf("not taken up: %+v", got)
	}
	if got.Data != running.Data || got.Timing.Claim != running.Timing.Claim {
		t.Errorf("taken up without a restart: %s, %v", got.Data, got.Timing.Claim)
	}
	var keys []string
	for _, c := range Changes(&got, &next) {
		keys = append(keys, c.Key+" "+c.Old+" "+c.New)
		if c.Reloads {
			t.Errorf("%s is left over", c.Key)
		}
	}
	if want := []string{`data "/var/lib/kith" "/elsewhere"`, `timing.claim "5s" "1h"`}; len(keys) != 2 || keys[0] != want[0] || keys[1] != want[1] {
		t.Errorf("needs a restart: %q, want %q", keys, want)
	}
	taken := Changes(&running, &got)
	if last := taken[len(taken)-1]; len(taken) != 5 || last.Key != "peers" || last.Old != "[]" || last.New != "[beta b:1, gamma]" {
		t.Errorf("changes %v", taken)
	}
}
