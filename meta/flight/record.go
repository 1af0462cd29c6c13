package flight

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/sitesched"
	"kith/sitesched/batch"
)

// Sink is where a recording goes. None of its methods waits.
type Sink interface {
	// Wants reports whether the next file is to begin now.
	Wants() bool
	// Begin begins a file; head numbers it and returns its first bytes, for which it may call Write with
	// the last of the file before. Its error is [ErrHeld] where the driver would be held up: the file that
	// is open goes on then, and the sink makes the next one of it. After any other error the recorder
	// cannot go on.
	Begin(head func(number uint64) ([]byte, error))
	// Open reports whether a file is open.
	Open() bool
	// Write adds a frame to the file that is open. The sink copies it.
	Write(frame []byte)
	// Fail ends the recording for good: what is to be recorded cannot be written down.
	Fail(err error)
}

// Subject is whose inputs are recorded.
type Subject struct {
	Version, Build string
	Engine         *meta.Engine
	// Meta is what the engine was made with, Site its local scheduler: [sitesched.Scheduler]
	// or [batch.Site].
	Meta meta.Config
	Site meta.Site
	// Processors are those of a batch site. Directories are those in which jobs may run.
	Processors  int32
	Directories []string
	// Of the facts.
	ID          job.SiteID
	Generation  uint32
	Incarnation uint64
}

// Recorder writes down what an engine is fed. It belongs to the goroutine that owns the
// engine. A nil Recorder records nothing.
//
// A driver calls Event before and Effects after each Step, likewise Restore; Wake after each
// [meta.Engine.NextWake]; Sealed after each
// [commit.Barrier.Next] that has sealed something; and Turn when it has nothing more to feed
// for now.
type Recorder struct {
	Subject
	sink Sink
	key  [16]byte // of hide

	turn    []byte // entries that are not in a frame yet
	frame   []byte
	scratch []byte
	steps   uint64
	on      bool // a file is open, and holds all since its image
	fed     bool // the driver is under way, and must not be held up

	looked time.Time     // when the state was digested last
	cost   time.Duration // and how long that took
}

const (
	// hashShare bounds the part of the time that goes into digests of the state: a two-hundredth.
	hashShare = 200
	// mostHeld is how much of the state is written down while the driver is under way, for a digest or
	// the next file: it takes about 20 ms. Of a larger state there is no digest, and the next file
	// is made by the sink.
	mostHeld = 512 << 10
	// digestAgain is after how long it is looked whether a state that was larger is no longer.
	digestAgain = time.Minute
)

// ErrHeld is returned for what would hold up the driver for long.
var ErrHeld = fmt.Errorf("the state of the site takes more than %d KiB, and to write it down would hold the site up", mostHeld>>10)

var errTooLarge = fmt.Errorf("the state takes more than %d MiB, which a recording cannot begin with", maxFrame>>20)

// NewRecorder returns a recorder. It returns an error if what the subject is made of cannot be
// recorded.
func NewRecorder(s Subject, sink Sink) (*Recorder, error) {
	switch s.Site.(type) {
	case *sitesched.Scheduler, *batch.Site:
	default:
		return nil, fmt.Errorf("the inputs of a site planned by %T cannot be recorded", s.Site)
	}
	r := &Recorder{Subject: s, sink: sink}
	rand.Read(r.key[:])
	return r, nil
}

// hiddenMark begins what stands for a hidden text.
const hiddenMark = "hidden:"

// hide makes another word of a text: the same one of the same text, in this recording only.
func (r *Recorder) hide(s string) string {
	if s == "" || strings.HasPrefix(s, hiddenMark) {
		return s
	}
	m := hmac.New(sha256.New, r.key[:])
	m.Write([]byte(s))
	return hiddenMark + hex.EncodeToString(m.Sum(nil)[:8])
}

// guard ends the recording where something cannot be written down: that is a mistake of
// this package, and none that a site should stop for.
func (r *Recorder) guard() {
	if p := recover(); p != nil {
		r.on = false
		r.sink.Fail(fmt.Errorf("%v", p))
	}
}

// begin begins a file if one is wanted. It comes before the first entry of a turn.
func (r *Recorder) begin() {
	if len(r.turn) > 0 {
		return
	}
	if r.sink.Wants() {
		r.sink.Begin(r.head)
	}
	r.on = r.sink.Open()
	r.fed = true
}

