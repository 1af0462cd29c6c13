package sim_test

import (
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/testbed/sim"
)

// kept is a federation whose sites keep their facts on disks.
func kept(seed uint64, widths ...int32) sim.Config {
	cfg := federation(seed, widths...)
	cfg.Disk = sim.DiskConfig{Keep: true, Sync: time.Millisecond}
	cfg.Network.LinkConfig = sim.LinkConfig{Latency: 10 * time.Millisecond}
	return cfg
}

// submitAt submits a job and returns when its client gets an answer.
func submitAt(w *sim.World, at time.Duration, origin job.SiteID, sub sim.Submission) *time.Duration {
	answered := new(time.Duration)
	sub.Done = func(_ job.ID, err error) {
		if err == nil {
			*answered = w.Now().Sub(sim.Start)
		}
	}
	w.Submit(sim.Start.Add(at), origin, sub)
	return answered
}

func finish(t *testing.T, w *sim.World) {
	t.Helper()
	if err := w.RunWhile(sim.Start.Add(24*time.Hour), func() bool { return len(w.Acknowledged()) == 0 || !drained(w) }); err != nil {
		t.Fatal(err)
	}
	if err := w.CheckEnded(); err != nil {
		t.Fatal(err)
	}
}

func TestFrozenSiteAnswersLater(t *testing.T) {
	w := newWorld(t, kept(1, 4, 4))
	w.At(sim.Start.Add(time.Minute), func() { w.Site("s0").Freeze(false) })
	w.At(sim.Start.Add(time.Hour), w.Site("s0").Thaw)
	answered := submitAt(w, 2*time.Minute, "s0", sim.Submission{Request: request(2, time.Hour), RunTime: time.Minute})
	finish(t, w)
	if *answered < time.Hour || *answered > time.Hour+time.Second {
		t.Errorf("answered after %v", *answered)
	}
}

// TestSuspendedMachine stops a machine with a job on it: a minute of an hour is
// not worked.
func TestSuspendedMachine(t *testing.T) {
	cfg := kept(1, 4, 4)
	var ended time.Duration
	var w *sim.World
	cfg.Ended = func(job.SiteID, job.AttemptID, int, *job.Outcome) { ended = w.Now().Sub(sim.Start) }
	w = newWorld(t, cfg)
	submitAt(w, 0, "s0", sim.Submission{Request: request(2, time.Hour), RunTime: time.Minute})
	w.At(sim.Start.Add(30*time.Second), func() { w.Site("s0").Freeze(true) })
	w.At(sim.Start.Add(10*time.Minute), w.Site("s0").Thaw)
	finish(t, w)
	if ended != 10*time.Minute {
		t.Errorf("the job ended after %v", ended)
	}
}

