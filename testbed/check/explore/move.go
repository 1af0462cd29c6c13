package explore

import (
	"fmt"
	"slices"

	"kith/internal/job"
)

// moveKind is what happens in the world.
type moveKind uint8

const (
	atSite    moveKind = iota // a step at a site
	deliver                   // the next message of a stream, taken by a site
	replay                    // a doubled message, taken by a site
	mending                   // a site notices that a stream broke, or that there is a new one
	lose                      // the next message of a stream is lost
	duplicate                 // … will arrive once more
	cutStream                 // a stream breaks
)

// move is something that may happen in a state.
type move struct {
	kind  moveKind
	site  int8 // where
	from  int8 // other end of the stream
	ghost int8
	spend spending
	step  step
}

// world makes moves.
type world struct {
	cfg   *Config
	sites *sites
}

func (w *world) local(s *state, i int) *local { return w.sites.byID[s.locals[i]] }

// moves lists all that may happen in s, always in the same order.
func (w *world) moves(s *state, list []move) []move {
	for i := range w.cfg.Sites {
		l := w.local(s, i)
		if !l.up {
			list = append(list, move{kind: atSite, site: int8(i), step: step{kind: restart, cut: whole}})
		}
		list = w.streamMoves(s, i, list)
		list = w.siteMoves(s, i, l, list)
	}
	list = w.waits(s, list)
	// Every step of a daemon that lives may be cut short by its death.
	if s.left[aCrash] > 0 {
		for _, m := range list[:len(list):len(list)] {
			l := w.local(s, int(m.site))
			if !l.up || !s.dies(int(m.site)) || m.kind > mending || m.step.kind >= stagingEnd || m.spend != free && m.step.kind != timeout && m.step.kind != revokeSite && m.step.kind != demotionEnd {
				continue
			}
			t := w.sites.take(l, m.step)
			m.step.cut, m.spend = unsynced, aCrash
			if m.step.kind != timeout {
				list = append(list, m)
			}
			for cut := range t.boundaries {
				m.step.cut = cut
				list = append(list, m)
			}
		}
	}
	return list
}

// waits adds the timeouts of a state in which nothing but time can bring
// anything about. Which clock is first is open, as it is everywhere.
func (w *world) waits(s *state, list []move) []move {
	if s.left[aWait] == 0 || slices.ContainsFunc(list, func(m move) bool { return m.spend == free }) {
		return list
	}
	for i := range w.cfg.Sites {
		if l := w.local(s, i); l.up && l.wakes {
			list = append(list, move{kind: atSite, site: int8(i), spend: aWait, step: step{kind: timeout, cut: whole}})
		}
	}
	return list
}

// streamMoves lists what may happen to what is on its way to site i.
func (w *world) streamMoves(s *state, i int, list []move) []move {
	for j := range w.cfg.Sites {
		if !w.cfg.linked(i, j) {
			continue
		}
		x := &s.streams[j][i]
		at := move{site: int8(i), from: int8(j)}
		if len(x.old) > 0 {
			m := at
			m.kind, m.step = deliver, step{kind: receive, peer: j, msg: x.old[0], message: w.sites.byNumber[x.old[0]], cut: whole}
			list = append(list, m)
			if s.left[aLoss] > 0 {
				m.kind, m.spend = lose, aLoss
				list = append(list, m)
			}
			if s.left[aDuplicate] > 0 {
				m.kind, m.spend = duplicate, aDuplicate
				list = append(list, m)
			}
		}
		if x.mark != noMark {
			m := at
			m.kind, m.step = mending, step{kind: peerUp, peer: j, cut: whole}
			if x.mark == downMark {
				m.step.kind = peerDown
			}
			list = append(list, m)
		}
		if s.left[aCut] > 0 && i < j && s.attached[i]&(1<<j) != 0 && s.attached[j]&(1<<i) != 0 {
			list = append(list, move{kind: cutStream, site: int8(i), from: int8(j), spend: aCut})
		}
	}
	for k, g := range s.ghosts {
		if int(g.to) == i && s.attached[i]&(1<<g.from) != 0 {
			list = append(list, move{
				kind: replay, site: int8(i), from: int8(g.from), ghost: int8(k),
				step: step{kind: receive, peer: int(g.from), msg: g.msg, message: w.sites.byNumber[g.msg], cut: whole},
			})
		}
	}
	return list
}

