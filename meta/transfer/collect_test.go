package transfer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"kith/store/blobstore"
)

// leave makes a folder for an attempt and returns what to collect from it.
func leave(t testing.TB, outputs ...string) (l Leaving, dir string) {
	t.Helper()
	base := t.TempDir()
	dir = filepath.Join(base, "work")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return Leaving{Dir: dir, Stdout: filepath.Join(base, "out"), Stderr: filepath.Join(base, "err"), Outputs: outputs}, dir
}

func TestCollect(t *testing.T) {
	store := openStore(t, blobstore.Config{})
	l, dir := leave(t, "result.txt", "out/*.csv", "out/run-[0-9]", "bin/tool", "empty", "result.txt", "*.txt", `literal\*`)
	write(t, filepath.Dir(dir), "out", random(1, 100000))
	write(t, filepath.Dir(dir), "err", []byte("warning\n"))
	write(t, dir, "result.txt", []byte("42"))
	write(t, dir, "out/a.csv", []byte("a"))
	write(t, dir, "out/b.csv", random(2, 9000))
	write(t, dir, "out/c.log", []byte("not asked for"))
	write(t, dir, "out/run-3", []byte("3"))
	write(t, dir, "out/deep.csv/x", []byte("a folder is no file"))
	write(t, dir, "empty", nil)
	write(t, dir, "literal*", []byte("star"))
	write(t, dir, "literally", []byte("no star"))
	if err := os.Chmod(write(t, dir, "bin/tool", []byte("#!x")), 0o755); err != nil {
		t.Fatal(err)
	}
	got, err := (&Collector{Store: store}).Collect(background(), l)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "files", setContents(t, store, got.Set), map[string]string{
		"stdout": string(random(1, 100000)), "stderr": "warning\n", "result.txt": "42", "out/a.csv": "a", "out/b.csv": string(random(2, 9000)),
		"out/run-3": "3", "bin/tool": "#!x", "empty": "", "literal*": "star",
	})
	same(t, "notes", got.Notes, []string(nil))
	if f, _ := got.Set.Find("bin/tool"); !f.Executable {
		t.Error("the mode of bin/tool is lost")
	}
	if _, err := got.Set.Encode(); err != nil {
		t.Error(err)
	}
}

// A declared output that is a folder brings every file beneath it (D5).
func TestCollectFolders(t *testing.T) {
	store := openStore(t, blobstore.Config{})
	l, dir := leave(t, "out/", "deep", "out/a", "linked")
	write(t, dir, "out/a", []byte("a"))
	write(t, dir, "out/sub/b", random(1, 9000))
	write(t, dir, "out/.hidden", []byte("h"))
	write(t, dir, "deep/er/still/c", []byte("c"))
	write(t, dir, "other/d", []byte("d"))
	symlink(t, "other", dir, "linked")
	folder(t, dir, "out/nothing")
	got, err := (&Collector{Store: store}).Collect(background(), l)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "files", setContents(t, store, got.Set), map[string]string{
		"out/a": "a", "out/sub/b": string(random(1, 9000)), "out/.hidden": "h", "deep/er/still/c": "c", "linked/d": "d",
	})
	same(t, "notes", got.Notes, []string(nil))
	if _, err := got.Set.Encode(); err != nil {
		t.Error(err)
	}
}

// A folder of more files than a set may have comes as far as it fits, and deep
// ones end where paths do.
func TestCollectLargeFolders(t *testing.T) {
	store := openStore(t, blobstore.Config{})
	l, dir := leave(t, "deep", "many")
	for i := range MaxFiles + 50 {
		write(t, dir, fmt.Sprintf("many/%04d", i), nil)
	}
	write(t, dir, "deep/"+strings.Repeat("d/", 70)+"x", nil)
	got, err := (&Collector{Store: store}).Collect(background(), l)
	if err != nil || len(got.Set.Files) != MaxFiles {
		t.Fatalf("%d files, %v", len(got.Set.Files), err)
	}
	notes := strings.Join(got.Notes, "\n")
	for _, want := range []string{fmt.Sprintf("only %d files", MaxFiles), "elements"} {
		if !strings.Contains(notes, want) {
			t.Errorf("nothing about %q in %s", want, notes)
		}
	}
}

