package explore

import (
	"fmt"
	"reflect"

	"kith/internal/job"
	"kith/meta"
)

// A bag in place of jobs: what is submitted, how its tasks run, what is seen of them, and
// what must hold.

// maxTasks bounds the tasks of the bag.
const maxTasks = 4

// DefaultBag is a world of two sites with a bag of three tasks, of which two are given to
// the other site together. One daemon dies, one message is lost, one arrives twice and one
// timeout comes early.
func DefaultBag() Config {
	return Config{Sites: 2, Tasks: 3, Copies: 1, Crashes: 1, Losses: 1, Duplicates: 1, Timeouts: 1, Busy: true}
}

// requestName is the name of what a client submits.
func requestName(number int) string { return fmt.Sprint("request ", number+1) }

// bag is what a client submits. Its tasks have no lease: they wait for lost sites, or race.
func (c *Config) bag() meta.SubmitBag {
	r := c.request(0)
	r.Name, r.Copies = "bag", 0
	return meta.SubmitBag{
		Token: 1, Request: r, Indices: job.FirstIndices(uint32(c.Tasks)), RequestID: "bag", MaxReplicas: uint8(c.Replicas), Policies: c.policies(),
	}
}

// cancel is what a client says who wants an end of what it submitted.
func (c *Config) cancel(id job.ID) meta.Event {
	if c.Tasks > 0 {
		return meta.CancelBag{Bag: id}
	}
	return meta.Cancel{Job: id}
}

// messageKey tells messages apart. Those of tasks hold sets, which are not printed by what
// is in them.
func (c *Config) messageKey(m meta.Message) string {
	if !meta.OfTasks(m) {
		return fmt.Sprintf("%T%+v", m, m)
	}
	f := c.fingerprint()
	f.text(m.Word())
	f.value(reflect.ValueOf(m))
	return string(f.b)
}

// startTask makes the process of a task.
func (n *node) startTask(f meta.Launch) {
	n.procs[f.Attempt] = &process{task: f.Task}
	n.out.tasks = append(n.out.tasks, *f.Task)
	n.inbox = append(n.inbox, meta.AttemptStarted{Attempt: f.Attempt, At: n.now})
}

// runsTasksOf reports whether an attempt is a bundle of which a task runs here.
func (n *node) runsTasksOf(bundle job.AttemptID) bool {
	for _, p := range n.procs {
		if p.task != nil && p.task.Bundle == bundle && p.outcome == nil {
			return true
		}
	}
	return false
}

// exitTask gives the end of a task times that are always the same: how long tasks run
// decides how many a site is given, and would multiply the states.
func (n *node) exitTask(p *process) {
	if p.task != nil {
		p.outcome.Start, p.outcome.End = startOfTime, startOfTime
	}
	if p.task != nil && !p.killed {
		n.out.done = append(n.out.done, p.task.Ordinal)
	}
}

// bagSeen is what a site says of the bag and its tasks.
type bagSeen struct {
	// Of the bag, at its origin.
	known bool
	id    job.ID
	state job.BagState
	ends  [maxTasks]taskEnd
	// held is how many bundles there are at the site as a host, pilots how many copies wait or
	// run there.
	held, pilots int
	// replicas is how many were granted, missed how many deadlines of runs since the daemon
	// began. States are not told apart by it.
	replicas, missed int
}

// taskEnd says how a task has ended.
type taskEnd uint8

const (
	notEnded taskEnd = iota
	taskDone
	taskFailed
	taskCancelled
)

var taskEndTexts = [...]string{"not ended", "done", "failed", "cancelled"}

func (e taskEnd) String() string { return taskEndTexts[e] }

func (n *node) bagSeen() (s bagSeen) {
	if n.cfg.Tasks == 0 {
		return s
	}
	s.held = len(n.state.HeldBundles())
	l := n.sched.Load(n.now)
	s.pilots = int(l.Queued) + int(n.processors()-l.Free)
	for b := range n.state.Bags {
		s.known, s.id, s.state = true, b.ID, b.State
		s.replicas, s.missed = int(b.Sums.Replicas), int(n.engine.Views().Counters().DeadlinesMissed)
		for k := range n.cfg.Tasks {
			switch task := uint32(k); {
			case b.Done.Has(task):
				s.ends[k] = taskDone
			case b.Failed.Has(task):
				s.ends[k] = taskFailed
			case b.Cancelled.Has(task):
				s.ends[k] = taskCancelled
			}
		}
	}
	return s
}

