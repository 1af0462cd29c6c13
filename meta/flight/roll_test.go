package flight_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/flight"
)

// fill has so many jobs wait.
func (s *site) fill(jobs int) {
	for range jobs {
		s.step(meta.Submit{Request: job.Request{Name: "x", User: "ada", Processors: 1, Walltime: 1e9}, Payload: make([]byte, 300)})
		s.turn()
	}
}

// asked is asked so often to cancel a job that it does not know, in two steps each.
func (s *site) asked(times int) {
	for range times {
		s.step(meta.Cancel{Job: job.ID{Origin: "alpha", Seq: 1 << 40}, Reason: strings.Repeat("y", 200)})
		s.turn()
	}
}

// large is a site whose state is too large for its driver to write it down, recorded in files
// of 3 MiB. The next file waits, once what is in the one before was played, until go on is closed.
type large struct {
	*site
	ring   *flight.Ring
	data   string
	waits  chan struct{}
	goOn   chan struct{}
	late   chan struct{} // the last of what was recorded meanwhile is copied once it is closed; nil for at once
	looked int
}

func newLarge(t *testing.T) *large {
	t.Helper()
	l := &large{site: newSite(t), data: t.TempDir(), waits: make(chan struct{}, 100), goOn: make(chan struct{})}
	l.ring = openRing(t, flight.RingConfig{Data: l.data, SizeBytes: 12 << 20, Files: 4, Room: func() error {
		if l.looked++; l.looked == 1 { // the first file
			return nil
		}
		l.waits <- struct{}{}
		<-l.goOn
		if l.late != nil && l.looked == 2+flight.CopyRounds {
			<-l.late
		}
		return nil
	}})
	l.recordTo(t, l.ring)
	l.fill(3000)
	for sum := int64(0); sum < 3<<20; _, sum = files(t, l.data) {
		l.asked(50)
		l.ring.Flush(time.Minute)
	}
	select {
	case <-l.waits:
	case <-time.After(20 * time.Second):
		t.Fatalf("no next file is begun: %+v", l.ring.Figures())
	}
	return l
}

func (l *large) names(t *testing.T) []string {
	t.Helper()
	names, _ := files(t, l.data)
	return names
}

func (l *large) await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for until := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("%s: %v, %+v", what, l.names(t), l.ring.Figures())
		}
	}
}

// played plays a file of the ring and returns its first and last step.
func (l *large) played(t *testing.T, name string) (first, last uint64, ended string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(l.data, flight.Folder, name))
	if err != nil {
		t.Fatal(err)
	}
	p, err := flight.Open(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		var s flight.Step
		if s, err = p.Next(); err == nil {
			last = s.Number
		}
	}
	if p.Ended() == "" {
		t.Errorf("%s, after step %d: %v", name, last, err)
	}
	return p.Header.Step, last, p.Ended()
}

// While the next file of a large site is made, the site goes on: no step waits, all are in the file that is open, and
// afterwards in the next one as well.
func TestNoStepWaitsForTheNextFile(t *testing.T) {
	t.Parallel()
	l := newLarge(t)
	before := l.steps()
	l.asked(200) // it would wait here for ever
	l.ring.Flush(time.Minute)
	during := l.steps()
	if names := l.names(t); during < before+400 || !slices.Equal(names, []string{"0000000001.flight"}) {
		t.Fatalf("%d steps meanwhile: %v", during-before, names)
	}
	if _, last, _ := l.played(t, "0000000001.flight"); last != during {
		t.Errorf("the file that is open has %d of %d steps", last, during)
	}
	l.late = make(chan struct{})
	close(l.goOn)
	for range flight.CopyRounds {
		<-l.waits
	}
	l.asked(50) // these the writer copies
	l.ring.Flush(time.Minute)
	close(l.late)
	l.await(t, "the next file", func() bool { return len(l.names(t)) == 2 && !slices.Contains(l.names(t), "next.part") })
	l.asked(50)
	l.record.Stop()
	l.ring.Close()
	names := l.names(t)
	if len(names) != 2 || l.ring.Figures().Failures > 0 {
		t.Fatalf("%v, %+v", names, l.ring.Figures())
	}
	_, end, why := l.played(t, names[0])
	first, last, ended := l.played(t, names[1])
	if why != "the next file goes on" || first < before-500 || first > end || end < during || last != l.steps() || ended != "the daemon stops" {
		t.Errorf("the first ends at step %d (%s); the second goes from %d to %d of %d (%s)", end, why, first, last, l.steps(), ended)
	}
}

