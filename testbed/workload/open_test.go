package workload

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kith/internal/job"
)

// traces is where the public logs lie.
const traces = "../../../shared/traces"

// openTrace opens a public log, or skips the test.
func openTrace(t testing.TB, name string) *Workload {
	t.Helper()
	w, err := Open(filepath.Join(filepath.FromSlash(traces), filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no %s in %s: this test needs the shared traces beside the repository", name, traces)
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// read reads a log from a text, which must be one.
func read(t *testing.T, text string) *Workload {
	t.Helper()
	w, err := Read("log", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// counts returns what a report says, without what it says nothing of.
func counts(r *Report) map[Kind]int {
	m := map[Kind]int{}
	for k, n := range r.All() {
		m[k] = n
	}
	return m
}

func second(n int64) job.Time { return job.Time(n) * job.Time(time.Second) }

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

func pack(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	long := strings.Repeat("1 0 -1 10 1 -1 -1 1 20 -1 1 1 1 -1 -1 -1 -1 -1\n", 20000)
	noise := make([]byte, 1<<20)
	for i := range noise {
		noise[i] = byte(i*i>>3) | 1
	}
	packed := pack(t, string(noise)+long)
	damaged := bytes.Clone(pack(t, long))
	damaged[len(damaged)/2] ^= 0xff
	for name, m := range map[string]struct {
		data string
		is   error
		says string
	}{
		"nothing":          {"", ErrUnknownFormat, "it is empty"},
		"prose":            {"To whom it may concern\n", ErrUnknownFormat, `begins with "To whom it may concern"`},
		"bzip2":            {"BZh91AY&SY", ErrUnknownFormat, "bzip2"},
		"xz":               {"\xfd7zXZ\x00\x00", ErrUnknownFormat, "xz"},
		"zstd":             {"\x28\xb5\x2f\xfd\x00\x00", ErrUnknownFormat, "zstd"},
		"no header line":   {"1|a|b|c\n2|a|b|c\n", ErrUnknownFormat, "leave out -n"},
		"only comments":    {"; Version: 2\n", ErrNoJobs, "no job"},
		"only broken jobs": {"1 2 3\n", ErrNoJobs, "line 1: 3 fields of 18"},
		"cut gzip header":  {"\x1f\x8b\x08\x00", ErrTruncated, "after line 0"},
		"cut gzip":         {string(pack(t, long)[:400]), ErrTruncated, "after line "},
		"cut gzip, no job": {string(packed[:len(packed)/4]), ErrUnknownFormat, "begins with"},
		"damaged gzip":     {string(damaged), nil, "copy the file again"},
	} {
		w, err := Read("log", strings.NewReader(m.data))
		if err == nil || m.is != nil && !errors.Is(err, m.is) || !strings.Contains(err.Error(), m.says) {
			t.Errorf("%s: %v, want %q", name, err, m.says)
		}
		if w != nil {
			t.Errorf("%s: a workload beside an error", name)
		}
		if err != nil && len(err.Error()) > 400 {
			t.Errorf("%s: an error of %d bytes", name, len(err.Error()))
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "directory") {
		t.Errorf("a folder: %v", err)
	}
}

// TestTruncatedGzipNamesTheLine cuts a log everywhere: reading says how far it
// came, which is never beyond what was there.
func TestTruncatedGzipNamesTheLine(t *testing.T) {
	text := "; MaxProcs: 8\n" + strings.Repeat("1 0 -1 10 1 -1 -1 1 20 -1 1 1 1 -1 -1 -1 -1 -1\n", 9)
	packed := pack(t, text)
	for n := 2; n < len(packed); n++ {
		_, err := Read("log", bytes.NewReader(packed[:n]))
		if !errors.Is(err, ErrTruncated) && !errors.Is(err, ErrUnknownFormat) {
			t.Fatalf("%d of %d bytes: %v", n, len(packed), err)
		}
	}
	_, err := Read("log", bytes.NewReader(packed[:len(packed)-1]))
	if err == nil || !strings.Contains(err.Error(), "after line 10") {
		t.Errorf("all but the check sum: %v, want line 10", err)
	}
}

func TestOpenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "some.swf.gz")
	if err := os.WriteFile(path, pack(t, "\xef\xbb\xbf; MaxProcs: 8\r\n\r\n1 0 -1 10 1 -1 -1 1 20 -1 1 1 1 -1 -1 -1 -1 -1\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := Open(path)
	if err != nil || w.Name != "some.swf.gz" || len(w.Jobs) != 1 || w.Processors != 8 || w.Tick != time.Second {
		t.Errorf("%+v, %v", w, err)
	}
}

// TestSettle demands order, a first submission at 0, and that nothing is so late
// that time might run out.
func TestSettle(t *testing.T) {
	late := int64(MaxSpan/time.Second) + 101
	text := "; UnixStartTime: 1000000000\n; TimeZone: -18000\n" +
		line(1, 100, 10) + line(2, 300, 10) + line(3, 200, 10) + line(4, 250, 10) + line(5, 200, 10) + line(6, late, 10) + line(7, late-1, 10)
	w := read(t, text)
	var ids []int64
	for _, j := range w.Jobs {
		ids = append(ids, j.ID)
	}
	want := []int64{1, 3, 5, 4, 2, 7}
	for i := range want {
		if i >= len(ids) || ids[i] != want[i] {
			t.Fatalf("the order is %v, want %v", ids, want)
		}
	}
	if w.Jobs[0].Submit != 0 || w.Jobs[4].Submit != second(200) {
		t.Errorf("submissions are %d and %d", w.Jobs[0].Submit, w.Jobs[4].Submit)
	}
	if n := counts(&w.Report); len(n) != 2 || n[OutOfOrder] != 4 || n[TooLate] != 1 {
		t.Errorf("counts are %v", n)
	}
	if got := w.Start; got.Unix() != 1000000100 || got.Hour() != 20 {
		t.Errorf("it starts at %v", got)
	}
}

func TestReadLimits(t *testing.T) {
	w := read(t, line(1, 0, 1)+strings.Repeat("x", 3*MaxLineLength)+"\n"+line(2, 0, 1)+strings.Repeat("1 ", MaxLineLength))
	if n := counts(&w.Report); len(w.Jobs) != 2 || len(n) != 1 || n[BadLine] != 2 || !strings.Contains(w.Report.First(BadLine), "line 2: longer than") {
		t.Errorf("%d jobs, %v, %s", len(w.Jobs), n, w.Report.First(BadLine))
	}
	var r Report
	if r.Count(kinds) != 0 || r.First(math.MaxUint8) != "" {
		t.Error("an unknown kind counts")
	}
}
