package gridbot

import (
	"cmp"
	"container/heap"
	"maps"
	"math"
	"slices"
	"time"

	"kith/internal/job"
	"kith/meta/bags"
	"kith/meta/policy"
	"kith/testbed/sim"
)

// plain is the paper's server: algorithm 1 for each ask (spec 002 section 2.2, with one look at
// each bag, section 2.6) and algorithm 2 once a minute (section 2.3). Replicas are handed out
// before tasks that were never sent: they come into the queue as tasks of their own, and in the
// order of tasks stand before these. A bag without policies is dispatched as the unmodified
// server does it.
//
// A run is not stopped when another one has won: clients learn of it only when they ask.
type plain struct {
	f         *floor
	deadline  time.Duration // of bags that state none
	bags      []*plainBag
	standings map[*host]*plainHost
	hosts     []*plainHost // in the order in which they came
	due       plainDeadlines
	queue     *bags.Scope
	sites     map[*grid]*bags.Scope
	compiler  *policy.Compiler
	runs      map[uint32]*plainRun // by number
	sent      uint32
	cycling   bool
	// relative blames hosts as the engine of kithd does, and not for each failure.
	relative bool
	// recalls takes tasks back that a client has not begun, by the rule of the engine.
	recalls bool
	looks   int // at policies, for asks

	candidates []candidate // scratch
}

type plainHost struct {
	standing bags.Standing
	scope    *bags.Scope
	// quota is how many runs it may get a day, today how many it got on day.
	quota, today float64
	day          int64
	// client is the latest that asked, has how many tasks are thought to be with it. From one
	// that is silent none is recalled.
	client *client
	has    int
	silent bool
}

type plainBag struct {
	*bag
	number int
	judge  bags.Judge // nil without policies
	scope  *bags.Scope
	task   *bags.Scope
	next   uint32   // tasks from here on were never sent
	again  []uint32 // lost or failed
	twice  []uint32 // replicas to be sent
	live   map[uint32][]*plainRun
	queued map[uint32]int // how often it is in twice
	ended  []bool
	left   int
	tail   bool
	// buffered is how many of its tasks are in a [buffered]'s buffer, unwanted those that left
	// it as no client took them: the end of the queue.
	buffered int
	unwanted []uint32
	blame    bags.Blame
}

// plainRun is an attempt that the server believes is alive.
type plainRun struct {
	bag  *plainBag
	task uint32
	host *host
	at   job.Time
	// late says that its deadline has passed: the server thinks it failed.
	late bool
}

type plainDue struct {
	at     job.Time
	number uint32
}

type plainDeadlines []plainDue

func (d plainDeadlines) Len() int { return len(d) }
func (d plainDeadlines) Less(i, j int) bool {
	return d[i].at < d[j].at || d[i].at == d[j].at && d[i].number < d[j].number
}
func (d plainDeadlines) Swap(i, j int) { d[i], d[j] = d[j], d[i] }
func (d *plainDeadlines) Push(x any)   { *d = append(*d, x.(plainDue)) }
func (d *plainDeadlines) Pop() any {
	old := *d
	last := old[len(old)-1]
	*d = old[:len(old)-1]
	return last
}

const (
	// naiveDeadline is that of the unmodified server.
	naiveDeadline = 3 * 24 * time.Hour
	// plainCycle is that of replication and deadlines.
	plainCycle = time.Minute
	// firstQuota is how many runs a day a host may get at first. A failure halves that, a
	// success adds one (spec 002 section 2.8); the unmodified server has such a quota, too.
	firstQuota = 100
)

func newPlain() *plain { return newPlainWith(policy.New()) }

func newPlainWith(compiler *policy.Compiler) *plain {
	return &plain{
		deadline: naiveDeadline, standings: make(map[*host]*plainHost), queue: bags.NewScope(bags.RootQueue),
		sites: make(map[*grid]*bags.Scope), compiler: compiler, runs: make(map[uint32]*plainRun),
	}
}

// submit implements [dispatcher].
func (p *plain) submit(number int, b *bag) error {
	x := &plainBag{
		bag: b, number: number, scope: bags.NewScope(bags.RootBag), task: bags.NewScope(bags.RootTask),
		live: make(map[uint32][]*plainRun), queued: make(map[uint32]int), ended: make([]bool, b.tasks), left: int(b.tasks),
	}
	if b.policies.Stated() {
		judge, err := p.compiler.Compile(&b.policies)
		if err != nil {
			return err
		}
		x.judge = judge
	}
	p.bags = append(p.bags, x)
	p.look(x)
	if !p.cycling {
		p.cycling = true
		p.cycle()
	}
	return nil
}

func (x *plainBag) unsent() int {
	return int(x.tasks-x.next) + len(x.again) + x.buffered + len(x.unwanted)
}

// look takes up how many tasks of a bag wait. The tail is latched.
func (p *plain) look(x *plainBag) {
	x.tail = x.tail || x.unsent() < int(x.tailAt)
	x.scope.Truth(bags.BagTail, x.tail)
	x.scope.Number(bags.BagLeft, float64(x.left))
	x.scope.Number(bags.BagUnsent, float64(x.unsent()))
}

