package meta_test

import (
	"cmp"
	"container/heap"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/commit"
	"kith/sitesched"
	"kith/store"
)

// world is a few sites with their engines, in virtual time, that run tasks. What a site has
// recorded survives whatever happens to it; package sim has the disks that forget.
type world struct {
	t       *testing.T
	rng     *rand.Rand
	now     job.Time
	next    deeds
	seq     int
	sites   []*place
	lost    float64                              // of messages
	twist   float64                              // of messages that come twice
	takes   func(job.TaskID) outcome             // what becomes of a task
	takesAt func(job.SiteID, job.TaskID) outcome // instead of takes, if set
	running map[job.TaskID]int                   // how many runs of it there are
	starts  map[job.TaskID]int
	twice   []string // what must not be
	mayRace bool
	jobs    time.Duration          // how long jobs run, 0 for 30 s
	loses   func(task uint32) bool // whether its output does not come home; nil: never
	results []store.ResultOf       // as origins have recorded them
}

// outcome is how long a task runs, and with what exit code it ends.
type outcome struct {
	run  time.Duration
	code int32
}

// place is a site of the world.
type place struct {
	w      *world
	id     job.SiteID
	procs  int32
	cfg    meta.Config
	state  *store.State
	engine *meta.Engine
	site   *sitesched.Scheduler
	boot   int
	folder uint32 // generation of the data folder
	life   int    // counts the daemons
	wakes  job.Time
	links  map[job.SiteID]int // number of the stream that is up, 0 for none
	tasks  map[job.AttemptID]*process
	busy   int32
	fed    int                    // events
	heard  int                    // messages but loads
	old    bool                   // its version knows no tasks
	wiped  bool                   // its next daemon finds no disk
	hung   bool                   // fetches nothing
	broken bool                   // starts nothing
	failed int                    // starts
	left   map[job.AttemptID]bool // what such a start made, until it is cleared
}

// checkEvery is after how many events a site is checked from scratch.
const checkEvery = 16

// process is a run of a task at a site, or what it left.
type process struct {
	task  job.TaskID
	width int32
	began job.Time
	lease job.Time
	out   *job.Outcome // nil while it runs
}

type deed struct {
	at  job.Time
	seq int
	do  func()
}

type deeds []deed

func (d deeds) Len() int { return len(d) }
func (d deeds) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(d[i].at, d[j].at), cmp.Compare(d[i].seq, d[j].seq)) < 0
}
func (d deeds) Swap(i, j int) { d[i], d[j] = d[j], d[i] }
func (d *deeds) Push(x any)   { *d = append(*d, x.(deed)) }
func (d *deeds) Pop() any {
	old := *d
	last := old[len(old)-1]
	*d = old[:len(old)-1]
	return last
}

func newWorld(t *testing.T, seed uint64, tune func(*meta.Config), procs ...int32) *world {
	w := &world{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), now: job.Time(time.Hour), running: map[job.TaskID]int{}, starts: map[job.TaskID]int{},
	}
	w.takes = func(job.TaskID) outcome { return outcome{run: time.Second} }
	for i, n := range procs {
		p := &place{w: w, id: job.SiteID([]string{"alpha", "beta", "gamma", "delta", "epsilon"}[i]), procs: n, boot: 1, folder: 1, links: map[job.SiteID]int{}, tasks: map[job.AttemptID]*process{}, left: map[job.AttemptID]bool{}}
		p.cfg = meta.Default()
		p.cfg.Self = meta.Self{Processors: n, Speed: 1}
		if tune != nil {
			tune(&p.cfg)
		}
		p.state = store.NewState(p.id, 1)
		w.sites = append(w.sites, p)
		p.start()
	}
	for i, p := range w.sites {
		for _, q := range w.sites[i+1:] {
			w.connect(p, q)
		}
	}
	return w
}

func (w *world) after(d time.Duration, do func()) {
	w.seq++
	heap.Push(&w.next, deed{w.now.Add(d), w.seq, do})
}

