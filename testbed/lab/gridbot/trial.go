package gridbot

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"kith/meta/bags"
	"kith/store"
	"kith/testbed/sim"
)

// server is who dispatches.
type serverKind uint8

const (
	byEngine serverKind = iota
	byPlain
	byQueue
	byBuffer
)

// trial is bags on grids under a dispatcher. Equal trials are run once.
type trial struct {
	// work is the bags, see [workOf].
	work string
	// rules name the policies of the bags, see [rulesOf].
	rules string
	by    serverKind
	// alike makes the hosts of a grid alike.
	alike bool
	// recall has the source's server take back what has not begun, relative has it blame hosts
	// as kithd does: what is ours beside what is the source's.
	recall, relative bool
}

// String names the trial for people.
func (t trial) String() string { return t.work + " " + t.rules }

// setting is what a trial runs.
type setting struct {
	grids   []grid
	bags    []*bag
	divisor int
	// cutAt and cutFor are when nobody reaches the dispatcher, if ever.
	cutAt, cutFor time.Duration
	// want is how many tasks a client asks for, enough after how many asks that got tasks the
	// trial ends; 0 for one, and for the end of all bags.
	want, enough int
	seen         func(*outcome) bool // see [floor.seen]
}

// size is how large trials are: the source's divided by scale, or by more.
type size struct{ divisor int }

// sourceTasks is what a bag of the source has that most statements are about.
const sourceTasks = 30_000

// sizeOf returns the size with so many tasks instead of [sourceTasks].
func sizeOf(tasks int) size { return size{max(1, sourceTasks/max(1, tasks))} }

// tasks is how many tasks a bag has that has so many in the source.
func (s size) tasks(source int) uint32 { return uint32(max(leastTasks, source/s.divisor)) } //nolint:gosec // Tasks of people are few.

const (
	leastTasks = 4
	// longTasks are those of the source's longest bag. It is divided once more: it ends in two
	// days instead of weeks.
	longTasks, longDivisor = 2_200_000, 10
	// The outage comes in the middle.
	outageAt, outageFor = 20 * time.Hour, 6 * time.Hour
	rankedBags          = 50
)

var (
	collaborative = grids[:len(grids)-1]
	madison       = grids[:1]
)

// setting returns the bags of the trial on their grids.
func (t trial) setting(size size) setting {
	s := setting{grids: collaborative, divisor: size.divisor}
	tasks := size.tasks
	one := func(b bag) { s.bags = append(s.bags, &b) }
	switch t.work {
	case "all": // G1
		s.grids = grids
		one(bag{tasks: tasks(30_000), least: 10 * time.Minute, most: 15 * time.Minute})
	case "madison": // G2, G3
		s.grids = madison
		one(bag{tasks: tasks(3_000), least: 30 * time.Second, most: 5 * time.Minute})
	case "single": // G15 to G19
		one(bag{tasks: tasks(30_000), least: 10 * time.Minute, most: 15 * time.Minute})
	case "long", "outage": // G4 to G6
		s.grids = grids
		one(bag{tasks: tasks(longTasks / longDivisor), least: 20 * time.Minute, most: 40 * time.Minute})
		if t.work == "outage" {
			s.cutAt, s.cutFor = outageAt, outageFor
		}
	case "ranks": // G9, G10
		for range rankedBags {
			one(bag{tasks: tasks(1200), least: 3 * time.Minute, most: 3 * time.Minute})
		}
	case "four": // G20 to G23
		s.grids = grids
		for i := range 4 {
			one(bag{tasks: tasks(30_000), least: 10 * time.Minute, most: 15 * time.Minute, priority: int32(4 - i)}) //nolint:gosec // Four.
		}
	case "bundles": // G14, O1
		one(bag{tasks: tasks(1200), least: 3 * time.Minute, most: 3 * time.Minute})
	case "buffer": // G7
		s.enough = countedAsks
		one(bag{tasks: uint32(t.waiting() + countedAsks), least: 10 * time.Minute, most: 15 * time.Minute}) //nolint:gosec // Few.
	case "queue": // G8: ten bags, of which the first one is served
		s.enough = countedAsks
		for i := range 10 {
			n := t.waiting() / 10
			if i == 0 {
				n += countedAsks
			}
			one(bag{tasks: uint32(n), least: 10 * time.Minute, most: 15 * time.Minute}) //nolint:gosec // Few.
		}
	case "load": // G11 to G13
		s.grids, s.want = grids, loadBundle
		s.seen = func(o *outcome) bool { return o.bags[0].unsent == 0 }
		b := bag{tasks: tasks(42_200), least: 10 * time.Minute, most: 50 * time.Minute}
		if t.rules == split {
			b = bag{tasks: tasks(211_000), least: b.least / loadBundle, most: b.most / loadBundle}
		}
		one(b)
	case "spoilt": // O2: half of what the first bag runs fails anywhere
		s.grids = grids
		s.seen = func(o *outcome) bool { return len(o.bags[1].ends) > nearlyAll(&o.bags[1]) }
		one(bag{tasks: tasks(15_000), least: 10 * time.Minute, most: 15 * time.Minute, fails: 0.5})
		one(bag{tasks: tasks(15_000), least: 10 * time.Minute, most: 15 * time.Minute, at: 2 * time.Hour, priority: 1})
	}
	for i, b := range s.bags {
		b.name = fmt.Sprintf("%s-%d", t.work, i+1)
		t.rule(b, i, size)
	}
	return s
}

