package gridbot

import (
	"fmt"
	"time"

	"kith/internal/job"
	"kith/store"
	"kith/testbed/sim"
)

// bag is a bag to be dispatched.
type bag struct {
	name        string
	tasks       uint32
	least, most time.Duration // of run times
	at          time.Duration // when it is submitted
	priority    int32
	// replicas is how many runs a task may have beside the first one, tailAt when its tail
	// begins: 0 for as many as places serve it.
	replicas uint8
	tailAt   uint32
	policies store.BagPolicies
	// fails is which part of its runs fails wherever they are.
	fails float64
}

// dispatcher gives clients tasks.
type dispatcher interface {
	// submit takes a bag, whose number it is among those submitted.
	submit(number int, b *bag) error
	// ask is told that a client idles. It gives it work with [floor.give], now or later in this
	// instant, or else the client asks again.
	ask(c *client)
	// ended is told how a run ended, of a client that is there. It says which result counts with
	// [floor.accept].
	ended(c *client, r run, failed bool)
	// gone is told that a client has left, whose run is lost; nobody else is.
	gone(c *client, lost *run)
}

// run is a run of a task.
type run struct {
	bag     int
	task    uint32
	replica bool
	began   job.Time
	// name is the dispatcher's.
	name job.AttemptID
}

// client is what a slot runs on a host until it vanishes.
type client struct {
	slot *slot
	host *host
	up   bool
	runs []run // the first one is under way
	// untold are results that it could not tell yet.
	untold []untold
	// turn counts what it did: what was planned for an earlier turn is void.
	turn int
}

// untold is how a run ended.
type untold struct {
	run    run
	failed bool
}

// floor is the grids and what happens there.
type floor struct {
	w       *sim.World
	d       dispatcher
	seed    uint64
	bags    []*bag
	oneEach bool // a client does one task and leaves, and its host says when it is lost
	cut     bool // no client reaches the dispatcher
	// want is how many tasks an idle client asks for, 1 if it is 0.
	want int
	// enough ends the trial after so many asks that got tasks, unless it is 0; seen ends it when
	// what it is about has been seen, nil for when all bags have ended.
	enough int
	seen   func(*outcome) bool

	open    int // bags that have not ended
	done    [][]bool
	outcome *outcome
}

// outcome is what came of a trial with one seed.
type outcome struct {
	bags []bagOutcome
	// begun are runs by grid; of these failed did, lost vanished, counted gave the result.
	begun, lost, failed, counted map[string]int
	slots                        int
	// asks are those of clients, served those that got tasks.
	asks, served int
	// bulkAsks and bulk are how many asks got tasks before all of the first bag had been sent
	// once, and how many tasks they got.
	bulkAsks, bulk int
	// looks are how often policies were looked at for an ask, of each that got tasks. They are
	// counted in trials that end after so many.
	looks []float64
	// rushes are how many asks got tasks in each minute, handed how many tasks they got.
	rushes, handed []float64
	// shunned is which part of the hosts that do not fail everything is thought to fail often.
	shunned float64
}

// bagOutcome is what came of a bag. Times are in hours since its submission.
type bagOutcome struct {
	ends             []float64 // of its tasks, in their order
	from             []*grid   // where they ended
	ran              []float64 // how many hours they need there, in the same order
	replicas, wasted int       // runs
	stopped          int       // runs that another one made needless
	// firstSent is when the first task was sent, allSent when all had been once; open is how many
	// had not ended then.
	firstSent, allSent float64
	open               int
	// held and retried are what the owner had to look after, see [production.look].
	held    bool
	retried int
	sent    []bool
	unsent  int
}

// span is until the last task ended, own that from when the first one was sent.
func (b *bagOutcome) span() float64 { return b.ends[len(b.ends)-1] }
func (b *bagOutcome) own() float64  { return b.span() - b.firstSent }

// left is when so many tasks had not ended.
func (b *bagOutcome) left(n int) float64 { return b.ends[len(b.ends)-1-n] }

