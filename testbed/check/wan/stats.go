package wan

import (
	"fmt"
	"strings"
)

// WayStats says what one way of a link is doing.
type WayStats struct {
	// Path is how bytes travel now.
	Path Path
	// Cut says that none do.
	Cut bool
	// Bytes counts those that arrived, HeldBytes those under way or stuck.
	Bytes, HeldBytes int64
}

// LinkStats says what a link is doing, and how often something happened since
// the start of the proxy.
type LinkStats struct {
	// From, To, Listen and Target are those of the configuration; Listen is
	// the address with the port that was taken.
	From, To, Listen, Target string
	// Out is the way from From to To, Back the other.
	Out, Back WayStats
	// Resetting says that a cut with resets is on.
	Resetting bool
	// Open connections have reached the target; Waiting ones have not yet.
	Open, Waiting int
	// Accepted counts connections. Refused are those that the target did not
	// take, Abandoned those whose maker gave up while they waited, and Reset
	// those that a cut ended.
	Accepted, Refused, Abandoned, Reset int64
}

// String returns the numbers as one line of words and NAME=VALUE, for scripts.
func (s LinkStats) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "link %s %s listen=%s target=%s", s.From, s.To, s.Listen, s.Target)
	for _, w := range []struct {
		name  string
		stats WayStats
	}{{"out", s.Out}, {"back", s.Back}} {
		state := "up"
		switch {
		case s.Resetting:
			state = "reset"
		case w.stats.Cut:
			state = "cut"
		}
		fmt.Fprintf(&b, " %[1]s=%[2]s %[1]s_delay=%[3]v %[1]s_jitter=%[4]v %[1]s_rate=%[5]d %[1]s_bytes=%[6]d %[1]s_held=%[7]d",
			w.name, state, w.stats.Path.Delay, w.stats.Path.Jitter, w.stats.Path.BytesPerSecond, w.stats.Bytes, w.stats.HeldBytes)
	}
	fmt.Fprintf(&b, " open=%d waiting=%d accepted=%d refused=%d abandoned=%d reset=%d",
		s.Open, s.Waiting, s.Accepted, s.Refused, s.Abandoned, s.Reset)
	return b.String()
}
