package flight

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

// frames reads the frames of a file, one after another.
type frames struct {
	from io.Reader
	head [frameHeader]byte
	body bytes.Buffer
	torn int64 // after errTorn: how many bytes there were behind the last whole frame
}

func newFrames(from io.Reader) *frames { return &frames{from: bufio.NewReaderSize(from, 1<<16)} }

// next returns what the next frame holds, which is valid until it is called again. It returns [io.EOF] at
// the end, errTorn for what is no whole frame, or an error of the reader. A frame takes no more
// memory than there is of it, whatever it says.
func (f *frames) next() ([]byte, error) {
	n, err := io.ReadFull(f.from, f.head[:])
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, f.tear(int64(n))
	} else if err != nil {
		return nil, err
	}
	size, sum := binary.LittleEndian.Uint32(f.head[:]), binary.LittleEndian.Uint32(f.head[4:])
	if size > maxFrame {
		return nil, f.tear(frameHeader)
	}
	f.body.Reset()
	got, err := io.CopyN(&f.body, f.from, int64(size))
	if errors.Is(err, io.EOF) || err == nil && crc32.Checksum(f.body.Bytes(), castagnoli) != sum {
		return nil, f.tear(frameHeader + got)
	} else if err != nil {
		return nil, err
	}
	return f.body.Bytes(), nil
}

// tear counts what is left.
func (f *frames) tear(got int64) error {
	n, err := io.Copy(io.Discard, f.from)
	if f.torn = got + n; err != nil {
		return err
	}
	return errTorn
}

// release lets go of the memory of a large frame.
func (f *frames) release() { f.body = bytes.Buffer{} }