func TestMissing(t *testing.T) {
	set := Set{}
	for _, p := range []string{"a", "out/b.csv", "out/sub/c", "stdout"} {
		set.Files = append(set.Files, File{Path: p})
	}
	declared := []string{
		"a", "*", "out", "out/", "out/*.csv", "out/sub/c", "out/sub", // there
		"b", "a/b", "ou", "out/*.txt", "out/s", "out/su*", "x/*", "o*/b.csv",
	}
	same(t, "missing", Missing(declared, set), declared[7:])
}

func TestCollectNothing(t *testing.T) {
	store := openStore(t, blobstore.Config{})
	for name, prepare := range map[string]func(l *Leaving){
		"empty files": func(l *Leaving) { write(t, filepath.Dir(l.Dir), "out", nil); write(t, filepath.Dir(l.Dir), "err", nil) },
		"no files":    func(*Leaving) {},
		"no paths":    func(l *Leaving) { l.Stdout, l.Stderr = "", "" },
	} {
		l, _ := leave(t)
		prepare(&l)
		got, err := (&Collector{Store: store}).Collect(background(), l)
		if err != nil || len(got.Set.Files) != 0 || len(got.Notes) != 0 {
			t.Errorf("%s: Collect = %v, %v; want nothing", name, got, err)
		}
		if b, err := got.Set.Encode(); err != nil || len(b) != 0 {
			t.Errorf("%s: the set encodes to %d bytes, %v", name, len(b), err)
		}
	}
	if n := store.Usage().Chunks; n != 0 {
		t.Errorf("%d chunks were stored", n)
	}
}

// TestCollectHostile collects from jobs that mean harm. Each case declares an
// output that must not come back, besides "good", which must.
func TestCollectHostile(t *testing.T) {
	store := openStore(t, blobstore.Config{})
	outside := t.TempDir()
	secret := write(t, outside, "secret", []byte("secret"))
	for name, c := range map[string]struct {
		output string
		plant  func(t *testing.T, dir string)
		note   string
	}{
		"link out":          {"x", func(t *testing.T, dir string) { symlink(t, secret, dir, "x") }, "leads out of the private folder"},
		"relative link out": {"x", func(t *testing.T, dir string) { symlink(t, "../../../../../../../etc/passwd", dir, "x") }, "leads out"},
		"folder link out":   {"d/secret", func(t *testing.T, dir string) { symlink(t, outside, dir, "d") }, "leads out"},
		"pattern link out":  {"d/*", func(t *testing.T, dir string) { symlink(t, outside, dir, "d") }, "leads out"},
		"pattern of links":  {"x*", func(t *testing.T, dir string) { symlink(t, secret, dir, "x1") }, "leads out"},
		"loop":              {"x", func(t *testing.T, dir string) { symlink(t, "x", dir, "x") }, "a link, or too many of them"},
		"pipe":              {"x", func(t *testing.T, dir string) { mkfifo(t, dir, "x") }, "a pipe"},
		"link to a pipe":    {"x", func(t *testing.T, dir string) { mkfifo(t, dir, "p"); symlink(t, "p", dir, "x") }, "a pipe"},
		"pattern of pipes":  {"x*", func(t *testing.T, dir string) { mkfifo(t, dir, "x1") }, "a pipe"},
		"socket":            {"x", func(t *testing.T, dir string) { listen(t, dir, "x") }, "a socket"},
		"folder":            {"x", func(t *testing.T, dir string) { mkfifo(t, folder(t, dir, "x/d"), "q") }, "a pipe"},
		"empty folder":      {"x", func(t *testing.T, dir string) { folder(t, dir, "x") }, "a folder without files"},
		"link in a folder":  {"x", func(t *testing.T, dir string) { folder(t, dir, "x"); symlink(t, secret, dir, "x/l") }, "leads out"},
		"folder in itself":  {"x", func(t *testing.T, dir string) { folder(t, dir, "x"); symlink(t, "..", dir, "x/up") }, "a folder"},
		"link to a folder":  {"x", func(t *testing.T, dir string) { symlink(t, outside, dir, "x") }, "leads out"},
		"pattern in a file": {"x/*", func(t *testing.T, dir string) { write(t, dir, "x", nil) }, "not a directory"},
		"pattern in a pipe": {"x/*", func(t *testing.T, dir string) { mkfifo(t, dir, "x") }, "not a directory"},
		"missing":           {"x", func(*testing.T, string) {}, "not found"},
		"missing folder":    {"x/y/z", func(*testing.T, string) {}, "not found"},
		"no match":          {"x*", func(*testing.T, string) {}, "no file matches"},
		"no folder":         {"x/*", func(*testing.T, string) {}, "not found"},
		"newline":           {"x*", func(t *testing.T, dir string) { write(t, dir, "x\ny", nil) }, "control character"},
		"escape sequence":   {"x*", func(t *testing.T, dir string) { write(t, dir, "x\x1b[31m", nil) }, "control character"},
		"not UTF-8":         {"x*", func(t *testing.T, dir string) { write(t, dir, "x\xff", nil) }, "not UTF-8"},
		"sparse":            {"x", func(t *testing.T, dir string) { truncate(t, write(t, dir, "x", nil), 1<<40) }, "only 1000000 are allowed"},
		"stdout":            {"stdout", func(t *testing.T, dir string) { write(t, dir, "stdout", []byte("fake")) }, "the name is taken"},
		"below stderr":      {"stderr/x", func(t *testing.T, dir string) { write(t, dir, "stderr/x", []byte("fake")) }, "the name is taken"},
		"declared outside":  {"../secret", func(*testing.T, string) {}, "not a path inside"},
		"declared absolute": {"/etc/passwd", func(*testing.T, string) {}, "not a path inside"},
		"broken pattern":    {"[x", func(*testing.T, string) {}, "not a path inside"},
	} {
		t.Run(name, func(t *testing.T) {
			l, dir := leave(t, c.output, "good")
			c.plant(t, dir)
			write(t, dir, "good", []byte("good"))
			got, err := (&Collector{Store: store, MaxFileBytes: 1000000}).Collect(background(), l)
			if err != nil {
				t.Fatal(err)
			}
			same(t, "files", setContents(t, store, got.Set), map[string]string{"good": "good"})
			if len(got.Notes) != 1 || !strings.Contains(got.Notes[0], c.note) {
				t.Errorf("notes %q, want one with %q", got.Notes, c.note)
			}
			if strings.ContainsAny(strings.Join(got.Notes, ""), "\n\x1b") || !utf8.ValidString(strings.Join(got.Notes, "")) || strings.Contains(strings.Join(got.Notes, ""), l.Dir) {
				t.Errorf("the notes tell what they should not: %q", got.Notes)
			}
		})
	}
}

