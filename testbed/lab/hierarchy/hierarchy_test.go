package hierarchy

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"kith/internal/job"
	"kith/sitesched/level"
	"kith/testbed/lab"
	"kith/testbed/lab/labtest"
)

// A small run is whole.
func TestSmall(t *testing.T) { labtest.Small(t, Experiment(), 4, 4) }

// played plays some tasks on the system of the source.
func played(t *testing.T, tasks int, long float64, seed uint64) *play {
	t.Helper()
	p, err := newPlay(production(), generate(tasks, long, rand.New(rand.NewPCG(seed, 0))), rand.New(rand.NewPCG(seed, 3)))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

// Acceptance check 6: what has ended is never done again. The work of sub-jobs that have ended is that of the task, once,
// for each that was done, and less for all others; the schedulers are in order.
func TestEndedWorkIsDoneOnce(t *testing.T) {
	t.Parallel()
	p := played(t, 150, 1, 5)
	moved, lost := 0, 0.0
	for _, x := range p.tasks {
		if x.fate == open || x.fate == done != (math.Abs(x.done/x.work-1) < 1e-9) || x.done > x.work*(1+1e-9) {
			t.Errorf("task %d of %g operations ended as %d with %g done", x.id, x.work, x.fate, x.done)
		}
		if len(x.visits) > 2 {
			moved++
		}
		lost += x.lost
		for i, q := range x.visits {
			if i > 0 && q <= x.visits[i-1] {
				t.Errorf("task %d went from queue %d to %d", x.id, x.visits[i-1], q)
			}
		}
		if total := x.end.Sub(x.at).Seconds(); math.Abs(x.cost.sum()+x.cost.run-total) > 1 {
			t.Errorf("task %d took %v s, of which %v are told: %+v, visits %v", x.id, total, x.cost.sum()+x.cost.run, x.cost, x.visits)
		}
	}
	if moved < 5 || lost == 0 {
		t.Errorf("%d tasks went down twice, %v s were lost: too few to say anything", moved, lost)
	}
	for i, g := range p.sites {
		if err := g.s.Check(); err != nil {
			t.Errorf("grid %d: %v", i, err)
		}
	}
}

// Acceptance check 10: a task that is killed at the last level keeps what has ended.
func TestKilledTasksKeepResults(t *testing.T) {
	t.Parallel()
	long := submitted{at: 1, work: 16000 * 3600 * hourly}
	p, err := newPlay(production(), []submitted{long, {at: job.Time(60 * time.Hour), work: 100 * 3600 * hourly}, {at: job.Time(61 * time.Hour), work: 1e10}}, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	p.tasks[0].est.spread = 0
	// It is alone at its level and may run on; another task that comes there ends it.
	p.tasks[1].visits, p.tasks[1].est.spread = nil, 0
	p.tasks[1].work, p.tasks[1].est.truth = 3000*3600*hourly, 3000*3600*hourly
	if err := p.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	x := p.tasks[0]
	if x.fate != killed || x.done <= 0.3*x.work || x.done >= x.work {
		t.Errorf("a task above the limits ended as %d after %v with %.2f of it done", x.fate, x.end.Sub(x.at), x.done/x.work)
	}
	if last := p.tasks[2]; last.fate != done || last.end.Sub(last.at) > time.Minute {
		t.Errorf("a short task ended as %d after %v", last.fate, last.end.Sub(last.at))
	}
}

// Acceptance check 12: the bound never drops below the truth and never rises, and falls the faster the smaller the task.
func TestEstimator(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		truth := math.Pow(10, 8+10*rng.Float64())
		e, last := newEstimator(truth, rng), math.Inf(1)
		var kept level.Bound
		for range 20 {
			b := e.work(time.Duration(rng.Int64N(int64(time.Minute))), 1+rng.Float64()*99)
			if b < truth || b > last {
				t.Fatalf("the bound of %g went from %g to %g", truth, last, b)
			}
			last = b
			if err := kept.Add(level.Complexity(b)); err != nil {
				t.Fatal(err)
			}
		}
		if least, _ := kept.Least(); float64(least) != last {
			t.Fatalf("%g is kept of %g", least, last)
		}
	}
	for _, q := range production().queues {
		if got := q.limits.EstimateLimit().Seconds(); math.Abs(got-level.DefaultEstimateShare*q.limits.Run.Seconds()) > 1e-6 {
			t.Errorf("%s estimates for %v s", q.name, got)
		}
	}
}

// The generator has the classes of the source, and more long tasks change nothing about the others.
func TestGenerate(t *testing.T) {
	t.Parallel()
	list, more := generate(4000, 1, rand.New(rand.NewPCG(1, 0))), generate(4000, 2, rand.New(rand.NewPCG(1, 0)))
	var short, medium, long float64
	for i, x := range list {
		if more[i] != x {
			t.Fatalf("task %d differs where there are more long ones", i)
		}
		switch s := x.work / hourly; {
		case s <= 360:
			short++
		case s <= 3*3600:
			medium++
		default:
			long++
		}
	}
	if n := float64(len(more) - len(list)); math.Abs(n/long-1) > 0.02 || long < 400 || long > 560 || short < 2400 || medium < 600 {
		t.Errorf("%v short, %v medium and %v long tasks, %v more of these where they are doubled", short, medium, long, n)
	}
}

// Bands accept the source's numbers and refuse what is just outside.
func TestBands(t *testing.T) {
	t.Parallel()
	fresh := func() map[trial]result {
		m := map[trial]result{
			fcfs: {long: 6.2 * 3600, short: 4.7 * 3600}, fcfsHierarchy: {long: 6.4 * 3600, short: 4.2 * 3600},
			mq: {long: 6.1 * 3600, short: 210}, mqHierarchy: {long: 6.3 * 3600, short: 44},
		}
		for _, x := range append(shown(), unestimated) {
			if _, has := m[x]; has {
				continue
			}
			o := &outcome{
				Levels: [4]float64{0, 0.3, 17.7, 82}, Tasks: [4]float64{0, 60, 28, 12}, Small: 100, SmallBelow: 11, Medium: 100, MediumBelow: 5,
				Hours: [4]float64{0, 73, 27, 0},
			}
			for q, mean := range []float64{72, 4000, 8000, 50000} {
				y := &o.Queues[q]
				y.N, y.Time = 1, mean
				y.Cost = overheads{estimation: mean * 0.05, local: mean * 0.12, grid: mean * 0.01, run: mean * 0.82}
				y.Parallel.N, y.Parallel.Ran, y.Parallel.Lost = 1, 100, []float64{0, 1, 4.5, 7}[q]
				y.Parallel.Held, y.Parallel.OfAll, y.Parallel.Sub = []float64{0, 55, 81.7, 141}[q], []float64{0, 0.5, 0.54, 0.09}[q], []float64{0, 93, 194, 1600}[q]
			}
			m[x] = result{outcome: o}
		}
		for i := range settings {
			m[settings[i].potential].Queues[q4].Cost.local *= 0.9
		}
		m[unestimated].Queues[q1].Time *= 2
		return m
	}
	judge := func(m map[trial]result) map[string]lab.Result {
		a := &answers{Outcomes: make(lab.Outcomes[trial, result])}
		for x, r := range m {
			a.Outcomes[x] = []result{r}
		}
		got := make(map[string]lab.Result)
		for _, q := range questions() {
			f := q.Judge(a)
			got[q.ID] = f.Result
		}
		return got
	}
	for id, r := range judge(fresh()) {
		if want := lab.Holds; r != want && !(r == lab.Informational && (id == "H12" || id == "H13" || id == "H19")) {
			t.Errorf("%s of the source's numbers: %s", id, r)
		}
	}
	for id, spoil := range map[string]func(m map[trial]result){
		"H1":  func(m map[trial]result) { m[mq] = result{long: 5.7 * 3600, short: 210} },
		"H2":  func(m map[trial]result) { m[fcfs] = result{long: 6.2 * 3600, short: 1.8 * 3600} },
		"H3":  func(m map[trial]result) { m[mq] = result{long: 6.1 * 3600, short: 87} },
		"H4":  func(m map[trial]result) { m[mqHierarchy] = result{long: 6.3 * 3600, short: 51} },
		"H5":  func(m map[trial]result) { m[production7].Levels[3] = 26 },
		"H6":  func(m map[trial]result) { m[production7].Tasks[3] = 30 },
		"H7":  func(m map[trial]result) { m[production7].SmallBelow = 26 },
		"H8":  func(m map[trial]result) { m[production7].MediumBelow = 11 },
		"H9":  func(m map[trial]result) { m[doubled].Queues[q1].Time = 84 },
		"H10": func(m map[trial]result) { m[production7].Queues[q3].Time = 3999 },
		"H11": func(m map[trial]result) { m[production7].Queues[q2].Cost.estimation = 4000 * 0.13 },
		"H14": func(m map[trial]result) { m[production7].Queues[q4].Cost.estimation = 50000 * 0.06 },
		"H15": func(m map[trial]result) { m[potential].Queues[q4].Cost.local *= 2 },
		"H16": func(m map[trial]result) { m[production7].Hours[killed] = 7 },
		"H17": func(m map[trial]result) { m[unestimated].Queues[q1].Time = 72 },
		"H18": func(m map[trial]result) { m[production7].Queues[q4].Parallel.OfAll = 0.51 },
		"H20": func(m map[trial]result) { m[guessKindred.plain].Levels[3] = 26 },
		"H21": func(m map[trial]result) { m[guessVarious.doubled].Queues[q1].Time = 84 },
		"H22": func(m map[trial]result) { m[guessVarious.plain].Queues[q4].Time = 50001 },
	} {
		m := fresh()
		if spoil(m); judge(m)[id] != lab.Fails {
			t.Errorf("%s just outside its band: %s", id, judge(m)[id])
		}
	}
}
