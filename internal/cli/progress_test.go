package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// A bar appears late, moves now and then, and leaves nothing behind.
func TestProgress(t *testing.T) {
	var out bytes.Buffer
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	p := &Progress{w: &out, now: func() time.Time { return now }, what: "replay", total: 1000, began: now}
	for range 49 {
		p.Set(100)
		now = now.Add(10 * time.Millisecond)
	}
	if p.Clear(); out.Len() != 0 {
		t.Errorf("after 0.49 s: %q", out.String())
	}
	now = now.Add(time.Second)
	p.Set(250)
	if got := out.String(); got != "\r\x1b[Kreplay [#######.......................] 25%, 00:00:04 left" {
		t.Errorf("the bar is %q", got)
	}
	out.Reset()
	now = now.Add(50 * time.Millisecond)
	if p.Set(300); out.Len() != 0 {
		t.Errorf("too soon: %q", out.String())
	}
	now = now.Add(50 * time.Millisecond)
	p.Set(5000)
	p.Clear()
	if got := out.String(); !strings.Contains(got, "] 100%, 00:00:00 left") || !strings.HasSuffix(got, "\r\x1b[K") {
		t.Errorf("at the end: %q", got)
	}
	var none *Progress
	none.Set(1)
	none.Clear()
	c := New("kith", nil, &out, &out)
	if c.Progress("x", 10) != nil {
		t.Error("a bar where no terminal is")
	}
}
