package flight

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
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

// takeFrame takes a frame off b.
func takeFrame(b []byte) (payload, rest []byte, err error) {
	if len(b) < frameHeader {
		return nil, b, errTorn
	}
	n, sum := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	if n > maxFrame || int(n) > len(b)-frameHeader {
		return nil, b, errTorn
	}
	if payload = b[frameHeader : frameHeader+int(n)]; crc32.Checksum(payload, castagnoli) != sum {
		return nil, b, errTorn
	}
	return payload, b[frameHeader+int(n):], nil
}

// readHeader takes the magic and the header off b.
func readHeader(b []byte) (h Header, rest []byte, err error) {
	rest, ok := bytes.CutPrefix(b, []byte(magic))
	if !ok {
		return h, b, ErrNotFlight
	}
	payload, rest, err := takeFrame(rest)
	if err != nil {
		return h, b, fmt.Errorf("%w: its header is not whole", ErrNotFlight)
	}
	if err := json.Unmarshal(payload, &h); err != nil {
		return h, b, fmt.Errorf("%w: its header: %w", ErrNotFlight, err)
	}
	return h, rest, nil
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

// digestState returns a digest of all that counts in an engine. scratch is used.
func digestState(e *meta.Engine, scratch []byte) (sum uint64, b []byte) {
	b = form().AppendLogical(scratch[:0], e, hideAll)
	return digest(b), b
}
