package units_test

import (
	"testing"
	"time"

	"kith/internal/units"
)

func TestDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"5s": 5 * time.Second, "1m": time.Minute, "168h": 168 * time.Hour, "1h30m": 90 * time.Minute, "500ms": 500 * time.Millisecond,
		"0s": 0, "1h0m5s": time.Hour + 5*time.Second, "10m": 10 * time.Minute,
	} {
		var d units.Duration
		if err := d.UnmarshalText([]byte(text)); err != nil || d.D() != want {
			t.Errorf("%q is read as %v, %v", text, d, err)
		}
		if got, err := d.MarshalText(); err != nil || string(got) != text {
			t.Errorf("%v is written as %q, %v", want, got, err)
		}
	}
	for _, bad := range []string{"", "5", "5 apples", "s"} {
		if _, err := units.ParseDuration(bad); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}

func TestBytes(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "4096": 4096, "1.5GiB": 3 << 29, "10GB": 1e10, "64 GiB": 64 << 30, "7kB": 7000, "2TiB": 2 << 40, "5B": 5,
	} {
		if got, err := units.ParseBytes(text); err != nil || got != want {
			t.Errorf("%q is read as %d, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "many", "-1", "1e30GB", "NaN", "3 apples"} {
		if _, err := units.ParseBytes(bad); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
	for n, want := range map[int64]string{0: "0", 1: "1", 1024: "1KiB", 256 << 20: "256MiB", 64 << 30: "64GiB", 1e10: "9765625KiB", 1023: "1023"} {
		if got := units.FormatBytes(n); got != want {
			t.Errorf("%d is written as %q, want %q", n, got, want)
		}
	}
}
