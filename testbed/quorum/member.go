package quorum

import (
	"slices"
	"time"

	"kith/internal/job"
	"kith/store/codec"
	"kith/store/memstore"
	"kith/store/raftstore/leads"
)

// none is no member.
const none = -1

// founding is the place of what makes a site of nothing.
const founding = 1

type role uint8

const (
	following role = iota
	standing
	leading
)

// entry is one of the log.
type entry struct {
	term uint64
	data []byte
}

// snapshot is facts as they were after an entry.
type snapshot struct {
	index, term uint64
	disk        *memstore.Disk
	at          leads.Position
	kept        [][]byte
}

// member is one of the machines.
type member struct {
	g  *Group
	id int

	// On its disk.
	term           uint64
	vote           int
	snap           snapshot
	log            []entry // from the entry behind base on, which was of term baseTerm
	base, baseTerm uint64
	// lacks says that its disk was replaced, and that no leader has taken it in again. Meanwhile it
	// does not vote, and what it has counts for no majority. It is taken in once an entry stands that
	// a leader made after they have met: goal, of goalTerm; 0 before.
	lacks          bool
	goal, goalTerm uint64

	// Of its process.
	up, paused, full bool
	life             int // counts processes
	role             role
	leader           int
	heard            job.Time // of a leader, or a vote given
	commit           uint64
	disk             *memstore.Disk
	at               leads.Position
	kept             [][]byte
	inbox            []func(m *member)
	armed            int // counts timers

	// Of one that stands or leads.
	votes       int
	next, match []uint64
	answered    []uint64   // the latest question before something that it has answered
	acked       []job.Time // when that was
	question    uint64
	patience    time.Duration // how long it leads without hearing of a majority
	lead        *Lead
	under       []*Batch // on their way
}

// last returns the place of its last entry.
func (m *member) last() uint64 { return m.base + uint64(len(m.log)) }

// termAt returns the term of an entry that is in its log or right before it.
func (m *member) termAt(index uint64) uint64 {
	if index > m.base {
		return m.log[index-m.base-1].term
	}
	if index == m.base {
		return m.baseTerm
	}
	return 0
}

// recall makes the file of facts again from the snapshot.
func (m *member) recall() {
	m.disk, m.at, m.kept = m.snap.disk.Clone(), m.snap.at, slices.Clone(m.snap.kept)
	m.commit = m.snap.index
	if m.last() < m.snap.index {
		m.log, m.base, m.baseTerm = nil, m.snap.index, m.snap.term
	}
}

func (m *member) kill() {
	if !m.up {
		return
	}
	m.g.trace("member %d is killed", m.id)
	m.up, m.paused, m.inbox = false, false, nil
	m.life++
	m.role, m.lead, m.under = following, nil, nil
}

func (m *member) start() {
	if m.up {
		return
	}
	m.g.trace("member %d starts", m.id)
	m.up, m.leader, m.heard = true, none, m.g.cfg.Now()
	m.recall()
	m.arm()
}

func (m *member) resume() {
	if !m.paused {
		return
	}
	m.paused = false
	life := m.life
	for len(m.inbox) > 0 && m.life == life && !m.paused {
		do := m.inbox[0]
		m.inbox = m.inbox[1:]
		do(m)
	}
	if m.life == life && !m.paused {
		m.arm()
		if m.role == leading {
			m.beat()
		}
	}
}

// wipe replaces its disk by an empty one.
func (m *member) wipe() {
	m.g.trace("member %d has an empty disk", m.id)
	m.term, m.vote, m.log, m.base, m.baseTerm = 0, none, nil, 0, 0
	m.snap = snapshot{disk: new(memstore.Disk)}
	m.lacks, m.goal, m.full = true, 0, false
}

// soon does something with this process after a while, unless it is stopped then: it is armed anew
// when it goes on.
func (m *member) soon(d time.Duration, do func()) {
	life := m.life
	m.g.cfg.After(d, func() {
		if m.up && m.life == life && !m.paused {
			do()
		}
	})
}

