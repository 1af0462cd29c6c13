package gridbot

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta/bags"
	"kith/store"
	"kith/testbed/sim"
)

// Acceptance checks of spec 002 section 5; docs/testing.md says which test is which.

// bench is a dispatcher with hosts whose clients a test has ask.
type bench struct {
	*floor
	clients []*client
}

func newBench(t *testing.T, d dispatcher, w *sim.World, hosts int, list ...*bag) *bench {
	t.Helper()
	f := newFloor(w, nil, list, 0)
	f.d = d
	b := &bench{floor: f}
	for i := range hosts {
		g := &grids[i%len(grids)]
		h := &host{site: job.SiteID(fmt.Sprintf("%s-%d", g.name, i)), grid: g, slow: 1}
		s := &slot{hosts: []*host{h}, comes: rand.New(rand.NewPCG(1, uint64(i))), fate: rand.New(rand.NewPCG(2, uint64(i)))}
		b.clients = append(b.clients, &client{slot: s, host: h, up: true})
	}
	return b
}

func newWorldOf(t *testing.T) *sim.World {
	t.Helper()
	w, err := sim.New(sim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (b *bench) submitAll(t *testing.T) {
	t.Helper()
	for i, x := range b.bags {
		if err := b.d.submit(i, x); err != nil {
			t.Fatal(err)
		}
	}
}

// Check 4: a small bag has its place in the buffer beside a large one, and what no host may run
// leaves it after its time.
func TestBufferIsFair(t *testing.T) {
	if got := fairShares(1500, []int{10, 1_000_000}); !slices.Equal(got, []int{10, 1490}) {
		t.Errorf("shares %v", got)
	}
	rng := rand.New(rand.NewPCG(4, 4))
	for range 1000 {
		room, need := rng.IntN(2000), make([]int, 1+rng.IntN(6))
		sum := 0
		for i := range need {
			need[i] = rng.IntN(3) * rng.IntN(1000)
			sum += need[i]
		}
		got, all := fairShares(room, need), 0
		for i, n := range got {
			all += n
			if n > need[i] || n < min(need[i], room/len(need)) {
				t.Fatalf("of %d, needed %v: %v", room, need, got)
			}
		}
		if all != min(room, sum) {
			t.Fatalf("of %d, needed %v: %v is %d", room, need, got, all)
		}
	}
	w, s := newWorldOf(t), newBuffered(1500)
	small, large := &bag{tasks: 10, most: time.Hour}, &bag{tasks: 1_000_000, most: time.Hour}
	large.policies.Texts[bags.Requirements] = "host.site == 'nowhere'"
	b := newBench(t, s, w, 1, small, large)
	s.f = b.floor
	b.submitAll(t)
	s.fill(w.Now())
	if x, y := s.bags[0].buffered, s.bags[1].buffered; x != 10 || y != 1490 {
		t.Errorf("%d and %d tasks in the buffer", x, y)
	}
	first := s.buffer[len(s.buffer)-1].task
	for range 2 {
		if err := w.Run(w.Now().Add(bufferTime)); err != nil {
			t.Fatal(err)
		}
		s.fill(w.Now())
	}
	if s.bags[1].buffered != 1490 || slices.ContainsFunc(s.buffer, func(e entry) bool { return e.bag == s.bags[1] && e.task == first }) {
		t.Errorf("task %d is in the buffer after %v, or it is not full", first, 2*bufferTime)
	}
}

// Check 5: the desk of kithd, the source's server, and its algorithm 1 over each task of the
// buffer give a host the same tasks, whatever policies bags state.
func TestAssignmentsAreThoseOfThePlainAlgorithm(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	w := newWorldOf(t)
	one, each := newPlain(), newBuffered(1000)
	each.compiler = one.compiler
	pick := func(list []string) string { return list[rng.IntN(len(list))] }
	requirements := []string{"", "true", "host.error_rate < 0.3", "!bag.tail || host.recent_done > 2", "host.turnaround < 100", "site.name in ['osg', 'egee']", "bag.unsent > 8"}
	ranks := []string{"", "1", "2", "host.recent_done", "bag.left", "-bag.unsent", "host.turnaround", "1 / (bag.left - 5)"}
	concurrency := []string{"1", "2", "5", "10", "host.recent_done < 3 ? 1 : 7", "bag.unsent"}
	shape := bags.ShapeOf(&job.Request{Processors: 1, Walltime: time.Hour})
	for _, list := range []struct {
		text    bags.Text
		sources []string
	}{{bags.Requirements, requirements}, {bags.Rank, ranks}, {bags.Concurrency, concurrency}} { // programs of texts that judges have are shared
		for _, source := range list.sources {
			var p store.BagPolicies
			p.Texts[list.text] = source
			if _, err := one.compiler.Compile(&p); err != nil {
				t.Fatal(err)
			}
		}
	}
	several, none := 0, 0
	for range 10_000 {
		var list []*bag
		for range 1 + rng.IntN(5) {
			x := &bag{tasks: uint32(1 + rng.IntN(12)), most: time.Hour, tailAt: uint32(rng.IntN(12))}
			x.policies.Texts[bags.Requirements], x.policies.Texts[bags.Rank], x.policies.Texts[bags.Concurrency] = pick(requirements), pick(ranks), pick(concurrency)
			list = append(list, x)
		}
		results := rng.IntN(6)
		seed := rng.Uint64()
		// prepare gives a server these bags, of which some tasks are gone, and a host that has
		// had some results.
		prepare := func(p *plain, d dispatcher) *client {
			*p = *newPlainWith(p.compiler)
			p.cycling = true // nothing becomes of deadlines
			b := newBench(t, d, w, 1, list...)
			p.f = b.floor
			b.submitAll(t)
			c, rng := b.clients[0], rand.New(rand.NewPCG(seed, 0))
			for range results {
				p.note(p.bags[0], c.host, rng.IntN(2) == 0, time.Duration(rng.IntN(200))*time.Second)
			}
			for _, x := range p.bags {
				x.next = uint32(rng.IntN(int(x.tasks) + 1))
				p.look(x)
			}
			return c
		}
		c := prepare(one, one)
		var works []bags.Work
		for i, x := range one.bags {
			works = append(works, bags.Work{
				Bag: job.ID{Origin: "server", Generation: 1, Seq: uint64(i)}, Submitted: job.Time(i), User: "owner", Shape: shape, Waiting: x.unsent(), Room: 1000,
				Mean: time.Millisecond, Walltime: time.Hour, Sites: []job.SiteID{c.host.site}, Judge: x.judge, Scope: x.scope,
			})
			if x.judge == nil {
				t.Fatal("a bag states its concurrency")
			}
		}
		desk := bags.Desk{Usage: &bags.Usage{}, Elsewhere: &bags.Elsewhere{}, Scene: one.scene(one.bags[0], c.host)}
		want := make([]int, len(list))
		for _, s := range desk.Answer(bags.Ask{Site: c.host.site, Shape: shape, Places: 1, Want: bags.MaxAsk}, works, w.Now()) {
			want[s.Work] += s.Tasks
		}
		one.ask(c)
		got := c.runs
		c = prepare(each.plain, each)
		each.buffer = nil
		each.ask(c)
		same := func(a, b run) bool { return a.bag == b.bag && a.task == b.task }
		if byNumber(c.runs); !slices.EqualFunc(byNumber(got), c.runs, same) {
			t.Fatalf("%v from the server, %v over the buffer", got, c.runs)
		}
		for _, r := range got {
			want[r.bag]--
		}
		if slices.ContainsFunc(want, func(n int) bool { return n != 0 }) {
			t.Fatalf("the server gives %v, the desk so many more: %v", got, want)
		}
		switch {
		case len(got) == 0:
			none++
		case got[0].bag != got[len(got)-1].bag:
			several++
		}
	}
	if several < 300 || none < 300 {
		t.Errorf("of 10,000 asks %d got tasks of several bags, %d none", several, none)
	}
}

func byNumber(list []run) []run {
	slices.SortFunc(list, func(a, b run) int { return a.bag<<32 + int(a.task) - b.bag<<32 - int(b.task) })
	return list
}

// Check 7: what a client had that has vanished is sent again at its deadline or within a cycle
// of it, and counts once although the client's host comes back with the result.
func TestTasksOfVanishedClients(t *testing.T) {
	for _, by := range []serverKind{byEngine, byPlain} {
		x := &bag{tasks: 1, least: 5 * time.Minute, most: 5 * time.Minute}
		x.policies.Texts[bags.Deadline] = "1200"
		var b *bench
		var w *sim.World
		if by == byEngine {
			p, err := newProduction()
			if err != nil {
				t.Fatal(err)
			}
			w, b = p.w, newBench(t, p, p.w, 2, x)
			p.f = b.floor
			for _, c := range b.clients {
				p.member(c.host)
			}
		} else {
			p := newPlain()
			w = newWorldOf(t)
			b = newBench(t, p, w, 2, x)
			p.f = b.floor
		}
		b.submitAll(t)
		first, second := b.clients[0], b.clients[1]
		var sent job.Time
		b.after(time.Minute, func() { b.ask(first) })
		b.after(3*time.Minute, func() {
			if len(first.runs) != 1 {
				t.Fatalf("by %d: the first client has %d tasks", by, len(first.runs))
			}
			sent = first.runs[0].began
			first.up = false // its host says nothing until the end
			b.ask(second)
		})
		var again job.Time
		if err := w.RunWhile(sim.Start.Add(3*time.Hour), func() bool {
			if len(second.runs) > 0 && again == 0 {
				again = second.runs[0].began
				first.up = true
				b.d.ended(first, first.runs[0], false)
				first.up = false
			}
			return b.open > 0 || w.Now() < sim.Start.Add(2*time.Hour)
		}); err != nil {
			t.Fatal(err)
		}
		const deadline, cycle = 20 * time.Minute, 2 * time.Minute // of the server, and of asks
		if after := again.Sub(sent); again == 0 || after < deadline || after > deadline+cycle {
			t.Errorf("by %d: sent again after %v", by, after)
		}
		if o := b.outcome.bags[0]; len(o.ends) != 1 {
			t.Errorf("by %d: %d results were accepted", by, len(o.ends))
		}
	}
}

// Check 8: nothing is replicated before the tail, and no task has more runs than it may.
func TestReplicasWaitForTheTail(t *testing.T) {
	x := second.single(1)
	size := sizeOf(600)
	s := x.setting(size)
	p, err := newProduction()
	if err != nil {
		t.Fatal(err)
	}
	f := newFloor(p.w, newSlots(s.grids, s.divisor, x.alike, 1), s.bags, 1)
	p.f = f
	replicas, unsentBefore := 0, false
	f.d = p
	runs := func() {
		if len(p.ids) == 0 {
			return
		}
		b := p.w.Site(server).State().Bag(p.ids[0])
		if n := f.outcome.bags[0].replicas; n > replicas {
			replicas = n
			unsentBefore = unsentBefore || b.TailSince == 0
			for task := range b.Tasks() {
				if b.RunsOf(task) > 1+int(s.bags[0].replicas) {
					t.Fatalf("task %d has %d runs", task, b.RunsOf(task))
				}
			}
		}
	}
	if _, err := f.play(func() bool { runs(); return true }); err != nil {
		t.Fatal(err)
	}
	if replicas == 0 || unsentBefore {
		t.Errorf("%d replicas; before the tail: %v", replicas, unsentBefore)
	}
}

// Check 13: fifty bags of distinct ranks end one after the other.
func TestRankedBagsEndInOrder(t *testing.T) {
	o, err := ranked.run(t.Context(), sizeOf(3000), 1)
	if err != nil {
		t.Fatal(err)
	}
	if tau := kendall(o); tau < 0.95 {
		t.Errorf("τ %v", tau)
	}
}
