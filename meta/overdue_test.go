package meta

import (
	"slices"
	"strings"
	"testing"
	"time"

	"kith/cluster"
	"kith/internal/job"
	"kith/sitesched"
	"kith/store"
)

// withHolder is alpha, whose one processor is busy, and beta, which claims its jobs, is in
// reach and never says that one has ended. gamma takes copies and claims none.
type withHolder struct {
	*Engine
	t     *testing.T
	cfg   Config
	now   job.Time
	told  uint64
	gave  map[job.SiteID]int    // by effects
	lease map[job.AttemptID]int // renewals that beta got
	asked map[job.AttemptID]int // and asked for
	sent  map[job.SiteID]map[job.AttemptID]bool
}

func newHolder(t *testing.T, tune func(*Config)) *withHolder {
	t.Helper()
	w := &withHolder{
		t: t, cfg: Default(), now: job.Time(time.Hour), gave: map[job.SiteID]int{}, lease: map[job.AttemptID]int{}, asked: map[job.AttemptID]int{},
		sent: map[job.SiteID]map[job.AttemptID]bool{"beta": {}, "gamma": {}},
	}
	w.cfg.Self = Self{Processors: 1, Speed: 1}
	w.cfg.Placement.Copies = 3
	tune(&w.cfg)
	w.start(store.NewState("alpha", 1))
	w.step(Submit{Request: job.Request{Processors: 1, Walltime: 1000 * time.Hour, Copies: 1}})
	return w
}