// push puts an entry into the log of a leader.
func (m *member) push(data []byte) {
	m.log = append(m.log, entry{m.term, data})
	if !m.g.founded { // all of them at once
		for _, other := range m.g.members {
			if other != m {
				other.term, other.leader = m.term, m.id
				other.log = append(other.log, entry{m.term, data})
				m.match[other.id], m.next[other.id] = other.last(), other.last()+1
			}
		}
		m.advance()
		for _, other := range m.g.members {
			other.stands(m.commit)
		}
		return
	}
	for to := range m.g.members {
		m.tell(to)
	}
	m.advance() // of a site of one
}

// beat has a leader tell the others that it leads, again and again.
func (m *member) beat() {
	m.armed++ // a beat of before is none any more
	armed := m.armed
	var tell func()
	tell = func() {
		if m.role != leading || m.armed != armed {
			if m.role != leading {
				m.arm()
			}
			return
		}
		heard := 0
		for to := range m.g.members {
			if to == m.id || m.g.cfg.Now().Sub(m.acked[to]) < m.patience {
				heard++
			}
		}
		if heard <= len(m.g.members)/2 {
			m.stepDown("it hears of no majority")
			m.arm()
			return
		}
		for to := range m.g.members {
			m.tell(to)
		}
		m.soon(heartbeat, tell)
	}
	tell()
}

// mostEntries is how many go in a message.
const mostEntries = 64

// tell has a leader send what a member lacks, or nothing but that it leads.
func (m *member) tell(to int) {
	if to == m.id {
		return
	}
	question, term, commit, end := m.question, m.term, m.commit, m.last()
	if m.next[to] <= m.base {
		snap := m.snap
		m.g.trace("member %d sends a snapshot of entry %d to %d", m.id, snap.index, to)
		m.g.send(m, to, func(f *member) { f.takeSnapshot(m, term, &snap, end) })
		m.next[to] = snap.index + 1
		return
	}
	prev := m.next[to] - 1
	list := slices.Clone(m.log[prev-m.base : min(uint64(len(m.log)), prev-m.base+mostEntries)])
	m.next[to] += uint64(len(list))
	at := m.termAt(prev)
	m.g.send(m, to, func(f *member) { f.append(m, term, prev, at, list, commit, question, end) })
}

// told notes that a leader was heard of. It reports false if that leads no longer.
func (m *member) told(from *member, term, end uint64) bool {
	if term < m.term {
		mine := m.term
		m.g.send(m, from.id, func(l *member) {
			if mine > l.term {
				l.follow(mine, none)
				l.arm()
			}
		})
		return false
	}
	if m.role == leading && term == m.term {
		m.g.cfg.Violate("R4: members %d and %d lead in term %d", m.id, from.id, term)
		return false
	}
	m.follow(term, from.id)
	m.heard = m.g.cfg.Now()
	if m.lacks && (m.goal == 0 || m.goalTerm != term) {
		m.goal, m.goalTerm = end+1, term
	}
	return true
}

// append takes entries of a leader.
func (m *member) append(from *member, term, prev, at uint64, list []entry, commit, question, end uint64) {
	if !m.told(from, term, end) {
		return
	}
	if m.full && len(list) > 0 {
		return
	}
	if prev < m.base { // what is before its log stands
		known := min(uint64(len(list)), m.base-prev)
		list, prev = list[known:], prev+known
	}
	if prev >= m.base && (prev > m.last() || m.termAt(prev) != at && prev > m.commit) {
		hint := min(m.last(), prev-1)
		m.g.send(m, from.id, func(l *member) { l.refused(m.id, term, hint) })
		return
	}
	for i, e := range list {
		index := prev + 1 + uint64(i)
		if index <= m.last() {
			if m.termAt(index) == e.term {
				continue
			}
			if index <= m.commit {
				m.g.cfg.Violate("R4: entry %d of member %d stands, and member %d has another one", index, m.id, from.id)
				return
			}
			m.log = m.log[:index-m.base-1]
		}
		m.log = append(m.log, e)
	}
	match := prev + uint64(len(list))
	m.stands(min(commit, match))
	m.takenIn()
	lacks := m.lacks
	m.g.send(m, from.id, func(l *member) { l.taken(m.id, term, match, question, lacks) })
}

