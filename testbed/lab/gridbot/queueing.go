package gridbot

import "kith/internal/job"

// queueing is a batch system with a job for each task: each waits in the queue of a grid by
// itself, and what is lost is submitted again at once, as a batch system knows its machines. It
// needs [floor.oneEach].
type queueing struct {
	f    *floor
	next []waiting // of each bag
	sent uint32
}

// waiting is the tasks of a bag that wait.
type waiting struct {
	next, tasks uint32
	again       []uint32
}

// submit implements [dispatcher].
func (q *queueing) submit(_ int, b *bag) error {
	q.next = append(q.next, waiting{tasks: b.tasks})
	return nil
}

// ask implements [dispatcher].
func (q *queueing) ask(c *client) {
	for i := range q.next {
		x := &q.next[i]
		task := x.next
		switch {
		case len(x.again) > 0:
			task, x.again = x.again[0], x.again[1:]
		case x.next < x.tasks:
			x.next++
		default:
			continue
		}
		q.sent++
		q.f.give(c, run{bag: i, task: task, name: job.AttemptID{Number: q.sent}})
		return
	}
}

// ended implements [dispatcher].
func (q *queueing) ended(c *client, r run, failed bool) {
	if failed {
		q.next[r.bag].again = append(q.next[r.bag].again, r.task)
		return
	}
	q.f.accept(r.bag, r.task, c.host.grid)
}

// gone implements [dispatcher].
func (q *queueing) gone(_ *client, lost *run) {
	if lost != nil {
		q.next[lost.bag].again = append(q.next[lost.bag].again, lost.task)
	}
}
