package backup

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"kith/internal/durable"
	"kith/internal/job"
	"kith/internal/pathkind"
	"kith/store"
)

// A file is the magic, a byte with its format, the length of the head in two bytes, the head as
// JSON, the image of the facts, and the SHA-256 of all that.
const (
	magic    = "kithback"
	format   = 1
	maxHead  = math.MaxUint16
	fixed    = len(magic) + 1 + 2
	sumBytes = sha256.Size
)

// Head says whose facts a file has.
type Head struct {
	Site       job.SiteID `json:"site"`
	Generation string     `json:"generation"` // as in the ids of its jobs
	Made       time.Time  `json:"made"`
	Version    string     `json:"version"` // of the kithd that made it
	Size       int64      `json:"size"`    // of the image, in bytes
}

// ErrThere is returned when a file that is to be made is there already.
var ErrThere = errors.New("it is there already and is not replaced")

// Write writes a file: the head, whose size it fills in, and the image, of the given size.
func Write(w io.Writer, h Head, size int64, image io.WriterTo) error {
	h.Size = size
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if len(text) > maxHead {
		return fmt.Errorf("head of a backup of %d bytes, at most %d are taken", len(text), maxHead)
	}
	sum := sha256.New()
	both := io.MultiWriter(w, sum)
	if _, err := both.Write(append(binary.BigEndian.AppendUint16(append([]byte(magic), format), uint16(len(text))), text...)); err != nil {
		return err
	}
	n, err := image.WriteTo(both)
	if err != nil {
		return err
	}
	if n != size {
		return fmt.Errorf("image of %d bytes, it was to have %d", n, size)
	}
	_, err = w.Write(sum.Sum(nil))
	return err
}

// Make makes the file at path, of what fill writes into it. It has its name once all of it is on
// the disk and is what it must be; after an error there is nothing. A file that is there is left
// alone: [ErrThere].
func Make(path string, fill func(io.Writer) error) (h Head, err error) {
	if _, err := os.Lstat(path); err == nil {
		return h, fmt.Errorf("%s: %w", path, ErrThere)
	}
	dir := filepath.Dir(path)
	f, err := os.OpenFile(filepath.Join(dir, "."+filepath.Base(path)+"-"+rand.Text()[:8]), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return h, err
	}
	defer func() { err = errors.Join(err, removed(f.Name())) }()
	if err := errors.Join(fill(f), f.Sync(), f.Close()); err != nil {
		return h, err
	}
	if h, err = Check(f.Name()); err != nil {
		return h, fmt.Errorf("what came is no whole backup: %w", err)
	}
	if err := os.Link(f.Name(), path); errors.Is(err, fs.ErrExist) {
		return h, fmt.Errorf("%s: %w", path, ErrThere)
	} else if err != nil { // a file system without links
		if err := os.Rename(f.Name(), path); err != nil {
			return h, err
		}
	}
	return h, durable.SyncFolder(dir)
}

func removed(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Check reads all of a file. It returns errors that wrap [store.ErrCorrupt] or
// [store.ErrNewerFormat] and name the file.
func Check(path string) (Head, error) { return read(path, io.Discard) }

// Extract checks a file and writes the image in it to another one, which must not be there, and
// which is on the disk then. The facts must be those of the given site: else [store.ErrOtherSite].
func Extract(path string, site job.SiteID, to string) (Head, error) {
	h, err := Check(path)
	if err != nil {
		return h, err
	}
	if h.Site != site {
		return h, fmt.Errorf("backup %s: it is of site %q, not of %q: %w", path, h.Site, site, store.ErrOtherSite)
	}
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return h, err
	}
	_, err = read(path, f)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return h, errors.Join(err, os.Remove(to))
	}
	return h, nil
}

func read(path string, image io.Writer) (h Head, err error) {
	if err := pathkind.File(path); err != nil {
		return h, err
	}
	f, err := os.Open(path)
	if err != nil {
		return h, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	info, err := f.Stat()
	if err != nil {
		return h, err
	}
	if h, err = readAll(f, info.Size(), image); err != nil {
		return h, fmt.Errorf("backup %s: %w", path, err)
	}
	return h, nil
}

func readAll(f io.Reader, length int64, image io.Writer) (h Head, err error) {
	whole := func(err error) error {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("it is cut short: %w", store.ErrCorrupt)
		}
		return err
	}
	sum := sha256.New()
	buffered := bufio.NewReaderSize(f, 1<<18)
	from := io.TeeReader(buffered, sum)
	begin := make([]byte, fixed)
	if _, err := io.ReadFull(from, begin); err != nil {
		return h, whole(err)
	}
	switch {
	case string(begin[:len(magic)]) != magic:
		return h, fmt.Errorf("it is no backup of a site: %w", store.ErrCorrupt)
	case begin[len(magic)] > format:
		return h, fmt.Errorf("format %d, this version knows up to %d: %w; use the kithd that made it, or a later one", begin[len(magic)], format, store.ErrNewerFormat)
	}
	text := make([]byte, binary.BigEndian.Uint16(begin[len(magic)+1:]))
	if _, err := io.ReadFull(from, text); err != nil {
		return h, whole(err)
	}
	if err := json.Unmarshal(text, &h); err != nil {
		return h, fmt.Errorf("its head cannot be read: %w: %w", err, store.ErrCorrupt)
	}
	if want := int64(fixed+len(text)+sumBytes) + h.Size; h.Size < 0 || want != length {
		return h, fmt.Errorf("it has %d bytes and its head speaks of %d: it is cut short, or goes on: %w", length, want, store.ErrCorrupt)
	}
	if _, err := io.CopyN(image, from, h.Size); err != nil {
		return h, whole(err)
	}
	want := make([]byte, sumBytes)
	if _, err := io.ReadFull(buffered, want); err != nil {
		return h, whole(err)
	}
	if !bytes.Equal(want, sum.Sum(nil)) {
		return h, fmt.Errorf("its checksum does not match: %w", store.ErrCorrupt)
	}
	if _, err := job.ParseSiteID(string(h.Site)); err != nil {
		return h, fmt.Errorf("its head names site %q: %w", h.Site, store.ErrCorrupt)
	}
	return h, nil
}