// start begins a run of the daemon.
func (w *withHolder) start(st *store.State) {
	w.t.Helper()
	site, err := sitesched.New(sitesched.Config{Processors: 1})
	if err == nil {
		w.Engine, err = New(w.cfg, st, site)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.Restore(w.now, nil)
	w.step(PeerUp{Site: "beta", Generation: 1, Incarnation: 1})
	w.step(PeerUp{Site: "gamma", Generation: 1, Incarnation: 1})
	w.tell()
}

func (w *withHolder) step(ev Event) {
	for _, event := range []Event{ev, Pass{}} {
		for _, ef := range w.Step(w.now, event) {
			switch ef := ef.(type) {
			case GivenUp:
				w.gave[ef.Site] += ef.Jobs
			case Send:
				switch m := ef.Message.(type) {
				case PlaceCopy:
					w.sent[ef.To][m.Attempt] = true
				case Renewed:
					if m.Lease > 0 {
						w.lease[m.Attempt]++
					}
				}
			}
		}
	}
}

// tell has both say that they are idle.
func (w *withHolder) tell() {
	w.told++
	for _, site := range []job.SiteID{"beta", "gamma"} {
		w.step(LoadSeen{Digest: cluster.Digest{Site: site, Incarnation: 1, Sequence: w.told, Processors: 8, Load: job.Load{Free: 8}, Speed: 1, Time: w.now}})
	}
}

// held submits a job that beta claims.
func (w *withHolder) held(lost job.OnSiteLost) job.ID {
	w.t.Helper()
	w.step(Submit{Request: job.Request{Processors: 1, Walltime: time.Hour, Copies: 3, OnSiteLost: lost}})
	var id job.ID
	for j := range w.st.Jobs(job.ID{}) {
		id = j.ID
	}
	a := job.AttemptID{Job: id, Number: 1}
	w.step(Receive{From: "beta", Message: CopyAnswer{Attempt: a, Accepted: true}})
	w.step(Receive{From: "beta", Message: Claim{Attempt: a, Stamp: 1, Sent: 1}})
	if j := w.st.Job(id); j.Holder != "beta" {
		w.t.Fatalf("job %v is %v at %q of %v: %+v", id, j.State, j.Holder, j.Sites, j.Events)
	}
	return id
}

// pause lets time pass. Loads are told, and beta renews what it has leases of.
func (w *withHolder) pause(d time.Duration) {
	for end := w.now.Add(d); w.now < end; {
		for stop := min(end, w.now.Add(20*time.Second)); ; {
			w.now = min(max(w.NextWake(w.now), w.now+1), stop)
			w.step(Tick{})
			if w.now == stop {
				break
			}
		}
		w.tell()
		for j := range w.st.Jobs(job.ID{}) {
			if a := j.AttemptID(); j.Holder == "beta" && j.Request.OnSiteLost == job.Rerun && !j.State.Terminal() {
				w.asked[a]++
				w.step(Receive{From: "beta", Message: Renew{Attempt: a, Sent: w.now}})
			}
		}
	}
}

// is checks how a job is.
func (w *withHolder) is(when string, id job.ID, want job.State) *store.Job {
	w.t.Helper()
	j := w.st.Job(id)
	if j.State != want {
		w.t.Errorf("%s: job %v is %v, want %v", when, id, j.State, want)
	}
	return j
}

// A site that claims jobs and never ends them has them for their time limit, five minutes
// and Timing.Overdue, whatever it says meanwhile; then each goes on as its submitter chose.
// None goes back to that site.
func TestHolderThatNeverFinishes(t *testing.T) {
	w := newHolder(t, func(*Config) {})
	w.pause(time.Hour)
	waits, races, again, cancelled := w.held(job.Wait), w.held(job.Race), w.held(job.Rerun), w.held(job.Wait)
	granted := w.now
	w.step(Cancel{Job: cancelled})
	w.pause(time.Hour + overdueAfter + time.Minute)
	for n := range 2 * store.MaxClaimEvents { // they push nothing out that counts
		w.step(Receive{From: "gamma", Message: Claim{Attempt: job.AttemptID{Job: waits, Number: 1}, Stamp: uint64(n), Sent: 1}})
		w.step(Receive{From: "beta", Message: Result{Attempt: job.AttemptID{Job: waits, Number: 7}}})
	}
	if j := w.st.Job(waits); len(j.Events) != store.MaxClaimEvents || grantedAt(j) != granted {
		t.Errorf("%d events, granted at %v, want %v", len(j.Events), grantedAt(j), granted)
	}
	if d := w.Views().Dealings(w.now)["beta"]; d.Held != 4 || d.Overdue != 4 || d.GivenUp != 0 || d.Oldest != granted {
		t.Errorf("an hour after the grants: %+v", d)
	}
	w.pause(w.cfg.Timing.Overdue - 2*time.Minute)
	w.is("a minute before", waits, job.Claimed)
	w.is("a minute before", races, job.Claimed)
	w.is("a minute before", cancelled, job.Cancelling)
	if a := w.is("a minute before", again, job.Claimed).AttemptID(); w.lease[a] != w.asked[a] || a.Number != 1 {
		t.Errorf("attempt %v got %d of %d renewals", a, w.lease[a], w.asked[a])
	}
	if len(w.gave) > 0 {
		t.Errorf("given up too early: %v", w.gave)
	}
	w.pause(2*time.Minute + overdueEvery)
	if o := w.is("after it", waits, job.Lost).Outcome; !strings.Contains(o.Reason, "site beta") || !strings.Contains(o.Reason, "after its time limit") {
		t.Errorf("outcome %+v", o)
	}
	w.is("after it", cancelled, job.Cancelled)
	if j := w.is("after it", races, job.Queued); j.Attempt != 2 || !earlier(j, 1, "beta") {
		t.Errorf("the race: attempt %d, earlier %v", j.Attempt, j.Earlier)
	}
	w.pause(w.cfg.Timing.Lease + 2*w.cfg.Timing.LeaseMargin)
	if j := w.is("after its lease", again, job.Queued); j.Attempt != 2 || !slices.ContainsFunc(j.Events, func(e store.ClaimEvent) bool { return e.Reason == job.Overdue }) {
		t.Errorf("under a lease: attempt %d, %v", j.Attempt, j.Events)
	}
	for _, id := range []job.ID{races, again} {
		if a := (job.AttemptID{Job: id, Number: 2}); w.sent["beta"][a] || !w.sent["gamma"][a] {
			t.Errorf("%v was sent to beta: %v, to gamma: %v", a, w.sent["beta"][a], w.sent["gamma"][a])
		}
	}
	if d := w.Views().Dealings(w.now)["beta"]; d.Held != 0 || d.GivenUp != 4 || w.gave["beta"] != 4 || len(w.gave) != 1 {
		t.Errorf("shown: %+v, told: %v", d, w.gave)
	}
	w.step(Receive{From: "beta", Message: Result{Attempt: job.AttemptID{Job: waits, Number: 1}, Outcome: job.Outcome{Kind: job.Success}}})
	w.is("a result after that", waits, job.Lost)
	w.step(Receive{From: "beta", Message: Result{Attempt: job.AttemptID{Job: races, Number: 1}, Outcome: job.Outcome{Kind: job.Success}}})
	w.is("the earlier one wins the race", races, job.Completed)
}

// A site that is out of reach is waited for, for any time; what it says when it is back
// counts. Only then it is given up, if that was nothing.
func TestHolderThatIsAwayIsWaitedFor(t *testing.T) {
	w := newHolder(t, func(*Config) {})
	ended, silent := w.held(job.Wait), w.held(job.Wait)
	w.pause(time.Minute)
	w.step(PeerDown{Site: "beta"})
	for range 100 { // hours
		w.now = w.now.Add(time.Hour)
		w.step(Tick{})
	}
	w.is("after 100 hours", ended, job.Claimed)
	w.now = w.now.Add(overdueEvery - time.Second) // jobs are looked through a second later
	w.step(PeerUp{Site: "beta", Generation: 1, Incarnation: 1})
	w.step(Tick{})
	w.pause(overdueUp / 2)
	w.step(Receive{From: "beta", Message: Result{Attempt: job.AttemptID{Job: ended, Number: 1}, Outcome: job.Outcome{Kind: job.Success}}})
	w.is("it is back", ended, job.Completed)
	w.is("it is back", silent, job.Claimed)
	w.pause(overdueUp + overdueEvery)
	w.is("it said nothing", silent, job.Lost)
}

// The last wait is counted anew after a restart: the clock may have been set meanwhile. In
// simulations in which walltimes are no times on the clock nobody is given up.
func TestOverdueAfterARestart(t *testing.T) {
	w := newHolder(t, func(c *Config) { c.Timing.Overdue = 2 * time.Hour })
	id := w.held(job.Wait)
	w.pause(time.Minute)
	w.now = w.now.Add(1000 * time.Hour) // the new clock
	w.start(w.st)
	w.pause(2*time.Hour - time.Minute)
	w.is("two hours after the restart", id, job.Claimed)
	if d := w.Views().Dealings(w.now)["beta"]; d.Overdue != 1 {
		t.Errorf("shown: %+v", d)
	}
	w.pause(time.Minute + overdueEvery)
	w.is("later", id, job.Lost)

	w = newHolder(t, func(c *Config) { c.ReferenceTimes = true })
	id = w.held(job.Wait)
	w.pause(30 * time.Hour)
	w.is("in a simulation", id, job.Claimed)
}
