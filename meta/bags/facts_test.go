package bags

import (
	"math/rand/v2"
	"testing"
	"time"

	"kith/internal/job"
	"kith/store"
)

// federation is an origin's facts and sites that only run what they get.
type federation struct {
	t     *testing.T
	rng   *rand.Rand
	state *store.State
	desk  *Desk
	sites []job.SiteID
	stamp uint64
	now   job.Time
	runs  map[job.TaskID]int
}

func (f *federation) works() (works []Work, bags []*store.Bag) {
	for b := range f.state.Bags {
		if !b.State.Terminal() {
			works, bags = append(works, WorkOf(b, 0, f.sites)), append(bags, b)
		}
	}
	return works, bags
}

// ask has a site ask, and commits what it gets; it returns how much.
func (f *federation) ask(site job.SiteID) (given int) {
	works, bags := f.works()
	f.stamp++
	a := Ask{Site: site, Shape: hour, Places: 1 + f.rng.IntN(20), Want: f.rng.IntN(40)}
	for _, s := range f.desk.Answer(a, works, f.now) {
		b := bags[s.Work]
		tasks := f.desk.Grant(b, &works[s.Work], site, s.Tasks, f.now)
		if tasks.Count() != s.Tasks {
			f.t.Fatalf("a bundle of %d tasks, %d were decided on", tasks.Count(), s.Tasks)
		}
		must(f.t, f.state, store.GrantBundle{
			Bundle: job.AttemptID{Job: b.ID, Number: b.Number + 1}, Site: site, Stamp: f.stamp, Generation: 1, Tasks: tasks, Time: f.now,
		})
		f.desk.Elsewhere.Leave(b.ID, &tasks)
		given += s.Tasks
	}
	return given
}

// report has a bundle end, give back or lose some of its tasks.
func (f *federation) report(b *store.Bag, t *store.TaskBundle) {
	c := store.RecordResults{Bundle: job.AttemptID{Job: b.ID, Number: t.Number}, Site: t.Site, Batch: t.Batch + 1, Time: f.now}
	var again []uint32
	for task := range t.Tasks.All {
		r := job.TaskResult{Ordinal: task, Kind: job.Success, Run: time.Duration(f.rng.IntN(100)) * time.Millisecond}
		switch f.rng.IntN(8) {
		case 0:
			continue
		case 1:
			c.Returned.Add(task)
			continue
		case 2:
			r.Kind, r.ExitCode = job.Failure, 7
			again = append(again, task)
		}
		c.Results = append(c.Results, r)
		f.runs[job.TaskID{Bag: b.ID, Ordinal: task}]++
		f.desk.Usage.Add(b.Request.User, r.Run.Seconds(), f.now)
	}
	must(f.t, f.state, c)
	for _, task := range again {
		if b.Again.Has(task) {
			f.desk.Elsewhere.Failed(b.ID, task, t.Site, f.now)
		}
	}
}

// Every task of every bag ends, whatever sites ask for and give back: what the desk decides
// on, the facts take, and no bag waits for ever behind others of its priority. What failed
// runs no more often than its bag allows.
func TestBagsEnd(t *testing.T) {
	for seed := range uint64(20) {
		f := &federation{
			t: t, rng: rand.New(rand.NewPCG(seed, 7)), state: store.NewState("alpha", 1), desk: newDesk(),
			sites: []job.SiteID{"beta", "gamma", "delta"}[:1+seed%3], runs: map[job.TaskID]int{},
		}
		for i := range 6 {
			submit(t, f.state, 1+uint32(f.rng.IntN(400)), func(c *store.SubmitBag) {
				c.Request.User, c.Retries = []string{"ann", "bob"}[i%2], uint8(f.rng.IntN(4))
				c.MaxRunning, c.Priority = uint32(f.rng.IntN(2)*30), int32(f.rng.IntN(2))
			})
		}
		for step := 0; ; step++ {
			f.now = f.now.Add(time.Second)
			site := f.sites[f.rng.IntN(len(f.sites))]
			given := f.ask(site)
			left := 0
			for b := range f.state.Bags {
				left += int(b.Tasks()) - b.EndedCount()
				for bundle := range b.Bundles {
					if f.rng.IntN(3) == 0 {
						f.report(b, bundle)
					}
				}
			}
			if err := f.state.Check(); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
			if left == 0 {
				break
			}
			if step == 5000 {
				t.Fatalf("seed %d: %d tasks are left, the last ask got %d", seed, left, given)
			}
		}
		for task, n := range f.runs {
			if n > 1+int(f.state.Bag(task.Bag).Retries) {
				t.Errorf("seed %d: task %v ran %d times", seed, task, n)
			}
		}
		if len(f.desk.Elsewhere.bags) != 0 {
			t.Errorf("seed %d: tasks of bags that have ended are kept from sites: %v", seed, f.desk.Elsewhere.bags)
		}
	}
}
