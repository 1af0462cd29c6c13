package explore

import (
	"fmt"

	"kith/testbed/sim"
)

// describe says what a move is, for people.
func (w *world) describe(s *state, m *move) string {
	i, j := siteID(int(m.site)), siteID(int(m.from))
	switch m.kind {
	case lose:
		return fmt.Sprintf("%s -> %s: lost: %s", j, i, sim.Describe(m.step.message))
	case duplicate:
		return fmt.Sprintf("%s -> %s: will arrive once more: %s", j, i, sim.Describe(m.step.message))
	case cutStream:
		return fmt.Sprintf("%s and %s: the stream breaks", i, j)
	}
	text := m.step.describe(int(m.site))
	if m.kind == replay {
		text += " (once more)"
	}
	t := w.sites.take(w.local(s, int(m.site)), m.step)
	for _, a := range t.launched {
		text += fmt.Sprintf("\n        starts %v", a)
	}
	for _, r := range t.tasks {
		text += fmt.Sprintf("\n        starts task %d of bundle %v", r.Ordinal, r.Bundle)
	}
	for _, x := range t.sends {
		lost := ""
		if s.attached[m.site]&(1<<x.to) == 0 && m.step.kind != peerUp {
			lost = " (no site hears it)"
		}
		text += fmt.Sprintf("\n        to %s: %s%s", siteID(x.to), sim.Describe(w.sites.byNumber[x.msg]), lost)
	}
	return text
}

// describe says what a step is, for people.
func (s *step) describe(self int) string {
	var text string
	switch s.kind {
	case submitJob:
		text = fmt.Sprintf("a client submits %s", requestName(s.job))
	case cancelJob:
		text = fmt.Sprintf("a client cancels %v", s.attempt.Job)
	case askJob:
		text = fmt.Sprintf("a client has %v save and go on", s.attempt.Job)
	case revokeSite:
		text = fmt.Sprintf("its operator revokes %s", siteID(s.peer))
	case receive:
		text = fmt.Sprintf("takes from %s: %s", siteID(s.peer), sim.Describe(s.message))
	case peerUp:
		text = fmt.Sprintf("is connected to %s again", siteID(s.peer))
	case peerDown:
		text = fmt.Sprintf("notices that %s is gone", siteID(s.peer))
	case timeout:
		text = "time passes"
	case report:
		text = "its executor reports"
	case processEnd:
		text = fmt.Sprintf("%v ends", s.attempt)
	case demotionEnd:
		text = fmt.Sprintf("%v saves what it has done and ends to go on", s.attempt)
	case stagingEnd:
		text = fmt.Sprintf("%v has its input and starts", s.attempt)
	case startFails:
		text = fmt.Sprintf("%v cannot be started here", s.attempt)
	case crash:
		text = "the daemon is killed"
	case machineDown:
		text = "the machine loses power"
	case restart:
		text = "the daemon starts again"
	}
	switch {
	case s.cut == unsynced:
		text += "; it is killed before that is on disk"
	case s.cut >= 0:
		text += fmt.Sprintf("; it is killed after %d of the effects", s.cut)
	}
	return fmt.Sprintf("%s: %s", siteID(self), text)
}
