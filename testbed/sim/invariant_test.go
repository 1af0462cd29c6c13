package sim

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/sitesched"
	"kith/store/memstore"
)

// watched is a federation on disks, with dual queues, whose invariants are watched.
func watched(t *testing.T, change func(*Config), widths ...int32) *World {
	t.Helper()
	cfg := Config{Seed: 1, Check: true, Disk: DiskConfig{Keep: true, Sync: time.Millisecond}}
	cfg.Network.LinkConfig = LinkConfig{Latency: 10 * time.Millisecond}
	for i, p := range widths {
		cfg.Sites = append(cfg.Sites, SiteConfig{
			ID: job.SiteID(fmt.Sprint("s", i)), Meta: meta.Default(),
			Scheduler: sitesched.Config{Processors: p, MemoryBytes: 1 << 30, Backfill: sitesched.EASY, Queues: sitesched.DualBackfill, Scope: sitesched.ScopeAll},
		})
	}
	if change != nil {
		change(&cfg)
	}
	w, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func submit(w *World, at time.Duration, origin job.SiteID, processors int32, memory int64, run time.Duration) {
	w.Submit(Start.Add(at), origin, Submission{
		Request: job.Request{Name: "test", User: "ada", Processors: processors, MemoryBytes: memory, Walltime: 2 * time.Hour}, RunTime: run,
	})
}

// broken reports the invariant that a world has broken by a time.
func broken(w *World, until time.Duration) string {
	if v, ok := errors.AsType[*Violation](w.Run(Start.Add(until))); ok {
		return v.Invariant
	}
	return ""
}

// What a site gives away is summed up from what runs there, not from what its
// scheduler believes: here it believes in a larger machine than there is.
func TestProcessorsAreCountedFromOutside(t *testing.T) {
	for name, c := range map[string]struct {
		processors []int32
		memory     int64
		want       string
	}{
		"as many as there are": {[]int32{2, 1}, 1 << 20, ""},
		"one too many":         {[]int32{2, 2}, 1 << 20, "S6"},
		"too wide":             {[]int32{4}, 1 << 20, "S6"},
		"too much memory":      {[]int32{1, 1}, 300 << 20, "S6"},
	} {
		t.Run(name, func(t *testing.T) {
			w := watched(t, nil, 4)
			w.sites[0].cfg.Scheduler.Processors, w.sites[0].cfg.Scheduler.MemoryBytes = 3, 512<<20
			for _, p := range c.processors {
				submit(w, time.Minute, "s0", p, c.memory, time.Hour)
			}
			if got := broken(w, 3*time.Hour); got != c.want {
				t.Errorf("broken is %q, want %q: %v", got, c.want, w.watch.broken)
			}
			if c.want == "" && w.sites[0].taken != (taken{}) {
				t.Errorf("in the end %+v are taken", w.sites[0].taken)
			}
		})
	}
}

// What was started by an earlier life of a daemon still holds its processors,
// until it ends or its machine does. Only what a lost folder knew of counts no
// longer.
func TestProcessorsOfEarlierLives(t *testing.T) {
	restart := func(w *World) {
		if err := w.sites[0].Restart(); err != nil {
			w.Violate("crash: %v", err)
		}
	}
	for name, c := range map[string]struct {
		trouble func(w *World, s *Site)
		want    string
		running int32 // of the two jobs, after the trouble
	}{
		"restarted":     {func(_ *World, s *Site) { s.Crash() }, "", 1},
		"rebooted":      {func(_ *World, s *Site) { s.PowerLoss() }, "", 1},
		"wiped":         {func(_ *World, s *Site) { s.WipeDisk() }, "", 1},
		"folder lost":   {func(_ *World, s *Site) { s.LoseFolder() }, "", 2},
		"facts ignored": {func(_ *World, s *Site) { s.Crash(); s.w.watch.wiped(s); s.disk = memstore.Disk{}; s.generation++ }, "S6", 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := watched(t, nil, 4)
			submit(w, time.Minute, "s0", 3, 0, time.Hour)
			submit(w, 30*time.Minute, "s0", 3, 0, time.Hour)
			w.At(Start.Add(10*time.Minute), func() { c.trouble(w, w.sites[0]); restart(w) })
			if got := broken(w, 40*time.Minute); got != c.want {
				t.Fatalf("broken is %q, want %q: %v", got, c.want, w.watch.broken)
			}
			if c.want != "" {
				return
			}
			if n := int32(len(w.watch.running)); n != c.running || w.sites[0].taken.processors != 3 {
				t.Errorf("%d jobs run and hold %+v, want %d jobs, 3 processors that count", n, w.sites[0].taken, c.running)
			}
			if got := broken(w, 4*time.Hour); got != "" || w.sites[0].taken != (taken{}) || len(w.watch.running) > 0 {
				t.Errorf("in the end %d jobs run and hold %+v; %v", len(w.watch.running), w.sites[0].taken, w.watch.broken)
			}
		})
	}
}

