package explore

import (
	"fmt"
	"strconv"

	"kith/meta"
	"kith/meta/bags"
	"kith/store"
	"kith/testbed/sim"
)

// What the owner of a bag states, what only time brings of it, and sites that are revoked.

// policies are what the bag states. Each text is asked, and reads what changes.
func (c *Config) policies() (p store.BagPolicies) {
	if c.Deadline > 0 {
		p.Texts[bags.Deadline] = strconv.Itoa(c.Deadline)
	}
	if c.Policies {
		p.Texts[bags.Sites] = "!site.draining"
		p.Texts[bags.Requirements] = "host.error_rate < 0.9 && site.name.startsWith('s')"
		if c.away() {
			p.Texts[bags.Sites], p.Texts[bags.Requirements] = "!site.home", "host.error_rate < 0.9 && !site.home"
		}
		p.Texts[bags.Rank] = "host.recent_done - bag.failed"
		p.Texts[bags.Concurrency] = "1"
		p.Texts[bags.Replicate] = "task.replicas < 4"
	}
	return p
}

// away reports whether the policies keep the bag from its own site. One of two sites may be
// revoked: then its own is left.
func (c *Config) away() bool { return c.Policies && c.Sites > 2 }

// stated holds a task that starts against what its bag states.
func (w *world) stated(i int, t *transition, task uint32) string {
	switch {
	case !w.cfg.Policies:
	case i == w.cfg.origin(0) && w.cfg.away():
		return fmt.Sprintf("policy: task %d starts at %s, where its bag runs none", task, siteID(i))
	case len(t.to.running) > 1:
		return fmt.Sprintf("policy: task %d starts at %s beside another one, and there may be one", task, siteID(i))
	}
	return ""
}

// again says what is wrong with a task that starts and was started before, under S2. A replica
// is a second run, at another site than the first.
func (w *world) again(task *seenTask, i int, ordinal uint32) string {
	here := task.at&(1<<i) != 0
	switch {
	case w.cfg.Race, w.cfg.Replicas > 0 && !here:
	case here && w.cfg.Replicas > 0:
		return fmt.Sprintf("S2: task %d starts at %s, where it was started before", ordinal, siteID(i))
	case task.at != 0:
		return fmt.Sprintf("S2: task %d starts at %s and was started before", ordinal, siteID(i))
	}
	return ""
}

// admit has the operator of the first site trust the others, whom he may revoke.
func (n *node) admit() {
	if n.cfg.Revokes == 0 || n.index != n.cfg.origin(0) {
		return
	}
	for i := range n.cfg.Sites {
		if n.cfg.linked(n.index, i) {
			n.feed(meta.AdmitSite{Site: siteID(i), Bundle: sim.BundleOf(siteID(i), i+1), Actor: "ada"}, whole)
		}
	}
}

// revoked says which sites this one has revoked, by bits.
func (n *node) revoked() (revoked uint8) {
	if n.cfg.Revokes == 0 {
		return 0
	}
	for i := range n.cfg.Sites {
		if t := n.state.TrustedSite(siteID(i)); t != nil && t.State == store.SiteRevoked {
			revoked |= 1 << i
		}
	}
	return revoked
}

// apart reports whether one of two sites has revoked the other.
func (w *world) apart(s *state, i, j int) bool {
	return w.local(s, i).revoked&(1<<j) != 0 || w.local(s, j).revoked&(1<<i) != 0
}

// sever ends the streams between a site and those that it has just revoked. What it had sent
// may still arrive; of what was on its way to it nothing is taken.
func (s *state) sever(i int, sites uint8) {
	for j := range maxSites {
		if sites&(1<<j) == 0 {
			continue
		}
		s.streams[j][i] = stream{mark: downMark}
		out := &s.streams[i][j]
		if s.attached[j]&(1<<i) != 0 || out.mark == upMark {
			out.mark, out.new = downMark, nil
		}
		s.attached[i] &^= 1 << j
		s.attached[j] &^= 1 << i
	}
}

// brought is how much only time has brought of the bag.
func (s *bagSeen) brought() int { return s.replicas + s.missed }

// lead submits the bag and lets time pass without faults until the next instant brings the
// first replica, or the first deadline that is missed.
func (x *search) lead(s *state) string {
	submit := &move{kind: atSite, step: step{kind: submitJob, cut: whole}}
	if objection := x.w.apply(s, submit); objection != "" {
		return objection
	}
	if objection := x.settle(s); objection != "" {
		return objection
	}
	was := x.w.local(s, x.cfg.origin(0)).bag.brought()
	for range patience {
		next := s.clone()
		if objection := x.ends.letTimePass(next); objection != "" {
			return objection
		}
		if objection := x.settle(next); objection != "" {
			return objection
		}
		if x.w.local(next, x.cfg.origin(0)).bag.brought() > was {
			return ""
		}
		*s = *next
	}
	return fmt.Sprintf("what this world is for does not happen within %d timeouts", patience)
}
