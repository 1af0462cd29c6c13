package bags

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kith/internal/job"
	"kith/store"
)

// flow is an origin and hosts that go by the rules of this package, over a network that
// takes its time and loses nothing.
type flow struct {
	t         *testing.T
	rng       *rand.Rand
	state     *store.State
	desk      *Desk
	board     Board
	unserved  Unserved
	hosts     []*flowHost
	sites     []job.SiteID
	now       job.Time
	mail      []flowMail
	runs      map[job.TaskID]int
	recalled  int
	stay      bool          // nothing is recalled
	idle, all time.Duration // of places while tasks wait at the origin
	length    func(task uint32) time.Duration
}

type flowMail struct {
	at   job.Time
	read func()
}

type flowHost struct {
	site    job.SiteID
	places  int
	pilots  []flowPilot
	stock   Stock
	mean    Mean
	asking  bool
	wish    Interest
	drains  bool
	stamp   uint64
	since   job.Time // when the last pilot ended
	batches map[job.AttemptID]*flowBundle
}

type flowPilot struct {
	ends, done job.Time // of its walltime, and of its task
	bundle     job.AttemptID
	task       uint32
	runs       bool
}

type flowBundle struct {
	batch  Batch
	number uint32
	begun  int // tasks that run
	stock  int
}

const flowTick = 5 * time.Millisecond

func (f *flow) send(read func()) {
	at := f.now.Add(time.Duration(5+f.rng.IntN(40)) * time.Millisecond)
	if n := len(f.mail); n > 0 {
		at = max(at, f.mail[n-1].at) // in order
	}
	f.mail = append(f.mail, flowMail{at, read})
}

func (f *flow) works() (works []Work, bags []*store.Bag) {
	for b := range f.state.Bags {
		works, bags = append(works, WorkOf(b, 0, f.sites)), append(bags, b)
	}
	return works, bags
}

// claim answers an ask at the origin.
func (f *flow) claim(h *flowHost, a Ask, stamp uint64) {
	works, bags := f.works()
	shares := f.desk.Answer(a, works, f.now)
	var got []*store.TaskBundle
	var ids []job.AttemptID
	for _, s := range shares {
		b := bags[s.Work]
		id := job.AttemptID{Job: b.ID, Number: b.Number + 1}
		must(f.t, f.state, store.GrantBundle{Bundle: id, Site: h.site, Stamp: stamp, Generation: 1, Time: f.now, Tasks: f.desk.Grant(b, &works[s.Work], h.site, s.Tasks, f.now)})
		got, ids = append(got, b.Bundle(id.Number)), append(ids, id)
	}
	f.unserved.Answer(a, len(got))
	f.recall()
	f.send(func() {
		h.asking = false
		h.wish.Answer(len(got), f.now, f.rng)
		for i, t := range got {
			h.stock.Add(ids[i], time.Hour, t.Tasks.Clone())
			h.batches[ids[i]] = &flowBundle{stock: t.Tasks.Count()}
		}
	})
}

// recall asks for tasks for hosts that got none. The origin of the test knows each stock
// as it is, not as it was told.
func (f *flow) recall() {
	if f.stay {
		return
	}
	var holdings []Holding
	for _, h := range f.hosts {
		holdings = append(holdings, Holding{h.site, "", len(h.pilots), h.stock.Count(), h.mean.Run()})
	}
	from, n := f.unserved.Recall(hour, holdings)
	if from < 0 {
		return
	}
	f.send(func() {
		h := f.hosts[from]
		for i := len(h.stock.lots) - 1; i >= 0 && n > 0; i-- {
			id := h.stock.lots[i].bundle
			back := h.stock.Recall(id, n)
			n -= back.Count()
			f.recalled += back.Count()
			f.goBack(h, id, back)
		}
	})
}

func (f *flow) goBack(h *flowHost, id job.AttemptID, tasks job.TaskSet) {
	h.batches[id].stock -= tasks.Count()
	f.send(func() { must(f.t, f.state, store.ReturnTasks{Bundle: id, Site: h.site, Tasks: tasks}) })
}

func (f *flow) report(h *flowHost, id job.AttemptID, b *flowBundle) {
	b.number++
	c := store.RecordResults{Bundle: id, Site: h.site, Batch: b.number, Results: b.batch.Take()}
	f.send(func() {
		must(f.t, f.state, c)
		for i := range c.Results {
			f.desk.Usage.Add(f.state.Bag(id.Job).Request.User, c.Results[i].Run.Seconds(), f.now)
		}
		f.recall()
	})
}

