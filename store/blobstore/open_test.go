package blobstore

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestOpenRebuilds(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "blobs")
	s, err := Open(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	data := random(1, 5000)
	sum, small := mustPut(t, s, data), mustPut(t, s, []byte("x"))
	want := s.Usage()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(dir, chunksDir, "ab", "README")
	misplaced := filepath.Join(dir, chunksDir, "00", SumOf(data).String())
	empty := SumOf([]byte("never written"))
	for _, name := range []string{filepath.Join(dir, tempDir, "7f"), foreign, misplaced, filepath.Join(dir, filepath.FromSlash(empty.path()))} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, tempDir, "deep", "er"), 0o700); err != nil {
		t.Fatal(err)
	}

	s = open(t, Config{Dir: dir})
	if got := s.Usage(); got.Chunks != want.Chunks || got.Bytes != want.Bytes || got.Chunks != 2 {
		t.Errorf("usage %+v after opening again, want %+v", got, want)
	}
	checkContent(t, s, sum, data)
	checkContent(t, s, small, []byte("x"))
	if n := leftovers(t, s); n != 0 {
		t.Errorf("%d temporary files are left", n)
	}
	if s.Has(empty) {
		t.Error("an empty file counts as a chunk")
	}
	for _, name := range []string{foreign, misplaced} {
		if _, err := os.Stat(name); err != nil {
			t.Errorf("a foreign file was touched: %v", err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	busy := open(t, Config{}).config.Dir
	write := func(name, text string) string {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	fifo := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(fifo, formatFile), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		config Config
		want   error
	}{
		"fifo":           {Config{Dir: fifo}, ErrForeign},
		"relative":       {Config{Dir: "blobs"}, ErrBadConfig},
		"no folder":      {Config{}, ErrBadConfig},
		"quota":          {Config{Dir: "/x", QuotaBytes: -1}, ErrBadConfig},
		"low water":      {Config{Dir: "/x", LowWaterBytes: -1}, ErrBadConfig},
		"chunk size":     {Config{Dir: "/x", MaxChunkBytes: MaxChunk + 1}, ErrBadConfig},
		"no parent":      {Config{Dir: filepath.Join(t.TempDir(), "a", "b")}, os.ErrNotExist},
		"in use":         {Config{Dir: busy}, ErrLocked},
		"newer":          {Config{Dir: write(formatFile, "2\n")}, ErrFormat},
		"other format":   {Config{Dir: write(formatFile, "hello")}, ErrForeign},
		"someone's home": {Config{Dir: write("thesis.tex", "")}, ErrForeign},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Open(c.config)
			if !errors.Is(err, c.want) {
				t.Errorf("Open returned %v, want %v", err, c.want)
			}
			if s != nil {
				t.Error("Open returned a store as well")
			}
			if err != nil && !strings.Contains(err.Error(), "file store") {
				t.Errorf("the error does not say what was opened: %v", err)
			}
		})
	}
}

func TestOpenLeavesAForeignFolderAlone(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "data"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Config{Dir: dir}); !errors.Is(err, ErrForeign) {
		t.Fatalf("Open returned %v, want ErrForeign", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder holds %v, %v; want only what was there", entries, err)
	}
}

// TestOpenAfterACrashAtTheBeginning opens folders that a crash left before the
// version was written.
func TestOpenAfterACrashAtTheBeginning(t *testing.T) {
	for _, names := range [][]string{{lockFile}, {lockFile, tempDir + "/"}, {lockFile, tempDir + "/", chunksDir + "/", formatFile + ".new"}} {
		dir := t.TempDir()
		for _, name := range names {
			path := filepath.Join(dir, name)
			var err error
			if strings.HasSuffix(name, "/") {
				err = os.Mkdir(path, 0o700)
			} else {
				err = os.WriteFile(path, nil, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		s := open(t, Config{Dir: dir})
		checkContent(t, s, mustPut(t, s, []byte("x")), []byte("x"))
	}
}

// TestLockOfAForkedChild: a child that the last owner forked holds the lock until
// it executes its program. Here a second descriptor stands for the child.
func TestLockOfAForkedChild(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	child, err := syscall.Dup(int(s.lock.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, func() { _ = syscall.Close(child) })
	again, err := Open(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}
