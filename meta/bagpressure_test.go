package meta_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"kith/cluster"
	"kith/internal/job"
	"kith/meta"
	"kith/meta/bags"
	"kith/meta/policy"
	"kith/sitesched"
	"kith/store"
)

// manyHosts is an origin that hosts ask for tasks, which the caller plays.
type manyHosts struct {
	engine *meta.Engine
	state  *store.State
	now    job.Time
	looks  int // at policies, for asks
	stamp  uint64
}

type lookedAt struct {
	bags.Policies
	m *manyHosts
}

func (l lookedAt) Compile(p *store.BagPolicies) (bags.Judge, error) {
	j, err := l.Policies.Compile(p)
	if err != nil {
		return nil, err
	}
	return &lookedAtJudge{j, l.m}, nil
}

type lookedAtJudge struct {
	bags.Judge
	m *manyHosts
}

func (j *lookedAtJudge) Verdict(s *bags.Scene) bags.Verdict {
	j.m.looks++
	return j.Judge.Verdict(s)
}

func newManyHosts(t testing.TB, sites int) *manyHosts {
	t.Helper()
	m := &manyHosts{state: store.NewState("alpha", 1), now: job.Time(time.Hour)}
	cfg := meta.Default()
	cfg.Self = meta.Self{Processors: 1, Speed: 1}
	cfg.Timing.Load, cfg.Timing.AntiEntropy, cfg.Timing.Resend = 1000*time.Hour, 1000*time.Hour, 1000*time.Hour
	cfg.Policies = lookedAt{policy.New(), m}
	site, err := sitesched.New(sitesched.Config{Processors: 1})
	if err != nil {
		t.Fatal(err)
	}
	if m.engine, err = meta.New(cfg, m.state, site); err != nil {
		t.Fatal(err)
	}
	m.engine.Restore(m.now, nil)
	for i := range sites {
		m.engine.Step(m.now, meta.PeerUp{Site: name(i), Generation: 1})
		m.engine.Step(m.now, meta.LoadSeen{Digest: cluster.Digest{Site: name(i), Incarnation: 1, Sequence: 1, Processors: 4, Speed: 1}})
	}
	return m
}

// submit has bags of so many tasks with policies submitted, and sites looked for.
func (m *manyHosts) submit(t testing.TB, bagCount int, tasks uint32, pairs func(i int) map[bags.Text]string) bags.Shape {
	t.Helper()
	var shape bags.Shape
	for i := range bagCount {
		s := aBag(tasks, false)
		s.Request.User, s.Policies = fmt.Sprint("user", i%10), texts(pairs(i))
		shape = bags.ShapeOf(&s.Request)
		for _, f := range m.engine.Step(m.now, s) {
			if r, ok := f.(meta.Reply); ok && r.Err != nil {
				t.Fatal(r.Err)
			}
		}
	}
	for range 20 {
		m.now = m.now.Add(time.Second)
		m.engine.Step(m.now, meta.Tick{})
		m.engine.Step(m.now, meta.Pass{})
	}
	m.state.DropChanges()
	return shape
}

// ask has a node of a site ask for a task, and returns how many it got.
func (m *manyHosts) ask(site int, node string, shape bags.Shape) (tasks int) {
	m.stamp++
	for _, f := range m.engine.Step(m.now, meta.Receive{From: name(site), Message: meta.TaskClaim{Stamp: m.stamp, Sent: m.now, Ask: bags.Ask{
		Node: node, Shape: shape, Places: 1, Want: 1,
	}}}) {
		if g, ok := f.(meta.GrantTasks); ok {
			for i := range g.Verdict.Bundles {
				tasks += g.Verdict.Bundles[i].Tasks.Count()
			}
		}
	}
	m.state.DropChanges()
	return tasks
}

// fourPolicies are those of bag i.
func fourPolicies(i int) map[bags.Text]string {
	return map[bags.Text]string{
		bags.Requirements: fmt.Sprintf("!bag.tail ? host.error_rate < 0.5 : host.error_rate < 0.%d", i%7+1), bags.Rank: fmt.Sprint(i % 50),
		bags.Concurrency: "2 * host.places", bags.Sites: "!site.home",
	}
}

