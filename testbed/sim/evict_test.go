package sim

import (
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/sitesched"
	"kith/store"
)

// evicting is a world of three sites: guests of s1, which has one processor, run at s0, whose own jobs do
// not see them, or at s2.
func evicting(t *testing.T, change func(*Config)) *World {
	t.Helper()
	return watched(t, func(c *Config) {
		saves := 20 * time.Second
		c.Saves = &saves
		c.Sites[0].Scheduler.Queues = sitesched.DualPreempt
		for i := range c.Sites {
			c.Sites[i].Meta.MaxGrace = time.Minute
		}
		if change != nil {
			change(c)
		}
	}, 4, 1, 4)
}

// jobOf returns what the origin knows of its first job.
func jobOf(t *testing.T, w *World, origin job.SiteID) *store.Job {
	t.Helper()
	for j := range w.Site(origin).State().Jobs(job.ID{}) {
		return j
	}
	t.Fatalf("%s has no job", origin)
	return nil
}

// A home job starts within the grace at a site that is full of guests. A guest goes on elsewhere from
// where it was, or from the beginning if it saves nothing; one that could do neither is not taken.
func TestGuestsLeave(t *testing.T) {
	for name, c := range map[string]struct {
		request       job.Request
		run           time.Duration
		taken, leaves bool
		ends          time.Duration // the guest, since it was submitted
	}{
		"writes checkpoints":       {job.Request{Checkpoint: true}, time.Hour, true, true, time.Hour + 21*time.Second},
		"may begin again":          {job.Request{OnSiteLost: job.Rerun}, time.Hour, true, true, 70*time.Minute - 5*time.Second},
		"may race":                 {job.Request{OnSiteLost: job.Race}, time.Hour, true, true, 70*time.Minute - 5*time.Second},
		"can do neither":           {job.Request{}, time.Hour, false, false, 0},
		"is soon gone":             {job.Request{Walltime: time.Minute}, 10 * time.Second, true, false, 11 * time.Second},
		"soon gone, and may leave": {job.Request{Walltime: 10*time.Minute + 30*time.Second, Checkpoint: true}, 10*time.Minute + 30*time.Second, true, false, 10*time.Minute + 31*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			w := evicting(t, nil)
			began := make(map[job.SiteID][]job.Time)
			w.cfg.Began = func(at job.SiteID, a job.AttemptID, _ int) {
				if a.Job.Origin == "s0" {
					began["home"] = append(began["home"], w.Now())
				} else if a.Job.Origin == "s1" {
					began[at] = append(began[at], w.Now())
				}
			}
			c.request.Name, c.request.User, c.request.Processors = "guest", "bob", 4
			if c.request.Walltime == 0 {
				c.request.Walltime = 2 * time.Hour
			}
			submit(w, 0, "s2", 4, 0, 5*time.Minute) // so that the guest comes to s0
			w.Submit(Start.Add(5*time.Second), "s1", Submission{Request: c.request, RunTime: c.run})
			home := Start.Add(10 * time.Minute)
			if name == "is soon gone" {
				home = Start.Add(7 * time.Second)
			}
			w.Submit(home, "s0", Submission{
				Request: job.Request{Name: "home", User: "ada", Processors: 3, Copies: 1, Walltime: 10 * time.Minute}, RunTime: 8 * time.Minute,
			})
			if err := w.Run(Start.Add(4 * time.Hour)); err != nil {
				t.Fatal(err)
			}
			if err := w.CheckEnded(); err != nil {
				t.Fatal(err)
			}
			j := jobOf(t, w, "s1")
			if len(began["home"]) != 1 || began["home"][0].Sub(home) > time.Minute+time.Second {
				t.Errorf("the home job began at %v, submitted %v", began["home"], home)
			}
			if taken := len(began["s0"]) > 0; taken != c.taken {
				t.Errorf("the guest began at s0: %v", began["s0"])
			}
			if n := j.DemotedFor(job.Evicted); (n == 1) != c.leaves || n > 1 {
				t.Errorf("the guest was evicted %d times", n)
			}
			if took := j.Closed.Sub(j.Submitted); j.State != job.Completed || c.ends > 0 && (took < c.ends-time.Second || took > c.ends+2*time.Second) {
				t.Errorf("the guest is %v after %v, want %v", j.State, took, c.ends)
			}
			if !c.taken {
				return
			}
			for _, d := range j.Demotions {
				if saved := d.Sequence != 0; d.Site != "s0" || saved != c.request.Checkpoint {
					t.Errorf("it left %+v", d)
				}
			}
		})
	}
}

