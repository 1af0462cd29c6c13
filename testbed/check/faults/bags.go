package faults

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/bags"
	"kith/meta/policy"
	"kith/store"
)

// Bag is the submission of a bag of tasks. A client that gets no answer submits again.
type Bag struct {
	// Number names it among the bags of the schedule; at least 1.
	Number        int
	At            time.Duration
	From          job.SiteID
	Tasks         uint32
	Processors    int32
	Copies        int32
	Run, Walltime time.Duration // of a task; see [Bag.runTime]
	OnSiteLost    job.OnSiteLost
	// Retries and MaxRunning are those of the bag. Every Fails-th task fails; 0 for none.
	Retries uint8
	// Replicas is how many sites may have a task beside the first one, Tail when the tail
	// begins: as those of the bag.
	Replicas          uint8
	Tail              uint32
	MaxRunning, Fails uint32
	// Budget is how many processor-seconds its runs may take together, 0 for no bound. A bag
	// whose budget is used up at the end of the schedule goes on without one.
	Budget uint32
	// Deadline is what its policies state, in seconds; 0 for none.
	Deadline uint32
	// Level is, above 0, at which level it begins: nobody knows how long a task takes.
	Level int
	// Stance is what its policies state beside that, by number, see stances; 0 for nothing.
	Stance int
	// Staging and Output are as those of a job, of each task.
	Staging, Output time.Duration
	Waits
}

// What users want of bags, or of some of their tasks.
const (
	CancelBag  ActKind = "cancel-bag"
	HoldBag    ActKind = "hold-bag"
	ReleaseBag ActKind = "release-bag"
	// RetryBag has tasks run again that have ended: those that are named, or all that did not
	// succeed.
	RetryBag ActKind = "retry-bag"
	// BudgetBag replaces the budget of a bag.
	BudgetBag ActKind = "budget-bag"
)

// runTime returns how long a task runs: half of Run to one and a half of it.
func (b *Bag) runTime(task uint32) time.Duration {
	return b.Run/2 + b.Run*time.Duration(task*2654435761%1024)/1024
}

// fails reports whether a task fails.
func (b *Bag) fails(task uint32) bool { return b.Fails > 0 && task%b.Fails == b.Fails-1 }

// policies are what the bag states.
func (b *Bag) policies() store.BagPolicies {
	return store.BagPolicies{Texts: texts(b.Stance, b.Deadline)}
}

// work is how long all tasks take one after another, with one run in vain each. Those that may
// take longer than their deadline run until they have been lost too often.
func (b *Bag) work() time.Duration {
	one, runs := min(b.Run+b.Run/2, b.Walltime)+b.Staging+b.Output, 2+int(b.Retries)
	if b.Level > 0 { // it begins again at each level
		one, runs = b.Run+b.Run/2+b.Staging+b.Output, runs+levelTries
	}
	if b.Deadline > 0 && one > time.Duration(b.Deadline)*time.Second {
		runs += store.MaxTaskLosses
	}
	return time.Duration(b.Tasks) * one * time.Duration(runs)
}

// bag returns the bag of a number, nil if there is none.
func (s *Schedule) bag(number int) *Bag {
	for i := range s.Bags {
		if s.Bags[i].Number == number {
			return &s.Bags[i]
		}
	}
	return nil
}

// Bagged makes a schedule with bags of a seed: that of [Random] with fewer jobs, and bags
// beside them. Its draws are its own, so that the other schedules are as they were.
func Bagged(seed uint64, size Size) *Schedule {
	d := &draw{Rand: rand.New(rand.NewPCG(seed, 0x62616773)), s: Random(seed, size)}
	if size.Jobs == 0 {
		d.s.Jobs = d.s.Jobs[:d.IntN(min(len(d.s.Jobs), 12)+1)]
		d.s.forgetMissing()
	}
	for i := range 1 + d.IntN(4) {
		d.bag(i + 1)
	}
	for range d.IntN(8) {
		d.actOnBag()
	}
	if d.one(2) {
		d.turns()
	}
	for i := range d.s.Faults {
		if p := d.s.Faults[i].Before; p != nil && d.one(2) {
			p.Effect, p.Nth = taskEffects[d.IntN(len(taskEffects))], 1+d.IntN(20)
		}
	}
	d.s.someDependencies()
	d.s.someBudgets()
	d.s.someStances()
	return d.s
}