func newFloor(w *sim.World, slots []*slot, bags []*bag, seed uint64) *floor {
	f := &floor{w: w, bags: bags, seed: seed, open: len(bags), outcome: &outcome{
		bags: make([]bagOutcome, len(bags)), slots: len(slots),
		begun: map[string]int{}, lost: map[string]int{}, failed: map[string]int{}, counted: map[string]int{},
	}}
	for i, b := range bags {
		f.done = append(f.done, make([]bool, b.tasks))
		f.outcome.bags[i].sent, f.outcome.bags[i].unsent = make([]bool, b.tasks), int(b.tasks)
	}
	for _, s := range slots {
		f.queue(s)
	}
	return f
}

func (f *floor) after(d time.Duration, do func()) { f.w.At(f.w.Now().Add(max(d, 1)), do) }

// queue has the next client of a slot wait in the queue of its grid.
func (f *floor) queue(s *slot) {
	f.after(s.wait(), func() {
		h, up := s.client()
		c := &client{slot: s, host: h, up: true}
		f.after(up, func() { f.vanish(c) })
		f.ask(c)
	})
}

// ask has a client ask until it has something to do.
func (f *floor) ask(c *client) {
	c.turn++
	turn := c.turn
	if !f.cut {
		for _, u := range c.untold {
			f.d.ended(c, u.run, u.failed)
		}
		c.untold = nil
		f.outcome.asks++
		f.d.ask(c)
	}
	f.after(poll, func() {
		if c.up && c.turn == turn && len(c.runs) == 0 {
			f.ask(c)
		}
	})
}

// vanish has a client leave without a word.
func (f *floor) vanish(c *client) {
	if !c.up {
		return
	}
	f.leave(c)
}

func (f *floor) leave(c *client) {
	c.up = false
	var lost *run
	if len(c.runs) > 0 {
		f.outcome.lost[c.host.grid.name]++
		lost = &c.runs[0]
	}
	f.d.gone(c, lost)
	f.queue(c.slot)
}

// give has a client run tasks one after another, behind what it has. It counts replicas.
func (f *floor) give(c *client, runs ...run) {
	idle := len(c.runs) == 0
	c.runs = append(c.runs, runs...)
	for i := range runs {
		o := &f.outcome.bags[runs[i].bag]
		if runs[i].replica {
			o.replicas++
		}
		if task := runs[i].task; !o.sent[task] {
			o.sent[task] = true
			if o.unsent == len(o.sent) {
				o.firstSent = f.hours(runs[i].bag)
			}
			if o.unsent--; o.unsent == 0 {
				o.allSent, o.open = f.hours(runs[i].bag), len(o.sent)-len(o.ends)
			}
		}
	}
	if idle {
		f.begin(c)
	}
}

// begin has a client begin the first of its runs.
func (f *floor) begin(c *client) {
	c.turn++
	turn := c.turn
	r := &c.runs[0]
	r.began = f.w.Now()
	b, h := f.bags[r.bag], c.host
	f.outcome.begun[h.grid.name]++
	took := time.Duration(h.slow * float64(runTime(f.seed, r.bag, r.task, b.least, b.most)))
	failed := c.slot.fate.Float64() < h.fails+b.fails-h.fails*b.fails || h.black
	if h.black {
		took = blackRun
	}
	f.after(took, func() {
		if c.up && c.turn == turn {
			f.end(c, failed)
		}
	})
}

// end ends the run of a client, which goes on with the next.
func (f *floor) end(c *client, failed bool) {
	r := c.runs[0]
	c.runs = c.runs[1:]
	if failed {
		f.outcome.failed[c.host.grid.name]++
	}
	if f.cut {
		c.untold = append(c.untold, untold{r, failed})
	} else {
		f.d.ended(c, r, failed)
	}
	f.next(c)
}

// next has a client do what comes after a run.
func (f *floor) next(c *client) {
	switch {
	case len(c.runs) > 0:
		f.begin(c)
	case f.oneEach:
		f.leave(c)
	default:
		f.ask(c)
	}
}

