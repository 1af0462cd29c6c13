package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kith/internal/scratch"
)

func TestMain(m *testing.M) {
	scratch.InMemory()
	os.Exit(m.Run())
}

func open(t *testing.T, cfg Config) *Log {
	t.Helper()
	l, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func closeLog(t *testing.T, l *Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// linesOf returns the lines of a log, without those about itself if kinds are given.
func linesOf(t *testing.T, dir string, kinds ...string) []*Line {
	t.Helper()
	var lines []*Line
	skipped, err := Read(dir, func(l *Line) bool {
		if len(kinds) == 0 || slices.Contains(kinds, l.Kind) {
			lines = append(lines, l)
		}
		return true
	})
	if err != nil || skipped > 0 {
		t.Fatalf("%d lines skipped, %v", skipped, err)
	}
	return lines
}

func verify(t *testing.T, dir string, o VerifyOptions) Report {
	t.Helper()
	r, err := Verify(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func whole(t *testing.T, dir string) Report {
	t.Helper()
	r := verify(t, dir, VerifyOptions{})
	for _, f := range r.Faults {
		t.Errorf("a log that was not touched: %v", f)
	}
	return r
}

func TestLogGoesOnAfterARestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	for life := range 3 {
		l := open(t, Config{Dir: dir, Site: "alpha"})
		if err := l.Sync(context.Background(), Entry{Kind: "drain", User: "ada", Text: fmt.Sprint("life ", life)}); err != nil {
			t.Fatal(err)
		}
		if got := linesOf(t, dir, "drain"); len(got) != life+1 {
			t.Errorf("life %d: %d durable lines after Sync returned", life, len(got))
		}
		l.Record(Entry{Kind: "forget", Peer: "beta"})
		closeLog(t, l)
	}
	lines := linesOf(t, dir)
	for i, l := range lines {
		if l.Number != uint64(i+1) {
			t.Errorf("line %d has number %d", i+1, l.Number)
		}
	}
	if r := whole(t, dir); r.Lines != 12 || r.Last != 12 || r.Files != 1 {
		t.Errorf("got %+v, want 12 lines of 3 lives in a file", r)
	}
	l := open(t, Config{Dir: dir})
	closeLog(t, l)
	if err := l.Sync(context.Background(), Entry{Kind: "drain"}); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v, want ErrClosed", err)
	}
}

// A crash may leave any beginning of the last line.
func TestUnfinishedLineIsCut(t *testing.T) {
	dir := t.TempDir()
	l := open(t, Config{Dir: dir})
	l.Record(Entry{Kind: "drain"})
	closeLog(t, l)
	path := filepath.Join(dir, nameOf(1))
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lastLine := bytes.LastIndexByte(text[:len(text)-1], '\n') + 1
	for cut := lastLine; cut < len(text); cut += 7 {
		left := text[:cut]
		if cut > lastLine { // more than the lines that come after it
			left = append(bytes.Clone(left), bytes.Repeat([]byte{0}, 2000)...)
		}
		if err := os.WriteFile(path, left, 0o600); err != nil {
			t.Fatal(err)
		}
		closeLog(t, open(t, Config{Dir: dir}))
		said := linesOf(t, dir, KindCut)
		if torn := cut > lastLine; torn != (len(said) == 1) {
			t.Fatalf("cut at byte %d: %d lines say so", cut-lastLine, len(said))
		}
		if r := whole(t, dir); r.Unfinished > 0 {
			t.Errorf("cut at byte %d: %d bytes are still there", cut-lastLine, r.Unfinished)
		}
	}
}

// What follows a line that cannot be read goes on, and the line stays for Verify to find.
func TestDamagedLastLine(t *testing.T) {
	dir := t.TempDir()
	closeLog(t, open(t, Config{Dir: dir}))
	path := filepath.Join(dir, nameOf(1))
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString("\x00\x00\x00\n") //nolint:errcheck // read below
	f.Close()                       //nolint:errcheck // read below
	closeLog(t, open(t, Config{Dir: dir}))
	r := verify(t, dir, VerifyOptions{})
	if len(r.Faults) != 1 || r.Faults[0].Line != 3 || r.Lines != 6 {
		t.Errorf("got %+v, want one fault, in line 3 of 6", r)
	}
}

func TestRotationKeepsTheChain(t *testing.T) {
	dir := t.TempDir()
	cfg := Config{Dir: dir, MaxBytes: 2000, MaxFiles: 3}
	for range 5 {
		l := open(t, cfg)
		for i := range 20 {
			if err := l.Sync(context.Background(), Entry{Kind: "drain", Text: fmt.Sprint(i)}); err != nil {
				t.Fatal(err)
			}
		}
		closeLog(t, l)
		files, err := filesOf(dir)
		if err != nil || len(files) > 3 {
			t.Errorf("%d files, %v; at most 3 are kept", len(files), err)
		}
		whole(t, dir)
	}
	r := whole(t, dir)
	if r.First == 1 || len(linesOf(t, dir, KindRemoved)) == 0 {
		t.Errorf("nothing was removed: %+v", r)
	}
	files, _ := filesOf(dir)
	if err := os.Remove(files[0].path); err != nil {
		t.Fatal(err)
	}
	r = verify(t, dir, VerifyOptions{})
	if len(r.Faults) != 1 || r.Faults[0].File != filepath.Base(files[1].path) || r.Faults[0].Line != 0 {
		t.Errorf("the oldest file was taken away by another process: %+v", r.Faults)
	}
}

func TestRotationByAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		l := open(t, Config{Dir: dir, MaxAge: 24 * time.Hour})
		for range 3 {
			time.Sleep(25 * time.Hour)
			if err := l.Sync(context.Background(), Entry{Kind: "drain"}); err != nil {
				t.Error(err)
			}
		}
		closeLog(t, l)
		if r := whole(t, dir); r.Files != 4 {
			t.Errorf("%d files, want 4", r.Files)
		}
	})
}