// listen leaves a socket in dir.
func listen(t testing.TB, dir, name string) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) }) //nolint:errcheck // The test is over.
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: filepath.Join(dir, name)}); err != nil {
		t.Fatal(err)
	}
}

// truncate gives a file a length.
func truncate(t testing.TB, path string, size int64) {
	t.Helper()
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}

func TestCollectFollowsLinksInside(t *testing.T) {
	store := openStore(t, blobstore.Config{})
	l, dir := leave(t, "latest")
	write(t, dir, "run/7", []byte("seven"))
	symlink(t, "run/7", dir, "latest")
	got, err := (&Collector{Store: store}).Collect(background(), l)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "files", setContents(t, store, got.Set), map[string]string{"latest": "seven"})
}

func TestCollectRefusesForeignHardLinks(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to make another account's file")
	}
	store := openStore(t, blobstore.Config{})
	l, dir := leave(t, "shadow", "own", "twin")
	secret := write(t, filepath.Dir(dir), "secret", []byte("secret"))
	write(t, dir, "own", []byte("own"))
	for _, path := range []string{dir, filepath.Join(dir, "own")} {
		if err := os.Chown(path, 12345, 12345); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Link(secret, filepath.Join(dir, "shadow")), os.Link(filepath.Join(dir, "own"), filepath.Join(dir, "twin"))); err != nil {
		t.Fatal(err)
	}
	got, err := (&Collector{Store: store}).Collect(background(), l)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "files", setContents(t, store, got.Set), map[string]string{"own": "own", "twin": "own"})
	same(t, "notes", got.Notes, []string{`"shadow": a link to a file of another account`})
}