// Ten thousand hosts that ask within a second each get a task, and each ask looks at most once at each
// bag.
func TestTenThousandHostsAsk(t *testing.T) {
	const sites, nodes, count = 100, 100, 3
	m := newManyHosts(t, sites)
	shape := m.submit(t, count, 10_000, fourPolicies)
	m.looks = 0
	for i := range sites * nodes {
		m.now = m.now.Add(time.Second / (sites * nodes))
		if n := m.ask(i%sites, fmt.Sprint("n", i/sites), shape); n != 1 {
			t.Fatalf("host %d gets %d tasks", i, n)
		}
	}
	if m.looks > sites*nodes*count {
		t.Errorf("policies were looked at %d times for %d asks among %d bags", m.looks, sites*nodes, count)
	}
	given := 0
	for b := range m.state.Bags {
		given += b.Given()
	}
	if given != sites*nodes {
		t.Errorf("sites have %d tasks", given)
	}
	m.now = m.now.Add(time.Second)
	m.engine.Step(m.now, meta.Tick{})
	m.engine.Step(m.now, meta.Pass{})
	hosts := 0
	for _, views := range m.engine.Views().Standings(m.now, nodes) {
		hosts += len(views)
	}
	if hosts != sites*nodes {
		t.Errorf("%d hosts stand somehow", hosts)
	}
}

// Among 500 bags with four policies each an ask gets the task of the highest rank of the user
// whose turn it is, and looks at most once at each bag.
func TestFiveHundredBagsWithPolicies(t *testing.T) {
	m := newManyHosts(t, 2)
	shape := m.submit(t, 500, 10, fourPolicies)
	for i := range 20 {
		m.looks = 0
		if n := m.ask(i%2, "", shape); n != 1 || m.looks > 500 {
			t.Errorf("ask %d gets %d tasks after %d looks", i, n, m.looks)
		}
	}
	rank := func(b *store.Bag) int {
		n, _ := strconv.Atoi(bags.Rank.Of(&b.Policies))
		return n
	}
	untouched := make(map[string]int) // the highest rank, by user
	for b := range m.state.Bags {
		if b.Given() == 0 {
			untouched[b.Request.User] = max(untouched[b.Request.User], rank(b))
		}
	}
	for b := range m.state.Bags {
		if b.Given() > 0 && rank(b) < untouched[b.Request.User] {
			t.Errorf("%s has tasks of a bag of rank %d and none of one of rank %d", b.Request.User, rank(b), untouched[b.Request.User])
		}
	}
}

// A dry run for no bag asks as for one that begins now, so that what holds before the tail is
// told and is not UNDEFINED.
func TestDryRunOfABagThatBegins(t *testing.T) {
	m := newManyHosts(t, 1)
	p := texts(map[bags.Text]string{bags.Requirements: "!bag.tail ? bag.done + bag.failed + bag.running + bag.cpu_hours == 0 : host.error_rate < 0.1", bags.Rank: "bag.tasks"})
	views, _, err := m.engine.Views().CheckPolicies(m.now, job.ID{}, &p)
	if err != nil || len(views) != 2 {
		t.Fatalf("%v, %v", views, err)
	}
	for _, v := range views {
		if v.Given[0].Value != "true" || !v.Given[1].Undefined {
			t.Errorf("%+v", v)
		}
	}
}

// What a host says of itself moves neither its error rate nor its turnaround, which are by the
// origin's clock: results that are said to have run for years, or before they were granted.
func TestForgedResults(t *testing.T) {
	m := newManyHosts(t, 2)
	shape := m.submit(t, 1, 1000, func(int) map[bags.Text]string {
		return map[bags.Text]string{bags.Requirements: "host.error_rate < 0.9"}
	})
	var got meta.GivenBundle
	for i, run := range []time.Duration{100 * 365 * 24 * time.Hour, -time.Hour, 0} {
		m.stamp++
		for _, f := range m.engine.Step(m.now, meta.Receive{From: name(0), Message: meta.TaskClaim{Stamp: m.stamp, Sent: -m.now, Ask: bags.Ask{Shape: shape, Places: 1 << 40, Mean: -time.Hour, Want: 1}}}) {
			if g, ok := f.(meta.GrantTasks); ok {
				got = g.Verdict.Bundles[0]
			}
		}
		m.now = m.now.Add(10 * time.Second)
		r := meta.TaskResults{Bundle: got.Bundle, Batch: 1, Run: uint64(i + 1)}
		for task := range got.Tasks.All {
			r.Results = append(r.Results, job.TaskResult{Ordinal: task, Kind: job.Failure, ExitCode: 1, Start: 1 << 62, Run: run})
		}
		m.engine.Step(m.now, meta.Receive{From: name(0), Message: r})
		m.state.DropChanges()
	}
	v := m.engine.Views().Standings(m.now, 1)[name(0)]
	if len(v) != 1 || v[0].Turnaround != 10 || v[0].Failed == 0 || v[0].ErrorRate > 1 || v[0].Quota < 0 {
		t.Errorf("%+v", v)
	}
}

