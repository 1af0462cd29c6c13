package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/commit"
	"kith/store"
	"kith/store/memstore"
	"kith/testbed/quorum"
)

// This file holds sites whose facts several members keep. Each lead is a life of the site's
// daemon, on the facts of the member that leads. A daemon whose lead is over goes on until its
// member notices: with what it believes, its streams, and clients who have not heard of it.
// What runs at the site is apart from all members, and takes orders of the latest lead only.

// several is the state of all that; nil quorum for a site of one.
type several struct {
	quorum *quorum.Group
	// former are daemons whose lead is over and who do not know it, the oldest first.
	former []*daemon
	// deposed says that one of them acts right now.
	deposed bool
	// clocks are how far the wall clocks of the members are ahead, said the incarnations that
	// others were told.
	clocks []job.Time
	said   uint64
}

// quorumStream keeps the random numbers of members apart from all others.
const quorumStream = 0x71756f72756d << 16

// memberTrip is the least that a message between members takes.
const memberTrip = 500 * time.Microsecond

// found makes the members of a new site, of which the first leads.
func (s *Site) found() (err error) {
	c := quorum.Config{
		Site: s.cfg.ID, Generation: s.generation, Members: s.cfg.Members, Rand: rand.New(rand.NewPCG(s.w.cfg.Seed, quorumStream+uint64(s.index))),
		After:   func(d time.Duration, do func()) { s.w.agenda.add(s.w.now.Add(max(d, 1)), message, 0, call(do)) },
		Now:     func() job.Time { return s.w.now },
		Latency: memberTrip + s.w.cfg.Disk.Sync/2, Jitter: s.w.cfg.Disk.SyncJitter / 2, Snapshot: 50, Trailing: 10,
		Begins: s.leads, Over: s.over, Violate: s.w.watch.violate,
	}
	if s.w.cfg.Trace != nil {
		c.Trace = func(format string, args ...any) { s.w.trace(string(s.cfg.ID)+": "+format, args...) }
	}
	for m := range s.cfg.Members {
		s.clocks = append(s.clocks, job.Time(m)*job.Time(s.cfg.Clocks))
	}
	if s.quorum, s.lead, err = quorum.New(c); err != nil {
		return err
	}
	s.backend = s.lead
	if s.state, err = s.lead.Load(); err != nil {
		return err
	}
	s.ahead = s.clocks[0]
	s.setClock()
	if err := commit.BeginLife(s.state, s.lead, store.BeginLife{}); err != nil {
		return err
	}
	s.quorum.Begin()
	return s.begin(s.lead)
}

// beginning seals the begin of a lead, whose commit is started later.
type beginning struct{ *quorum.Lead }

type begun struct{ store.Batch }

func (b beginning) Seal(state *store.State) store.Batch { return begun{b.Lead.Seal(state)} }

func (b begun) Commit() error { return nil }

// leads is told that a member begins a lead. Its daemon starts once that is durable.
func (s *Site) leads(l *quorum.Lead) {
	state, err := l.Load()
	if err == nil {
		err = commit.BeginLife(state, beginning{l}, store.BeginLife{})
	}
	if err != nil {
		s.w.watch.violate("S5: member %d of site %s cannot begin lead %d: %v", l.Member(), s.cfg.ID, l.Number(), err)
		return
	}
	b := l.Latest()
	b.Start(func() {
		switch err := b.Commit(); {
		case err != nil:
			s.again(l)
		case !s.gone:
			s.takeOver(l, state)
		}
	})
}

// again has a member begin another lead, if it still leads.
func (s *Site) again(l *quorum.Lead) {
	s.w.agenda.add(s.w.now.Add(heartbeatFifth), message, 0, call(l.Again))
}

// heartbeatFifth is how long a member waits before it begins a lead again.
const heartbeatFifth = 200 * time.Millisecond

// takeOver starts the daemon of a lead.
func (s *Site) takeOver(l *quorum.Lead, state *store.State) {
	if s.engine != nil {
		s.w.trace("%s: daemon %d leads no longer and does not know it", s.cfg.ID, s.life)
		was := s.daemon
		s.former = append(s.former, &was)
		for _, c := range slices.Concat(was.stood, was.stalled) { // the next one has these facts, and may have come further
			if c.bag != nil {
				c.bag.facts = l.Store
			}
		}
		s.noteClosed()
		was.stood, was.stalled = nil, nil
	}
	s.daemon = daemon{lead: l, backend: l, state: state}
	s.ahead = s.clocks[l.Member()]
	s.setClock()
	if inc := state.Site().Incarnation; inc <= s.said {
		s.w.watch.violate("S5: lead %d of site %s is incarnation %d, and an earlier one was %d", l.Number(), s.cfg.ID, inc, s.said)
	}
	if err := s.begin(l); err != nil {
		s.w.watch.violate("S5: the daemon of lead %d of site %s does not start: %v", l.Number(), s.cfg.ID, err)
		return
	}
	s.said = s.incarnation
	s.w.net.siteUp(s)
}