// head ends the file before and returns the first bytes of the next. Before anything was fed nobody
// waits for it, however long it takes.
func (r *Recorder) head(number uint64) ([]byte, error) {
	set := setting{Site: r.ID, Generation: r.Generation, Meta: r.Meta, Processors: r.Processors, Directories: r.Directories}
	if s, is := r.Site.(*sitesched.Scheduler); is {
		plan := s.Config()
		set.Plan = &plan
	}
	image, err := r.image()
	if err != nil {
		return nil, err
	}
	r.end(goesOn)
	r.looked = time.Now()
	return appendHead(nil, &Header{
		Format: formatVersion, Schema: schema(), Version: r.Version, Build: r.Build, Site: string(r.ID), Generation: job.GenerationText(r.Generation),
		Incarnation: r.Incarnation, Number: number, Step: r.steps, Began: time.Now().UTC(),
	}, form().Append(nil, &set, r.hide), image)
}

// image returns an image of the engine.
func (r *Recorder) image() ([]byte, error) {
	most, refused := maxFrame, errTooLarge
	if r.fed {
		most, refused = mostHeld, ErrHeld
	}
	image, ok := form().AppendAtMost(nil, r.Engine, r.hide, false, most)
	if !ok {
		return nil, refused
	}
	return image, nil
}

// Restore records that the engine restores its facts.
func (r *Recorder) Restore(now job.Time, sites []job.SiteID) {
	if r == nil {
		return
	}
	defer r.guard()
	if r.begin(); r.on {
		r.entry(entryRestore, now, &sites)
	}
}

// event is what an entry has of one.
type event struct{ Event meta.Event }

// Event records that the engine is fed one.
func (r *Recorder) Event(now job.Time, ev meta.Event) {
	if r == nil {
		return
	}
	defer r.guard()
	r.begin()
	if r.steps++; r.on {
		r.entry(entryEvent, now, &event{ev})
	}
}

// entry appends an entry with an image.
func (r *Recorder) entry(kind byte, now job.Time, v any) {
	r.turn = append(r.turn, kind)
	r.turn = binary.AppendVarint(r.turn, int64(now))
	r.scratch = form().Append(r.scratch[:0], v, r.hide)
	r.turn = binary.AppendUvarint(r.turn, uint64(len(r.scratch)))
	r.turn = append(r.turn, r.scratch...)
}

// Effects records what came of it.
func (r *Recorder) Effects(effects []meta.Effect) {
	if r == nil || !r.on {
		return
	}
	defer r.guard()
	var sum uint64
	sum, r.scratch = digestEffects(effects, r.scratch)
	r.turn = append(r.turn, entryEffects)
	r.turn = binary.AppendUvarint(r.turn, uint64(len(effects)))
	r.turn = binary.LittleEndian.AppendUint64(r.turn, sum)
}

// Sealed records that what has changed in the facts was taken to the disk.
func (r *Recorder) Sealed() {
	if r == nil {
		return
	}
	defer r.guard()
	if r.begin(); r.on {
		r.turn = append(r.turn, entrySealed)
	}
}

// Wake records that the engine was asked at now when it wants to be woken, and what it said.
func (r *Recorder) Wake(now, wake job.Time) {
	if r == nil || !r.on {
		return
	}
	r.turn = append(r.turn, entryWake)
	r.turn = binary.AppendVarint(r.turn, int64(now))
	r.turn = binary.AppendVarint(r.turn, int64(wake))
}

// Turn ends a turn: what was recorded goes to the sink.
func (r *Recorder) Turn() {
	if r == nil || len(r.turn) == 0 {
		return
	}
	defer r.guard()
	if time.Since(r.looked) > max(time.Second, hashShare*r.cost) {
		r.state()
	}
	r.write()
}

// state records a digest of the state, if it is not too large for that.
func (r *Recorder) state() {
	if !r.on {
		return
	}
	r.looked = time.Now()
	sum, b, ok := digestState(r.Engine, r.scratch, mostHeld)
	if r.scratch = b; ok {
		r.turn = append(r.turn, entryState)
		r.turn = binary.LittleEndian.AppendUint64(r.turn, sum)
		r.cost = time.Since(r.looked)
	} else {
		r.cost = digestAgain / hashShare
	}
	r.looked = time.Now()
}

func (r *Recorder) write() {
	if r.on {
		r.frame = appendFrame(r.frame[:0], r.turn)
		r.sink.Write(r.frame)
	}
	r.turn = r.turn[:0]
}

// end ends the file that is open, with a digest of the state.
func (r *Recorder) end(why string) {
	if !r.on {
		return
	}
	r.state()
	r.turn = appendEnd(r.turn, why)
	r.write()
}

// Stop ends the recording; the driver feeds nothing more.
func (r *Recorder) Stop() {
	if r == nil {
		return
	}
	defer r.guard()
	r.end("the daemon stops")
	r.on = false
}

// Panicked is called while the driver dies in a panic: what the engine was fed last goes to
// the sink.
func (r *Recorder) Panicked() {
	if r == nil {
		return
	}
	defer r.guard()
	r.write()
}
