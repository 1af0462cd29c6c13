package quorum

import (
	"errors"

	"kith/store"
	"kith/store/codec"
	"kith/store/raftstore/leads"
)

// name is that of a batch.
type name struct{ lead, number uint64 }

// truth is what stands, whoever knows of it.
type truth struct {
	g    *Group
	next uint64 // the place of the next entry that will stand
	at   leads.Position
	// terms are those of entries that stand, from founding on.
	terms []uint64
	lead  uint64 // the latest that has begun
	// batches are those that were started and of which it is not known that they stand.
	batches map[name][]*Batch
	never   map[name]bool // of which it was said that they never stand
	// yes is the place of the last entry of the latest batch that was acknowledged.
	yes uint64
}

func (t *truth) init(g *Group) {
	t.g, t.batches, t.never = g, make(map[name][]*Batch), make(map[name]bool)
}

// watch notes that a batch is started and returns its number.
func (t *truth) watch(b *Batch) uint64 {
	number := b.lead.answers.Count() + 1
	n := name{b.lead.number, number}
	t.batches[n] = append(t.batches[n], b)
	return number
}

// stands is told that an entry stands, by a member that has got to know.
func (t *truth) stands(m *member, index uint64, e entry) {
	if index < t.next {
		if at := index - founding - 1; t.terms[at] != e.term {
			t.g.cfg.Violate("R4: entry %d stands with term %d, and at member %d with term %d", index, t.terms[at], m.id, e.term)
		}
		return
	}
	t.next++
	t.terms = append(t.terms, e.term)
	answer, err := t.at.Apply(nothing{}, index, e.term, e.data)
	if err != nil {
		t.g.cfg.Violate("R4: entry %d cannot be read: %v", index, err)
		return
	}
	if begun, is := answer.(leads.Begun); is {
		t.lead = begun.Lead
		return
	}
	n := name{t.at.Lead, t.at.Number}
	list := t.batches[n]
	if answer != nil || len(list) == 0 {
		return
	}
	delete(t.batches, n)
	if t.never[n] {
		t.g.cfg.Violate("R2: batch %d of lead %d stands, and it was said that it never will", n.number, n.lead)
	}
	for _, b := range list {
		if f := b.Stood; f != nil {
			f(m.open)
		}
	}
}

// answered checks an answer.
func (t *truth) answered(b *Batch) {
	switch {
	case b.answer == nil && b.last != 0:
		if b.last >= t.next || len(t.batches[name{b.lead.number, b.number}]) > 0 {
			t.g.cfg.Violate("R1: batch %d of lead %d is acknowledged and does not stand", b.number, b.lead.number)
		}
		t.yes = max(t.yes, b.last)
	case b.answer == nil:
		if b.before != b.lead.number && t.g.founded {
			t.g.cfg.Violate("R3: lead %d has confirmed that it leads, and another one had begun", b.lead.number)
		}
	case errors.Is(b.answer, store.ErrUndecided):
	case b.last != 0:
		t.never[name{b.lead.number, b.number}] = true
	}
}

// begins checks that a lead begins with all that was acknowledged.
func (t *truth) begins(l *Lead) {
	if l.m.at.Index < t.yes {
		t.g.cfg.Violate("R1: lead %d begins at entry %d, and entry %d was acknowledged", l.number, l.m.at.Index, t.yes)
	}
}

// nothing is no file.
type nothing struct{}

func (nothing) Write([]codec.Write) error          { return nil }
func (nothing) Keep(uint32, []byte) error          { return nil }
func (nothing) Kept(func(data []byte) error) error { return nil }
func (nothing) Forget() error                      { return nil }
