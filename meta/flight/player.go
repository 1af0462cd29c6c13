package flight

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"kith/internal/job"
	"kith/internal/pathkind"
	"kith/meta"
	"kith/meta/policy"
	"kith/sitesched"
	"kith/sitesched/batch"
	"kith/store"
)

// Player plays one file of a recording. It belongs to one goroutine.
type Player struct {
	Header Header
	// Stop is asked before each step whether the player stops there; nil for never.
	Stop   func(number uint64, at job.Time) bool
	engine *meta.Engine
	facts  *store.State

	frames  *frames // those that were not taken
	set     []byte  // what the engine was made with
	turn    []byte  // entries of the frame under way
	scratch []byte
	step    uint64
	now     job.Time
	ended   string
	over    bool

	states int // digests that were compared
	last   Step
}

// Step is an event that was played.
type Step struct {
	// Number counts the events of the daemon's life, from 1. It is 0 of the restoring.
	Number uint64
	Time   job.Time
	// Event is nil of the restoring. Effects are valid until the next step.
	Event   meta.Event
	Effects []meta.Effect
}

// Divergence says where the engines first came to something else than was recorded.
type Divergence struct {
	Step Step
	// What is "effects", "state" or "the next wake".
	What string
	// Text says what differs, as far as it is known.
	Text string
}

func (d *Divergence) Error() string {
	return fmt.Sprintf("step %d at %s: %s: %s", d.Step.Number, clock(d.Step.Time), d.What, d.Text)
}

// clock writes a time for people.
func clock(t job.Time) string {
	if t == job.Never {
		return "never"
	}
	return t.Wall().UTC().Format("2006-01-02T15:04:05.000000000Z")
}

// Panic says that an engine panics at a step, as it did when it was recorded, or as it does
// in this version.
type Panic struct {
	Step  Step
	Value string
	Stack string
}

func (p *Panic) Error() string {
	return fmt.Sprintf("step %d at %s: the engine panics: %s", p.Step.Number, clock(p.Step.Time), p.Value)
}

// Open returns a player of a file, which it reads as it plays. The error wraps [ErrNotFlight], or
// [ErrForeign] with the name of the version that plays it, or is one of the reader.
func Open(from io.Reader) (p *Player, err error) {
	f := newFrames(from)
	h, err := readHeader(f)
	if err != nil {
		return nil, err
	}
	if h.Format != formatVersion || h.Schema != schema() {
		return nil, fmt.Errorf("%w: by kithd %.64q (%.64q) with records %d/%.64q, and this kith-lab has %d/%s; play it with the kith-lab of that version",
			ErrForeign, h.Version, h.Build, h.Format, h.Schema, formatVersion, schema())
	}
	set, err := f.next()
	if err != nil {
		return nil, fmt.Errorf("%w: it ends before its first image: %w", notFlight(err), err)
	}
	set = bytes.Clone(set)
	image, err := f.next()
	if err != nil {
		return nil, fmt.Errorf("%w: it ends within its first image: %w", notFlight(err), err)
	}
	p = &Player{Header: h, frames: f, set: set, step: h.Step}
	// An image that is whole and was made up may hold what no engine can be in.
	defer func() {
		if v := recover(); v != nil {
			p, err = nil, fmt.Errorf("%w: no engine holds what its image does: %v", ErrNotFlight, v)
		}
	}()
	if err := p.make(set, image); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotFlight, err)
	}
	f.release()
	return p, nil
}

// head returns what a file begins with that goes on from here, as one of the recorder would.
func (p *Player) head(number uint64, began time.Time) ([]byte, error) {
	h := p.Header
	h.Number, h.Step, h.Began = number, p.step, began
	// What was hidden is hidden, and means the same in what was recorded since.
	image, ok := form().AppendAtMost(nil, p.engine, nil, false, maxFrame)
	if !ok {
		return nil, errTooLarge
	}
	return appendHead(nil, &h, p.set, image)
}

// make makes the engine as it was when the file begins.
func (p *Player) make(set, image []byte) error {
	var s setting
	if err := form().Decode(set, &s); err != nil {
		return err
	}
	var site meta.Site
	if s.Plan != nil {
		own, err := sitesched.New(*s.Plan)
		if err != nil {
			return err
		}
		site = own
	} else {
		site = batch.New(s.Processors)
	}
	s.Meta.Policies, s.Meta.AllowDirectory = policy.New(), pathkind.Within(s.Directories)
	p.facts = store.NewState(s.Site, s.Generation)
	engine, err := meta.New(s.Meta, p.facts, site)
	if err != nil {
		return err
	}
	if err := form().Decode(image, engine); err != nil {
		return err
	}
	if own, is := site.(*sitesched.Scheduler); is {
		own.Thawed()
	}
	engine.Thawed()
	p.engine = engine
	return nil
}

// Engine returns the engine as it is now.
func (p *Player) Engine() *meta.Engine { return p.engine }

// Facts returns the facts as they are now.
func (p *Player) Facts() *store.State { return p.facts }

// Now returns the time of the latest step.
func (p *Player) Now() job.Time { return p.now }

// States returns how many digests of the whole state were compared.
func (p *Player) States() int { return p.states }

// Ended says how the file ends: why, as the recorder wrote it, or that it breaks off.
func (p *Player) Ended() string { return p.ended }

// Next plays the next event, compares what comes of it, and what was compared of the state
// since. It returns [io.EOF] at the end, also where the last frame is not whole; a
// [*Divergence] or a [*Panic]; or an error that says what is wrong with the file.
func (p *Player) Next() (s Step, err error) {
	for {
		if len(p.turn) == 0 {
			if err := p.nextTurn(); err != nil {
				return p.last, err
			}
		}
		played, err := p.entry()
		if err != nil {
			return p.last, err
		}
		if played {
			// What was recorded of it belongs to it.
			return p.last, p.compare()
		}
	}
}

