package flight_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"kith/meta"
	"kith/meta/flight"
	"kith/testbed/check/faults"
)

// sample is a small recording.
func sample(t testing.TB) []byte {
	t.Helper()
	var smallest []byte
	tapes := make(map[string]*tape)
	recordTo(t, faults.Bagged(2, faults.Size{Sites: 2}), func(life string) flight.Sink {
		tapes[life] = &tape{every: 30}
		return tapes[life]
	})
	for _, tape := range tapes {
		for _, f := range tape.files {
			if n := len(flight.Frames(f)); n > 25 && (smallest == nil || len(f) < len(smallest) || len(f) == len(smallest) && bytes.Compare(f, smallest) < 0) {
				smallest = f
			}
		}
	}
	if smallest == nil {
		t.Fatal("no recording")
	}
	return smallest
}

// Whatever was recorded otherwise than it comes out is told, with its step.
func TestDifferencesAreTold(t *testing.T) {
	t.Parallel()
	file := sample(t)
	kinds := make(map[string]int)
	frames := flight.Frames(file)
	for i := 3; i < len(frames); i++ {
		changed := slices.Clone(frames)
		changed[i] = bytes.Clone(frames[i])
		changed[i][len(changed[i])-1] ^= 1
		_, _, err := play(flight.File(changed))
		var d *flight.Divergence
		if errors.As(err, &d) {
			kinds[d.What]++
			if d.Step.Number == 0 && i > 3 {
				t.Errorf("frame %d: %v", i, err)
			}
		}
	}
	// Digests of effects stand before other entries: change those, too.
	for i := 3; i < len(frames); i++ {
		for at := range frames[i] {
			if frames[i][at] != 'f' {
				continue
			}
			changed := slices.Clone(frames)
			changed[i] = bytes.Clone(frames[i])
			if at+2 < len(changed[i]) {
				changed[i][at+2] ^= 0x55
			}
			_, _, err := play(flight.File(changed))
			var d *flight.Divergence
			if errors.As(err, &d) {
				kinds[d.What]++
			}
		}
	}
	if kinds["effects"] == 0 || kinds["the next wake"]+kinds["state"] == 0 {
		t.Errorf("told: %v", kinds)
	}
}

// The step at which an engine dies is the last one of its recording, and it dies there again.
func TestAPanicPlaysAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	sink := &tape{every: 1000}
	s.recordTo(t, sink)
	s.job()
	died := func() (died bool) {
		defer func() {
			if died = recover() != nil; died {
				s.record.Panicked()
			}
		}()
		s.step(meta.Receive{From: "b"}) // no message: no peer can say that
		return false
	}()
	if !died {
		t.Fatal("the engine takes up nothing")
	}
	steps, _, err := play(sink.files[0])
	var p *flight.Panic
	if !errors.As(err, &p) || p.Step.Number != 11 || flight.Kind(p.Step.Event) != "Receive" || steps != 10 || !strings.Contains(p.Stack, "meta.(*Engine)") {
		t.Errorf("after %d steps: %v", steps, err)
	}
}

// A file that is cut anywhere plays up to there, or is refused.
func TestCutFiles(t *testing.T) {
	t.Parallel()
	file := sample(t)
	whole, _, err := play(file)
	if err != nil {
		t.Fatal(err)
	}
	refused, last := 0, 0
	for n := 0; n < len(file); n += 1 + len(file)/300 {
		steps, _, err := play(file[:n])
		switch {
		case errors.Is(err, flight.ErrNotFlight):
			refused++
		case err != nil:
			t.Errorf("cut at %d: %v", n, err)
		case steps < last || steps > whole:
			t.Errorf("cut at %d: %d steps after %d of %d", n, steps, last, whole)
		}
		last = steps
	}
	if refused == 0 || last == 0 {
		t.Errorf("refused %d, %d steps of the longest", refused, last)
	}
}

func TestFilesOfOthers(t *testing.T) {
	t.Parallel()
	file := sample(t)
	frames := flight.Frames(file)
	header := func(old, replacement string) []byte {
		changed := slices.Clone(frames)
		changed[0] = []byte(strings.Replace(string(frames[0]), old, replacement, 1))
		return flight.File(changed)
	}
	schema := string(frames[0][bytes.Index(frames[0], []byte(`"schema"`))+10:][:16])
	for name, c := range map[string]struct {
		file []byte
		want error
	}{
		"empty":               {nil, flight.ErrNotFlight},
		"text":                {[]byte("#!/bin/sh\nexit 0\n"), flight.ErrNotFlight},
		"another format":      {header(`"format":1`, `"format":2`), flight.ErrForeign},
		"another schema":      {header(schema, "0123456789abcdef"), flight.ErrForeign},
		"no JSON":             {header("{", "["), flight.ErrNotFlight},
		"an image of nothing": {flight.File([][]byte{frames[0], frames[1], {}}), flight.ErrNotFlight},
		"no setting":          {flight.File([][]byte{frames[0], {}, frames[2]}), flight.ErrNotFlight},
	} {
		if _, _, err := play(c.file); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := play(header(schema, "0123456789abcdef")); !strings.Contains(err.Error(), "play it with the kith-lab of that version") {
		t.Error(err)
	}
}

// Whatever the frames of a file begin with, all checksums right, it is refused, told to differ or
// played. What they hold is left alone: a made-up state may keep engines busy for ever.
func FuzzFlight(f *testing.F) {
	file := sample(f)
	frames := flight.Frames(file)
	f.Add(uint16(2), uint16(100), []byte{1, 2, 3})
	f.Add(uint16(4), uint16(0), []byte{'e'})
	f.Fuzz(func(t *testing.T, frame, at uint16, b []byte) {
		changed := slices.Clone(frames)
		i := int(frame) % len(frames)
		one := bytes.Clone(frames[i])
		n := int(at) % (len(one) + 1)
		if i > 1 {
			n = int(at) % 3
		}
		one = append(one[:n], append(bytes.Clone(b), one[min(len(one), n+len(b)):]...)...)
		changed[i] = one
		play(flight.File(changed)) //nolint:errcheck // any answer will do
	})
}
