package quorum

import (
	"time"

	"kith/internal/job"
	"kith/store/raftstore/leads"
)

// arm has it stand for election when it has heard of no leader for long.
func (m *member) arm() {
	m.armed++
	armed := m.armed
	wait := election + time.Duration(m.g.cfg.Rand.Int64N(int64(election)))
	var look func()
	look = func() {
		if m.armed != armed {
			return
		}
		if quiet := m.g.cfg.Now().Sub(m.heard); m.role != leading && quiet < wait {
			m.soon(wait-quiet, look)
			return
		}
		if m.role != leading {
			m.stand(false)
		}
		if m.role != leading {
			m.arm()
		}
	}
	m.soon(wait, look)
}

// upToDate reports whether a log that ends with an entry has all that this one has.
func (m *member) upToDate(index, term uint64) bool {
	mine := m.termAt(m.last())
	return term > mine || term == mine && index >= m.last()
}

// stand has it stand for election, perhaps because the leader asks it to.
func (m *member) stand(asked bool) {
	if m.lacks || m.full || m.role == leading {
		return
	}
	m.term++
	m.vote, m.role, m.votes, m.leader, m.heard = m.id, standing, 1, none, m.g.cfg.Now()
	term, index, at := m.term, m.last(), m.termAt(m.last())
	m.g.trace("member %d stands for term %d", m.id, term)
	for to := range m.g.members {
		if to != m.id {
			m.g.send(m, to, func(other *member) { other.asked(m, term, index, at, asked) })
		}
	}
	if m.votes > len(m.g.members)/2 {
		m.elected()
	}
}

// asked is asked for its vote. Mostly a member stays with the leader that it has, unless that
// hands over.
func (m *member) asked(from *member, term, index, at uint64, over bool) {
	led := m.role == leading || m.leader != none && m.leader != from.id && m.g.cfg.Now().Sub(m.heard) < election
	if term < m.term || led && !over && m.g.cfg.Rand.IntN(4) > 0 {
		return
	}
	if term > m.term {
		m.follow(term, none)
	}
	if m.lacks || m.vote != none && m.vote != from.id || !m.upToDate(index, at) {
		return
	}
	m.vote, m.heard = from.id, m.g.cfg.Now()
	m.g.send(m, from.id, func(c *member) {
		if c.role == standing && c.term == term {
			if c.votes++; c.votes == len(c.g.members)/2+1 {
				c.elected()
			}
		}
	})
}

// follow makes it follow in a term, perhaps a later one.
func (m *member) follow(term uint64, leader int) {
	if term > m.term {
		m.term, m.vote = term, none
	}
	m.leader = leader
	if m.role == leading {
		m.stepDown("there is term %d", term)
	}
	m.role = following
}

// stepDown ends its lead: what is on its way may stand or not.
func (m *member) stepDown(why string, args ...any) {
	m.g.trace("member %d steps down: "+why, append([]any{m.id}, args...)...)
	m.role, m.heard = following, m.g.cfg.Now()
	if m.leader == m.id {
		m.leader = none
	}
	under := m.under
	m.under = nil
	for _, b := range under {
		b.lost()
	}
	if l := m.lead; l != nil {
		m.lead = nil
		l.over = true
		m.g.cfg.Over(l)
	}
}

// elected begins its lead.
func (m *member) elected() {
	n := len(m.g.members)
	m.role, m.leader, m.lead, m.under = leading, m.id, nil, nil
	m.next, m.match, m.answered, m.acked = make([]uint64, n), make([]uint64, n), make([]uint64, n), make([]job.Time, n)
	for i := range n {
		m.next[i], m.acked[i] = m.last()+1, m.g.cfg.Now()
	}
	// Real leaders step down after a fraction of a second; nothing may rest on it.
	m.patience = heartbeat + time.Duration(m.g.cfg.Rand.Int64N(int64(longestTrip)>>m.g.cfg.Rand.IntN(6)))
	m.g.trace("member %d is elected for term %d", m.id, m.term)
	m.push(leads.Begin("m"))
	if m.g.founded {
		m.beat()
	}
}