func (f *flow) step(h *flowHost) {
	open, _ := h.wish.Open(f.now)
	open = open && !h.drains
	keep := h.pilots[:0]
	for _, p := range h.pilots {
		if p.runs && p.done <= f.now {
			b := h.batches[p.bundle]
			b.begun--
			run := f.length(p.task)
			h.mean.Add(run)
			b.batch.Add(job.TaskResult{Ordinal: p.task, Kind: job.Success, Run: run}, f.now)
			f.runs[job.TaskID{Bag: p.bundle.Job, Ordinal: p.task}]++
			p.runs = false
		}
		left := p.ends.Sub(f.now)
		m := Moment{
			Left: left, Running: p.runs, Fits: h.stock.Fits(left), Stock: h.stock.Count(), Coming: h.asking || open || h.wish.Last() && !h.drains,
			Shortest: hour.Shortest(), Draining: h.drains,
		}
		switch act, _ := m.Next(); act {
		case Begin:
			p.bundle, p.task, p.runs = h.next(left)
			p.done = f.now.Add(f.length(p.task))
		case Finish:
			h.since = f.now
			continue
		}
		keep = append(keep, p)
	}
	h.pilots = keep
	if back, _ := GiveBack(len(h.pilots), h.since, f.now, h.drains); back {
		for _, l := range h.stock.Clear() {
			f.goBack(h, l.Bundle, l.Tasks)
		}
	}
	if !h.drains && (open || h.stock.Count() > 0) && len(h.pilots) < h.places {
		h.pilots = append(h.pilots, flowPilot{ends: f.now.Add(hour.PilotWalltime(10 * time.Minute))})
	}
	running := 0
	for i := range h.pilots {
		if h.pilots[i].runs {
			running++
		}
	}
	level := Level{len(h.pilots), running, h.stock.Count(), h.mean.Run()}
	if n := level.Want(); n > 0 && !h.asking && (open || h.wish.Last() && !h.drains) {
		h.asking = true
		h.stamp++
		a, stamp := Ask{h.site, "", hour, level.Places, running, level.Stock, level.Mean, n}, h.stamp
		f.send(func() { f.claim(h, a, stamp) })
	}
	for _, id := range slices.SortedFunc(maps.Keys(h.batches), job.AttemptID.Compare) {
		b := h.batches[id]
		for b.batch.Due(b.begun+b.stock > 0) <= f.now {
			f.report(h, id, b)
		}
		if b.begun+b.stock == 0 {
			delete(h.batches, id)
		}
	}
}

func (h *flowHost) next(left time.Duration) (job.AttemptID, uint32, bool) {
	bundle, task, ok := h.stock.Next(left)
	b := h.batches[bundle]
	b.stock--
	b.begun++
	return bundle, task, ok
}

// run goes on until all bags have ended.
func (f *flow) run(limit time.Duration, each func()) {
	for ; ; f.now = f.now.Add(flowTick) {
		for len(f.mail) > 0 && f.mail[0].at <= f.now {
			read := f.mail[0].read
			f.mail = f.mail[1:]
			read()
		}
		works, _ := f.works()
		for _, o := range f.board.Due(works, everywhere) {
			h := f.hosts[slices.Index(f.sites, o.Site)]
			f.send(func() { h.wish.Offer(o.Tasks) })
		}
		waiting := 0
		for i := range works {
			waiting += works[i].Tasks()
		}
		for _, h := range f.hosts {
			f.step(h)
			if waiting > 0 && !h.drains {
				f.all += time.Duration(h.places) * flowTick
				for range h.places - h.running() {
					f.idle += flowTick
				}
			}
		}
		each()
		left := 0
		for b := range f.state.Bags {
			left += int(b.Tasks()) - b.EndedCount()
		}
		if left == 0 {
			return
		}
		if f.now > job.Time(limit) {
			f.t.Fatalf("%d tasks are left after %v", left, limit)
		}
	}
}

func (h *flowHost) running() (n int) {
	for i := range h.pilots {
		if h.pilots[i].runs {
			n++
		}
	}
	return n
}