type fakeSigner struct{ err error }

func (s fakeSigner) Sign(message []byte) (signature []byte, chain [][]byte, err error) {
	sum := sha256.Sum256(append([]byte("key"), message...))
	return sum[:], [][]byte{[]byte("leaf")}, s.err
}

func checkFake(h *Head) error {
	want, _, _ := fakeSigner{}.Sign(h.Message())
	if !bytes.Equal(want, h.Signature) || h.Site != "alpha" {
		return errors.New("is not the site's")
	}
	return nil
}

func TestHeadEveryHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		l := open(t, Config{Dir: dir, Site: "alpha", Signer: fakeSigner{}})
		synctest.Wait()
		first, ok := l.Head()
		if !ok || first.Number != 1 {
			t.Errorf("no head at the start: %+v", first)
		}
		for range 10 {
			time.Sleep(time.Hour)
		}
		synctest.Wait()
		later, _ := l.Head()
		closeLog(t, l)
		if got := len(linesOf(t, dir, KindHead)); got != 12 || later.Number != 11 {
			t.Errorf("%d heads in 10 hours, the last one of line %d; want one at the start, each hour and the end", got, later.Number)
		}
		for _, h := range []Head{first, later} {
			r := verify(t, dir, VerifyOptions{Head: &h, Check: checkFake})
			if len(r.Faults) > 0 || r.Signed != 12 {
				t.Errorf("head %d: %+v", h.Number, r)
			}
		}
		later.Hash[0]++
		if r := verify(t, dir, VerifyOptions{Head: &later}); len(r.Faults) != 1 || r.Faults[0].Number != 11 {
			t.Errorf("a head of another log: %+v", r.Faults)
		}
		r := verify(t, dir, VerifyOptions{Check: func(*Head) error { return errors.New("is forged") }})
		if len(r.Faults) != 12 {
			t.Errorf("forged signatures: %+v", r.Faults)
		}
	})
}

func TestSignerThatFails(t *testing.T) {
	dir := t.TempDir()
	l := open(t, Config{Dir: dir, Signer: fakeSigner{err: errors.New("no key")}})
	closeLog(t, l)
	if _, ok := l.Head(); ok || len(linesOf(t, dir, KindHead)) != 0 {
		t.Error("a head without a signature")
	}
	whole(t, dir)
}