// siteMoves lists what may happen at site i by itself.
func (w *world) siteMoves(s *state, i int, l *local, list []move) []move {
	at := func(spend spending, st step) {
		st.cut = whole
		list = append(list, move{kind: atSite, site: int8(i), spend: spend, step: st})
	}
	for _, a := range l.running {
		at(free, step{kind: processEnd, attempt: a})
		switch {
		case slices.Contains(l.asked, a):
			at(free, step{kind: demotionEnd, attempt: a})
		case s.left[aDemotion] > 0 && w.ofJob(a):
			at(aDemotion, step{kind: demotionEnd, attempt: a})
		}
	}
	if s.left[aReboot] > 0 {
		at(aReboot, step{kind: machineDown})
	}
	if !l.up {
		return list
	}
	for _, a := range l.staged {
		at(free, step{kind: stagingEnd, attempt: a})
		if s.left[aFail] > 0 {
			at(aFail, step{kind: startFails, attempt: a})
		}
	}
	if l.inbox {
		at(free, step{kind: report})
	}
	for k := range w.cfg.submissions() {
		if w.cfg.origin(k) == i && s.acked&(1<<k) == 0 {
			at(free, step{kind: submitJob, job: k})
		}
	}
	if s.left[aTimeout] > 0 && l.wakes {
		at(aTimeout, step{kind: timeout})
	}
	if s.dies(i) {
		at(aCrash, step{kind: crash})
	}
	if s.left[aRevoke] > 0 && i == w.cfg.origin(0) {
		for j := range w.cfg.Sites {
			if w.cfg.linked(i, j) && l.revoked&(1<<j) == 0 {
				at(aRevoke, step{kind: revokeSite, peer: j})
			}
		}
	}
	if s.left[anAsk] > 0 {
		for _, j := range l.jobs {
			if j.number < w.cfg.Jobs && j.state == job.Running {
				at(anAsk, step{kind: askJob, attempt: job.AttemptID{Job: j.id}})
			}
		}
	}
	if s.left[aCancel] > 0 {
		for _, j := range l.jobs {
			if j.number < w.cfg.Jobs && !j.state.Terminal() {
				at(aCancel, step{kind: cancelJob, attempt: job.AttemptID{Job: j.id}})
			}
		}
		if l.bag.open() {
			at(aCancel, step{kind: cancelJob, attempt: job.AttemptID{Job: l.bag.id}})
		}
	}
	return list
}

// apply makes a move in a state that it may change. It returns what the
// observer has to object, empty if nothing.
func (w *world) apply(s *state, m *move) string {
	if m.spend != free {
		s.left[m.spend]--
	}
	i, j := int(m.site), int(m.from)
	switch m.kind {
	case lose:
		s.streams[j][i].old = s.streams[j][i].old[1:]
		return ""
	case duplicate:
		s.addGhost(ghost{uint8(j), uint8(i), m.step.msg})
		return ""
	case cutStream:
		for _, way := range [2]*stream{&s.streams[i][j], &s.streams[j][i]} {
			way.mark, way.new = upMark, nil
		}
		s.attached[i] &^= 1 << j
		s.attached[j] &^= 1 << i
		return ""
	case deliver:
		s.streams[j][i].old = s.streams[j][i].old[1:]
	case replay:
		s.ghosts = slices.Delete(s.ghosts, int(m.ghost), int(m.ghost)+1)
	case mending:
		x := &s.streams[j][i]
		if x.mark == upMark {
			s.attached[i] |= 1 << j
		}
		x.old, x.new, x.mark = x.new, nil, noMark
	}
	was := w.local(s, i)
	t := w.sites.take(was, m.step)
	s.locals[i] = t.to.id
	for _, x := range t.sends {
		if s.attached[i]&(1<<x.to) != 0 {
			s.send(i, x.to, x.msg)
		}
	}
	switch {
	case was.up && !t.to.up:
		s.died(i, w.cfg)
	case !was.up && t.to.up:
		w.returned(s, i)
	case was.up:
		s.sever(i, t.to.revoked&^was.revoked)
	}
	return w.observe(s, i, t)
}

// send puts a message on a stream.
func (s *state) send(from, to int, msg int32) {
	x := &s.streams[from][to]
	if x.mark == upMark {
		x.new = appended(x.new, msg)
	} else {
		x.old = appended(x.old, msg)
	}
}

func (s *state) addGhost(g ghost) {
	i := 0
	for i < len(s.ghosts) && (s.ghosts[i].from<<4|s.ghosts[i].to < g.from<<4|g.to || s.ghosts[i].from == g.from && s.ghosts[i].to == g.to && s.ghosts[i].msg < g.msg) {
		i++
	}
	s.ghosts = slices.Insert(s.ghosts, i, g)
}

// died ends the streams of a site whose daemon has died. What it had sent may
// still arrive until the other end notices.
func (s *state) died(i int, c *Config) {
	for j := range c.Sites {
		if !c.linked(i, j) {
			continue
		}
		s.streams[j][i] = stream{}
		out := &s.streams[i][j]
		if s.attached[j]&(1<<i) != 0 || out.mark == upMark {
			out.mark, out.new = downMark, nil
		}
		s.attached[j] &^= 1 << i
	}
	s.attached[i] = 0
}