func (p *Player) nextTurn() error {
	if p.over {
		return io.EOF
	}
	turn, err := p.frames.next()
	switch {
	case errors.Is(err, io.EOF):
		p.ended, p.over = "it breaks off: the daemon was killed, or still runs", true
		return io.EOF
	case errors.Is(err, errTorn):
		p.ended, p.over = fmt.Sprintf("it breaks off within a record: %d bytes are left of it", p.frames.torn), true
		return io.EOF
	case err != nil:
		return err
	}
	p.turn = turn
	return nil
}

// errEntry is of entries that no recorder writes.
var errEntry = errors.New("a record that no recorder writes; the file was changed")

func (p *Player) number() (uint64, error) {
	n, size := binary.Uvarint(p.turn)
	if size <= 0 {
		return 0, errEntry
	}
	p.turn = p.turn[size:]
	return n, nil
}

func (p *Player) take(n uint64) ([]byte, error) {
	if n > uint64(len(p.turn)) {
		return nil, errEntry
	}
	b := p.turn[:n]
	p.turn = p.turn[n:]
	return b, nil
}

// entry takes up an entry, and reports whether something was played.
func (p *Player) entry() (bool, error) {
	kind := p.turn[0]
	p.turn = p.turn[1:]
	switch kind {
	case entryRestore, entryEvent:
		return true, p.play(kind)
	case entrySealed:
		p.facts.TakeChanges()
		return false, nil
	case entryWake:
		return false, p.wake()
	case entryState:
		return false, p.compareState()
	case entryEnd:
		n, err := p.number()
		if err != nil {
			return false, err
		}
		why, err := p.take(min(n, 1000))
		p.ended, p.over, p.turn = string(why), true, nil
		return false, err
	default:
		return false, errEntry
	}
}

// time takes a time off the turn.
func (p *Player) time() (job.Time, error) {
	at, size := binary.Varint(p.turn)
	if size <= 0 {
		return 0, errEntry
	}
	p.turn = p.turn[size:]
	return job.Time(at), nil
}

// wake asks the engine when it wants to be woken, as the driver did.
func (p *Player) wake() error {
	now, err := p.time()
	if err != nil {
		return err
	}
	recorded, err := p.time()
	if err != nil {
		return err
	}
	var wake job.Time
	err = p.guarded(func() []meta.Effect {
		wake = p.engine.NextWake(now)
		return p.last.Effects
	})
	if err == nil && wake != recorded {
		return &Divergence{Step: p.last, What: "the next wake", Text: fmt.Sprintf("%s was recorded, and here it is %s", clock(recorded), clock(wake))}
	}
	return err
}

func (p *Player) play(kind byte) error {
	at, err := p.time()
	if err != nil {
		return err
	}
	n, err := p.number()
	if err != nil {
		return err
	}
	image, err := p.take(n)
	if err != nil {
		return err
	}
	number := p.step
	if kind == entryEvent {
		number++
	}
	if p.Stop != nil && p.Stop(number, at) {
		p.ended, p.over, p.turn = "stopped before its end, as asked", true, nil
		return io.EOF
	}
	p.now = at
	if kind == entryRestore {
		var sites []job.SiteID
		if err := form().Decode(image, &sites); err != nil {
			return fmt.Errorf("%w: %w", errEntry, err)
		}
		p.last = Step{Number: 0, Time: p.now}
		return p.guarded(func() []meta.Effect { return p.engine.Restore(p.now, sites) })
	}
	var e event
	if err := form().Decode(image, &e); err != nil {
		return fmt.Errorf("%w: %w", errEntry, err)
	}
	if e.Event == nil {
		return errEntry
	}
	p.step++
	p.last = Step{Number: p.step, Time: p.now, Event: e.Event}
	return p.guarded(func() []meta.Effect { return p.engine.Step(p.now, e.Event) })
}

func (p *Player) guarded(f func() []meta.Effect) (err error) {
	defer func() {
		if v := recover(); v != nil {
			p.over, p.turn = true, nil
			err = &Panic{Step: p.last, Value: fmt.Sprint(v), Stack: string(debug.Stack())}
		}
	}()
	p.last.Effects = f()
	return nil
}

// compare compares the effects of what was played with what was recorded of them, if it was.
func (p *Player) compare() error {
	if len(p.turn) == 0 || p.turn[0] != entryEffects { // the daemon died in this step
		return nil
	}
	p.turn = p.turn[1:]
	count, err := p.number()
	if err != nil {
		return err
	}
	b, err := p.take(8)
	if err != nil {
		return err
	}
	var sum uint64
	sum, p.scratch = digestEffects(p.last.Effects, p.scratch)
	if n := len(p.last.Effects); count != uint64(n) || binary.LittleEndian.Uint64(b) != sum {
		text := "they are as many, and other ones"
		if count != uint64(n) {
			text = fmt.Sprintf("%d were recorded, and %d came of it here", count, n)
		}
		return &Divergence{Step: p.last, What: "effects", Text: text}
	}
	return nil
}

func (p *Player) compareState() error {
	b, err := p.take(8)
	if err != nil {
		return err
	}
	var sum uint64
	var ok bool
	sum, p.scratch, ok = digestState(p.engine, p.scratch, maxFrame)
	p.states++
	if !ok || sum != binary.LittleEndian.Uint64(b) {
		return &Divergence{Step: p.last, What: "state", Text: "it is another one than was recorded after this step"}
	}
	return nil
}
