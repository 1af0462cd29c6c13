package runner

import (
	"time"

	"kith/internal/job"
	"kith/meta"
)

// earliest is a time that every clock shows that was set once: 2000-01-01, in nanoseconds
// since 1970.
const earliest = 946_684_800_000_000_000

// clockAhead is how far a host's clock may be ahead of this site's.
const clockAhead = 24 * time.Hour

// possible reports whether something can have happened at a time, by the clock of another
// site.
func possible(at, now job.Time) bool { return at >= earliest && at <= now.Add(clockAhead) }

// CheckTimes replaces times of another site that cannot be true, of starts that it tells
// of, by now. It reports whether it replaced any. A zero, for no start yet, stays.
func CheckTimes(m meta.Message, now job.Time) (_ meta.Message, replaced bool) {
	check := func(at *job.Time) {
		if *at != 0 && !possible(*at, now) {
			*at, replaced = now, true
		}
	}
	switch m := m.(type) {
	case meta.Started:
		check(&m.At)
		return m, replaced
	case meta.CopyDigest:
		for i := range m.Entries { // the list is the receiver's
			check(&m.Entries[i].Started)
		}
		return m, replaced
	}
	return m, false
}

// boundTimes replaces times of an outcome that cannot be true, and reports whether there
// was one: an end by now, a start by the end. Zeros, for a job that never ran or a time
// that is not known, stay.
func boundTimes(o *job.Outcome, now job.Time) (replaced bool) {
	if o.End != 0 && !possible(o.End, now) {
		o.End, replaced = now, true
	}
	if o.Start == 0 {
		return replaced
	}
	if !possible(o.Start, now) || o.End != 0 && o.Start > o.End {
		replaced = true
		if o.Start = o.End; o.Start == 0 {
			o.Start = now
		}
	}
	return replaced
}
