package flight

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/sitesched"
)

// A file is the magic, and frames: the length of what it holds, its CRC, and that.
// The first three hold a [Header] as JSON, an image of the [setting] and one of the engine.
// All others hold entries: those of one turn of the driver's loop each.
const (
	magic       = "KITHFLT\n"
	frameHeader = 8
	// Suffix ends the names of files.
	Suffix = ".flight"
	// formatVersion is that of the frames and of their entries.
	formatVersion = 1
	// maxFrame bounds what a frame may claim to hold.
	maxFrame = 1 << 30
)

// Entries begin with one of these.
const (
	entryRestore = 'r' // [meta.Engine.Restore] at a time; an image of the sites that are configured
	entryEvent   = 'e' // [meta.Engine.Step] at a time; an image of the event
	entryEffects = 'f' // of the entry before: their number and a digest
	entrySealed  = 's' // the facts were taken to the disk
	entryWake    = 'w' // [meta.Engine.NextWake] at a time, which lets go of what is over; and what it said
	entryState   = 'h' // a digest of the state
	entryEnd     = 'x' // the recording ends; why
)

// Header says what a recording is of.
type Header struct {
	Format int `json:"format"`
	// Schema is of the types of the program that wrote it, Version that of the program.
	Schema  string `json:"schema"`
	Version string `json:"version"`
	Build   string `json:"build"`
	Site    string `json:"site"`
	// Generation, Folder and Incarnation name the data folder and the life of the daemon.
	Generation  string `json:"generation"`
	Incarnation uint64 `json:"incarnation"`
	// Number counts the files of a folder, Step the events of this life before the first.
	Number uint64    `json:"number"`
	Step   uint64    `json:"step"`
	Began  time.Time `json:"began"`
}

// setting is what an engine is made with.
type setting struct {
	Site       job.SiteID
	Generation uint32
	Meta       meta.Config
	// Plan is the configuration of a scheduler of Kith's own; nil where a batch system of
	// Processors plans.
	Plan       *sitesched.Config
	Processors int32
	// Directories are those in which jobs may run.
	Directories []string
}

// ErrNotFlight is returned for what is no recording at all.
var ErrNotFlight = errors.New("no flight recording")

// ErrForeign is returned for a recording that another version of the program wrote.
var ErrForeign = errors.New("recorded by another version")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendFrame appends a frame.
func appendFrame(b, payload []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(payload, castagnoli))
	return append(b, payload...)
}

// errTorn is of a frame that is not whole: the daemon was killed while it was written, or the
// file was cut or damaged.
var errTorn = errors.New("the frame is not whole")

// readHeader reads the magic and the header of a file.
func readHeader(f *frames) (h Header, err error) {
	b := make([]byte, len(magic))
	if _, err := io.ReadFull(f.from, b); err != nil || string(b) != magic {
		return h, notFlight(err)
	}
	payload, err := f.next()
	if err != nil {
		return h, fmt.Errorf("%w: its header is not whole", notFlight(err))
	}
	if err := json.Unmarshal(payload, &h); err != nil {
		return h, fmt.Errorf("%w: its header: %w", ErrNotFlight, err)
	}
	return h, nil
}

// notFlight returns [ErrNotFlight] for a file that ends too soon or begins with something else, and else
// why it could not be read.
func notFlight(err error) error {
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errTorn) {
		return ErrNotFlight
	}
	return err
}

// digest is short for what is only compared.
func digest(b []byte) uint64 {
	sum := sha256.Sum256(b)
	return binary.LittleEndian.Uint64(sum[:])
}

// digestEffects returns how many effects there are and a digest of them. scratch is used.
func digestEffects(effects []meta.Effect, scratch []byte) (sum uint64, b []byte) {
	if len(effects) == 0 {
		return 0, scratch
	}
	b = form().AppendLogical(scratch[:0], effects, hideAll)
	return digest(b), b
}

// hideAll has nothing of a text but whether there is one.
func hideAll(s string) string {
	if s == "" {
		return ""
	}
	return "hidden"
}

// digestState returns a digest of all that counts in an engine, or false if that is more than most bytes.
// scratch is used.
func digestState(e *meta.Engine, scratch []byte, most int) (sum uint64, b []byte, ok bool) {
	if b, ok = form().AppendAtMost(scratch[:0], e, hideAll, true, most); !ok {
		return 0, b, false
	}
	return digest(b), b, true
}

// appendEnd appends the entry that ends a file.
func appendEnd(b []byte, why string) []byte {
	b = binary.AppendUvarint(append(b, entryEnd), uint64(len(why)))
	return append(b, why...)
}

// goesOn is why a file ends that another one follows.
const goesOn = "the next file goes on"

// appendHead appends what a file begins with, of a setting and of an engine that were written down.
func appendHead(b []byte, h *Header, set, image []byte) ([]byte, error) {
	header, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	b = appendFrame(append(b, magic...), header)
	b = appendFrame(b, set)
	return appendFrame(b, image), nil
}