// start begins a daemon.
func (p *place) start() {
	p.life++
	p.wakes = job.Never
	p.cfg.BootID = fmt.Sprintf("boot-%d", p.boot)
	if err := commit.BeginLife(p.state, nil, store.BeginLife{}); err != nil {
		p.w.t.Fatal(err)
	}
	var err error
	if p.site, err = sitesched.New(sitesched.Config{Processors: p.procs, Backfill: sitesched.EASY, Queues: sitesched.DualBackfill}); err != nil {
		p.w.t.Fatal(err)
	}
	if p.engine, err = meta.New(p.cfg, p.state, p.site); err != nil {
		p.w.t.Fatal(err)
	}
	var peers []job.SiteID
	for _, q := range p.w.sites {
		peers = append(peers, q.id)
	}
	p.carry(p.engine.Restore(p.w.now, peers))
	p.feed(meta.Tick{})
}

// feed gives an engine an event, and ends the instant.
func (p *place) feed(ev meta.Event) {
	if p.engine == nil {
		return
	}
	p.carry(p.engine.Step(p.w.now, ev))
	for n := 0; p.engine.NeedsPass(); n++ {
		if n > 100 {
			p.w.t.Fatalf("%s: passes without end at %v", p.id, p.w.now)
		}
		p.carry(p.engine.Step(p.w.now, meta.Pass{}))
	}
	if p.fed++; p.fed%checkEvery == 0 {
		if err := p.state.Check(); err != nil {
			p.w.t.Fatal(err)
		}
		if err := p.site.Check(); err != nil {
			p.w.t.Fatal(err)
		}
	}
	p.w.results = append(p.w.results, p.state.TakeChanges().Results...)
	at := p.engine.NextWake(p.w.now)
	if at < p.wakes {
		p.wakes = at
		life := p.life
		p.w.after(max(at.Sub(p.w.now), 1), func() {
			if p.life == life && p.wakes == at {
				p.wakes = job.Never
				p.feed(meta.Tick{})
			}
		})
	}
}

// later feeds an event if the daemon is still the same then.
func (p *place) later(d time.Duration, ev func() meta.Event) {
	life := p.life
	p.w.after(d, func() {
		if p.life == life {
			if e := ev(); e != nil {
				p.feed(e)
			}
		}
	})
}

func (p *place) carry(effects []meta.Effect) {
	for _, f := range slices.Clone(effects) {
		switch f := f.(type) {
		case meta.Send:
			p.send(f.To, f.Message)
		case meta.Grant:
			p.send(f.To, f.Message(nil))
		case meta.GrantTasks:
			p.send(f.To, f.Verdict)
		case meta.Launch:
			p.launch(f)
		case meta.Adopt:
			p.adopt(f)
		case meta.Kill:
			p.end(f.Attempt, job.Outcome{Kind: map[bool]job.OutcomeKind{true: job.Loss, false: job.Cancel}[f.Lease], ExitCode: 0, Signal: 15})
		case meta.Extend:
			if r := p.tasks[f.Attempt]; r != nil {
				r.lease = max(r.lease, f.Until)
			}
		case meta.Clear:
			if r := p.tasks[f.Attempt]; r != nil && r.out == nil {
				p.w.t.Fatalf("%s: %v is cleared while it runs", p.id, f.Attempt)
			}
			delete(p.tasks, f.Attempt)
			delete(p.left, f.Attempt)
		case meta.FetchTasks:
			if !p.hung {
				home := meta.TasksHome{Bundle: f.Bundle, Batch: f.Batch}
				for i := range f.Files {
					if p.w.loses != nil && p.w.loses(f.Files[i].Ordinal) {
						home.Lost = append(home.Lost, f.Files[i].Ordinal)
					}
				}
				p.later(20*time.Millisecond, func() meta.Event { return home })
			}
		case meta.Reply:
			if f.Err != nil {
				p.w.t.Fatalf("%s: %v", p.id, f.Err)
			}
		}
	}
}

func (p *place) send(to job.SiteID, m meta.Message) {
	n := p.links[to]
	if n == 0 || p.w.rng.Float64() < p.w.lost {
		return
	}
	q := p.w.place(to)
	if _, offer := m.(meta.Offer); offer && q.old {
		p.w.t.Errorf("%s offers tasks to %s, which knows none", p.id, to)
	}
	deliver := func() {
		if p.links[to] == n && q.engine != nil {
			if _, load := m.(meta.LoadDigest); !load {
				q.heard++
			}
			q.feed(meta.Receive{From: p.id, Message: m})
		}
	}
	p.w.after(10*time.Millisecond, deliver)
	if p.w.rng.Float64() < p.w.twist { // again, and late: no stream does this
		p.w.after(time.Duration(p.w.rng.IntN(10_000))*time.Millisecond, deliver)
	}
}

