package apart

import (
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"kith/internal/clock"
	"kith/internal/job"
	"kith/meta"
)

func durationOf(d time.Duration) *durationpb.Duration { return durationpb.New(d) }

func attemptOf(n uint64) job.AttemptID {
	return job.AttemptID{Job: job.ID{Origin: "alpha", Generation: 1, Seq: n}, Number: 1}
}

// launchOf launches a job of the site; payloads of others come with the launch.
func launchOf(t *testing.T, a job.AttemptID, lost job.OnSiteLost) meta.Launch {
	t.Helper()
	r := request
	r.OnSiteLost = lost
	raw, err := payloadOf(&r)
	if err != nil {
		t.Fatal(err)
	}
	return meta.Launch{Attempt: a, Request: r, Payload: raw}
}

// Whatever breaks between order and answer, sessions, daemons of the machine, leaders: every attempt is
// started once, and the leader of the end hears how it ended.
func TestSessionsThatBreak(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 1))
		m := newFakeMachine(t)
		l := lead(t, m, 1, time.Minute)
		launches := make(map[job.AttemptID]meta.Launch)
		number := uint64(1)
		again := func() { // as the engine does
			for _, a := range l.goesBack() {
				l.Launch(launches[a])
			}
		}
		next := func() { // another leader, which knows from its facts that all have begun
			l.Close()
			number++
			var first []meta.Effect
			for a, f := range launches {
				first = append(first, meta.Adopt{Attempt: a, Request: f.Request, BootID: "boot-1"})
			}
			l = lead(t, m, number, time.Minute, first...)
		}
		for step := range 40 {
			a := attemptOf(uint64(step) + 1)
			launches[a] = launchOf(t, a, job.Wait)
			l.Launch(launches[a])
			time.Sleep(time.Duration(rng.IntN(60)) * time.Millisecond)
			if rng.IntN(4) == 0 {
				eventually(t, "it is driven", l.isUp)
				eventually(t, "it starts", func() bool {
					again()
					return m.count(a) > 0
				})
			}
			switch rng.IntN(6) {
			case 0:
				m.restart()
			case 1:
				next()
			case 2:
				m.server.Stop()
				m.restart()
			case 3:
				m.end(attemptOf(rng.Uint64N(uint64(step)+1)+1), job.Outcome{Kind: job.Success, Start: 1, End: 2})
			}
		}
		eventually(t, "all have started", func() bool {
			again()
			for a := range launches {
				if m.count(a) == 0 {
					return false
				}
			}
			return true
		})
		for a := range launches {
			m.end(a, job.Outcome{Kind: job.Success, Start: 1, End: 2})
		}
		for range 2 { // the end is not cleared yet, and a later leader hears it, too
			for a := range launches {
				eventually(t, "the end of "+a.String(), func() bool { return l.hearsEnd(a, job.Success) })
			}
			next()
		}
		for a := range launches {
			if n := m.count(a); n != 1 {
				t.Errorf("seed %d: attempt %v was started %d times", seed, a, n)
			}
			l.Clear(a)
		}
		eventually(t, "nothing is left of them at the machine", func() bool { return len(m.worker.has()) == 0 })
		l.Close()
	}
}

// A lead that is over drives nothing any more, also after a restart of the machine's daemon; what a later
// one does not know is stopped before it may start anything.
func TestFence(t *testing.T) {
	t.Parallel()
	m := newFakeMachine(t)
	a, b := attemptOf(1), attemptOf(2)
	old := lead(t, m, 5, time.Minute)
	eventually(t, "lead 5 drives", old.isUp)
	old.Launch(launchOf(t, a, job.Wait))
	eventually(t, "it starts", func() bool { return m.count(a) == 1 })
	next := lead(t, m, 7, time.Minute)
	eventually(t, "lead 7 drives", next.isUp)
	if !m.ended(a) {
		t.Error("what lead 7 does not know runs on while it may start something")
	}
	eventually(t, "lead 5 is told", func() bool { return !old.isUp() })
	m.restart()
	old.Launch(launchOf(t, b, job.Wait))
	eventually(t, "lead 7 drives again", next.isUp)
	eventually(t, "its launch comes back", func() bool {
		return old.heard(func(ev meta.Event) bool { f, is := ev.(meta.StartFailed); return is && f.Attempt == b })
	})
	if m.count(b) != 0 {
		t.Error("a lead that is over has started something")
	}
}