// A job that is stopped at its walltime gives back what it held.
func TestWalltimeGivesProcessorsBack(t *testing.T) {
	w := watched(t, nil, 4)
	submit(w, time.Minute, "s0", 3, 1<<20, 5*time.Hour)
	submit(w, 2*time.Minute, "s0", 3, 1<<20, time.Hour)
	if got := broken(w, 6*time.Hour); got != "" || w.sites[0].taken != (taken{}) {
		t.Errorf("%v; in the end %+v are taken", w.watch.broken, w.sites[0].taken)
	}
	if err := w.CheckEnded(); err != nil {
		t.Error(err)
	}
}

// greedy is a local scheduler that starts another site's job in front of its own.
type greedy struct {
	drivenSite
	copy *job.Copy
}

func (g greedy) Pass(now job.Time) []job.AttemptID {
	starts := g.drivenSite.Pass(now)
	g.Adopt(now, *g.copy, now)
	return append(starts, g.copy.ID)
}

// Guarantees are watched where hosts plan with transfers as well, and on what
// is planned with them.
func TestGuaranteesWithTransfers(t *testing.T) {
	w := watched(t, func(c *Config) { c.Transfers = true }, 4, 4)
	s := w.sites[0]
	g, guarded := s.driven().(guardedSite)
	if !guarded {
		t.Fatalf("the engine drives a %T without a guard", s.driven())
	}
	if _, transfers := g.drivenSite.(transferSite); !transfers {
		t.Fatalf("the guard stands before a %T that knows of no transfers", g.drivenSite)
	}
	at := func(seq uint64, origin job.SiteID) job.AttemptID {
		return job.AttemptID{Job: job.ID{Origin: origin, Generation: 1, Seq: seq}, Number: 1}
	}
	request := func(processors int32) job.Request { return job.Request{Processors: processors, Walltime: time.Hour} }
	g.Adopt(Start, job.Copy{ID: at(1, "s0"), Request: request(3)}, Start)
	g.Enqueue(Start, job.Copy{ID: at(2, "s0"), Request: request(4), Arrival: Start})
	g.Pass(Start) // 2 is promised the end of 1, in an hour
	if w.watch.broken != nil {
		t.Fatal(w.watch.broken)
	}
	// The input of a job of s1 makes it hold a processor for longer than that.
	w.sites[1].book.put(at(1, "s1").Job, entry{transfer: time.Minute})
	g.drivenSite = greedy{g.drivenSite, &job.Copy{ID: at(1, "s1"), Request: request(1), Remote: true}}
	g.Pass(Start)
	if v, ok := errors.AsType[*Violation](w.watch.broken); !ok || v.Invariant != "S4" {
		t.Errorf("a job whose transfer moves a guarantee breaks %v", w.watch.broken)
	}
}

// What is wrong at the end is told in one order, whatever that of a map.
func TestWhatStillRunsIsToldInOrder(t *testing.T) {
	w := watched(t, nil, 1, 8)
	for i := range 4 {
		submit(w, time.Minute+time.Duration(i)*time.Second, "s0", 2, 0, time.Hour)
	}
	w.At(Start.Add(10*time.Minute), func() {
		w.sites[1].LoseFolder()
		if err := w.sites[1].Restart(); err != nil {
			t.Error(err)
		}
	})
	if got := broken(w, 20*time.Minute); got != "" || len(w.watch.running) != 4 {
		t.Fatalf("%d jobs run; %v", len(w.watch.running), w.watch.broken)
	}
	first := w.Acknowledged()[0]
	for range 50 {
		if err := w.CheckEnded(); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%v#1 still runs", first)) {
			t.Fatalf("%v, want job %v", err, first)
		}
	}
}

// What would happen at the end of time does not happen at all.
func TestNeverHappensNothing(t *testing.T) {
	w := watched(t, nil, 4)
	happened := false
	before := len(w.agenda.heap)
	w.At(job.Never, func() { happened = true })
	if len(w.agenda.heap) != before || happened {
		t.Error("an instant at the end of time is on the agenda")
	}
}

// A site that has itself woken without an end is found, instead of time standing still.
func TestSiteThatSpinsIsFound(t *testing.T) {
	w := watched(t, nil, 1)
	s := w.Site("s0")
	var wake func()
	wake = func() {
		w.watch.woken(s)
		w.At(w.Now()+1, wake)
	}
	w.At(Start.Add(time.Second), wake)
	if got := broken(w, 2*time.Second); got != "spin" {
		t.Errorf("%q is broken", got)
	}
}