func TestCollectStreamsAreNotFollowed(t *testing.T) {
	store := openStore(t, blobstore.Config{})
	l, dir := leave(t)
	symlink(t, "/etc/passwd", filepath.Dir(dir), "out")
	mkfifo(t, filepath.Dir(dir), "err")
	got, err := (&Collector{Store: store}).Collect(background(), l)
	if err != nil || len(got.Set.Files) != 0 {
		t.Errorf("Collect = %v, %v; want no files", got, err)
	}
	same(t, "notes", got.Notes, []string{`"stdout": not a regular file but a link`, `"stderr": not a regular file but a pipe`})
}

// A job that ran and removed its own stdout is not one that was silent.
func TestCollectSaysThatAStreamWasRemoved(t *testing.T) {
	store := openStore(t, blobstore.Config{})
	l, dir := leave(t)
	l.Ran = true
	write(t, filepath.Dir(dir), "err", []byte("there"))
	got, err := (&Collector{Store: store}).Collect(background(), l)
	if err != nil || !got.Lost || got.Incomplete {
		t.Errorf("Collect = %+v, %v; want that output is lost", got, err)
	}
	same(t, "files", setContents(t, store, got.Set), map[string]string{"stderr": "there"})
	same(t, "notes", got.Notes, []string{`"stdout": lost, the job removed the file`})
}

func TestCollectLimits(t *testing.T) {
	store := openStore(t, blobstore.Config{})
	l, dir := leave(t, "a", "b", "c")
	write(t, filepath.Dir(dir), "out", random(1, 5000))
	write(t, filepath.Dir(dir), "err", random(2, 10))
	write(t, dir, "a", random(3, 2000))
	write(t, dir, "b", random(4, 6000))
	write(t, dir, "c", random(5, 990))
	got, err := (&Collector{Store: store, MaxFileBytes: 4000, MaxTotalBytes: 7000}).Collect(background(), l)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "files", setContents(t, store, got.Set), map[string]string{
		"stdout": string(random(1, 5000)[:4000]), "stderr": string(random(2, 10)), "a": string(random(3, 2000)), "c": string(random(5, 990)),
	})
	same(t, "notes", got.Notes, []string{`"stdout": cut after 4000 of 5000 bytes`, `"b": 6000 bytes, only 990 are allowed here`})
}

func TestCollectMany(t *testing.T) {
	store := openStore(t, blobstore.Config{})
	l, dir := leave(t, "*")
	for i := range MaxFiles + 100 {
		write(t, dir, fmt.Sprintf("f%05d", i), nil)
	}
	write(t, filepath.Dir(dir), "out", []byte("x"))
	got, err := (&Collector{Store: store}).Collect(background(), l)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Notes) > 0 && !strings.Contains(got.Notes[0], fmt.Sprintf("only %d files", MaxFiles)) {
		t.Errorf("the bound is not named: %s", got.Notes[0])
	}
	if len(got.Set.Files) != MaxFiles || len(got.Notes) != MaxNotes || got.Notes[MaxNotes-1] != "and 70 more" {
		t.Errorf("%d files, %d notes, the last is %q", len(got.Set.Files), len(got.Notes), got.Notes[len(got.Notes)-1])
	}
	if _, err := got.Set.Encode(); err != nil {
		t.Error(err)
	}
}

// TestCollectManyPatterns bounds the comparisons of a thousand patterns with a
// folder of many files.
func TestCollectManyPatterns(t *testing.T) {
	store := openStore(t, blobstore.Config{})
	var patterns []string
	for i := range 1000 {
		patterns = append(patterns, fmt.Sprintf("*%03d*a*b*c*d*e", i))
	}
	l, dir := leave(t, patterns...)
	for i := range 1000 {
		write(t, dir, fmt.Sprintf("%0200d", i), nil)
	}
	begin := time.Now()
	got, err := (&Collector{Store: store}).Collect(background(), l)
	if err != nil || !slices.Contains(got.Notes, `".": too many files to look through`) {
		t.Errorf("Collect = %.300v, %v", got.Notes, err)
	}
	if spent := time.Since(begin); spent > time.Minute {
		t.Errorf("it took %v", spent)
	}
}