// someBudgets gives every fourth bag a budget, of which half are replaced, some by none. The
// draws are its own, so that all else is as it was.
func (s *Schedule) someBudgets() {
	d := &draw{Rand: rand.New(rand.NewPCG(s.Seed, 0x62756467)), s: s}
	for i := range s.Bags {
		b := &s.Bags[i]
		if !d.one(4) {
			continue
		}
		most := 1 + uint32(float64(b.Tasks)*float64(b.Processors)*b.Run.Seconds()*3/2)
		b.Budget = 1 + d.Uint32N(most)
		if d.one(2) {
			x := Act{Kind: BudgetBag, Bag: b.Number, At: max(d.span(s.End), b.At+d.upTo(2*time.Minute))}
			if !d.one(3) {
				x.Budget = 1 + d.Uint32N(2*most)
			}
			s.Acts = append(s.Acts, x)
		}
	}
}

// turns draws how sites run tasks.
func (d *draw) turns() {
	d.s.Turn, d.s.Share = 30*time.Second+d.upTo(20*time.Minute), []float64{1, 1, 0.5, 0.1}[d.IntN(4)]
	d.s.Yield = []bags.Yield{bags.YieldNever, bags.YieldTask, bags.YieldNow}[d.IntN(3)]
}

// someBags adds bags to every eighth wide or hostile schedule. The draws are its own, and
// begin so that the seeds which tests and mutants name are without.
func (s *Schedule) someBags() {
	d := &draw{Rand: rand.New(rand.NewPCG(s.Seed, bagsBeside)), s: s}
	if !d.one(8) {
		return
	}
	for range 1 + d.IntN(2) {
		d.bag(len(s.Bags) + 1)
		b := &s.Bags[len(s.Bags)-1]
		b.Tasks = min(b.Tasks, 40)
		b.Deadline = 0   // these schedules are as they were
		if s.Watch > 0 { // L4 has a clock: what is there takes some time, and ends
			b.Run = min(b.Run, 20*time.Second)
		}
	}
	for range d.IntN(3) {
		d.actOnBag()
	}
	if d.one(2) {
		d.turns()
	}
}

// bagsBeside begins the draws of [Schedule.someBags].
const bagsBeside = 152

// taskEffects are those of bags that are worth a fault right before them.
var taskEffects = []string{
	"launch", "launch", "adopt", "clear", "reply", "bag-changed", "offer", "task-claim", "task-claim", "task-verdict", "task-verdict", "task-verdict",
	"task-results", "task-results", "task-results-ack", "task-results-ack", "fetch-tasks", "recall", "stop-tasks", "give-back", "copy-digest", "renewed",
}

func (d *draw) bag(number int) {
	x := Bag{
		Number: number, At: d.span(d.s.End * 9 / 10), From: d.site(), Tasks: uint32(1 + d.IntN([]int{3, 20, 20, 100}[d.IntN(4)])),
		Processors: 1, Run: 20*time.Millisecond + d.upTo(2*time.Minute), Retries: uint8(d.IntN(3)),
	}
	if d.one(3) {
		x.Processors = 1 + d.Int32N(min(3, d.widest()))
	}
	if d.one(2) {
		x.Copies = int32(1 + d.IntN(len(d.s.Sites)))
	}
	x.Walltime = max(time.Second, x.Run*3/2) + d.upTo(time.Minute)
	if d.one(6) {
		x.Walltime = max(time.Second, x.Run*5/4) // some of its tasks are stopped
	}
	if d.one(4) {
		x.MaxRunning = 1 + d.Uint32N(10)
	}
	if d.one(3) {
		x.Fails = 1 + d.Uint32N(6)
	}
	if d.one(3) {
		x.Output = d.upTo(time.Minute)
	}
	if d.one(4) {
		x.Staging = d.upTo(20 * time.Second)
	}
	x.OnSiteLost = []job.OnSiteLost{job.Wait, job.Rerun, job.Rerun, job.Race}[d.IntN(4)]
	// Of their own draws, so that the other bags are as they were.
	e := rand.New(rand.NewPCG(d.s.Seed, uint64(number)))
	if e.IntN(3) == 0 {
		x.Replicas = 1 + uint8(e.IntN(5))
		if e.IntN(3) > 0 {
			x.Tail = 1 + e.Uint32N(x.Tasks)
		}
		if e.IntN(2) == 0 { // long enough to be drawn
			x.Run *= 1 + time.Duration(e.IntN(6))
			x.Walltime += 2 * x.Run
		}
	}
	if e.IntN(4) == 0 { // some of its runs miss it
		x.Deadline = uint32(1 + x.Run.Seconds()/2 + e.Float64()*2*x.Run.Seconds())
	}
	d.s.Bags = append(d.s.Bags, x)
}

