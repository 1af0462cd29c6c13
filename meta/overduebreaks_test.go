package meta

import (
	"testing"
	"time"

	"kith/internal/job"
)

// meet has beta come back and go again after so long, and time pass until the next meeting.
func (w *withHolder) meet(up, until time.Duration) {
	w.step(PeerUp{Site: "beta", Generation: 1, Incarnation: 1})
	w.step(Tick{})
	if up > 0 {
		w.pause(up)
	}
	w.step(PeerDown{Site: "beta"})
	w.pause(until - up)
}

// A holder that breaks its stream within each minute does not keep a job for ever, whatever
// the job's submitter chose: its last wait begins when it was there first, and is Timing.Overdue.
func TestHolderThatBreaksItsStreams(t *testing.T) {
	w := newHolder(t, func(c *Config) { c.Timing.Overdue = 4 * time.Hour })
	waits, races, cancelled := w.held(job.Wait), w.held(job.Race), w.held(job.Wait)
	w.step(Cancel{Job: cancelled})
	breaks := func(d time.Duration) {
		for end := w.now.Add(d); w.now < end; {
			w.meet(50*time.Second, 55*time.Second)
		}
	}
	limit := time.Hour + overdueAfter + w.cfg.Timing.Overdue
	breaks(limit + w.cfg.Timing.Overdue - 5*time.Minute)
	w.is("minutes before", waits, job.Claimed)
	w.is("minutes before", races, job.Claimed)
	w.is("minutes before", cancelled, job.Cancelling)
	breaks(10 * time.Minute)
	w.is("after it", waits, job.Lost)
	w.is("after it", cancelled, job.Cancelled)
	if j := w.is("after it", races, job.Queued); j.Attempt != 2 {
		t.Errorf("the race: attempt %d", j.Attempt)
	}
	if w.gave["beta"] != 3 {
		t.Errorf("told: %v", w.gave)
	}
}

// A holder that is hardly ever there is not given up while it is away, nor when it is back for
// a moment once; but moments add up, each as five seconds at least.
func TestHolderThatIsSeldomThere(t *testing.T) {
	w := newHolder(t, func(c *Config) { c.Timing.Overdue = 4 * time.Hour })
	id, ended := w.held(job.Wait), w.held(job.Wait)
	w.step(PeerDown{Site: "beta"})
	w.pause(40 * time.Hour)
	for n := range int(overdueUp/overdueMoment) - 1 {
		w.meet(0, 5*time.Hour)
		if j := w.st.Job(id); j.State != job.Claimed {
			t.Fatalf("after %d moments the job is %v", n+1, j.State)
		}
	}
	w.pause(20 * time.Hour)
	w.is("away", id, job.Claimed)
	// What it says in the last of its moments counts.
	w.step(PeerUp{Site: "beta", Generation: 1, Incarnation: 1})
	w.step(Receive{From: "beta", Message: Result{Attempt: job.AttemptID{Job: ended, Number: 1}, Outcome: job.Outcome{Kind: job.Success}}})
	w.step(PeerDown{Site: "beta"})
	w.pause(2 * overdueEvery)
	w.is("it said so", ended, job.Completed)
	w.is("it said nothing", id, job.Lost)
}

// Moments of before the end of the last wait count for nothing: who was there all the time and
// goes away then is waited for, and has its last wait when it is back.
func TestMomentsBeforeTheEndCountForNothing(t *testing.T) {
	w := newHolder(t, func(c *Config) { c.Timing.Overdue = 4 * time.Hour })
	id := w.held(job.Wait)
	for range 10 {
		w.meet(40*time.Second, 30*time.Minute)
	}
	w.pause(40 * time.Hour)
	w.is("away", id, job.Claimed)
	for range 3 {
		w.meet(40*time.Second, time.Hour)
	}
	w.is("back in pieces for hours", id, job.Claimed)
	w.pause(w.cfg.Timing.Overdue)
	w.is("for Timing.Overdue", id, job.Lost)
}

// So it is with a holder whose streams take each other's place.
func TestHolderThatReplacesItsStreams(t *testing.T) {
	w := newHolder(t, func(c *Config) { c.Timing.Overdue = 4 * time.Hour })
	id := w.held(job.Wait)
	for end := w.now.Add(time.Hour + 2*overdueAfter + 2*w.cfg.Timing.Overdue); w.now < end; {
		w.step(PeerUp{Site: "beta", Generation: 1, Incarnation: 1})
		w.pause(50 * time.Second)
	}
	w.is("after it", id, job.Lost)
}