func (p *plain) host(h *host) *plainHost {
	s := p.standings[h]
	if s == nil {
		s = &plainHost{scope: bags.NewScope(bags.RootHost), quota: firstQuota}
		s.scope.Text(bags.HostSite, string(h.site))
		s.standing.Fill(s.scope, p.f.w.Now())
		p.standings[h] = s
		p.hosts = append(p.hosts, s)
	}
	return s
}

// note takes up how a run of a bag at a host ended.
func (p *plain) note(x *plainBag, h *host, failed bool, took time.Duration) {
	s, now := p.host(h), p.f.w.Now()
	blamed := bags.Blamed{Failed: failed, Turnaround: took, Compared: true}
	switch {
	case p.relative:
		blamed = x.blame.Result(bags.Host{Site: h.site}, failed, took, took, false)
		s.quota *= math.Exp2(-blamed.Charge)
	case failed:
		blamed.Excess = 1
		s.quota /= 2
	}
	if !failed {
		s.quota++
	}
	s.standing.Result(blamed, now)
	s.standing.Fill(s.scope, now)
}

// scene is what policies are asked about, of a host or of none.
func (p *plain) scene(x *plainBag, h *host) bags.Scene {
	scene := bags.Scene{Bag: x.scope, Queue: p.queue, Submitted: sim.Start.Add(x.at), Now: p.f.w.Now()}
	if h == nil {
		return scene
	}
	site := p.sites[h.grid]
	if site == nil {
		site = bags.NewScope(bags.RootSite)
		site.Text(bags.SiteName, h.grid.name)
		p.sites[h.grid] = site
	}
	scene.Host, scene.Site = p.host(h).scope, site
	return scene
}

// ask implements [dispatcher].
func (p *plain) ask(c *client) {
	if !p.admit(c) {
		return
	}
	assigned := p.assign(c)
	if assigned == 0 && p.recalls && p.recall() {
		assigned = p.assign(c)
	}
	p.count(c, assigned)
}

// admit takes up that a client asks, and reports whether its host may have more runs today.
func (p *plain) admit(c *client) bool {
	h := p.host(c.host)
	h.client, h.silent = c, false
	if day := int64(time.Duration(p.f.w.Now()) / (24 * time.Hour)); day != h.day {
		h.day, h.today = day, 0
	}
	return h.today < max(1, h.quota)
}

// count counts an ask that got so many tasks.
func (p *plain) count(c *client, assigned int) {
	p.host(c.host).today += float64(assigned)
	p.f.served(assigned, p.looks)
	p.looks = 0
}

// assign is algorithm 1. Bags that match stand by priority, then by rank, then in order of
// submission; the least concurrency of those that came before binds. It returns how many tasks
// the client got.
func (p *plain) assign(c *client) (assigned int) {
	p.candidates = p.candidates[:0]
	for _, x := range p.bags {
		if x.unsent()+len(x.twice) == 0 {
			continue
		}
		if v := p.verdict(x, c.host); v.Yes {
			p.candidates = append(p.candidates, candidate{x, v})
		}
	}
	slices.SortStableFunc(p.candidates, candidate.compare)
	most := math.Inf(1)
	for _, x := range p.candidates {
		for most = min(most, x.Most); float64(assigned) < most; assigned++ {
			if !p.send(c, x.bag) {
				break
			}
		}
	}
	return assigned
}

// verdict asks the policies of a bag about a host.
func (p *plain) verdict(x *plainBag, h *host) bags.Verdict {
	p.looks++
	v := bags.Verdict{Yes: true, Most: 1}
	if x.judge != nil {
		s := p.scene(x, h)
		v = x.judge.Verdict(&s)
	}
	if math.IsInf(v.Most, 1) {
		v.Most = 1 // its one processor
	}
	return v
}

// compare orders candidates by priority, then by rank, the highest first, then by submission.
func (a candidate) compare(b candidate) int {
	return cmp.Or(cmp.Compare(b.bag.priority, a.bag.priority), cmp.Compare(b.Rank, a.Rank), cmp.Compare(a.bag.number, b.bag.number))
}

// shunned is which part of the hosts that do not fail everything is thought to fail often.
func (p *plain) shunned() float64 {
	some, all := 0, 0
	for _, h := range p.hosts {
		if h.client == nil || h.client.host.black {
			continue
		}
		if all++; h.standing.ErrorRate() >= shunnedRate {
			some++
		}
	}
	return float64(some) / float64(max(1, all))
}

// recall takes a task back that has not begun, from the client that has most of them by the
// rule of the engine, and reports whether that brought any. From one that has vanished no
// answer comes.
func (p *plain) recall() bool {
	var holdings []bags.Holding
	var at []*plainHost
	for _, h := range p.hosts {
		if !h.silent && h.has > 1 {
			holdings = append(holdings, bags.Holding{Site: h.client.host.site, Places: 1, Unstarted: h.has - 1})
			at = append(at, h)
		}
	}
	from, n := bags.Recall(bags.Ask{Places: 1, Want: 1}, holdings)
	if from < 0 {
		return false
	}
	h := at[from]
	back := p.f.giveBack(h.client, n)
	h.silent = len(back) == 0
	for _, r := range back {
		l := p.runs[r.name.Number]
		p.drop(l, r.name.Number)
		l.bag.lose(r.task)
		p.look(l.bag)
	}
	return len(back) > 0
}