// in does something in a life of the daemon, if it goes on.
func (s *Site) in(life int, do func(s *Site)) {
	if s.life == life {
		do(s)
		return
	}
	for _, d := range s.former {
		if d.life == life {
			s.within(d, do)
			return
		}
	}
}

// within does something in a daemon whose lead is over.
func (s *Site) within(d *daemon, do func(s *Site)) {
	now := s.daemon
	s.daemon, s.deposed = *d, true
	do(s)
	if s.wants && s.engine != nil {
		s.wants = false
		s.pass()
	}
	*d, s.daemon, s.deposed = s.daemon, now, false
	s.former = slices.DeleteFunc(s.former, func(d *daemon) bool { return d.engine == nil })
}

// misled has a request go to a daemon whose lead is over, as those of clients may who have not
// heard of another one. It reports whether it did.
func (s *Site) misled(do func()) bool {
	if s.deposed || len(s.former) == 0 || s.w.rng.IntN(2) == 0 {
		return false
	}
	s.within(s.former[s.w.rng.IntN(len(s.former))], func(*Site) { do() })
	return true
}

// mayLeave reports whether an effect of a daemon whose lead is over is carried out. What runs at
// the site takes no orders of it, and its streams are those of before.
func (s *Site) mayLeave(f meta.Effect) bool {
	switch f.(type) {
	case meta.Reply, meta.Send, meta.Grant, meta.GrantTasks:
		return true
	}
	return false
}

// propose starts the commit of a batch and carries out what waited for it, once it has the answer.
func (s *Site) propose(ready *commit.Ready, closing []closed) {
	b, life := s.lead.Latest(), s.life
	pending := new(commit.Ready)
	*pending = *ready
	s.pending, s.closing = pending, closing
	b.Stood = func(open func() (*memstore.Store, error)) { s.stands(life, closing, open) }
	var answered func()
	answered = func() {
		s.in(life, func(s *Site) {
			switch {
			case s.engine == nil || s.pending != pending:
			case s.frozen:
				s.hold(answered)
			default:
				s.pending = nil
				s.answer(b, pending, closing)
			}
		})
	}
	start := func() {
		s.in(life, func(s *Site) {
			if s.engine != nil && s.pending == pending {
				b.Start(answered)
			}
		})
	}
	s.synced = start
	if s.slow == 0 {
		b.Start(answered)
		return
	}
	s.w.agenda.add(s.w.now.Add(s.slow), message, 0, call(start))
}

// stands notes that a batch is durable, whoever has been told so. While its daemon goes on, what
// the batch closes counts as closed when its effects have left.
func (s *Site) stands(life int, closing []closed, open func() (*memstore.Store, error)) {
	s.w.watch.depends.committed(closing)
	if s.life != life || s.engine == nil {
		s.w.agenda.add(s.w.now, message, 0, call(func() {
			facts, err := open() // those of the daemon that acts may have come less far
			if err != nil {
				s.w.watch.violate("S5: facts of site %s: %v", s.cfg.ID, err)
				return
			}
			for i := range closing {
				if b := closing[i].bag; b != nil {
					b.facts = facts
				}
			}
			s.w.watch.durable(closing)
		}))
		return
	}
	s.stood = append(s.stood, closing...)
}

// answer takes up the answer to a batch.
func (s *Site) answer(b *quorum.Batch, ready *commit.Ready, closing []closed) {
	effects, err := ready.Commit()
	switch {
	case store.Void(err):
		s.w.trace("%s: daemon %d ends: %v", s.cfg.ID, s.life, err)
		lead := s.lead
		s.end()
		s.again(lead)
		return
	case err != nil:
		life, again := s.life, *ready
		s.w.agenda.add(s.w.now.Add(fullRetry), message, 0, call(func() {
			s.in(life, func(s *Site) { s.propose(&again, closing) })
		}))
		return
	}
	if answer := b.Commit(); answer != nil {
		s.w.watch.violate("R1: effects of lead %d of site %s leave, and the answer to their batch is: %v", s.lead.Number(), s.cfg.ID, answer)
	}
	s.stood = nil // carryAll notes it
	barrier := s.barrier
	barrier.Done()
	s.carryAll(effects, closing)
	barrier.Recycle(effects)
	if s.engine != nil {
		s.flush()
	}
}