// giveBack has a client give back at most n runs that it has not begun, the latest first. One
// that has vanished gives none.
func (f *floor) giveBack(c *client, n int) (back []run) {
	if !c.up || f.cut {
		return nil
	}
	for ; n > 0 && len(c.runs) > 1; n-- {
		last := len(c.runs) - 1
		back = append(back, c.runs[last])
		c.runs = c.runs[:last]
	}
	return back
}

// served counts an ask that got tasks, for which policies were looked at so often.
func (f *floor) served(tasks, looks int) {
	o := f.outcome
	if tasks == 0 {
		return
	}
	o.served++
	if o.bags[0].unsent > 0 {
		o.bulkAsks++
		o.bulk += tasks
	}
	if f.enough > 0 {
		o.looks = append(o.looks, float64(looks))
	}
	minute := int(f.w.Now().Sub(sim.Start).Minutes())
	for len(o.rushes) <= minute {
		o.rushes, o.handed = append(o.rushes, 0), append(o.handed, 0)
	}
	o.rushes[minute]++
	o.handed[minute] += float64(tasks)
}

// stop ends a run of a task before its end, and reports whether the client had it.
func (f *floor) stop(c *client, name job.AttemptID, task uint32) bool {
	for i := range c.runs {
		if r := c.runs[i]; r.name == name && r.task == task {
			f.outcome.bags[r.bag].stopped++
			c.runs = append(c.runs[:i:i], c.runs[i+1:]...)
			if i == 0 {
				f.next(c)
			}
			return true
		}
	}
	return false
}

// accept notes that a task has a result, from a host of a grid; a second one is waste.
func (f *floor) accept(bag int, task uint32, from *grid) {
	o := &f.outcome.bags[bag]
	if f.done[bag][task] {
		o.wasted++
		return
	}
	f.done[bag][task] = true
	f.outcome.counted[from.name]++
	b := f.bags[bag]
	o.ends, o.from = append(o.ends, f.hours(bag)), append(o.from, from)
	o.ran = append(o.ran, runTime(f.seed, bag, task, b.least, b.most).Hours())
	if len(o.ends) == int(b.tasks) {
		f.open--
	}
}

// hours is the time since a bag was submitted.
func (f *floor) hours(bag int) float64 {
	return f.w.Now().Sub(sim.Start.Add(f.bags[bag].at)).Hours()
}

// waste notes a result that nobody wants.
func (f *floor) waste(bag int) { f.outcome.bags[bag].wasted++ }

// outage lets no client reach the dispatcher for a while.
func (f *floor) outage(at, length time.Duration) {
	f.w.At(sim.Start.Add(at), func() { f.cut = true })
	f.w.At(sim.Start.Add(at+length), func() { f.cut = false })
}

// sawEnough reports whether the trial can end before its bags have.
func (f *floor) sawEnough() bool {
	return f.enough > 0 && f.outcome.served >= f.enough || f.seen != nil && f.seen(f.outcome)
}

// mostTime is for how long a trial goes on at most.
const mostTime = 90 * 24 * time.Hour

// play submits the bags and lets time pass until all have ended.
func (f *floor) play(more func() bool) (*outcome, error) {
	var refused error
	for i, b := range f.bags {
		f.w.At(sim.Start.Add(b.at), func() {
			if err := f.d.submit(i, b); err != nil && refused == nil {
				refused = err
			}
		})
	}
	stopped := false
	err := f.w.RunWhile(sim.Start.Add(mostTime), func() bool {
		stopped = !more()
		return f.open > 0 && refused == nil && !stopped && !f.sawEnough()
	})
	switch {
	case err != nil:
		return nil, err
	case refused != nil:
		return nil, refused
	case f.sawEnough():
	case f.open > 0:
		return nil, fmt.Errorf("%d of %d bags have not ended after %v (stopped: %t)", f.open, len(f.bags), time.Duration(f.w.Now()-sim.Start), stopped)
	}
	return f.outcome, nil
}
