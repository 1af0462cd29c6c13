package leads

import (
	"encoding/binary"
	"errors"
	"fmt"

	"kith/store"
	"kith/store/codec"
)

// ErrStale is the answer to a batch that is not the next one of the latest lead.
var ErrStale = errors.New("another lead has begun")

// Position is how far a member's facts have come.
type Position struct {
	Index  uint64 // of the last entry
	Lead   uint64 // the latest lead: the index of the entry that begins it
	Number uint64 // of the last whole batch of that lead
	parts  uint64 // how many parts of the next one are put aside
}

// Marshal writes it down, as [ParsePosition] reads it.
func (p Position) Marshal() []byte {
	b := binary.BigEndian.AppendUint64(nil, p.Index)
	b = binary.BigEndian.AppendUint64(b, p.Lead)
	b = binary.BigEndian.AppendUint64(b, p.Number)
	return binary.BigEndian.AppendUint64(b, p.parts)
}

// ParsePosition reads a position; nothing is the beginning.
func ParsePosition(b []byte) (Position, error) {
	if len(b) == 0 {
		return Position{}, nil
	}
	if len(b) != 32 {
		return Position{}, fmt.Errorf("position of %d bytes: %w", len(b), store.ErrCorrupt)
	}
	at := func(i int) uint64 { return binary.BigEndian.Uint64(b[8*i:]) }
	return Position{at(0), at(1), at(2), at(3)}, nil
}

// Begun is the answer to an entry that begins a lead.
type Begun struct{ Lead, Term uint64 }

// Tx is a change to a member's file of facts under way.
type Tx interface {
	// Write writes records.
	Write(writes []codec.Write) error
	// Keep puts a part of a batch aside, Kept hands over all of them in the order of parts, and
	// Forget drops them. What is handed over is valid during the call.
	Keep(part uint32, data []byte) error
	Kept(each func(data []byte) error) error
	Forget() error
}

// Apply writes one entry. An error is of the file or of an entry that cannot be read: the facts
// of this member would differ from the others'.
func (at *Position) Apply(tx Tx, index, term uint64, data []byte) (answer any, err error) {
	if index <= at.Index {
		return nil, fmt.Errorf("it comes after entry %d: %w", at.Index, store.ErrCorrupt)
	}
	at.Index = index
	e, err := decodeEntry(data)
	if err != nil {
		return nil, err
	}
	if e.begins {
		at.Lead, at.Number, at.parts = index, 0, 0
		return Begun{index, term}, tx.Forget()
	}
	p := &e.part
	if p.part == 0 && at.parts > 0 && p.lead == at.Lead { // it is said again from the beginning
		at.parts = 0
		if err := tx.Forget(); err != nil {
			return nil, err
		}
	}
	if p.lead != at.Lead || p.number != at.Number+1 || p.part != at.parts {
		return ErrStale, nil
	}
	if !p.last {
		at.parts++
		return nil, tx.Keep(uint32(p.part), data)
	}
	if at.parts > 0 {
		if err := tx.Kept(func(kept []byte) error {
			e, err := decodeEntry(kept)
			if err != nil {
				return err
			}
			return write(tx, append([]byte(nil), e.part.writes...)) // what was kept may move
		}); err != nil {
			return nil, err
		}
		if err := tx.Forget(); err != nil {
			return nil, err
		}
	}
	at.Number, at.parts = p.number, 0
	return nil, write(tx, p.writes)
}

func write(tx Tx, encoded []byte) error {
	writes, err := decodeWrites(encoded)
	if err != nil {
		return err
	}
	return tx.Write(writes)
}