// open reports whether a client may want an end of the bag.
func (s *bagSeen) open() bool {
	return s.known && !s.state.Terminal() && s.state != job.BagCancelling
}

// ended counts the tasks that have ended.
func (s *bagSeen) ended() int {
	n := 0
	for _, e := range s.ends {
		if e != notEnded {
			n++
		}
	}
	return n
}

// seenTask is what the observer remembers of a task.
type seenTask struct {
	at   uint8 // by bits, the sites at which it was started
	done bool  // a run of it has come to its end by itself
	end  taskEnd
}

// code is a byte that tells all of it.
func (t seenTask) code() byte {
	b := t.at<<3 | byte(t.end)<<1
	if t.done {
		b |= 1
	}
	return b
}

func taskOfCode(b byte) seenTask {
	return seenTask{at: b >> 3, done: b&1 != 0, end: taskEnd(b >> 1 & 3)}
}

// tasks holds what tasks did in a step against S1, S2 and S3, and what their origin says of
// them against S3 and S5.
func (w *world) tasks(s *state, i int, t *transition) string {
	for _, r := range t.tasks {
		if objection := s.hold(r.Bundle, i); objection != "" {
			return objection
		}
		task := &s.tasks[r.Ordinal]
		if objection := w.again(task, i, r.Ordinal); objection != "" {
			return objection
		}
		if objection := w.stated(i, t, r.Ordinal); objection != "" {
			return objection
		}
		// What was given out before the end was known may begin after it: a replica, and what a
		// site has got that does not hear that it is revoked.
		unaware := w.cfg.Replicas > 0 || w.apart(s, w.cfg.origin(0), i)
		if task.end != notEnded && !w.cfg.Race && !unaware {
			return fmt.Sprintf("S3: task %d is %v and starts at %s", r.Ordinal, task.end, siteID(i))
		}
		task.at |= 1 << i
	}
	for _, task := range t.done {
		s.tasks[task].done = true
	}
	if w.cfg.Tasks == 0 || i != w.cfg.origin(0) || !t.to.up {
		return ""
	}
	b := &t.to.bag
	if !b.known && s.acked&1 != 0 {
		return "S5: the acknowledged bag is lost"
	}
	for k := range w.cfg.Tasks {
		task, end := &s.tasks[k], b.ends[k]
		switch {
		case task.end != notEnded && task.end != end:
			return fmt.Sprintf("S3: task %d was %v and is %v", k, task.end, end)
		case end == taskDone && !task.done:
			return fmt.Sprintf("S5: task %d is done, and no run of it has come to its end", k)
		case end == taskFailed && w.cfg.Reboots == 0 && w.cfg.Deadline == 0 && t.to.revoked == 0:
			return fmt.Sprintf("S5: task %d is lost, and no machine was", k)
		case end == taskCancelled && int(s.left[aCancel]) == w.cfg.Cancels:
			return fmt.Sprintf("S3: task %d is cancelled, and nobody wants that", k)
		}
		task.end = end
	}
	return ""
}

// bagLeft says what of a bag keeps the world from being done.
func (w *world) bagLeft(s *state) string {
	if w.cfg.Tasks == 0 {
		return ""
	}
	if b := &w.local(s, w.cfg.origin(0)).bag; !b.known || !b.state.Terminal() {
		return fmt.Sprintf("L1: the bag never ends: %d of %d tasks have", b.ended(), w.cfg.Tasks)
	}
	for i := range w.cfg.Sites {
		if w.apart(s, w.cfg.origin(0), i) {
			continue // it hears no more of what became of the bag
		}
		if n := w.local(s, i).bag.held; n > 0 {
			return fmt.Sprintf("L2: site %s still holds %d bundles", siteID(i), n)
		}
		if n := w.local(s, i).bag.pilots; n > 0 {
			return fmt.Sprintf("L2: at site %s there are still %d pilots", siteID(i), n)
		}
	}
	return ""
}