// returned connects a site whose daemon has started with those that are up.
func (w *world) returned(s *state, i int) {
	for j := range w.cfg.Sites {
		if w.cfg.linked(i, j) && w.local(s, j).up && !w.apart(s, i, j) {
			s.streams[i][j].mark, s.streams[i][j].new = upMark, nil
			s.streams[j][i] = stream{mark: upMark}
		}
	}
}

// observe holds a step against the invariants.
func (w *world) observe(s *state, i int, t *transition) string {
	if t.broken != "" {
		return t.broken
	}
	for _, token := range t.acked {
		if token-1 < uint64(w.cfg.submissions()) {
			s.acked |= 1 << (token - 1)
		}
	}
	for _, g := range t.grants {
		if objection := s.hold(g.attempt, g.to); objection != "" {
			return objection
		}
	}
	for _, d := range t.demoted { // before what starts in the same step, which none may
		if objection := s.goesOn(d); objection != "" {
			return objection
		}
	}
	for k, a := range t.launched {
		if objection := w.launched(s, i, a, t.from[k]); objection != "" {
			return objection
		}
	}
	if objection := w.tasks(s, i, t); objection != "" {
		return objection
	}
	return w.closed(s, t.to)
}

// hold notes who has an attempt.
func (s *state) hold(a job.AttemptID, site int) string {
	k, known := s.find(a)
	if !known {
		s.seen = slices.Insert(s.seen, k, seenAttempt{attempt: a, holder: int8(site)})
		return ""
	}
	if had := int(s.seen[k].holder); had != site {
		return fmt.Sprintf("S1: attempt %v was granted to %s and to %s", a, siteID(had), siteID(site))
	}
	return ""
}

// launched holds a start against S1, S2 and S3. What has started is never
// started again as long as no disk is lost, whether it has ended or not: that
// is more than S2 says, and does not depend on when a process ends. Only what ended for its job to
// go on is followed by another attempt, which has what the ones before it have saved (C1).
func (w *world) launched(s *state, i int, a job.AttemptID, from uint64) string {
	if objection := s.hold(a, i); objection != "" {
		return objection
	}
	k, _ := s.find(a)
	if s.seen[k].started {
		return fmt.Sprintf("S2: attempt %v was started twice", a)
	}
	if w.cfg.Race {
		s.seen[k].started = true
		return ""
	}
	for _, other := range s.seen {
		if other.started && !other.demoted && other.attempt.Job == a.Job {
			return fmt.Sprintf("S2: %v starts at %s, and %v was started at %s", a, siteID(i), other.attempt, siteID(int(other.holder)))
		}
	}
	if saved := s.savedOf(a.Job); from != saved {
		return fmt.Sprintf("C1: %v starts at %s from checkpoint %d, and %d were saved", a, siteID(i), from, saved)
	}
	s.seen[k].started = true
	for number := range w.cfg.Jobs {
		if s.closed[number] != 0 && w.jobID(number) == a.Job {
			return fmt.Sprintf("S3: job %v is %v and starts at %s", a.Job, s.closed[number], siteID(i))
		}
	}
	return ""
}

// ofJob reports whether an attempt is of a job that is looked at, and not of what keeps the first
// site busy.
func (w *world) ofJob(a job.AttemptID) bool {
	for number := range w.cfg.Jobs {
		if w.jobID(number) == a.Job {
			return true
		}
	}
	return false
}

// jobID is the id that a job gets: its origin's first, but for the job that
// keeps the origin busy.
func (w *world) jobID(number int) job.ID {
	id := job.ID{Origin: siteID(w.cfg.origin(number)), Generation: 1, Seq: 1}
	if w.cfg.Busy && w.cfg.origin(number) == 0 {
		id.Seq = 2
	}
	return id
}

// closed holds what an origin says of its jobs against S3 and S5.
func (w *world) closed(s *state, l *local) string {
	if !l.up {
		return ""
	}
	for number := range w.cfg.Jobs {
		if w.cfg.origin(number) != l.site {
			continue
		}
		k := slices.IndexFunc(l.jobs, func(j jobSeen) bool { return j.number == number })
		switch {
		case k < 0 && s.acked&(1<<number) != 0:
			return fmt.Sprintf("S5: acknowledged job %d is lost", number+1)
		case k < 0:
		case s.closed[number] != 0 && s.closed[number] != l.jobs[k].state:
			return fmt.Sprintf("S3: job %v was %v and is %v", l.jobs[k].id, s.closed[number], l.jobs[k].state)
		case l.jobs[k].state.Terminal():
			s.closed[number] = l.jobs[k].state
		}
	}
	return ""
}