// A job that was evicted eight times is not evicted a ninth time: it is no guest any more where that
// might happen.
func TestEvictedEightTimes(t *testing.T) {
	w := evicting(t, func(c *Config) { c.Sites[2].Scheduler.Processors = 2 })
	w.Submit(Start.Add(5*time.Second), "s1", Submission{
		Request: job.Request{Name: "guest", User: "bob", Processors: 4, Walltime: 100 * time.Hour, Checkpoint: true}, RunTime: 50 * time.Hour,
	})
	for n := range 12 {
		submit(w, time.Duration(n+1)*time.Hour, "s0", 4, 0, 10*time.Minute)
	}
	if err := w.Run(Start.Add(30 * time.Hour)); err != nil {
		t.Fatal(err)
	}
	j := jobOf(t, w, "s1")
	if n := j.DemotedFor(job.Evicted); n != job.MaxEvictions || j.State != job.Pending {
		t.Errorf("evicted %d times, %v", n, j.State)
	}
}

// Home jobs that come faster than guests can leave start all the same, each within the grace of when
// it would have without guests; and cancel, hold, drain and restarts of the site meanwhile leave nothing behind.
func TestHomeJobsFasterThanGuestsLeave(t *testing.T) {
	for name, then := range map[string]func(w *World, ids []job.ID){
		"nothing": func(*World, []job.ID) {},
		"cancel":  func(w *World, ids []job.ID) { tell(w, "s0", meta.Cancel{Job: ids[1]}) },
		"hold": func(w *World, ids []job.ID) {
			tell(w, "s0", meta.Hold{Job: ids[1]})
			w.At(w.Now().Add(5*time.Minute), func() { tell(w, "s0", meta.Release{Job: ids[1]}) })
		},
		"drain": func(w *World, _ []job.ID) {
			tell(w, "s0", meta.SetDrain{On: true})
			w.At(w.Now().Add(5*time.Minute), func() { tell(w, "s0", meta.SetDrain{}) })
		},
		"crash":  func(w *World, _ []job.ID) { crash(w, "s0") },
		"origin": func(w *World, _ []job.ID) { crash(w, "s1") },
		"both":   func(w *World, _ []job.ID) { crash(w, "s0"); crash(w, "s1") },
		"no power": func(w *World, _ []job.ID) {
			w.Site("s0").PowerLoss()
			w.At(w.Now().Add(time.Minute), func() { _ = w.Site("s0").Restart() })
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := evicting(t, nil)
			var ids []job.ID
			submit(w, 0, "s2", 4, 0, 20*time.Minute)
			for range 5 {
				w.Submit(Start.Add(5*time.Second), "s1", Submission{
					Request: job.Request{Name: "guest", User: "bob", Processors: 1, Walltime: 2 * time.Hour, Checkpoint: true, OnSiteLost: job.Rerun}, RunTime: time.Hour,
				})
			}
			for n := range 4 {
				w.Submit(Start.Add(10*time.Minute+time.Duration(n)*5*time.Second), "s0", Submission{
					Request: job.Request{Name: "home", User: "ada", Processors: 1, Copies: 1, Walltime: 2 * time.Hour, OnSiteLost: job.Rerun}, RunTime: 10 * time.Minute,
					Done: func(id job.ID, _ error) { ids = append(ids, id) },
				})
			}
			w.At(Start.Add(10*time.Minute+17*time.Second), func() { then(w, ids) }) // while all wait for guests to leave
			if err := w.Run(Start.Add(6 * time.Hour)); err != nil {
				t.Fatal(err)
			}
			if err := w.CheckEnded(); err != nil {
				t.Fatal(err)
			}
			evicted := 0
			for j := range w.Site("s1").State().Jobs(job.ID{}) {
				if evicted += j.DemotedFor(job.Evicted); j.State != job.Completed {
					t.Errorf("guest %v is %v", j.ID, j.State)
				}
			}
			if evicted < 3 && name != "no power" || evicted > 8 { // without power they are lost before
				t.Errorf("%d evictions", evicted)
			}
			for i, id := range ids {
				j := w.Site("s0").State().Job(id)
				want := job.Completed
				if name == "cancel" && i == 1 {
					want = job.Cancelled
				}
				if j.State != want {
					t.Errorf("home job %v is %v", id, j.State)
				}
				if name == "nothing" && j.Started.Sub(j.Submitted) > time.Minute+time.Second {
					t.Errorf("home job %v started after %v", id, j.Started.Sub(j.Submitted))
				}
			}
		})
	}
}

func tell(w *World, site job.SiteID, ev meta.Event) { w.Site(site).feed(ev) }

func crash(w *World, id job.SiteID) {
	w.Site(id).Crash()
	w.At(w.Now().Add(5*time.Second), func() { _ = w.Site(id).Restart() })
}

