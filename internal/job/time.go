package job

import (
	"math"
	"time"
)

// Time is an instant in nanoseconds since the Unix epoch (in simulation, since
// the start of the run). It is the only notion of time in the engines: it
// comes in as an argument. Eight bytes instead of the 24 of [time.Time], and
// comparable with ==, because schedulers keep and compare millions of them.
type Time int64

// Never is later than every instant.
const Never Time = math.MaxInt64

// Instant converts t.
func Instant(t time.Time) Time { return Time(t.UnixNano()) }

// Wall converts t for people and for the API; it is in UTC.
func (t Time) Wall() time.Time { return time.Unix(0, int64(t)).UTC() }

// Add returns t+d. It stops at [Never] instead of overflowing.
func (t Time) Add(d time.Duration) Time {
	s := t + Time(d)
	if d > 0 && s < t {
		return Never
	}
	return s
}

// Sub returns t-u.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Before reports whether t is earlier than u.
func (t Time) Before(u Time) bool { return t < u }

// Scaled returns how long a processor of a speed takes for what one of speed 1
// does in d: at least a nanosecond, at most [MaxWalltime]. A speed that is not
// positive counts as 1.
func Scaled(d time.Duration, speed float64) time.Duration {
	if speed == 1 || !(speed > 0) {
		return d
	}
	return time.Duration(min(max(1, float64(d)/speed), float64(MaxWalltime)))
}
