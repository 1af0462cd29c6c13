package runner

import (
	"reflect"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
)

// A host that says that a job started in 1970, or will start in a year, is not believed:
// the time at which it said so counts.
func TestTimesOfStartsThatCannotBeTrue(t *testing.T) {
	now := job.Instant(time.Now())
	a := own(1)
	for name, c := range map[string]struct {
		said, want job.Time
		replaced   bool
	}{
		"just now":           {now.Add(-time.Second), now.Add(-time.Second), false},
		"a week ago":         {now.Add(-7 * 24 * time.Hour), now.Add(-7 * 24 * time.Hour), false},
		"not yet":            {0, 0, false},
		"1970":               {1, now, true},
		"before 1970":        {-1, now, true},
		"a clock ahead":      {now.Add(time.Hour), now.Add(time.Hour), false},
		"in a year":          {now.Add(365 * 24 * time.Hour), now, true},
		"the end of time":    {job.Never, now, true},
		"the first instant ": {-1 << 63, now, true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, m := range []struct{ said, want meta.Message }{
				{meta.Started{Attempt: a, At: c.said}, meta.Started{Attempt: a, At: c.want}},
				{
					meta.CopyDigest{Stamp: 3, Entries: []meta.DigestEntry{{Attempt: a}, {Attempt: a, Begun: true, Started: c.said}}},
					meta.CopyDigest{Stamp: 3, Entries: []meta.DigestEntry{{Attempt: a}, {Attempt: a, Begun: true, Started: c.want}}},
				},
			} {
				if got, replaced := CheckTimes(m.said, now); !reflect.DeepEqual(got, m.want) || replaced != c.replaced {
					t.Errorf("%+v, replaced %v; want %+v", got, replaced, m.want)
				}
			}
		})
	}
}
