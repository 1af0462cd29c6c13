package flight_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"testing"

	"kith/meta"
	"kith/meta/flight"
	"kith/testbed/check/faults"
	"kith/testbed/sim"
)

// tape is a sink in memory that begins a file every so many frames.
type tape struct {
	every  int
	files  [][]byte
	frames int
	failed error
}

func (s *tape) Wants() bool { return s.failed == nil && (len(s.files) == 0 || s.frames >= s.every) }
func (s *tape) Open() bool  { return s.failed == nil && len(s.files) > 0 }
func (s *tape) Fail(err error) {
	if s.failed == nil {
		s.failed = err
	}
}

func (s *tape) Begin(head func(uint64) ([]byte, error)) {
	b, err := head(uint64(len(s.files)) + 1)
	if err != nil {
		s.failed = err
		return
	}
	s.files, s.frames = append(s.files, b), 0
}

func (s *tape) Write(frame []byte) {
	last := &s.files[len(s.files)-1]
	*last = append(*last, frame...)
	s.frames++
}

// record plays a schedule and returns what was recorded of each life of each site.
func record(t *testing.T, s *faults.Schedule, every int) map[string]*tape {
	t.Helper()
	tapes := make(map[string]*tape)
	recordTo(t, s, func(name string) flight.Sink {
		tapes[name] = &tape{every: every}
		return tapes[name]
	})
	return tapes
}

// recordTo plays a schedule, and has sink make what each life of each site is recorded to.
func recordTo(t testing.TB, s *faults.Schedule, to func(life string) flight.Sink) {
	t.Helper()
	faults.Record(s, func(site *sim.Site, c meta.Config) sim.Recorder {
		facts := site.State().Site()
		sink := to(fmt.Sprintf("%s-%d-%d", facts.ID, facts.Generation, facts.Incarnation))
		r, err := flight.NewRecorder(flight.Subject{
			Engine: site.Engine(), Meta: c, Site: site.Scheduler(), ID: facts.ID, Generation: facts.Generation, Incarnation: facts.Incarnation,
		}, sink)
		if err != nil {
			t.Fatal(err)
		}
		return r
	})
}

// play plays a file and returns how many steps and digests of states it has.
func play(b []byte) (steps, states int, err error) {
	p, err := flight.Open(bytes.NewReader(b))
	if err != nil {
		return 0, 0, err
	}
	for {
		if _, err := p.Next(); errors.Is(err, io.EOF) {
			return steps, p.States(), nil
		} else if err != nil {
			return steps, p.States(), err
		}
		steps++
	}
}

var playedSeeds = flag.Int("seeds", 3, "how many schedules of each kind are recorded and played")

// Whatever happens to a federation, each file of what each of its daemons recorded plays again
// to the same effects and the same state. So does a file made of one that was played up to its middle.
func TestSchedulesPlayAgain(t *testing.T) {
	t.Parallel()
	for kind, schedule := range map[string]func(uint64, faults.Size) *faults.Schedule{
		"jobs": faults.Random, "wide": faults.Wide, "bags": faults.Bagged, "attacked": faults.WideAttacked,
		"members": faults.Membered, // each lead has a recording of its own
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			steps, images, states := 0, 0, 0
			for seed := range uint64(*playedSeeds) {
				for name, tape := range record(t, schedule(seed, faults.Size{}), 200) {
					if tape.failed != nil {
						t.Fatalf("seed %d, %s: not recorded: %v", seed, name, tape.failed)
					}
					for i, file := range tape.files {
						n, compared, err := play(file)
						if err != nil {
							t.Fatalf("seed %d, %s, file %d of %d, after %d steps: %v", seed, name, i+1, len(tape.files), n, err)
						}
						steps, images, states = steps+n, images+1, states+compared
						next, err := flight.Continue(file)
						if err != nil {
							t.Fatalf("seed %d, %s, file %d of %d: to go on from its middle: %v", seed, name, i+1, len(tape.files), err)
						}
						if n, _, err := play(next); err != nil {
							t.Fatalf("seed %d, %s, file %d of %d, gone on from its middle, after %d steps: %v", seed, name, i+1, len(tape.files), n, err)
						}
					}
				}
			}
			if t.Logf("%d steps from %d images, %d states compared", steps, images, states); steps == 0 || images == 0 || states == 0 {
				t.Error("nothing was compared")
			}
		})
	}
}
