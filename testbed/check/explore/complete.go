package explore

import "fmt"

// completions lets the world run without faults from states in which only time
// can bring anything about.
type completions struct {
	w    *world
	good map[digest]bool // states from which all ends well
	list []move
}

// patience is how often all clocks go on before a job counts as stuck.
const patience = 60

// complete returns what is wrong after everything had its chance, empty if
// every job has ended and no copy is left. It changes s.
func (c *completions) complete(s *state) string {
	s.left = [spendings]uint8{}
	var passed []digest
	objection := ""
	for range patience {
		if broken := c.settle(s); broken != "" {
			return broken
		}
		if objection = c.w.wrong(s); objection == "" {
			break
		}
		d := digestOf(s.encode(nil, c.w.cfg))
		if c.good[d] {
			objection = ""
			break
		}
		passed = append(passed, d)
		if broken := c.letTimePass(s); broken != "" {
			return broken
		}
	}
	if objection == "" {
		for _, d := range passed {
			c.good[d] = true
		}
	}
	return objection
}

// settle lets everything happen that needs no time.
func (c *completions) settle(s *state) string {
	const most = 10_000 // steps without time between them; a handful are usual
	for range most {
		c.list = c.w.moves(s, c.list[:0])
		if len(c.list) == 0 {
			return ""
		}
		if objection := c.w.apply(s, &c.list[0]); objection != "" {
			return objection
		}
	}
	return "L1: the sites never come to rest"
}

// letTimePass takes every clock to its next timeout.
func (c *completions) letTimePass(s *state) string {
	for i := range c.w.cfg.Sites {
		m := move{kind: atSite, site: int8(i), step: step{kind: timeout, cut: whole}}
		if l := c.w.local(s, i); l.up && l.wakes {
			if objection := c.w.apply(s, &m); objection != "" {
				return objection
			}
		}
	}
	return ""
}

// wrong says what keeps the world from being done.
func (w *world) wrong(s *state) string {
	for i := range w.cfg.Sites {
		l := w.local(s, i)
		switch {
		case !l.up:
			return fmt.Sprintf("L1: site %s is down", siteID(i))
		case len(l.staged) > 0:
			return fmt.Sprintf("L1: %v never starts at %s", l.staged[0], siteID(i))
		case len(l.running) > 0:
			return fmt.Sprintf("L1: %v still runs at %s", l.running[0], siteID(i))
		}
	}
	for number := range w.cfg.submissions() {
		if s.acked&(1<<number) == 0 {
			return fmt.Sprintf("L1: %s is never acknowledged", requestName(number))
		}
	}
	for number := range w.cfg.Jobs {
		if s.closed[number] == 0 {
			return fmt.Sprintf("L1: job %d never ends", number+1)
		}
	}
	for i := range w.cfg.Sites {
		if n := w.local(s, i).copies; n > 0 && !w.apart(s, w.cfg.origin(0), i) {
			return fmt.Sprintf("L2: site %s still holds %d copies", siteID(i), n)
		}
	}
	return w.bagLeft(s)
}