func newFlow(t *testing.T, seed uint64, places []int, length func(task uint32) time.Duration) *flow {
	f := &flow{t: t, rng: rand.New(rand.NewPCG(seed, 12)), state: store.NewState("alpha", 1), desk: newDesk(), runs: map[job.TaskID]int{}, length: length}
	for i, n := range places {
		h := &flowHost{site: []job.SiteID{"beta", "gamma", "delta"}[i], places: n, batches: map[job.AttemptID]*flowBundle{}}
		f.hosts, f.sites = append(f.hosts, h), append(f.sites, h.site)
	}
	return f
}

func (f *flow) eachRanOnce() {
	f.t.Helper()
	if err := f.state.Check(); err != nil {
		f.t.Error(err)
	}
	tasks := 0
	for b := range f.state.Bags {
		tasks += int(b.Tasks())
		if b.Sums.Wasted > 0 || b.Done.Count() != int(b.Tasks()) {
			f.t.Errorf("%v: %d of %d tasks are done, %d results are wasted", b.ID, b.Done.Count(), b.Tasks(), b.Sums.Wasted)
		}
	}
	if len(f.runs) != tasks {
		f.t.Errorf("%d of %d tasks ran", len(f.runs), tasks)
	}
	for task, n := range f.runs {
		if n != 1 {
			f.t.Errorf("task %v ran %d times", task, n)
		}
	}
}

// Every task of every bag runs once, through drains of hosts and holds of bags, whatever
// is given back and recalled meanwhile.
func TestTasksRunOnce(t *testing.T) {
	seeds, recalled := uint64(6), 0
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		lengths := []time.Duration{20 * time.Millisecond, 300 * time.Millisecond, 4 * time.Second}
		f := newFlow(t, seed, []int{1, 4, 9}, func(task uint32) time.Duration { return lengths[task/7%3] })
		for i := range uint32(3) {
			submit(t, f.state, 100+i*100, func(c *store.SubmitBag) { c.MaxRunning = i * 15 })
		}
		first := f.state.Bag(job.ID{Origin: "alpha", Generation: 1, Seq: 1})
		f.run(time.Hour, func() {
			if h := f.hosts[f.rng.IntN(3)]; f.rng.IntN(300) == 0 {
				h.drains = !h.drains
			}
			if f.rng.IntN(300) == 0 && first.State == job.BagOpen {
				must(t, f.state, store.HoldBag{Bag: first.ID})
			} else if f.rng.IntN(200) == 0 && first.State == job.BagOnHold {
				must(t, f.state, store.ReleaseBag{Bag: first.ID})
			}
		})
		f.eachRanOnce()
		recalled += f.recalled
	}
	if recalled == 0 {
		t.Error("nothing was recalled")
	}
}

// Places are busy while tasks wait, long ones and short ones.
func TestPlacesAreBusyWhileTasksWait(t *testing.T) {
	for name, c := range map[string]struct {
		tasks  uint32
		length time.Duration
		most   float64 // share of idle time
	}{
		"short": {20_000, 10 * time.Millisecond, 0.02},
		"long":  {240, 20 * time.Second, 0.02},
	} {
		f := newFlow(t, 1, []int{4, 8}, func(uint32) time.Duration { return c.length })
		submit(t, f.state, c.tasks, nil)
		f.run(time.Hour, func() {})
		f.eachRanOnce()
		if share := f.idle.Seconds() / f.all.Seconds(); share > c.most {
			t.Errorf("%s tasks: places are idle for %.3f of the time while tasks wait", name, share)
		} else {
			t.Logf("%s tasks: %.4f", name, share)
		}
	}
}

// Tasks that were fetched ahead because those before were short, and turn out long, do not
// all run where they are (spec 002, G14).
func TestRecallsShortenTheTail(t *testing.T) {
	took := map[bool]time.Duration{}
	for _, stay := range []bool{false, true} {
		f := newFlow(t, 2, []int{4, 4}, func(task uint32) time.Duration {
			if task < 1500 {
				return 20 * time.Millisecond
			}
			return 4 * time.Second
		})
		f.stay = stay
		submit(t, f.state, 1540, nil)
		f.run(time.Hour, func() {})
		f.eachRanOnce()
		took[stay] = time.Duration(f.now)
		if stay != (f.recalled == 0) {
			t.Errorf("%d tasks were recalled", f.recalled)
		}
	}
	t.Logf("%v with recalls, %v without", took[false], took[true])
	if took[false] > took[true]*9/10 {
		t.Errorf("it took %v with recalls, %v without", took[false], took[true])
	}
}