func TestDiskTrouble(t *testing.T) {
	w := newWorld(t, kept(1, 4, 4))
	s := w.Site("s0")
	w.At(sim.Start.Add(time.Minute), func() { s.FillDisk(true) })
	w.At(sim.Start.Add(2*time.Minute), func() { s.FillDisk(false) })
	w.At(sim.Start.Add(10*time.Minute), func() { s.SlowDisk(time.Minute) })
	w.At(sim.Start.Add(20*time.Minute), func() { s.SlowDisk(time.Hour) })
	w.At(sim.Start.Add(30*time.Minute), func() { s.SlowDisk(0) })
	sub := sim.Submission{Request: request(2, time.Hour), RunTime: time.Minute}
	full := submitAt(w, time.Minute+time.Second, "s0", sub)
	slow := submitAt(w, 12*time.Minute, "s0", sub)
	slowest := submitAt(w, 25*time.Minute, "s0", sub)
	if err := w.Run(sim.Start.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	finish(t, w)
	for what, x := range map[string]struct{ got, from, to time.Duration }{
		"full disk":               {*full, 2 * time.Minute, 2*time.Minute + 2*time.Second},
		"slow disk":               {*slow, 13 * time.Minute, 14 * time.Minute},
		"slow disk that got well": {*slowest, 30 * time.Minute, 30*time.Minute + time.Second},
	} {
		if x.got < x.from || x.got > x.to {
			t.Errorf("%s: answered after %v, expected %v to %v", what, x.got, x.from, x.to)
		}
	}
}

func TestDrift(t *testing.T) {
	for _, drift := range []int64{-100_000, -1, 0, 1, 333, 100_000} {
		cfg := kept(1, 4, 4)
		cfg.Sites[0].Drift = drift
		for i := range cfg.Sites {
			cfg.Sites[i].Meta.Timing.AntiEntropy, cfg.Sites[i].Meta.Timing.Load = time.Hour, 1000*time.Hour
		}
		summaries := 0
		cfg.Tap = func(from, _ job.SiteID, m meta.Message) {
			if _, is := m.(meta.CopySummary); is && from == "s0" {
				summaries++
			}
		}
		w := newWorld(t, cfg)
		const day = 1000 * time.Hour
		if err := w.Run(sim.Start.Add(day)); err != nil {
			t.Fatal(err)
		}
		want := day + day/1_000_000*time.Duration(drift)
		if got := w.Site("s0").Clock().Sub(sim.Start); got != want {
			t.Errorf("drift %d: the clock shows %v, should be %v", drift, got, want)
		}
		// One with the connection, then one an hour by the site's own clock.
		if hours := int(want / time.Hour); summaries < hours || summaries > hours+1 {
			t.Errorf("drift %d: %d messages of one an hour in %v", drift, summaries, want)
		}
	}
}

// TestOneWayCut lets what goes the other way arrive until a site notices.
func TestOneWayCut(t *testing.T) {
	cfg := kept(1, 4, 4)
	cfg.Network.Detect = 20 * time.Second
	cfg.Sites[0].Meta.Timing.Load, cfg.Sites[1].Meta.Timing.Load = time.Second, time.Second
	w := newWorld(t, cfg)
	seen := func(at, of job.SiteID) time.Duration {
		for _, v := range w.Site(at).Engine().Views().Sites(w.Now()) {
			if v.Site == of {
				return v.SeenAt.Sub(sim.Start)
			}
		}
		return 0
	}
	w.At(sim.Start.Add(time.Minute), func() { w.Cut("s0", "s1") })
	if err := w.Run(sim.Start.Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	if got := seen("s1", "s0"); got > time.Minute {
		t.Errorf("s1 heard of s0 at %v, after the cut", got)
	}
	if got := seen("s0", "s1"); got < time.Minute+9*time.Second || got > time.Minute+31*time.Second {
		t.Errorf("s0 last heard of s1 at %v: the other way was not cut", got)
	}
	for _, v := range w.Site("s0").Engine().Views().Sites(w.Now()) {
		if v.Site == "s1" && v.Connected {
			t.Error("s0 has not noticed that nothing comes back")
		}
	}
	w.Heal("s0", "s1")
	if err := w.Run(sim.Start.Add(3 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	if got := seen("s1", "s0"); got < 2*time.Minute {
		t.Errorf("s1 last heard of s0 at %v, although the cut has healed", got)
	}
}

// TestTornCommit kills a site while a batch is on its way to its disk: some are
// there afterwards, some are not, and no client was told of either.
func TestTornCommit(t *testing.T) {
	there := 0
	const n = 60
	for seed := range uint64(n) {
		cfg := kept(seed, 4)
		cfg.Disk.Sync = time.Second
		w := newWorld(t, cfg)
		w.At(sim.Start.Add(59*time.Second), func() {}) // the first commits are over
		answered := submitAt(w, time.Minute, "s0", sim.Submission{Request: request(2, time.Hour), RunTime: time.Minute})
		w.At(sim.Start.Add(time.Minute+500*time.Millisecond), w.Site("s0").Crash)
		w.At(sim.Start.Add(2*time.Minute), func() {
			if err := w.Site("s0").Restart(); err != nil {
				t.Error(err)
			}
		})
		if err := w.Run(sim.Start.Add(3 * time.Minute)); err != nil {
			t.Fatal(err)
		}
		if *answered != 0 {
			t.Fatalf("seed %d: answered after %v", seed, *answered)
		}
		there += w.Site("s0").State().JobCount()
	}
	if there == 0 || there == n {
		t.Errorf("%d of %d batches reached the disk", there, n)
	}
}

// TestLostFolder takes a site's facts away while it runs a job of another one:
// that one learns of the loss, and the job goes on without anybody.
func TestLostFolder(t *testing.T) {
	cfg := kept(1, 1, 4)
	var ended time.Duration
	var w *sim.World
	cfg.Ended = func(job.SiteID, job.AttemptID, int, *job.Outcome) { ended = w.Now().Sub(sim.Start) }
	w = newWorld(t, cfg)
	submitAt(w, time.Minute, "s0", sim.Submission{Request: request(2, 2*time.Hour), RunTime: time.Hour})
	w.At(sim.Start.Add(10*time.Minute), func() {
		w.Site("s1").LoseFolder()
		if err := w.Site("s1").Restart(); err != nil {
			t.Error(err)
		}
	})
	if err := w.Run(sim.Start.Add(20 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	if j := w.Site("s0").State().Job(w.Acknowledged()[0]); j.State != job.Lost {
		t.Errorf("the job is %v at its origin", j.State)
	}
	finish(t, w)
	if ended < time.Hour {
		t.Errorf("the job ended after %v", ended)
	}
}
