package meta

import (
	"testing"

	"kith/internal/job"
	"kith/store"
)

// TestWaitsSince: a job whose attempts were given back before they had started has waited since the first of
// these; after any other end of an attempt it comes anew.
func TestWaitsSince(t *testing.T) {
	opened := func(attempt uint32, at job.Time) store.ClaimEvent {
		return store.ClaimEvent{Time: at, Attempt: attempt, Kind: store.ClaimOpened}
	}
	granted := func(attempt uint32, at job.Time) store.ClaimEvent {
		return store.ClaimEvent{Time: at, Attempt: attempt, Kind: store.ClaimGranted, Site: "beta"}
	}
	back := func(attempt uint32, at job.Time, why job.Reason) store.ClaimEvent {
		return store.ClaimEvent{Time: at, Attempt: attempt, Kind: store.CopyReturned, Site: "beta", Reason: why}
	}
	const now = 100
	for name, c := range map[string]struct {
		level  uint8
		events []store.ClaimEvent
		want   job.Time
	}{
		"first attempt":       {events: []store.ClaimEvent{opened(1, now)}, want: now},
		"copy that came back": {events: []store.ClaimEvent{opened(1, 10), back(1, 20, job.Full)}, want: 10},
		"could not start":     {events: []store.ClaimEvent{opened(1, 10), granted(1, 11), back(1, 12, job.CannotStart), opened(2, now)}, want: 10},
		"made way":            {events: []store.ClaimEvent{opened(1, 10), granted(1, 11), back(1, 12, job.MadeWay), opened(2, now)}, want: 10},
		"both":                {events: []store.ClaimEvent{opened(1, 10), back(1, 12, job.MadeWay), opened(2, 20), back(2, 22, job.CannotStart), opened(3, now)}, want: 10},
		"lost, then no start": {events: []store.ClaimEvent{opened(1, 10), granted(1, 11), opened(2, 20), back(2, 21, job.Full), back(2, 22, job.CannotStart), opened(3, now)}, want: 20},
		"lost":                {events: []store.ClaimEvent{opened(1, 10), granted(1, 11), {Time: 12, Attempt: 1, Kind: store.ClaimRevoked, Site: "beta", Reason: job.AttemptLost}, opened(2, now)}, want: now},
		"a level":             {level: 1, events: []store.ClaimEvent{opened(1, 10), back(1, 12, job.CannotStart), opened(2, now)}, want: now},
		"history cut short":   {events: []store.ClaimEvent{opened(1, 10), back(3, 40, job.CannotStart), opened(4, now)}, want: now},
	} {
		rec := store.Job{Attempt: c.events[len(c.events)-1].Attempt, Events: c.events}
		rec.Request.Level = c.level
		if got := (&openJob{rec: &rec}).waitsSince(now); got != c.want {
			t.Errorf("%s: waits since %d, want %d", name, got, c.want)
		}
	}
}

// Why a job keeps away from a site is told as it is: that it was lost there, or given back.
func TestWhyAJobKeepsAway(t *testing.T) {
	var o openJob
	if why := o.lost.avoids(5, "beta"); why != job.NoReason {
		t.Errorf("a new job keeps away: %v", why)
	}
	o.avoid("beta", 10, job.CannotStart)
	o.lost.note(5, "gamma", 5)
	for site, want := range map[job.SiteID]job.Reason{"beta": job.CannotStart, "gamma": job.AttemptLost, "delta": job.NoReason} {
		if why := o.lost.avoids(9, site); why != want {
			t.Errorf("%s: %v, want %v", site, why, want)
		}
		if why := o.lost.avoids(10, site); why != job.NoReason {
			t.Errorf("%s, later: %v", site, why)
		}
	}
}