// BenchmarkClaim is an ask with its grant on the engine, by what waits and by what bags state.
func BenchmarkClaim(b *testing.B) {
	none := func(int) map[bags.Text]string { return nil }
	for _, c := range []struct {
		name  string
		bags  int
		tasks uint32
		pairs func(int) map[bags.Text]string
	}{
		{"waiting=1000", 1, 1000, fourPolicies}, {"waiting=1000000", 1, 1_000_000, fourPolicies},
		{"ten-bags-without", 10, 100_000, none}, {"ten-bags-with-policies", 10, 100_000, fourPolicies},
	} {
		b.Run(c.name, func(b *testing.B) {
			var m *manyHosts
			var shape bags.Shape
			asks := 0
			var took []time.Duration
			for b.Loop() {
				b.StopTimer()
				if asks%500 == 0 { // at least half of it waits
					m = newManyHosts(b, 20)
					shape = m.submit(b, c.bags, c.tasks, c.pairs)
				}
				asks++
				m.now = m.now.Add(10 * time.Millisecond)
				b.StartTimer()
				before := time.Now()
				if m.ask(asks%20, "", shape) != 1 {
					b.Fatal("no task")
				}
				took = append(took, time.Since(before))
			}
			b.ReportMetric(float64(percentile(took, 50).Nanoseconds()), "p50-ns")
			b.ReportMetric(float64(percentile(took, 99).Nanoseconds()), "p99-ns")
		})
	}
}

// BenchmarkDispatch is what the engine does to give tasks of ten bags out and to take up that
// they are done, by how many an ask gets and by what the bags state.
func BenchmarkDispatch(b *testing.B) {
	for _, each := range []int{1, 16, 256} {
		for _, pairs := range []func(int) map[bags.Text]string{nil, fourPolicies} {
			name, stated := "without", func(int) map[bags.Text]string { return nil }
			if pairs != nil {
				name, stated = "with-policies", func(i int) map[bags.Text]string {
					texts := pairs(i)
					texts[bags.Concurrency] = "1000 * host.places"
					return texts
				}
			}
			b.Run(fmt.Sprint(each, "-tasks-", name), func(b *testing.B) {
				var m *manyHosts
				var shape bags.Shape
				var took []time.Duration
				asks := 0
				for b.Loop() {
					b.StopTimer()
					if asks%1000 == 0 {
						m = newManyHosts(b, 20)
						shape = m.submit(b, 10, job.MaxTasks/10, stated)
					}
					asks++
					m.now = m.now.Add(10 * time.Millisecond)
					b.StartTimer()
					before := time.Now()
					if n := m.dispatch(asks%20, shape, each); n != each {
						b.Fatalf("%d tasks, want %d", n, each)
					}
					took = append(took, time.Since(before))
				}
				b.ReportMetric(float64(percentile(took, 50).Nanoseconds()), "p50-ns")
			})
		}
	}
}

// dispatch has a site ask for tasks and say that they are done, and returns how many it got.
func (m *manyHosts) dispatch(site int, shape bags.Shape, want int) (tasks int) {
	m.stamp++
	for _, f := range m.engine.Step(m.now, meta.Receive{From: name(site), Message: meta.TaskClaim{Stamp: m.stamp, Sent: m.now, Ask: bags.Ask{
		Shape: shape, Places: want, Mean: time.Second, Want: want,
	}}}) {
		g, ok := f.(meta.GrantTasks)
		if !ok {
			continue
		}
		for i := range g.Verdict.Bundles {
			got := &g.Verdict.Bundles[i]
			r := meta.TaskResults{Bundle: got.Bundle, Batch: 1, Run: m.stamp}
			for task := range got.Tasks.All {
				r.Results = append(r.Results, job.TaskResult{Ordinal: task, Kind: job.Success, Start: m.now, Run: time.Second})
			}
			tasks += len(r.Results)
			m.engine.Step(m.now, meta.Receive{From: name(site), Message: r})
		}
	}
	m.engine.Step(m.now, meta.Pass{})
	m.state.DropChanges()
	return tasks
}

// percentile returns what so many in a hundred do not exceed. It sorts the list.
func percentile(list []time.Duration, part int) time.Duration {
	slices.Sort(list)
	return list[len(list)*part/100]
}
