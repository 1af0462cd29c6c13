package forecast

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"
	"time"
)

// What is told has the quantiles of what is known.
func TestRunsKeepQuantiles(t *testing.T) {
	for seed := range uint64(50) {
		rng := newRand(seed)
		var d, told Dist
		d.Reset()
		limit := time.Duration(1+rng.IntN(100)) * time.Hour
		for range 500 {
			d.Add(time.Duration(rng.Float64()*rng.Float64()*float64(limit)), 1)
		}
		q := RunsOf(&d, limit)
		q.Dist(limit, &told)
		for _, p := range Levels {
			below, _ := d.PIT(told.Quantile(p))
			if math.Abs(below-p) > 0.05 {
				t.Fatalf("seed %d: level %v is told as %v", seed, p, below)
			}
		}
		sent := make([]uint32, len(q))
		for i := range q {
			sent[i] = uint32(q[i])
		}
		if back, err := ParseRuns(sent); err != nil || back != q {
			t.Fatalf("seed %d: %v came back as %v, %v", seed, q, back, err)
		}
	}
}

func TestParseRunsRefuses(t *testing.T) {
	good := []uint32{1, 1, 2, 3, 5, 8, 13, 21, 65535}
	if _, err := ParseRuns(good); err != nil {
		t.Fatal(err)
	}
	if q, err := ParseRuns(nil); err != nil || q.Known() {
		t.Errorf("nothing: %v, %v", q, err)
	}
	for name, spoil := range map[string]func(s []uint32) []uint32{
		"too few":             func(s []uint32) []uint32 { return s[1:] },
		"too many":            func(s []uint32) []uint32 { return append(s, 65535) },
		"a fall":              func(s []uint32) []uint32 { s[4] = 2; return s },
		"more than the limit": func(s []uint32) []uint32 { s[8] = 65536; return s },
	} {
		if q, err := ParseRuns(spoil(slices.Clone(good))); !errors.Is(err, ErrRuns) || q.Known() {
			t.Errorf("%s: %v, %v", name, q, err)
		}
	}
}

// What says nothing is even; nothing has no quantiles.
func TestUnknownRuns(t *testing.T) {
	var d Dist
	var q Runs
	q.Dist(100*time.Second, &d)
	for _, p := range Levels {
		if got := d.Quantile(p).Seconds(); math.Abs(got-100*p) > 3 {
			t.Errorf("level %v: %v s", p, got)
		}
	}
	if q := RunsOf(&Dist{}, time.Hour); q.Known() {
		t.Errorf("of nothing: %v", q)
	}
	d.Reset()
	d.Add(0, 1)
	if q := RunsOf(&d, time.Hour); !q.Known() {
		t.Error("jobs that end at once say nothing")
	}
	if q := RunsOf(&d, 0); q.Known() {
		t.Errorf("without a limit: %v", q)
	}
}

func FuzzParseRuns(f *testing.F) {
	f.Add([]byte{0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8, 255, 255}, int64(time.Hour))
	f.Add([]byte{}, int64(-1))
	f.Fuzz(func(t *testing.T, b []byte, limit int64) {
		var sent []uint32
		for ; len(b) >= 2; b = b[2:] {
			sent = append(sent, uint32(binary.BigEndian.Uint16(b)))
		}
		if len(b) == 1 && len(sent) > 0 {
			sent[0] |= uint32(b[0]) << 16
		}
		q, err := ParseRuns(sent)
		if err != nil && q.Known() {
			t.Fatalf("%v with %v", q, err)
		}
		var d Dist
		q.Dist(time.Duration(limit), &d)
		last := time.Duration(0)
		for _, p := range Levels {
			x := d.Quantile(p)
			if x < last || x > time.Duration(max(limit, 0)) {
				t.Fatalf("%v: level %v is %v after %v, limit %v", q, p, x, last, time.Duration(limit))
			}
			last = x
		}
	})
}

// Quantiles of a longer or a shorter time do not fall and stay within the limit.
func TestRunsTimes(t *testing.T) {
	q := Runs{10, 20, 30, 100, 1000, 20000, 40000, 60000, 65535}
	for f, want := range map[float64]Runs{
		1: q, 0: q, -1: q, math.NaN(): q,
		0.5:         {5, 10, 15, 50, 500, 10000, 20000, 30000, 32768},
		4:           {40, 80, 120, 400, 4000, 65535, 65535, 65535, 65535},
		1e-9:        {8: 1},
		math.Inf(1): {65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535},
	} {
		if got := q.Times(f); got != want {
			t.Errorf("%v times: %v, want %v", f, got, want)
		}
	}
	if none := (Runs{}); none.Times(2) != none {
		t.Error("what says nothing says something")
	}
}
