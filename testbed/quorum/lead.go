package quorum

import (
	"errors"
	"fmt"

	"kith/store"
	"kith/store/codec"
	"kith/store/memstore"
	"kith/store/raftstore/leads"
)

// Lead is the [store.Backend] of the site while a member leads it.
type Lead struct {
	*memstore.Store
	m       *member
	number  uint64
	term    uint64
	answers *leads.Answers
	over    bool
	latest  *Batch
}

var _ store.Replicated = (*Lead)(nil)

// Member is the one that leads.
func (l *Lead) Member() int { return l.m.id }

// Over reports whether its member leads no longer, as far as that knows.
func (l *Lead) Over() bool { return l.over }

// Number is that of the lead.
func (l *Lead) Number() uint64 { return l.number }

// Replicated implements [store.Replicated].
func (l *Lead) Replicated() {}

// Again begins another lead of the member, if it still leads.
func (l *Lead) Again() {
	if m := l.m; m.role == leading && m.lead == l {
		m.push(leads.Begin("m"))
	}
}

// Seal implements [store.Backend].
func (l *Lead) Seal(state *store.State) store.Batch {
	l.latest = &Batch{lead: l, writes: codec.Writes(state)}
	return l.latest
}

// Latest returns the batch that was sealed last.
func (l *Lead) Latest() *Batch { return l.latest }

// Batch is a [store.Batch] whose commit is started, and answered later.
type Batch struct {
	lead   *Lead
	writes []codec.Write
	// Stood is called when it stands, whether anybody is told so or not; nil for nothing. At the end
	// of the instant open opens the facts with it, those of the first member that got to know.
	Stood func(open func() (*memstore.Store, error))

	started, answered bool
	answer            error
	done              func()
	last              uint64 // the place of its last entry; 0 if it has none
	asked             uint64 // the question whether its member leads
	before            uint64 // the latest lead that had begun when it was started
	number            uint64
}

// errUnderWay is said of a batch that has no answer yet.
var errUnderWay = errors.New("quorum: the commit is under way")

// Empty implements [store.Batch].
func (b *Batch) Empty() bool { return len(b.writes) == 0 }

// Commit implements [store.Batch]: it returns the answer. Before time begins it starts the
// commit, which is answered at once.
func (b *Batch) Commit() error {
	if !b.started && !b.lead.m.g.founded {
		b.Start(func() {})
	}
	if !b.answered {
		return errUnderWay
	}
	return b.answer
}

// Start starts the commit; done is called once there is an answer, perhaps at once. If that is an
// error that is not for good, it may be started again.
func (b *Batch) Start(done func()) {
	l := b.lead
	m, g := l.m, l.m.g
	b.started, b.answered, b.answer, b.done = true, false, nil, done
	b.before = g.truth.lead
	switch {
	case l.answers.Void() != nil:
		b.say(l.answers.Void())
	case l.over || m.lead != l:
		b.say(l.answers.End(fmt.Errorf("it has stopped leading: %w", store.ErrDeposed)))
	case len(b.writes) == 0 && g.founded:
		m.question++
		b.asked = m.question
		m.under = append(m.under, b)
		for to := range g.members {
			m.tell(to)
		}
		m.confirmed()
	case len(b.writes) == 0:
		b.say(nil)
	case m.full:
		b.say(l.answers.Refused(leads.Lost, true, errors.New("the disk is full")))
		if m.role == leading { // as the library does
			m.stepDown("its disk is full")
			m.arm()
		}
	default:
		parts := l.answers.Next(b.writes)
		b.last = m.last() + uint64(len(parts))
		b.number = g.truth.watch(b)
		m.under = append(m.under, b)
		for _, p := range parts {
			if m.role == leading {
				m.push(p)
			}
		}
	}
}

// say gives the answer.
func (b *Batch) say(answer error) {
	b.answered, b.answer = true, answer
	b.lead.m.g.truth.answered(b)
	b.done()
}

// lost is told that the leader has lost its term.
func (b *Batch) lost() {
	l := b.lead
	if b.last == 0 {
		b.say(l.answers.End(fmt.Errorf("it leads no longer: %w", store.ErrDeposed)))
		return
	}
	b.say(l.answers.Refused(leads.Lost, true, errors.New("leadership lost")))
}

// answer tells the driver of a leader what came of an entry.
func (m *member) answer(index, term uint64, answer any) {
	if m.role != leading || term != m.term {
		return
	}
	if begun, is := answer.(leads.Begun); is {
		m.begins(begun)
		return
	}
	for i, b := range m.under {
		if b.last == 0 || index > b.last {
			continue
		}
		if err, _ := answer.(error); err != nil {
			m.under = append(m.under[:i:i], m.under[i+1:]...)
			b.say(b.lead.answers.Refused(leads.Never, index == b.last, err))
		} else if index == b.last {
			m.under = append(m.under[:i:i], m.under[i+1:]...)
			b.lead.answers.Stands()
			b.say(nil)
		}
		return
	}
}

// confirmed answers those that only ask whether this member leads: a majority must have taken
// what was sent after the question.
func (m *member) confirmed() {
	for i := 0; i < len(m.under); {
		b := m.under[i]
		have := 1
		for other, to := range m.answered {
			if other != m.id && b.asked > 0 && to >= b.asked {
				have++
			}
		}
		if b.asked == 0 || have <= len(m.g.members)/2 {
			i++
			continue
		}
		m.under = append(m.under[:i:i], m.under[i+1:]...)
		b.say(nil)
	}
}

// open opens the member's facts.
func (m *member) open() (*memstore.Store, error) {
	return memstore.Open(m.disk, m.g.cfg.Site, m.g.cfg.Generation)
}

// begins begins a lead: all that stands is in the file of facts.
func (m *member) begins(begun leads.Begun) {
	if old := m.lead; old != nil {
		old.over = true
		m.g.cfg.Over(old)
	}
	whose := fmt.Sprintf("member %d of site %s", m.id, m.g.cfg.Site)
	facts, err := m.open()
	if err != nil {
		m.g.cfg.Violate("R4: member %d cannot open its facts: %v", m.id, err)
		return
	}
	m.lead = &Lead{Store: facts, m: m, number: begun.Lead, term: begun.Term, answers: leads.NewAnswers(whose, begun.Lead)}
	m.g.trace("member %d begins lead %d", m.id, begun.Lead)
	m.g.truth.begins(m.lead)
	if m.g.founded {
		m.g.cfg.Begins(m.lead)
	}
}
