package audit

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// logOfFiles makes a log of several files and returns their lines.
func logOfFiles(t *testing.T, dir string) (files []file, lines [][][]byte) {
	t.Helper()
	l := open(t, Config{Dir: dir, Site: "alpha", Signer: fakeSigner{}, MaxBytes: 1500})
	for i := range 24 {
		if err := l.Sync(context.Background(), Entry{Kind: "drain", User: "ada", Text: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	closeLog(t, l)
	files, err := filesOf(dir)
	if err != nil || len(files) < 3 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f.path)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, bytes.SplitAfter(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")))
	}
	return files, lines
}

// Whatever is done to whichever line, Verify finds it and says where, with the head of
// the end for what is done there.
func TestVerifyFindsWhatWasDone(t *testing.T) {
	dir := t.TempDir()
	files, lines := logOfFiles(t, dir)
	end := whole(t, dir)
	head := &Head{Site: "alpha", Number: end.Last, Hash: end.Hash}
	if r := verify(t, dir, VerifyOptions{Head: head, Check: checkFake}); len(r.Faults) > 0 || r.Signed < 2 {
		t.Fatalf("a good log: %+v", r)
	}
	// at is the line that must be named, counted from the one that is touched.
	for name, do := range map[string]func(list [][]byte, i int) (out [][]byte, at int){
		"changed": func(list [][]byte, i int) ([][]byte, int) {
			list[i] = bytes.Replace(list[i], []byte(`"kind":"`), []byte(`"kind":"x`), 1)
			return list, 0
		},
		"removed": func(list [][]byte, i int) ([][]byte, int) { return slices.Delete(list, i, i+1), 0 },
		"inserted twice": func(list [][]byte, i int) ([][]byte, int) {
			return slices.Insert(list, i, slices.Clone(list[i])), 1
		},
		"inserted garbage": func(list [][]byte, i int) ([][]byte, int) { return slices.Insert(list, i, []byte("{}\n")), 0 },
		"moved": func(list [][]byte, i int) ([][]byte, int) {
			if i+1 < len(list) {
				list[i], list[i+1] = list[i+1], list[i]
			}
			return list, 0
		},
	} {
		for n := range files {
			for i := range lines[n] {
				if name == "moved" && i+1 == len(lines[n]) {
					continue
				}
				list := make([][]byte, len(lines[n]))
				for k := range list {
					list[k] = append(bytes.TrimSuffix(slices.Clone(lines[n][k]), []byte("\n")), '\n')
				}
				list, at := do(list, i)
				text := bytes.Join(list, nil)
				r := verifyWith(t, dir, files[n].path, text, VerifyOptions{Head: head})
				if len(r.Faults) == 0 {
					t.Errorf("%s line %d of file %d: not found", name, i+1, n)
					continue
				}
				near := slices.ContainsFunc(r.Faults, func(f Fault) bool {
					if f.File == filepath.Base(files[n].path) {
						return f.Line == 0 || f.Line >= i+1 && f.Line <= i+2+at
					}
					return i+1 >= len(lines[n]) && f.Line <= 1 // the next file does not follow
				})
				if !near {
					t.Errorf("%s line %d of file %d: found %v", name, i+1, n, r.Faults)
				}
			}
		}
	}
}

// A file that is cut off, anywhere, is found: by the file that follows, or the head.
func TestVerifyFindsTruncation(t *testing.T) {
	dir := t.TempDir()
	files, lines := logOfFiles(t, dir)
	end := whole(t, dir)
	head := &Head{Number: end.Last, Hash: end.Hash}
	for n, f := range files {
		text := append(bytes.Join(lines[n], nil), '\n')
		for cut := 0; cut < len(text); cut += 61 {
			r := verifyWith(t, dir, f.path, text[:cut], VerifyOptions{Head: head})
			if len(r.Faults) == 0 {
				t.Errorf("file %d cut off at byte %d of %d: not found", n, cut, len(text))
			}
		}
	}
	last := files[len(files)-1]
	text := bytes.Join(lines[len(files)-1], nil)
	cut := text[:bytes.LastIndexByte(text, '\n')+1]
	if r := verifyWith(t, dir, last.path, cut, VerifyOptions{}); len(r.Faults) != 0 {
		t.Errorf("without a head the end of a log is whatever it is: %v", r.Faults)
	}
	r := verifyWith(t, dir, last.path, cut, VerifyOptions{Head: head})
	if len(r.Faults) != 1 || r.Faults[0].Number != end.Last {
		t.Errorf("the last line is gone: %v, want it named", r.Faults)
	}
}

// verifyWith verifies the log with another content of a file, and puts the old one back.
func verifyWith(t *testing.T, dir, path string, text []byte, o VerifyOptions) Report {
	t.Helper()
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	r := verify(t, dir, o)
	if err := os.WriteFile(path, old, 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestVerifyOfAnOldHead(t *testing.T) {
	dir := t.TempDir()
	l := open(t, Config{Dir: dir, MaxBytes: 1000, MaxFiles: 2})
	for range 40 {
		if err := l.Sync(context.Background(), Entry{Kind: "drain"}); err != nil {
			t.Fatal(err)
		}
	}
	closeLog(t, l)
	if r := verify(t, dir, VerifyOptions{Head: &Head{Number: 2}}); !r.HeadTooOld || len(r.Faults) > 0 {
		t.Errorf("a head whose line was removed in turn: %+v", r)
	}
}

func FuzzVerify(f *testing.F) {
	dir := f.TempDir()
	l, err := Open(Config{Dir: dir, Site: "alpha", Signer: fakeSigner{}})
	if err != nil {
		f.Fatal(err)
	}
	l.Refuse(Entry{Kind: "refused-hello", From: "10.0.0.1", Text: "\x1b"})
	l.Hear(peerHead(7, 1)) //nolint:errcheck // the first of its site
	l.Hear(peerHead(6, 1)) //nolint:errcheck // its line is what is wanted
	l.Record(Entry{Kind: KindAdmit, Peer: "beta"})
	l.Close() //nolint:errcheck // it is read
	text, err := os.ReadFile(filepath.Join(dir, nameOf(1)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add(text[:len(text)-5])
	f.Add([]byte(`{"n":18446744073709551615,"kind":"x","time":"2026-11-22T00:00:00Z"}` + "\n{}\n\n"))
	f.Add(bytes.Repeat([]byte("x"), 3*mostHeadLine))
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, nameOf(1)), text, 0o600); err != nil {
			t.Fatal(err)
		}
		before := verify(t, dir, VerifyOptions{Head: &Head{Number: 2}})
		if len(before.Faults) > mostFaults {
			t.Errorf("%d faults", len(before.Faults))
		}
		seen := 0
		if _, err := Read(dir, func(l *Line) bool { seen++; return l.Number > 0 }); err != nil || seen > bytes.Count(text, []byte("\n")) {
			t.Errorf("%d lines, %v", seen, err)
		}
		// Whatever is there, a site goes on behind it.
		l, err := Open(Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Sync(context.Background(), Entry{Kind: "drain"}); err != nil {
			t.Error(err)
		}
		closeLog(t, l)
		if after := verify(t, dir, VerifyOptions{}); after.Lines < 3 {
			t.Errorf("%d lines after three were written", after.Lines)
		}
	})
}