// drop forgets a run.
func (p *plain) drop(l *plainRun, number uint32) {
	delete(p.runs, number)
	p.end(l)
}

// end takes up that a run is with its host no more.
func (p *plain) end(l *plainRun) {
	x := l.bag
	x.live[l.task] = slices.DeleteFunc(x.live[l.task], func(o *plainRun) bool { return o == l })
	if !l.late {
		p.host(l.host).has--
	}
}

type candidate struct {
	bag *plainBag
	bags.Verdict
}

// send gives a client the next task of a bag, and reports whether there was one.
func (p *plain) send(c *client, x *plainBag) bool {
	task, replica, any := x.take()
	if any {
		p.begin(c, x, task, replica)
	}
	return any
}

// begin has a client run a task.
func (p *plain) begin(c *client, x *plainBag, task uint32, replica bool) {
	deadline := p.deadline
	if x.judge != nil {
		s := p.scene(x, c.host)
		if seconds, stated := x.judge.Deadline(&s); stated {
			deadline = time.Duration(seconds * float64(time.Second))
		}
	}
	p.sent++
	r := &plainRun{bag: x, task: task, host: c.host, at: p.f.w.Now()}
	p.runs[p.sent] = r
	heap.Push(&p.due, plainDue{r.at.Add(deadline), p.sent})
	x.live[task] = append(x.live[task], r)
	p.look(x)
	p.host(c.host).has++
	p.f.give(c, run{bag: x.number, task: task, replica: replica, name: job.AttemptID{Number: p.sent}})
}

// take takes the next task of a bag: a replica, one that was lost or failed, one that was never
// sent.
func (x *plainBag) take() (task uint32, replica, any bool) {
	for len(x.twice) > 0 {
		task, x.twice = x.twice[0], x.twice[1:]
		if x.queued[task]--; !x.ended[task] {
			return task, true, true
		}
	}
	for len(x.again) > 0 {
		task, x.again = x.again[0], x.again[1:]
		if !x.ended[task] {
			return task, false, true
		}
	}
	if x.next < x.tasks {
		x.next++
		return x.next - 1, false, true
	}
	if len(x.unwanted) > 0 {
		task, x.unwanted = x.unwanted[0], x.unwanted[1:]
		return task, false, true
	}
	return 0, false, false
}

// gone implements [dispatcher]: the server does not learn of it.
func (p *plain) gone(*client, *run) {}

// ended implements [dispatcher]. A result that comes after the deadline counts, if it is the
// first.
func (p *plain) ended(c *client, r run, failed bool) {
	l := p.runs[r.name.Number]
	p.drop(l, r.name.Number)
	x := l.bag
	p.note(x, c.host, failed, p.f.w.Now().Sub(l.at))
	switch {
	case failed:
		if !l.late {
			x.lose(r.task)
		}
	default:
		if !x.ended[r.task] {
			x.ended[r.task] = true
			x.left--
			delete(x.live, r.task)
		}
		p.f.accept(x.number, r.task, c.host.grid)
	}
	p.look(x)
}

// lose has a task wait again that nobody else runs any more.
func (x *plainBag) lose(task uint32) {
	if !x.ended[task] {
		x.again = append(x.again, task)
	}
}

// cycle is algorithm 2, now and then.
func (p *plain) cycle() {
	now := p.f.w.Now()
	for len(p.due) > 0 && p.due[0].at <= now {
		due := heap.Pop(&p.due).(plainDue)
		if l := p.runs[due.number]; l != nil {
			x := l.bag
			p.end(l)
			l.late = true
			p.note(x, l.host, true, now.Sub(l.at))
			x.lose(l.task)
			p.look(x)
		}
	}
	for _, x := range p.bags {
		if x.tail && x.replicas > 0 {
			p.replicate(x, now)
		}
	}
	p.f.after(plainCycle, p.cycle)
}

// replicate has one more replica of each running task queued that the policy wants: each task
// has at most replicas beside its first run, those in the queue included.
func (p *plain) replicate(x *plainBag, now job.Time) {
	s := p.scene(x, nil)
	s.Task = x.task
	for _, task := range slices.Sorted(maps.Keys(x.live)) {
		live := x.live[task]
		if len(live) == 0 || x.ended[task] || len(live)+x.queued[task] > int(x.replicas) {
			continue
		}
		x.task.Number(bags.TaskReplicas, float64(len(live)))
		s.Replicas = s.Replicas[:0]
		for _, l := range live {
			h := &p.host(l.host).standing
			s.Replicas = append(s.Replicas, bags.Replica{
				Site: string(l.host.site), Age: now.Sub(l.at).Seconds(), ErrorRate: h.ErrorRate(), Turnaround: h.Turnaround(),
			})
		}
		if x.judge.Replicate(&s) {
			x.twice = append(x.twice, task)
			x.queued[task]++
		}
	}
}