func (w *world) place(id job.SiteID) *place {
	return w.sites[slices.IndexFunc(w.sites, func(p *place) bool { return p.id == id })]
}

func (w *world) connect(p, q *place) {
	if p.links[q.id] != 0 || p.engine == nil || q.engine == nil {
		return
	}
	w.seq++
	p.links[q.id], q.links[p.id] = w.seq, w.seq
	p.feed(meta.PeerUp{Site: q.id, Generation: q.folder, NoTasks: q.old})
	q.feed(meta.PeerUp{Site: p.id, Generation: p.folder, NoTasks: p.old})
}

func (w *world) cut(p, q *place) {
	if p.links[q.id] != 0 {
		p.links[q.id], q.links[p.id] = 0, 0
		p.feed(meta.PeerDown{Site: q.id})
		q.feed(meta.PeerDown{Site: p.id})
	}
}

// stop ends a daemon, and begins the next one after a while. With the machine all that runs
// there ends, and only the facts stay.
func (p *place) stop(machine bool, pause time.Duration) {
	for _, q := range p.w.sites {
		p.w.cut(p, q)
	}
	p.engine = nil
	p.life++
	if machine {
		p.boot++
		for id, r := range p.tasks {
			if r.out == nil {
				p.w.running[r.task]--
			}
			delete(p.tasks, id)
		}
		p.busy = 0
	}
	p.w.after(pause, func() {
		if p.wiped {
			p.wiped = false
			p.folder++
			p.state = store.NewState(p.id, p.folder)
			clear(p.tasks) // what still runs nobody knows of
		}
		p.start()
		for _, q := range p.w.sites {
			if q != p {
				p.w.connect(p, q)
			}
		}
	})
}

func (p *place) launch(f meta.Launch) {
	if f.Task == nil { // a job
		p.later(time.Millisecond, func() meta.Event { return meta.AttemptStarted{Attempt: f.Attempt, At: p.w.now} })
		run := cmp.Or(p.w.jobs, 30*time.Second)
		out := job.Outcome{Kind: job.Success, Start: p.w.now, End: p.w.now.Add(run)}
		p.later(run, func() meta.Event { return meta.AttemptEnded{Attempt: f.Attempt, Outcome: out} })
		return
	}
	if p.tasks[f.Attempt] != nil {
		p.w.t.Fatalf("%s launches %v twice", p.id, f.Attempt)
	}
	if p.broken {
		p.failed++
		p.left[f.Attempt] = true
		p.later(time.Millisecond, func() meta.Event { return meta.StartFailed{Attempt: f.Attempt, Reason: "no more processes"} })
		return
	}
	task := job.TaskID{Bag: f.Task.Bundle.Job, Ordinal: f.Task.Ordinal}
	r := &process{task: task, width: f.Request.Processors, began: p.w.now, lease: f.Lease}
	p.tasks[f.Attempt] = r
	p.w.running[task]++
	p.w.starts[task]++
	if p.w.running[task] > 1 && !p.w.mayRace {
		p.w.twice = append(p.w.twice, fmt.Sprintf("%v runs twice at once, at %s", task, p.id))
	}
	if p.busy += r.width; p.busy > p.procs {
		p.w.t.Fatalf("%s runs tasks on %d of %d processors", p.id, p.busy, p.procs)
	}
	out := p.w.takes(task)
	if p.w.takesAt != nil {
		out = p.w.takesAt(p.id, task)
	}
	p.later(time.Millisecond, func() meta.Event {
		if p.tasks[f.Attempt] != r || r.out != nil {
			return nil
		}
		return meta.AttemptStarted{Attempt: f.Attempt, At: r.began}
	})
	p.w.after(max(out.run, time.Millisecond), func() {
		kind := job.Success
		if out.code != 0 {
			kind = job.Failure
		}
		if p.tasks[f.Attempt] == r {
			p.end(f.Attempt, job.Outcome{Kind: kind, ExitCode: out.code, Files: []byte("x")})
		}
	})
	p.watch(f.Attempt, r)
}

