package join

import (
	"testing"
	"time"

	"kith/internal/units"
	"kith/meta"
	"kith/testbed/workload"
)

// A load travels like any message, and counts for as long as it does for
// daemons, unless the file asks what older ones would do.
func TestAgeOfLoads(t *testing.T) {
	usual := meta.Default().Placement.MaxLoadAge
	for _, c := range []struct{ loadAge, latency, period, delay, most time.Duration }{
		{0, 0, 0, 0, usual},
		{30 * time.Second, 0, 30 * time.Second, 0, usual},
		{30 * time.Second, time.Second, 30 * time.Second, time.Second, usual},
		{0, 200 * time.Millisecond, 200 * time.Millisecond, 200 * time.Millisecond, usual},
		{time.Minute, 0, time.Minute, 0, usual},
		{10 * time.Minute, time.Second, 10 * time.Minute, time.Second, 10 * time.Minute},
	} {
		s := &Study{cfg: defaults()}
		s.cfg.Placement.LoadAge, s.cfg.Placement.Latency = units.Duration(c.loadAge), units.Duration(c.latency)
		got := s.federation(plan{meta.KDual, 2})
		if got.LoadPeriod != c.period || got.LoadDelay != c.delay || got.Placement.MaxLoadAge != c.most || got.Network.Latency != c.latency {
			t.Errorf("load_age %v, latency %v: loads every %v, %v on the way, used up to %v; want %+v", c.loadAge, c.latency,
				got.LoadPeriod, got.LoadDelay, got.Placement.MaxLoadAge, c)
		}
	}
}

func TestParseTimezone(t *testing.T) {
	at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for text, offset := range map[string]int{
		"": 0, "UTC": 0, "Europe/Berlin": 7200, "America/New_York": -4 * 3600, "+01:00": 3600, "-0330": -12600, "+00:00": 0,
	} {
		zone, err := parseTimezone(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if _, got := at.In(zone).Zone(); got != offset {
			t.Errorf("%q is %d s east, want %d", text, got, offset)
		}
	}
	for _, text := range []string{"Local", "Mars/North", "+1", "25:00", "../etc/passwd", "+99:00"} {
		if zone, err := parseTimezone(text); err == nil {
			t.Errorf("%q is read as %v", text, zone)
		}
	}
}

// Logs of clocks in different zones lie beside each other as things happened.
func TestCalendarOfWallClocks(t *testing.T) {
	s := &Study{cfg: defaults()}
	s.cfg.Align, s.cfg.Sites = alignCalendar, make([]SiteConfig, 2)
	for _, zone := range []string{"Europe/Berlin", "-05:00"} {
		loc, err := parseTimezone(zone)
		if err != nil {
			t.Fatal(err)
		}
		s.jobs = append(s.jobs, &workload.Workload{Start: time.Date(2026, 3, 1, 8, 0, 0, 0, loc), Jobs: []workload.Job{{ID: 1}}})
		s.sites = append(s.sites, (&SiteConfig{Name: "x", Speed: new(1.0), GuaranteeDepth: new(int32(1000))}).site(1))
	}
	if err := s.align(); err != nil {
		t.Fatal(err)
	}
	if a, b := s.jobs[0].Jobs[0].Submit, s.jobs[1].Jobs[0].Submit; a != 0 || time.Duration(b) != 6*time.Hour {
		t.Errorf("eight o'clock in Berlin is at %v, five hours west of Greenwich at %v", a, b)
	}
}