// A machine that comes back with another boot is not driven: the site is loaded again.
func TestAnotherBoot(t *testing.T) {
	t.Parallel()
	m := newFakeMachine(t)
	l := lead(t, m, 1, time.Minute)
	eventually(t, "it is driven", l.isUp)
	m.close()
	m.boot = "boot-2"
	m.open()
	select {
	case <-l.again:
	case <-time.After(20 * time.Second):
		t.Fatal("the site is not loaded again")
	}
	if l.heard(func(ev meta.Event) bool { s, is := ev.(meta.MachineSeen); return is && s.BootID == "boot-2" }) {
		t.Error("the engine was told of another boot")
	}
}

// Without a word of the machine attempts are lost after the bound and a part of it more, and not before the
// end of leases that it has heard of. Until then those that would run again have leases that end before.
func TestLostByLease(t *testing.T) {
	t.Parallel()
	m := newFakeMachine(t)
	const bound = 10 * time.Second
	l := lead(t, m, 1, bound)
	eventually(t, "it is driven", l.isUp)
	wait, rerun, foreign := attemptOf(1), attemptOf(2), job.AttemptID{Job: job.ID{Origin: "beta", Generation: 1, Seq: 3}, Number: 1}
	l.Launch(launchOf(t, wait, job.Wait))
	l.Launch(launchOf(t, rerun, job.Rerun))
	f := launchOf(t, foreign, job.Rerun)
	f.Lease = job.Instant(time.Now()).Add(time.Hour)
	l.Launch(f)
	for _, a := range []job.AttemptID{wait, rerun, foreign} {
		eventually(t, a.String()+" starts", func() bool { return m.count(a) == 1 })
	}
	if left := m.lease(rerun) - clock.SinceBoot(); left <= 0 || left > bound {
		t.Errorf("what would run again has a lease of %v", left)
	}
	if left := m.lease(foreign) - clock.SinceBoot(); left <= 50*time.Minute || left > time.Hour {
		t.Errorf("the lease of another origin has become %v", left)
	}
	first := m.lease(rerun)
	eventually(t, "its lease is prolonged", func() bool { return m.lease(rerun) > first })
	m.server.Stop()
	eventually(t, "it is away", func() bool { return !l.isUp() })
	l.mu.Lock()
	l.mu.Unlock() //nolint:staticcheck // what was told is told
	l.passed(bound - 5*time.Second)
	if l.hearsEnd(wait, job.Loss) {
		t.Error("it is lost before the bound")
	}
	l.passed(bound)
	for _, a := range []job.AttemptID{wait, rerun} {
		if !l.hearsEnd(a, job.Loss) {
			t.Errorf("%v is not lost", a)
		}
	}
	if l.hearsEnd(foreign, job.Loss) {
		t.Error("what may run for an hour is lost")
	}
	// What was given up is stopped when the machine is back, before anything else is started.
	m.ending = 500 * time.Millisecond
	m.restart()
	eventually(t, "it is driven again", l.isUp)
	if !m.ended(wait) || !m.ended(rerun) {
		t.Error("what was lost runs on while the machine may start something")
	}
	if m.ended(foreign) {
		t.Error("what was not lost has ended")
	}
}

// A leader with a shorter bound than the machine has, and the leaders before it, waits for the longer one: what it
// would have run again still runs until then. One with a longer bound gets no longer lease than the machine gives.
func TestBoundsThatDiffer(t *testing.T) {
	t.Parallel()
	m := newFakeMachine(t)
	m.lost = 10 * time.Second
	m.restart()
	a := attemptOf(1)
	long := lead(t, m, 1, time.Hour)
	eventually(t, "it is driven", long.isUp)
	launch := launchOf(t, a, job.Rerun)
	long.Launch(launch)
	eventually(t, "it starts", func() bool { return m.count(a) == 1 })
	first := m.lease(a)
	if left := first - clock.SinceBoot(); left <= 0 || left > m.lost {
		t.Errorf("it has a lease of %v, and the machine gives %v", left, m.lost)
	}
	eventually(t, "its lease is prolonged in time", func() bool { return m.lease(a) > first })
	if left := m.lease(a) - clock.SinceBoot(); left > m.lost {
		t.Errorf("its lease was prolonged to %v", left)
	}
	long.Close()
	short := lead(t, m, 2, time.Second, meta.Adopt{Attempt: a, Request: launch.Request, BootID: "boot-1"})
	eventually(t, "it is driven again", short.isUp)
	m.server.Stop()
	eventually(t, "it is away", func() bool { return !short.isUp() })
	short.passed(5 * time.Second)
	if short.hearsEnd(a, job.Loss) {
		t.Errorf("it is lost while it has a lease of %v", m.lease(a)-clock.SinceBoot())
	}
	short.passed(10 * time.Second)
	if !short.hearsEnd(a, job.Loss) {
		t.Error("it is not lost")
	}
}