const (
	others = "!host.site.startsWith('community-')"
	// deadlines: 75 min, three days in the community.
	deadlines = others + " ? 4500 : 259200"
	// doubtful wants a replica where some run is at an unreliable host or takes long.
	doubtful = "replicas.exists(r, r.error_rate > 0.01 || r.age > 1800)"
	reliable = "host.error_rate <= 0.01"
	// sourceTail is where the tail begins in the first reading, in tasks of the source.
	sourceTail = 3000
)

// rule gives a bag the policies of the trial.
func (t trial) rule(b *bag, number int, size size) {
	texts := func(list map[bags.Text]string) {
		for text, source := range list {
			b.policies.Texts[text] = source
		}
	}
	permissive := func() { b.replicas = 4; texts(map[bags.Text]string{bags.Replicate: "true"}) }
	restrictive := func() { b.replicas = 4; texts(map[bags.Text]string{bags.Replicate: doubtful}) }
	choosy := func() {
		text := "!bag.tail || " + reliable
		if t.by == byEngine { // the second reading wants recent success, too
			text += " && host.recent_done >= 0.5"
		}
		texts(map[bags.Text]string{bags.Requirements: text})
	}
	if t.by == byPlain {
		b.tailAt = size.tasks(sourceTail)
	}
	texts(map[bags.Text]string{bags.Deadline: deadlines})
	switch t.rules {
	case "naive":
		b.policies, b.tailAt = store.BagPolicies{}, 0
	case "policies": // G1
		restrictive()
		texts(map[bags.Text]string{bags.Requirements: "!bag.tail || " + others + " && " + reliable})
	case "short": // G2: deadline 10 min, replicas where hosts fail
		b.replicas = 4
		texts(map[bags.Text]string{bags.Deadline: "600", bags.Replicate: "replicas.exists(r, r.error_rate > 0.1)"})
	case "P1":
		permissive()
	case "P2":
		restrictive()
		choosy()
	case "P3":
		permissive()
		choosy()
	case "P4":
		choosy()
	case "P5":
	case "long": // six times what a task needs, three days in the community
		texts(map[bags.Text]string{bags.Deadline: others + " ? 10800 : 259200"})
		restrictive()
	case "ranks": // six times what a task needs; the last bag has the highest rank
		texts(map[bags.Text]string{bags.Deadline: "1080", bags.Rank: fmt.Sprint(number + 1)})
	case "R", "R4 4000", "R4 dynamic":
		t.fourth(b, number, size)
	case "B1", "B2", "B3", "B4":
		t.bundle(b)
	case earlyTail, lateTail: // P1 with the tail of the other one
		permissive()
		b.tailAt = size.tasks(sourceTail)
		if t.rules == lateTail {
			b.tailAt = tailAtPlaces
		}
	case "1500", "15000", "1000", "1000000":
		choosy()
	case whole, split: // six times what a task needs, three days in the community
		seconds := 6 * loadBundle * b.most.Seconds()
		texts(map[bags.Text]string{bags.Concurrency: fmt.Sprint(loadBundle), bags.Deadline: fmt.Sprintf("%s ? %v : 259200", others, seconds)})
	case "spoilt":
		texts(map[bags.Text]string{bags.Requirements: fmt.Sprintf("host.error_rate < %v", shunnedRate)})
	}
}

const (
	// countedAsks are so many asks whose looks at policies are counted.
	countedAsks = 400
	// loadBundle is the concurrency of G11, and in how many parts G12 splits each task.
	loadBundle = 5
	// shunnedRate is from which error rate on the bags of O2 avoid a host.
	shunnedRate = 0.3
	// tailAtPlaces stands for a tail that begins with fewer unsent tasks than places.
	tailAtPlaces = 1<<32 - 1

	whole, split        = "42,200 tasks", "211,000 tasks"
	earlyTail, lateTail = "P1, tail at 3000", "P1, tail at places"
)

