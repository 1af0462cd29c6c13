package audit

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"kith/internal/pathkind"
)

// A file of the log is named after the number of its first line.
var fileName = regexp.MustCompile(`^audit-([0-9]{12,20})\.jsonl$`)

func nameOf(first uint64) string { return fmt.Sprintf("audit-%012d.jsonl", first) }

// file is a file of the log by its name.
type file struct {
	path  string
	first uint64
}

// filesOf returns the files of a log, the oldest first; none if the folder is not there.
func filesOf(dir string) ([]file, error) {
	if err := pathkind.Folder(dir); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var files []file
	for _, e := range entries {
		m := fileName.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		if path := filepath.Join(dir, e.Name()); !e.Type().IsRegular() {
			return nil, fmt.Errorf("%s is %s, and is to be a regular file: %w", path, pathkind.Of(e.Type()), pathkind.ErrKind)
		}
		if first, err := strconv.ParseUint(m[1], 10, 64); err == nil {
			files = append(files, file{filepath.Join(dir, e.Name()), first})
		}
	}
	slices.SortFunc(files, func(a, b file) int {
		if a.first < b.first {
			return -1
		}
		return 1
	})
	return files, nil
}

// eachLine calls see with every whole line of a log file, without its line break, and its
// number in the file, from 1, until see returns false. What is longer than a line may be
// comes as its beginning with long set. It returns how many bytes follow the last line
// break and where they begin.
func eachLine(r io.Reader, see func(text []byte, at int, long bool) bool) (begin, rest int64, err error) {
	in := bufio.NewReaderSize(r, mostHeadLine+2)
	for at := 1; ; at++ {
		text, err := in.ReadSlice('\n')
		size, long := int64(len(text)), false
		first := text
		if errors.Is(err, bufio.ErrBufferFull) {
			long, first = true, slices.Clone(text)
			for errors.Is(err, bufio.ErrBufferFull) {
				text, err = in.ReadSlice('\n')
				size += int64(len(text))
			}
		}
		if errors.Is(err, io.EOF) {
			return begin, size, nil
		}
		if err != nil {
			return begin, size, err
		}
		begin += size
		if !long {
			first = first[:len(first)-1]
		}
		if !see(first, at, long) {
			return begin, 0, nil
		}
	}
}

// tail is how the log ends.
type tail struct {
	number uint64 // of the last line
	hash   Hash   // of it
	lines  int    // of the file
	// damaged says what is wrong with the last line, if it cannot be read.
	damaged error
	// begin is where the last whole line ends, rest how many bytes follow it.
	begin, rest int64
	// opened is the time of the first line, in the file's words.
	opened *Line
}

// tailOf reads how a file of the log ends.
func tailOf(f file) (t tail, err error) {
	in, err := os.Open(f.path)
	if err != nil {
		return tail{}, err
	}
	defer in.Close() //nolint:errcheck // it is only read
	t.begin, t.rest, err = eachLine(in, func(text []byte, at int, long bool) bool {
		t.lines, t.hash, t.damaged = at, sha256.Sum256(text), nil
		l, err := parse(text)
		if long {
			err = fmt.Errorf("%w: it is longer than %d bytes", ErrLine, mostHeadLine)
		}
		if err != nil {
			t.damaged, t.number = err, max(t.number+1, f.first)
			return true
		}
		t.number = l.Number
		if at == 1 {
			t.opened = l
		}
		return true
	})
	return t, err
}
