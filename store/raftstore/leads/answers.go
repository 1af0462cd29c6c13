package leads

import (
	"fmt"

	"kith/store"
	"kith/store/codec"
)

// Said is what raft says of an entry that it was given and that does not stand for certain.
type Said uint8

const (
	// Again: raft has not taken it, and it may be said again.
	Again Said = iota
	// Never: it was refused, or this member leads no longer and has not put it into its log.
	Never
	// Lost: it is in this member's log, and somebody else may lead by now.
	Lost
)

// Answers is what a leader says of the batches of its lead. It belongs to one goroutine at a time.
type Answers struct {
	whose   string
	lead    uint64
	batches uint64 // that stand
	void    error  // why it commits nothing any more
}

// NewAnswers returns those of a lead by its number. Errors begin with whose it is.
func NewAnswers(whose string, lead uint64) *Answers { return &Answers{whose: whose, lead: lead} }

// Lead returns the number of the lead.
func (a *Answers) Lead() uint64 { return a.lead }

// Count returns how many batches stand.
func (a *Answers) Count() uint64 { return a.batches }

// Void returns why this lead commits nothing any more, an error of which [store.Void] is true;
// nil while it does.
func (a *Answers) Void() error { return a.void }

// Next returns the entries of the next batch. It is the same one until it stands.
func (a *Answers) Next(writes []codec.Write) [][]byte { return Parts(a.lead, a.batches+1, writes) }

// Stands notes that all entries of a batch stand.
func (a *Answers) Stands() { a.batches++ }

// Refused returns the answer to a batch after what raft has said of one of its entries, which
// may be the last. Without its last entry a batch does not stand.
func (a *Answers) Refused(said Said, last bool, cause error) error {
	switch {
	case said == Again:
		return cause
	case said == Never:
		return a.End(fmt.Errorf("%w: %w", cause, store.ErrDeposed))
	case !last:
		return a.End(fmt.Errorf("a part of it: %w: %w", cause, store.ErrDeposed))
	}
	return a.End(fmt.Errorf("%w: %w", cause, store.ErrUndecided))
}

// End makes an answer the last one, which it returns.
func (a *Answers) End(answer error) error {
	a.void = fmt.Errorf("%s: %w", a.whose, answer)
	return a.void
}