// Under a bound guests leave only when they alone have kept a home job waiting for that long, less
// what they may take to leave.
func TestGuestsLeaveAtTheBound(t *testing.T) {
	w := evicting(t, func(c *Config) {
		c.Sites[0].Scheduler.Queues = sitesched.DualBackfill
		c.Sites[0].Meta.NoHarm = meta.NoHarm{Measure: true, Mode: meta.HarmBounded, Bound: 10 * time.Minute}
	})
	submit(w, 0, "s2", 4, 0, 30*time.Minute)
	w.Submit(Start.Add(5*time.Second), "s1", Submission{Request: job.Request{Name: "guest", User: "bob", Processors: 4, Walltime: 2 * time.Hour, Checkpoint: true}, RunTime: time.Hour})
	w.Submit(Start.Add(5*time.Minute), "s0", Submission{Request: job.Request{Name: "home", User: "ada", Processors: 3, Copies: 1, Walltime: time.Hour}, RunTime: 8 * time.Minute})
	if err := w.Run(Start.Add(4 * time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := w.CheckEnded(); err != nil {
		t.Fatal(err)
	}
	home, guest := jobOf(t, w, "s0"), jobOf(t, w, "s1")
	if waited := home.Started.Sub(home.Submitted); waited < 8*time.Minute+20*time.Second || waited > 8*time.Minute+21*time.Second { // told two graces ahead, it takes 20 s to save
		t.Errorf("the home job waited %v", waited)
	}
	if guest.DemotedFor(job.Evicted) != 1 || guest.State != job.Completed {
		t.Errorf("the guest is %v, evicted %d times", guest.State, guest.DemotedFor(job.Evicted))
	}
	if n, _ := w.Site("s0").Engine().Views().HarmCounters(); n.Violations != 0 {
		t.Errorf("%d violations", n.Violations)
	}
}

// Guests that were taken before the site had guests leave, and cannot, stay to their end: others leave
// in their place, and what needs all of them waits for their end.
func TestGuestsThatStay(t *testing.T) {
	invisible := func(c *SiteConfig) { c.Scheduler.Queues = sitesched.DualPreempt }
	bounded := func(c *SiteConfig) {
		c.Meta.NoHarm = meta.NoHarm{Measure: true, Mode: meta.HarmBounded, Bound: 2 * time.Minute}
	}
	for name, c := range map[string]struct {
		change  func(c *SiteConfig)
		widths  []int32 // of home jobs
		evicted int     // the guest that can leave
	}{
		"invisible": {invisible, []int32{2, 4}, 1},
		"bounded":   {bounded, []int32{2, 4}, 1},
		"for a job that waits for one that stays nobody leaves":           {invisible, []int32{4}, 0},
		"for a job that waits for one that stays nobody leaves at bounds": {bounded, []int32{4}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := evicting(t, func(c *Config) { c.Sites[0].Scheduler.Queues = sitesched.DualBackfill })
			submit(w, 0, "s2", 4, 0, 3*time.Hour)
			for n, checkpoint := range []bool{true, false} { // the younger one, which would lose less, cannot leave
				w.Submit(Start.Add(time.Duration(5+5*n)*time.Second), "s1", Submission{
					Request: job.Request{Name: "guest", User: "bob", Processors: 2, Walltime: 2 * time.Hour, Checkpoint: checkpoint}, RunTime: time.Hour,
				})
			}
			w.At(Start.Add(5*time.Minute), func() {
				w.Site("s0").Crash()
				w.Site("s0").Reconfigure(c.change)
				if err := w.Site("s0").Restart(); err != nil {
					t.Error(err)
				}
			})
			for n, wide := range c.widths {
				w.Submit(Start.Add(10*time.Minute+time.Duration(n)*time.Second), "s0", Submission{
					Request: job.Request{Name: "home", User: "ada", Processors: wide, Copies: 1, Walltime: 10 * time.Minute}, RunTime: 8 * time.Minute,
				})
			}
			if err := w.Run(Start.Add(6 * time.Hour)); err != nil {
				t.Fatal(err)
			}
			if err := w.CheckEnded(); err != nil {
				t.Fatal(err)
			}
			var guests, homes []*store.Job
			for j := range w.Site("s1").State().Jobs(job.ID{}) {
				guests = append(guests, j)
			}
			for j := range w.Site("s0").State().Jobs(job.ID{}) {
				homes = append(homes, j)
			}
			if waited := homes[0].Started.Sub(homes[0].Submitted); c.widths[0] == 2 && waited > 2*time.Minute+time.Second {
				t.Errorf("the narrow home job waited %v", waited)
			}
			if over := homes[len(homes)-1].Started.Sub(guests[1].Closed); over < -time.Second || over > 2*time.Minute+time.Second {
				t.Errorf("the wide home job started %v after the end of the guest that stays", over)
			}
			for i, want := range []int{c.evicted, 0} {
				if n := guests[i].DemotedFor(job.Evicted); n != want || guests[i].State != job.Completed {
					t.Errorf("guest %d is %v, evicted %d times, want %d", i, guests[i].State, n, want)
				}
			}
		})
	}
}
