package sim

import (
	"fmt"
	"strings"
	"time"
)

// Violation is a broken invariant of the design (docs/reliability.md).
type Violation struct {
	// Invariant is its short name: S1 to S7, L1, L2, L4, L5; "crash" if an engine
	// panicked, "limits" if a site took more copies than it may, "spin" if it had itself woken
	// without an end, "policy" if a bag got what its policies forbid, and empty for anything else.
	Invariant string
	// At is when it was noticed, counted from [Start]; Seed is that of the run.
	At   time.Duration
	Seed uint64
	// Text says what happened.
	Text string
}

// Error implements error.
func (v *Violation) Error() string {
	text := v.Text
	if v.Invariant != "" {
		text = v.Invariant + ": " + text
	}
	return fmt.Sprintf("at %v, seed %d: %s", v.At, v.Seed, text)
}

// violation makes one of a text that begins with the name of the invariant.
func (w *World) violation(format string, args ...any) *Violation {
	v := &Violation{At: w.now.Sub(Start), Seed: w.cfg.Seed, Text: fmt.Sprintf(format, args...)}
	if name, text, ok := strings.Cut(v.Text, ": "); ok && (len(name) == 2 || name == "crash" || name == "limits" || name == "spin" || name == "trust" || name == "policy") {
		v.Invariant, v.Text = name, text
	}
	return v
}

// Violate reports a broken invariant that a driver of the world has found. The
// text begins with its name.
func (w *World) Violate(format string, args ...any) { w.watch.violate(format, args...) }