// watch ends a run whose lease has ended.
func (p *place) watch(id job.AttemptID, r *process) {
	if r.lease == 0 {
		return
	}
	p.w.after(max(1, r.lease.Sub(p.w.now)), func() {
		switch {
		case p.tasks[id] != r || r.out != nil:
		case p.w.now >= r.lease:
			p.end(id, job.Outcome{Kind: job.Loss})
		default:
			p.watch(id, r)
		}
	})
}

// end ends a run, and tells the daemon if there is one.
func (p *place) end(id job.AttemptID, o job.Outcome) {
	r := p.tasks[id]
	if r == nil || r.out != nil {
		return
	}
	o.Start, o.End = r.began, p.w.now
	r.out = &o
	p.w.running[r.task]--
	p.busy -= r.width
	p.later(time.Millisecond, func() meta.Event { return meta.AttemptEnded{Attempt: id, Outcome: o} })
}

func (p *place) adopt(f meta.Adopt) {
	r := p.tasks[f.Attempt]
	p.later(5*time.Millisecond, func() meta.Event {
		switch {
		case r == nil:
			return meta.AttemptMissing{Attempt: f.Attempt}
		case r.out != nil:
			return meta.AttemptEnded{Attempt: f.Attempt, Outcome: *r.out}
		}
		return meta.AttemptStarted{Attempt: f.Attempt, At: r.began}
	})
}

// submit has a site take a bag, and returns its id.
func (p *place) submit(ev meta.SubmitBag) job.ID {
	id := p.state.NextID()
	p.feed(ev)
	return id
}

// run lets time pass until all bags have ended or d is over, and reports whether they have.
func (w *world) run(d time.Duration) bool {
	end := w.now.Add(d)
	for len(w.next) > 0 && w.next[0].at <= end && len(w.twice) == 0 {
		x := heap.Pop(&w.next).(deed)
		w.now = max(w.now, x.at)
		x.do()
		if w.ended() {
			return true
		}
	}
	if w.now < end && len(w.twice) == 0 {
		w.now = end
	}
	return w.ended()
}

func (w *world) ended() bool {
	for _, p := range w.sites {
		for b := range p.state.Bags {
			if !b.State.Terminal() {
				return false
			}
		}
	}
	return true
}

// settle checks, after all bags have ended, that nothing of them is left at any site.
func (w *world) settle() {
	w.t.Helper()
	w.lost = 0
	end := w.now.Add(5 * time.Minute)
	for len(w.next) > 0 && w.next[0].at <= end {
		x := heap.Pop(&w.next).(deed)
		w.now = max(w.now, x.at)
		x.do()
	}
	for _, p := range w.sites {
		if held := p.state.HeldBundles(); len(held) > 0 {
			w.t.Errorf("%s still holds %d bundles, the first %v with %d tasks and %d batches", p.id, len(held), held[0].ID, held[0].Tasks.Count(), len(held[0].Unacked))
		}
		if len(p.tasks) > 0 {
			first := slices.SortedFunc(maps.Keys(p.tasks), job.AttemptID.Compare)[0]
			w.t.Errorf("%s still has what %d tasks left, the first %v of %v", p.id, len(p.tasks), first, p.tasks[first].task)
		}
		if n := p.site.Load(w.now); n.Running != 0 || n.Queued != 0 {
			w.t.Errorf("%s has %d pilots running and %d queued", p.id, n.Running, n.Queued)
		}
	}
}

func (w *world) story() {
	for _, p := range w.sites {
		for b := range p.state.Bags {
			w.t.Logf("%v %v: %d tasks, next %d, again %d, given %d, done %d, failed %d, cancelled %d, runs %d, live %d", b.ID, b.State, b.Tasks(), b.Next, b.Again.Count(),
				b.Given(), b.Done.Count(), b.Failed.Count(), b.Cancelled.Count(), b.Sums.Runs, len(b.Live))
		}
		if p.engine != nil {
			w.t.Logf("%s: %+v held %d load %+v", p.id, p.engine.Views().Counters(), len(p.state.HeldBundles()), p.site.Load(w.now))
		}
	}
}
