package workload

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"time"
)

// lines yields the lines of a log, plain or gzip.
type lines struct {
	in     *bufio.Reader
	number int // of the line that next returned, counting from 1
	// zipped unpacks a gzip stream, nil if the log is plain.
	zipped *ahead
	// zone is that of instants without one.
	zone *time.Location
}

func newLines(r io.Reader) (*lines, error) {
	l := &lines{in: bufio.NewReaderSize(r, MaxLineLength)}
	magic, _ := l.in.Peek(6) // what is wrong with r will show again
	for _, other := range [...]struct{ magic, name string }{{"BZh", "bzip2"}, {"\xfd7zXZ\x00", "xz"}, {"\x28\xb5\x2f\xfd", "zstd"}} {
		if bytes.HasPrefix(magic, []byte(other.magic)) {
			return nil, fmt.Errorf("compressed with %s: %w; unpack it first, or pack it with gzip", other.name, ErrUnknownFormat)
		}
	}
	if bytes.HasPrefix(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(l.in)
		if err != nil {
			return nil, l.explain(err)
		}
		l.zipped = newAhead(z)
		l.in = bufio.NewReaderSize(l.zipped, MaxLineLength)
	}
	if bom, err := l.in.Peek(3); err == nil && string(bom) == "\xef\xbb\xbf" { // as some editors begin a file
		_, _ = l.in.Discard(3) // they are there
	}
	return l, nil
}

// close ends what runs beside the reader.
func (l *lines) close() {
	if l.zipped != nil {
		l.zipped.close()
	}
}

// errLong is returned for a line that is longer than MaxLineLength. The rest of
// it is gone; the next call returns the next line.
var errLong = errors.New("line too long")

// next returns the next line with its end, or io.EOF after the last one. The
// bytes are valid until the next call.
func (l *lines) next() ([]byte, error) {
	text, err := l.in.ReadSlice('\n')
	switch {
	case err == nil:
	case errors.Is(err, io.EOF) && len(text) > 0:
	case errors.Is(err, bufio.ErrBufferFull):
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = l.in.ReadSlice('\n')
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, l.explain(err)
		}
		l.number++
		return nil, errLong
	case errors.Is(err, io.EOF):
		return nil, io.EOF
	default:
		return nil, l.explain(err)
	}
	l.number++
	return text, nil
}

// explain says how far reading came.
func (l *lines) explain(err error) error {
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("after line %d: %w; copy the file again", l.number, ErrTruncated)
	case l.zipped != nil:
		return fmt.Errorf("after line %d: the compressed data are damaged (%w); copy the file again", l.number, err)
	}
	return fmt.Errorf("after line %d: %w", l.number, err)
}

// each calls f with every line that is not empty. Long lines are counted in r.
func (l *lines) each(r *Report, f func(line int, text []byte) error) error {
	for {
		text, err := l.next()
		switch {
		case err == nil:
			if text = bytes.TrimSpace(text); len(text) > 0 {
				err = f(l.number, text)
			}
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, errLong):
			r.add(BadLine, func() string { return fmt.Sprintf("line %d: longer than %d bytes", l.number, MaxLineLength) })
			err = nil
		}
		if err != nil {
			return err
		}
	}
}
