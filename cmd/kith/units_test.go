package main

import (
	"strings"
	"testing"
	"time"

	"kith/internal/cli"
	"kith/internal/job"
)

func TestParseWalltime(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	good := map[string]time.Duration{
		"1": time.Minute, "90": 90 * time.Minute, "05": 5 * time.Minute, " 7 ": 7 * time.Minute,
		"1:30": 90 * time.Second, "90:00": 90 * time.Minute, "0:01": time.Second,
		"1:00:00": time.Hour, "100:00:00": 100 * time.Hour, "0:90:00": 90 * time.Minute, "00:00:01": time.Second,
		"1-0": day, "2-12": 60 * time.Hour, "0-1": time.Hour, "1-48": 3 * day,
		"1-0:30": day + 30*time.Minute, "0-0:1": time.Minute, "1-2:3:4": day + 2*time.Hour + 3*time.Minute + 4*time.Second,
		"90s": 90 * time.Second, "1h30m": 90 * time.Minute, "1.5h": 90 * time.Minute, "250ms": 250 * time.Millisecond,
		"3650-0": 3650 * day,
	}
	for text, want := range good {
		if got, err := parseWalltime(text); err != nil || got != want {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	bad := map[string]string{
		"": "write a run time", "x": "write a run time", "1:2:3:4": "write a run time", "1-": "write a run time", "-5": "write a run time",
		"1-2-3": "write a run time", ":": "write a run time", "1:": "write a run time", "+5": "write a run time", "1.5": "write a run time",
		"1d": "write a run time", "１": "write a run time", "1 2": "write a run time", "99999999999999999999": "write a run time", "9223372036854775807": "at most 10 years", "9223372036854775807-0": "at most 10 years",
		"0": "must be more than 0", "0:00": "must be more than 0", "-90s": "must be more than 0", "0s": "must be more than 0",
		"INFINITE": "no jobs without a limit", "unlimited": "no jobs without a limit", "-1": "no jobs without a limit",
		"3661-0": "at most 10 years", "9999999999": "at most 10 years", "999999h": "at most 10 years",
	}
	for text, want := range bad {
		if got, err := parseWalltime(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v, want %q", text, got, err, want)
		}
	}
}

func TestParseMemory(t *testing.T) {
	t.Parallel()
	good := map[string]int64{
		"1": 1 << 20, "100": 100 << 20, "1K": 1 << 10, "3k": 3 << 10, "512M": 512 << 20, "2m": 2 << 20, "4G": 4 << 30, "7g": 7 << 30,
		"1T": 1 << 40, "2t": 2 << 40, "1023K": 1023 << 10, "1024T": 1 << 50, "1048576": 1 << 40, "5000000000K": 5000000000 << 10,
	}
	for text, want := range good {
		if got, err := parseMemory(text); err != nil || got != want {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
	}
	bad := map[string]string{
		"": "whole number", "G": "whole number", "1.5G": "whole number", "-1": "whole number", "1GB": "whole number", "1 G": "whole number",
		"0": "all memory of a node", "0G": "all memory of a node", "1025T": "at most 1024 T", "99999999999G": "at most 1024 T", "1P": "whole number",
	}
	for text, want := range bad {
		if got, err := parseMemory(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %d, %v, want %q", text, got, err, want)
		}
	}
}

func TestParseNodes(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"1", "1-1"} {
		if _, err := parseNodes(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"", "0", "2", "1-2", "2-4", "one"} {
		if _, err := parseNodes(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func FuzzParseWalltime(f *testing.F) {
	for _, text := range []string{"1", "1:30", "1:2:3", "1-2", "1-2:3:4", "90s", "-1", "99999999999-0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := parseWalltime(text)
		if err != nil {
			return
		}
		if d <= 0 || d > job.MaxWalltime {
			t.Fatalf("%q was read as %v", text, d)
		}
		// What kith prints, kith reads.
		if d = d.Truncate(time.Second); d > 0 {
			if again, err := parseWalltime(cli.Span(d)); err != nil || again != d {
				t.Fatalf("%v is printed as %q, which is read as %v, %v", d, cli.Span(d), again, err)
			}
		}
	})
}

func FuzzParseMemory(f *testing.F) {
	for _, text := range []string{"1", "1K", "4G", "0", "1024T", "99999999999999999999T"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := parseMemory(text); err == nil && (n <= 0 || n > job.MaxMemoryBytes) {
			t.Fatalf("%q was read as %d", text, n)
		}
	})
}