// waiting is how many tasks wait in a trial whose rules are a number.
func (t trial) waiting() int {
	n, _ := strconv.Atoi(t.rules)
	return n
}

// fourth gives a bag the policies of R1 to R4.
func (t trial) fourth(b *bag, number int, size size) {
	p := &b.policies
	b.replicas = 4
	p.Texts[bags.Replicate] = "true"
	if number > 0 {
		p.Texts[bags.Requirements] = "!bag.tail || " + others
	}
	switch number {
	case 2: // once in 15 min, and where a run is at a host that fails
		p.Texts[bags.Replicate] = "replicas.all(r, r.age >= 900) && replicas.exists(r, r.error_rate > 0.1)"
	case 3:
		tail := "bag.tail"
		if t.rules != "R4 dynamic" {
			incomplete := 2000
			if t.rules == "R4 4000" {
				incomplete = 4000
			}
			tail = fmt.Sprintf("bag.left < %d", size.tasks(incomplete))
		}
		p.Texts[bags.Replicate], p.Texts[bags.Requirements] = tail, "!("+tail+") || "+others
	}
}

// bundle gives a bag one of the policies that prefetch tasks. The definitions of B1 to B3 are
// lost in the source: one task at a time, five, five for hosts that do not fail. B4 is the last
// one, and reliable hosts only in the tail.
func (t trial) bundle(b *bag) {
	p := &b.policies
	b.replicas = 4
	concurrency, age := "1", "1000"
	switch t.rules {
	case "B2":
		concurrency, age = "5", "5000"
	case "B3", "B4":
		concurrency, age = "host.error_rate < 0.05 ? 5 : 1", "(r.error_rate < 0.05 ? 5000 : 1000)"
	}
	p.Texts[bags.Concurrency] = concurrency
	p.Texts[bags.Deadline] = "2000 * (" + concurrency + ")"
	p.Texts[bags.Replicate] = "replicas.all(r, r.age >= " + age + ")"
	if t.rules == "B4" {
		p.Texts[bags.Requirements] = "!bag.tail || host.error_rate < 0.05"
	}
}

// run runs the trial with a seed.
func (t trial) run(ctx context.Context, size size, seed uint64) (*outcome, error) {
	s := t.setting(size)
	slots := newSlots(s.grids, s.divisor, t.alike, seed)
	var d dispatcher
	var w *sim.World
	var bind func(*floor)
	finish := func(*outcome) {}
	switch t.by {
	case byEngine:
		p, err := newProduction()
		if err != nil {
			return nil, err
		}
		w, d, bind = p.w, p, func(f *floor) { p.f = f }
	default:
		var err error
		if w, err = sim.New(sim.Config{Seed: seed}); err != nil {
			return nil, err
		}
		switch t.by {
		case byPlain:
			p := newPlain()
			p.recalls, p.relative = t.recall, t.relative
			d, bind = p, func(f *floor) { p.f = f }
			finish = func(o *outcome) { o.shunned = p.shunned() }
		case byBuffer:
			b := newBuffered(t.waiting())
			d, bind = b, func(f *floor) { b.f = f }
		default:
			q := &queueing{}
			d, bind = q, func(f *floor) { q.f = f }
		}
	}
	for _, b := range s.bags {
		if b.tailAt == tailAtPlaces {
			b.tailAt = uint32(len(slots)) //nolint:gosec // Some hundred.
		}
	}
	f := newFloor(w, slots, s.bags, seed)
	f.d, f.oneEach, f.want, f.enough, f.seen = d, t.by == byQueue, s.want, s.enough, s.seen
	bind(f)
	if s.cutFor > 0 {
		f.outage(s.cutAt, s.cutFor)
	}
	steps := 0
	o, err := f.play(func() bool {
		steps++
		return steps%4096 != 0 || ctx.Err() == nil
	})
	if err != nil {
		return nil, fmt.Errorf("%v, seed %d: %w", t, seed, err)
	}
	finish(o)
	return o, nil
}

// expense is a guess at how long the trial takes.
func (t trial) expense() int {
	switch {
	case t.work == "long" || t.work == "outage" || t.work == "load" && t.by == byEngine:
		return 8
	case t.work == "four" && t.by == byEngine:
		return 10
	case t.work == "ranks":
		return 5
	case t.work == "all":
		return 4
	case t.by == byEngine:
		return 3
	}
	return 1
}