// end ends the daemon that acts, whose lead is over or whose member is killed.
func (s *Site) end() {
	if s.engine == nil {
		return
	}
	s.noteClosed()
	s.engine, s.state, s.scheduler, s.staged, s.bringing, s.pending = nil, nil, nil, nil, nil, nil
	s.frozen, s.held = false, nil
	if !s.deposed {
		s.w.log.site("down", s)
	}
	s.w.net.siteDown(s)
}

// noteClosed notes what is durable and has not been carried out.
func (s *Site) noteClosed() {
	s.w.watch.durable(s.stalled) // the batch before the one that stands
	s.w.watch.durable(s.stood)
	s.stood, s.stalled = nil, nil
}

// over is told that a lead is over, as far as its member knows.
func (s *Site) over(l *quorum.Lead) { s.endOf(func(d *daemon) bool { return d.lead == l }) }

// endOf ends daemons.
func (s *Site) endOf(which func(d *daemon) bool) {
	if which(&s.daemon) {
		s.end()
	}
	if s.deposed { // the others in their turn
		s.w.agenda.add(s.w.now, message, 0, call(func() { s.endOf(which) }))
		return
	}
	for _, d := range slices.Clone(s.former) {
		if which(d) && d.engine != nil {
			s.within(d, (*Site).end)
		}
	}
}

// KillMember ends the process of a member, with the daemon in it.
func (s *Site) KillMember(m int) {
	if s.quorum == nil || m < 0 || m >= s.quorum.Members() {
		return
	}
	s.quorum.Kill(m)
	s.endOf(func(d *daemon) bool { return d.lead != nil && d.lead.Member() == m })
	s.upsets++
}

// WipeMember ends the process of a member and replaces its disk. It reports false, and does
// nothing, while another one has not got again what it had.
func (s *Site) WipeMember(m int) bool {
	if s.quorum == nil || m < 0 || m >= s.quorum.Members() || !s.quorum.Wipe(m) {
		return false
	}
	s.KillMember(m)
	return true
}

// StartMember starts the process of a member again.
func (s *Site) StartMember(m int) {
	if s.quorum != nil && !s.gone {
		s.quorum.Start(m)
	}
}

// startMembers starts all that are down.
func (s *Site) startMembers() {
	for m := range s.quorum.Members() {
		s.StartMember(m)
	}
}

// PartMember cuts a member off from the others, all of them from each other if m is below 0.
// Users and other sites reach them as before.
func (s *Site) PartMember(m int) {
	s.upsets++
	if m < 0 {
		s.quorum.PartAll()
		return
	}
	s.quorum.Part(m)
}

// JoinMembers connects all members.
func (s *Site) JoinMembers() {
	if s.quorum != nil {
		s.upsets++
		s.quorum.Join()
	}
}

// HandOver has the member that leads hand over to another one.
func (s *Site) HandOver() {
	if s.quorum != nil && s.engine != nil {
		s.quorum.HandOver(s.lead.Member())
	}
}

// Members is how many members keep the site's facts, 0 for a site of one.
func (s *Site) Members() int { return s.cfg.Members }

// Leader returns the member whose daemon is the latest, -1 if there is none.
func (s *Site) Leader() int {
	if s.quorum == nil || s.engine == nil {
		return -1
	}
	return s.lead.Member()
}

// leader returns the member that leads, or led last.
func (s *Site) leader() int {
	if s.lead == nil {
		return 0
	}
	return s.lead.Member()
}

// thawMembers lets all go on that were stopped.
func (s *Site) thawMembers() {
	for _, d := range slices.Clone(s.former) {
		if d.frozen {
			s.within(d, (*Site).Thaw)
		}
	}
	for m := range s.quorum.Members() {
		s.quorum.Resume(m)
	}
}

// fillMembers makes the disk of the member that leads full, or ends that for all.
func (s *Site) fillMembers(full bool) {
	if s.quorum == nil {
		return
	}
	if full {
		s.quorum.Fill(s.leader(), true)
		return
	}
	for m := range s.quorum.Members() {
		s.quorum.Fill(m, false)
	}
}

// stepMember sets the wall clock of the member that leads, or led last.
func (s *Site) stepMember(by job.Time) {
	if s.quorum != nil {
		s.clocks[s.leader()] += by
	}
}

// leaveMembers ends all members for good.
func (s *Site) leaveMembers() {
	if s.quorum == nil {
		return
	}
	for m := range s.quorum.Members() {
		s.KillMember(m)
	}
}