// takenIn lets a member vote again that a leader has taken in.
func (m *member) takenIn() {
	if m.lacks && m.goal > 0 && m.commit >= m.goal {
		m.g.trace("member %d is taken in again", m.id)
		m.lacks, m.goal = false, 0
	}
}

// takeSnapshot takes the facts of a leader.
func (m *member) takeSnapshot(from *member, term uint64, snap *snapshot, end uint64) {
	if !m.told(from, term, end) || m.full {
		return
	}
	if snap.index > m.commit {
		m.snap, m.log, m.base, m.baseTerm = *snap, nil, snap.index, snap.term
		m.recall()
	}
	m.takenIn()
	match, lacks := snap.index, m.lacks
	m.g.send(m, from.id, func(l *member) { l.taken(m.id, term, match, 0, lacks) })
}

// refused is told that entries do not go together with what a member has.
func (m *member) refused(by int, term, hint uint64) {
	if m.role == leading && m.term == term {
		m.acked[by] = m.g.cfg.Now()
		m.next[by] = max(1, min(m.next[by], hint+1))
		m.tell(by)
	}
}

// taken is told that a member has all entries up to one.
func (m *member) taken(by int, term, match, question uint64, lacks bool) {
	if m.role != leading || m.term != term {
		return
	}
	if !lacks {
		m.acked[by] = m.g.cfg.Now()
		m.answered[by] = max(m.answered[by], question)
		m.match[by] = max(m.match[by], match)
	}
	m.next[by] = max(m.next[by], match+1)
	m.advance()
	m.confirmed()
	if m.role == leading && m.next[by] <= m.last() {
		m.tell(by)
	}
}

// advance has all entries stand that a majority has, if the last of them is of this term.
func (m *member) advance() {
	have := slices.Clone(m.match)
	have[m.id] = m.last()
	slices.Sort(have)
	index := have[(len(have)-1)/2]
	if index > m.commit && m.termAt(index) == m.term {
		m.stands(index)
	}
}

// stands writes what stands into the file of facts.
func (m *member) stands(until uint64) {
	life := m.life
	for m.commit < min(until, m.last()) {
		m.commit++
		e := m.log[m.commit-m.base-1]
		m.g.truth.stands(m, m.commit, e)
		answer, err := m.at.Apply((*facts)(m), m.commit, e.term, e.data)
		if err != nil {
			m.g.cfg.Violate("R4: member %d cannot write entry %d: %v", m.id, m.commit, err)
			return
		}
		if m.answer(m.commit, e.term, answer); m.life != life {
			return // who heard the answer has killed it
		}
	}
	if most := m.g.cfg.Snapshot; most > 0 && m.commit >= m.snap.index+uint64(most) {
		m.makeSnapshot()
	}
}

func (m *member) makeSnapshot() {
	m.snap = snapshot{m.commit, m.termAt(m.commit), m.disk.Clone(), m.at, slices.Clone(m.kept)}
	if keep := uint64(m.g.cfg.Trailing); m.commit > m.base+keep {
		cut := m.commit - keep
		m.baseTerm, m.log, m.base = m.termAt(cut), slices.Clone(m.log[cut-m.base:]), cut
	}
}

// facts is a member's file of facts, as entries are written.
type facts member

var _ leads.Tx = (*facts)(nil)

func (f *facts) Write(writes []codec.Write) error { return f.disk.Write(writes) }

func (f *facts) Keep(_ uint32, data []byte) error {
	f.kept = append(f.kept, data)
	return nil
}

func (f *facts) Kept(each func(data []byte) error) error {
	for _, data := range f.kept {
		if err := each(data); err != nil {
			return err
		}
	}
	return nil
}

func (f *facts) Forget() error {
	f.kept = nil
	return nil
}