// A log that cannot be written stops no work, and says later what it lost.
func TestLostEntriesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "data")
		if err := os.WriteFile(dir, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		// A file where the data folder should be takes no log.
		c, _, err := openChain(filepath.Join(filepath.Dir(dir), "none"), 1<<20, time.Hour, 2)
		if err != nil {
			t.Fatal(err)
		}
		c.dir = filepath.Join(dir, "audit")
		l := &Log{cfg: Config{Now: time.Now, Logger: discard}, chain: c, wake: make(chan struct{}, 1), done: make(chan struct{})}
		go l.write()
		for range 3 {
			if err := l.Sync(context.Background(), Entry{Kind: "drain"}); !errors.Is(err, ErrLost) {
				t.Errorf("Sync without a disk: %v", err)
			}
		}
		for range 10 {
			l.Refuse(Entry{Kind: "refused-hello", Peer: "beta"})
		}
		time.Sleep(2 * time.Minute)
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if err := l.Sync(context.Background(), Entry{Kind: "resume"}); err != nil {
			t.Errorf("with a disk again: %v", err)
		}
		closeLog(t, l)
		lost := linesOf(t, c.dir, KindLost)
		if len(lost) != 1 || lost[0].Count != 13 || len(linesOf(t, c.dir, "resume")) != 1 {
			t.Errorf("got %+v, want a line for 13 lost entries", lost)
		}
		whole(t, c.dir)
	})
}

// A write that fails in the middle leaves no half of a line.
func TestFailedWriteIsTakenBack(t *testing.T) {
	dir := t.TempDir()
	c, _, err := openChain(dir, 1<<20, time.Hour, 2)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	write := func(kind string) error { return c.append(now, []*Line{Entry{Kind: kind}.line(now, 0)}) }
	if err := write("one"); err != nil {
		t.Fatal(err)
	}
	good := c.out
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("no /dev/full: %v", err)
	}
	c.out = full
	if err := write("two"); !errors.Is(err, errChain) {
		t.Errorf("a full disk took a line: %v", err)
	}
	if err := write("three"); err == nil {
		t.Error("a line was written behind what could not be taken back")
	}
	c.out = good
	good.WriteAt(bytes.Repeat([]byte("x"), 5000), c.size) //nolint:errcheck // what the failed write has left
	if err := write("four"); err != nil {
		t.Error(err)
	}
	if err := errors.Join(c.close(), full.Close()); err != nil {
		t.Error(err)
	}
	if r := whole(t, dir); r.Lines != 2 || r.Unfinished != 0 {
		t.Errorf("got %+v, want two lines", r)
	}
}

func TestWaitingIsBounded(t *testing.T) {
	l := &Log{cfg: Config{Now: time.Now}, wake: make(chan struct{}, 1), done: make(chan struct{})}
	for range mostWaiting + 50 {
		l.Record(Entry{Kind: "cancel"})
	}
	if len(l.waiting) != mostWaiting || l.lost != 50 {
		t.Errorf("%d wait and %d are lost", len(l.waiting), l.lost)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if err := l.Sync(ctx, Entry{Kind: "drain"}); !errors.Is(err, ErrLost) {
		t.Errorf("a full queue: %v", err)
	}
}

func TestTextsAreClippedAndEscaped(t *testing.T) {
	for text, want := range map[string]string{
		"plain ä 日":    "plain ä 日",
		"a\nb\x1b[31m": `a\x0ab\x1b[31m`,
		"x\u202ey":     `x\u202ey`,
		"bad \xff":     `bad \xff`,
		"\uFFFD":       "\uFFFD",
		"12345678901234567890123456789012345678901": "1234567890123456789012345678901234567…",
	} {
		if got := clip(text, 40); got != want {
			t.Errorf("clip(%q) = %q, want %q", text, got, want)
		}
	}
	for _, bad := range []string{strings.Repeat("\\", 9999), strings.Repeat("\"", 9999), strings.Repeat("\n", 9999), strings.Repeat("日", 9999), strings.Repeat("\xff", 9999)} {
		l := Entry{bad, bad, bad, bad, bad, bad, bad, nil}.line(time.Now(), 1<<63)
		l.Number, l.Prev[0] = 1<<63, 255
		text, err := l.encode()
		if err != nil || len(text) > mostLine || bytes.ContainsAny(text, "\n\x1b\xff") && !strings.Contains(bad, "日") {
			t.Errorf("%.3q: a line of %d bytes, %v", bad, len(text), err)
		}
		if again, err := parse(text); err != nil || *again != *l {
			t.Errorf("%.3q: read back %+v, %v", bad, again, err)
		}
	}
}