// TestCollectLongPaths fills the encoding of a set, not the number of its files.
func TestCollectLongPaths(t *testing.T) {
	store := openStore(t, blobstore.Config{})
	deep := strings.TrimSuffix(strings.Repeat(strings.Repeat("d", 250)+"/", 4), "/")
	var outputs []string
	for i := range 999 {
		outputs = append(outputs, fmt.Sprintf("%s/%d", deep, i))
	}
	l, dir := leave(t, outputs...)
	parent := filepath.Join(dir, filepath.Dir(outputs[0]))
	if err := os.MkdirAll(parent, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, o := range outputs {
		write(t, dir, o, random(1, 30))
	}
	got, err := (&Collector{Store: store}).Collect(background(), l)
	if err != nil {
		t.Fatal(err)
	}
	b, err := got.Set.Encode()
	if err != nil || len(b) > MaxEncodedBytes || len(b) < MaxEncodedBytes*8/10 || len(got.Notes) == 0 {
		t.Errorf("%d files, %d bytes, %d notes, %v", len(got.Set.Files), len(b), len(got.Notes), err)
	}
}

// TestCollectGrowingFile collects files that are written to all the time.
func TestCollectGrowingFile(t *testing.T) {
	store := openStore(t, blobstore.Config{})
	l, dir := leave(t, "grows", "shrinks")
	write(t, dir, "grows", random(1, 100000))
	write(t, dir, "shrinks", random(2, 100000))
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		f, err := os.OpenFile(filepath.Join(dir, "grows"), os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close() //nolint:errcheck // A hostile job.
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if i < 20000 {
				f.Write(make([]byte, 1000))                            //nolint:errcheck // A hostile job.
				os.Truncate(filepath.Join(dir, "shrinks"), int64(i%9)) //nolint:errcheck // A hostile job.
			}
		}
	})
	for range 10 {
		got, err := (&Collector{Store: store, MaxFileBytes: 1 << 30}).Collect(background(), l)
		if err != nil {
			t.Errorf("Collect: %v", err)
			break
		}
		if err := got.Set.Validate(); err != nil {
			t.Error(err)
		}
		setContents(t, store, got.Set)
	}
	close(stop)
	writer.Wait()
}

// TestCollectRacingLinks swaps a file for a link out while it is collected.
func TestCollectRacingLinks(t *testing.T) {
	store := openStore(t, blobstore.Config{})
	l, dir := leave(t, "x", "d/x", "d/*")
	secret := write(t, t.TempDir(), "x", []byte("secret"))
	stop := make(chan struct{})
	var swapper sync.WaitGroup
	swapper.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, step := range []func() error{
				func() error { return os.RemoveAll(filepath.Join(dir, "x")) },
				func() error { return os.Symlink(secret, filepath.Join(dir, "x")) },
				func() error { return os.RemoveAll(filepath.Join(dir, "d")) },
				func() error { return os.Symlink(filepath.Dir(secret), filepath.Join(dir, "d")) },
				func() error { return os.Remove(filepath.Join(dir, "x")) },
				func() error { return os.WriteFile(filepath.Join(dir, "x"), []byte("own"), 0o600) },
				func() error { return os.Remove(filepath.Join(dir, "d")) },
				func() error { return os.Mkdir(filepath.Join(dir, "d"), 0o700) },
				func() error { return os.WriteFile(filepath.Join(dir, "d", "x"), []byte("own"), 0o600) },
			} {
				step() //nolint:errcheck // A hostile job.
			}
		}
	})
	for range 500 {
		got, err := (&Collector{Store: store}).Collect(background(), l)
		if err != nil {
			t.Errorf("Collect: %v", err)
			break
		}
		for path, text := range setContents(t, store, got.Set) {
			if text != "own" && text != "" {
				t.Errorf("%s holds %q", path, text)
			}
		}
	}
	close(stop)
	swapper.Wait()
}

func TestCollectStops(t *testing.T) {
	l, dir := leave(t, "a")
	write(t, dir, "a", random(1, 5000))
	full := openStore(t, blobstore.Config{LowWaterBytes: math.MaxInt64 / 2})
	if _, err := (&Collector{Store: full}).Collect(background(), l); !errors.Is(err, blobstore.ErrDiskFull) {
		t.Errorf("Collect on a full disk returned %v, want ErrDiskFull", err)
	}
	cancelled, cancel := context.WithCancel(background())
	cancel()
	if _, err := (&Collector{Store: full}).Collect(cancelled, l); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled Collect returned %v, want Canceled", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	got, err := (&Collector{Store: full}).Collect(background(), l)
	if err != nil || len(got.Notes) != 1 {
		t.Errorf("Collect of a removed folder = %v, %v; want a note", got, err)
	}
}