// A recorder whose driver is under way writes down no more of a state than it may.
func TestALargeStateIsNotWrittenDownUnderWay(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var heads []int
	refused := 0
	s.recordTo(t, eager(func(head func(uint64) ([]byte, error)) {
		b, err := head(1)
		if errors.Is(err, flight.ErrHeld) {
			refused++
			return
		}
		if err != nil {
			t.Error(err)
		}
		heads = append(heads, len(b))
	}))
	for range 60 {
		for range 50 {
			s.step(meta.Submit{Request: job.Request{Name: "x", User: "ada", Processors: 1, Walltime: 1e9}, Payload: make([]byte, 300)})
		}
		s.turn()
	}
	if refused < 10 || len(heads) < 10 || slices.Max(heads) > flight.MostHeld+16<<10 {
		t.Errorf("%d heads of up to %d bytes, %d refused", len(heads), slices.Max(heads), refused)
	}
}

// eager is a sink that wants a file before each turn.
type eager func(head func(uint64) ([]byte, error))

func (s eager) Wants() bool                             { return true }
func (s eager) Open() bool                              { return true }
func (s eager) Write([]byte)                            {}
func (s eager) Fail(err error)                          { panic(err) }
func (s eager) Begin(head func(uint64) ([]byte, error)) { s(head) }

// What happens faster than the next file is made ends the recording, and nothing waits.
func TestTheNextFileComesTooLate(t *testing.T) {
	t.Parallel()
	l := newLarge(t)
	defer close(l.goOn)
	for n := 0; l.ring.Figures().Failures == 0; n++ {
		if n > 10_000 {
			t.Fatal("the file grows without a bound")
		}
		l.asked(1)
	}
	l.ring.Flush(time.Minute)
	if _, sum := files(t, l.data); sum > 3<<20+3<<20/8+64<<10 {
		t.Errorf("the file has %d bytes", sum)
	}
}

// A file that was damaged makes no next one, and what was made is removed.
func TestTheNextFileOfADamagedOne(t *testing.T) {
	t.Parallel()
	l := newLarge(t)
	// So far it was played already; what comes is only copied. The next but one is played from here.
	close(l.goOn)
	l.await(t, "the next file", func() bool { return len(l.names(t)) == 2 && !slices.Contains(l.names(t), "next.part") })
	path := filepath.Join(l.data, flight.Folder, l.names(t)[1])
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // its end is of no matter
	if _, err := f.WriteAt(b[len(b)/2:len(b)/2+1], int64(len(b)/2)); err != nil {
		t.Fatal(err)
	}
	for n := 0; l.ring.Figures().Failures == 0; n++ {
		if n > 10_000 {
			t.Fatal("it records on")
		}
		l.asked(1)
		l.ring.Flush(time.Minute)
	}
	l.ring.Close()
	if names := l.names(t); len(names) != 2 {
		t.Error(names)
	}
}

// What a daemon that was killed has left of a next file is removed, whatever it is.
func TestANextFileThatWasLeft(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]func(path string) error{
		"a file":   func(path string) error { return os.WriteFile(path, []byte("half"), 0o600) },
		"a pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a folder": func(path string) error { return os.MkdirAll(filepath.Join(path, "x"), 0o700) },
		"a link":   func(path string) error { return os.Symlink("/", path) },
	} {
		t.Run(name, func(t *testing.T) {
			data := t.TempDir()
			if err := os.Mkdir(filepath.Join(data, flight.Folder), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := plant(filepath.Join(data, flight.Folder, "next.part")); err != nil {
				t.Fatal(err)
			}
			openRing(t, flight.RingConfig{Data: data, SizeBytes: 1 << 20, Files: 2})
			if names, _ := files(t, data); len(names) > 0 {
				t.Error(strings.Join(names, ", "))
			}
		})
	}
}

// What is hidden in a file means the same in the one that is made of it: a request that comes again is known again.
func TestWhatIsHiddenIsTheSameInTheNextFile(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	sink := &tape{every: 1000}
	s.recordTo(t, sink)
	for range 2 {
		s.step(meta.Submit{RequestID: "once", BodyHash: [32]byte{200, 3}, Request: job.Request{Name: "x", User: "ada", Processors: 1, Walltime: 1e9}})
		s.turn()
	}
	next, err := flight.Continue(sink.files[0])
	if err != nil {
		t.Fatal(err)
	}
	if steps, _, err := play(next); err != nil || steps != 2 {
		t.Errorf("%d steps, %v", steps, err)
	}
}