func (d *draw) actOnBag() {
	b := &d.s.Bags[d.IntN(len(d.s.Bags))]
	x := Act{
		Bag: b.Number, At: max(d.span(d.s.End), b.At+d.upTo(2*time.Minute)),
		Kind: []ActKind{CancelBag, CancelBag, HoldBag, ReleaseBag, RetryBag, RetryBag}[d.IntN(6)],
	}
	if (x.Kind == CancelBag || x.Kind == RetryBag) && !d.one(4) {
		lo := d.Uint32N(b.Tasks)
		x.Tasks = job.TaskRange(lo, lo+1+d.Uint32N(b.Tasks-lo))
	}
	d.s.Acts = append(d.s.Acts, x)
}

// turn configures a site for running tasks.
func (s *Schedule) turn(cfg *meta.Config) {
	if s.states() {
		cfg.Policies = policy.New()
	}
	if len(s.Bags) > 0 && s.Turn > 0 {
		cfg.Bags = meta.Bags{Turn: s.Turn, Yield: s.Yield, Share: s.Share}
	}
}

// yields are the words for what pilots do while a home job waits.
var yields = []string{bags.YieldNever: "never", bags.YieldTask: "task", bags.YieldNow: "now"}

// turns returns how sites run tasks, as the first line has it.
func (s *Schedule) turns() string {
	if s.Turn == 0 {
		return ""
	}
	return fmt.Sprintf(" turn=%v yield=%s share=%v", s.Turn, yields[s.Yield], s.Share)
}

func (l *line) readTurns(s *Schedule) {
	s.Turn = l.span("turn", 0)
	yield, share := l.named("yield", "task"), l.named("share", "1")
	if s.Turn == 0 {
		return
	}
	at := slices.Index(yields, yield)
	n, err := strconv.ParseFloat(share, 64)
	if at < 0 || err != nil || !(n > 0 && n <= 1) {
		l.fail("yield=%s share=%s: choose never, task or now, and a part above 0 and at most 1", yield, share)
		return
	}
	s.Yield, s.Share = bags.Yield(at), n
}

// String returns the bag's line.
func (b *Bag) String() string {
	text := fmt.Sprintf("bag %d at=%v from=%s tasks=%d processors=%d copies=%d run=%v walltime=%v", b.Number, b.At, b.From, b.Tasks, b.Processors, b.Copies, b.Run, b.Walltime)
	if b.OnSiteLost != job.Wait {
		text += " on-site-lost=" + lostWords[b.OnSiteLost]
	}
	for _, n := range []struct {
		name string
		n    uint32
	}{{"retries", uint32(b.Retries)}, {"max-running", b.MaxRunning}, {"fails", b.Fails}, {"replicas", uint32(b.Replicas)}, {"tail", b.Tail}, {"deadline", b.Deadline}, {"budget", b.Budget}, {"policies", uint32(b.Stance)}, {"level", uint32(b.Level)}} {
		if n.n != 0 {
			text += fmt.Sprintf(" %s=%d", n.name, n.n)
		}
	}
	if b.Staging != 0 {
		text += fmt.Sprintf(" staging=%v", b.Staging)
	}
	if b.Output != 0 {
		text += fmt.Sprintf(" output=%v", b.Output)
	}
	return text + b.words()
}

