package daemon

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"kith/meta"
)

// A peer that says what it may not makes a line a second, however often it does.
func TestRefusalsMakeALineASecond(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	var r refusals
	now := time.Unix(1000, 0)
	for range 500 {
		r.note(log, now, meta.Refused{Peer: "beta", Kind: "stop", Rule: "not-the-origin"})
		r.note(log, now, meta.Refused{Peer: "beta", Kind: "started", Rule: "not-the-holder", Late: true})
	}
	r.note(log, now.Add(time.Second), meta.Refused{Peer: "beta", Kind: "stop", Rule: "not-the-origin"})
	if n := strings.Count(out.String(), "\n"); n != 2 || !strings.Contains(out.String(), "refused_since_last_line=499") {
		t.Errorf("%d lines, want 2, the second with a count of 499:\n%s", n, out.String())
	}
}