// ofBag returns the line of an act about a bag.
func (x *Act) ofBag() string {
	text := fmt.Sprintf("act %s %d at=%v", x.Kind, x.Bag, x.At)
	if !x.Tasks.Empty() {
		text += " tasks=" + x.Tasks.String()
	}
	if x.Budget > 0 {
		text += fmt.Sprintf(" budget=%d", x.Budget)
	}
	if x.Kind == PolicyBag {
		text += fmt.Sprintf(" policies=%d", x.Stance)
	}
	if x.Stale {
		text += " stale=yes"
	}
	return text
}

// mostBagTasks bounds a bag in text form: each task is played.
const mostBagTasks = 100_000

func (l *line) bag() Bag {
	b := Bag{
		Number: int(l.count()), At: l.span("at", 0), From: job.SiteID(l.named("from", "")), Tasks: uint32(l.int("tasks", 10, 1, mostBagTasks)),
		Processors: int32(l.int("processors", 1, 1, 1<<20)), Copies: int32(l.int("copies", 0, 0, job.MaxCopies)), Run: l.span("run", 10*time.Second),
	}
	b.Walltime = l.span("walltime", 2*b.Run)
	b.OnSiteLost, b.Staging, b.Output = l.lost(), l.span("staging", 0), l.span("output", 0)
	b.Retries, b.MaxRunning, b.Fails = uint8(l.int("retries", 0, 0, 100)), uint32(l.int("max-running", 0, 0, mostBagTasks)), uint32(l.int("fails", 0, 0, mostBagTasks))
	b.Replicas, b.Tail = uint8(l.int("replicas", 0, 0, store.MaxReplicas)), uint32(l.int("tail", 0, 0, mostBagTasks))
	b.Waits = l.waits()
	b.Deadline, b.Budget = uint32(l.int("deadline", 0, 0, 1<<20)), uint32(l.int("budget", 0, 0, 1<<31))
	b.Stance, b.Level = int(l.int("policies", 0, 0, int64(len(stances)-1))), int(l.int("level", 0, 0, job.MaxLevel))
	return b
}

// tasks reads the tasks of an act, none if it names none.
func (l *line) tasks() job.TaskSet {
	text := l.named("tasks", "")
	if text == "" {
		return job.TaskSet{}
	}
	tasks, err := job.ParseTaskSet(text)
	if last, _ := tasks.Last(); err != nil || last >= mostBagTasks {
		l.fail("tasks=%.40s: choose ordinals below %d, such as 3-7,9", text, mostBagTasks)
	}
	return tasks
}

// simplifyBags makes bags easier to read.
func (k *shrinker) simplifyBags() {
	if k.best.Turn > 0 {
		k.try(func(s *Schedule) { s.Turn = 0 })
	}
	for i := range k.best.Bags {
		k.round(k.best.Bags[i].At, func(s *Schedule, d time.Duration) { s.Bags[i].At = d })
		for k.best.Bags[i].Tasks > 1 && k.try(func(s *Schedule) { s.Bags[i].Tasks /= 2 }) { //nolint:revive // try is what is done
		}
		for _, change := range []func(b *Bag){
			func(b *Bag) { b.Retries = 0 }, func(b *Bag) { b.MaxRunning = 0 }, func(b *Bag) { b.Fails = 0 }, func(b *Bag) { b.Staging = 0 },
			func(b *Bag) { b.Output = 0 }, func(b *Bag) { b.Copies = 0 }, func(b *Bag) { b.Processors = 1 }, func(b *Bag) { b.OnSiteLost = job.Wait },
			func(b *Bag) { b.Replicas = 0 }, func(b *Bag) { b.Tail = 0 }, func(b *Bag) { b.Deadline = 0 },
			func(b *Bag) { b.Budget = 0 }, func(b *Bag) { b.Stance = 0 }, func(b *Bag) { b.Level = 0 },
			func(b *Bag) { b.Run, b.Walltime = 10*time.Second, time.Minute },
		} {
			b := k.best.Bags[i]
			if change(&b); b != k.best.Bags[i] {
				k.try(func(s *Schedule) { change(&s.Bags[i]) })
			}
		}
	}
	for i := range k.best.Acts {
		if !k.best.Acts[i].Tasks.Empty() {
			k.try(func(s *Schedule) { s.Acts[i].Tasks = job.TaskSet{} })
		}
	}
}
