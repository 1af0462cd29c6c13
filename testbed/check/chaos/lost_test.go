package chaos

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kithv1 "kith/proto/gen/kith/v1"
	"kith/testbed/check/wan"
)

const (
	onWait  = kithv1.Job_ON_SITE_LOST_WAIT
	onRerun = kithv1.Job_ON_SITE_LOST_RERUN
	onRace  = kithv1.Job_ON_SITE_LOST_RACE
)

func (s *stage) cutOff(n *site) {
	s.t.Helper()
	if err := s.bed.net.Cut(wan.Around(n.Name), wan.Blackhole); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) heal() {
	s.t.Helper()
	if err := s.bed.net.Heal(wan.Everything()); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) start(n *site) {
	s.t.Helper()
	if err := n.Start(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// shimOf returns the shim of the job that runs at a site.
func (s *stage) shimOf(n *site) process {
	s.t.Helper()
	list := runningAt(n.Config.Data)
	if len(list) != 1 {
		s.t.Fatalf("%d attempts run at %s", len(list), n.Name)
	}
	return list[0].shim
}

// rerunElsewhere goes on once the first attempt's host is lost: the second one
// starts only after the first is dead, and what the first has to say when it is
// back is superseded.
func (s *stage) rerunElsewhere(id string, host *site, back func()) {
	s.t.Helper()
	other := s.starts(id, 2)
	if other == host.Name {
		s.t.Errorf("the second attempt runs at %s, which is lost", other)
	}
	s.event(id, kithv1.ClaimEvent_KIND_REVOKED, 1, host.Name)
	back()
	s.event(id, kithv1.ClaimEvent_KIND_SUPERSEDED, 1, host.Name)
	s.let("first") // no daemon is there to see it
	s.let("later")
	s.completed(id, 2, other)
	s.nothingHeld()
	if l := s.ledger(); l.runs(jobID(s.t, id))[1].ends != 0 {
		s.t.Error("the first attempt ran to its end")
	}
}

// A host that is cut off for longer than its lease ends the job before the
// next attempt starts elsewhere.
func TestRerunHostCutOff(t *testing.T) {
	s := newStage(t)
	id := s.job(onRerun)
	host := s.running(id)
	s.cutOff(host)
	s.rerunElsewhere(id, host, s.heal)
	s.apart(id)
}

// A host's daemon that is dead cannot end the job: its shim does.
func TestRerunDaemonKilled(t *testing.T) {
	s := newStage(t)
	id := s.job(onRerun)
	host := s.running(id)
	host.Kill()
	s.rerunElsewhere(id, host, func() { s.start(host) })
	s.apart(id)
}

// Nor can one that is frozen.
func TestRerunDaemonFrozen(t *testing.T) {
	thorough(t)
	s := newStage(t)
	id := s.job(onRerun)
	host := s.running(id)
	if err := host.Signal(sigstop); err != nil {
		t.Fatal(err)
	}
	s.rerunElsewhere(id, host, func() {
		if err := host.Signal(sigcont); err != nil {
			t.Error(err)
		}
	})
	s.apart(id)
}

// A shim that is frozen cannot end the job either: its daemon kills it.
func TestRerunShimFrozen(t *testing.T) {
	s := newStage(t)
	id := s.job(onRerun)
	host := s.running(id)
	shim := s.shimOf(host)
	if !shim.signal(sigstop) {
		t.Fatal("the shim cannot be stopped")
	}
	s.cutOff(host)
	s.rerunElsewhere(id, host, s.heal)
	s.apart(id)
}

// With daemon and shim both frozen for longer than lease and margin nobody is
// left to end the job: the attempts overlap. That is the limit of a lease. The
// fence holds all the same: when they thaw the first attempt ends at once, and
// its result counts for nothing.
func TestRerunDaemonAndShimFrozen(t *testing.T) {
	s := newStage(t)
	id := s.job(onRerun)
	host := s.running(id)
	shim := s.shimOf(host)
	if !shim.signal(sigstop) || host.Signal(sigstop) != nil {
		t.Fatal("the site cannot be frozen")
	}
	s.rerunElsewhere(id, host, func() {
		// If they never did, docs/reliability.md would be too modest.
		s.eventually("the attempts overlap", func() bool { return len(s.ledger().overlaps(jobID(t, id))) > 0 })
		shim.signal(sigcont)
		if err := host.Signal(sigcont); err != nil {
			t.Error(err)
		}
	})
}

// A lease is renewed for as long as its origin answers, through cuts that are
// shorter than it.
func TestRerunShortCuts(t *testing.T) {
	thorough(t)
	const lease = 4 * time.Second // so long that a busy machine can keep it
	s := newStageWith(t, lease)
	id := s.job(onRerun)
	host := s.running(id)
	for range 8 {
		s.cutOff(host)
		time.Sleep(lease / 10)
		s.heal()
		time.Sleep(lease / 10)
	}
	s.let("first")
	s.completed(id, 1, host.Name)
	s.nothingHeld()
	s.apart(id)
}

// Under wait, no cut of any length ends or repeats a job.
func TestWaitHostCutOff(t *testing.T) {
	thorough(t)
	s := newStage(t)
	id := s.job(onWait)
	host := s.running(id)
	s.cutOff(host)
	time.Sleep(2*shortVanish + shortLease + shortMargin)
	if st := s.get(id); st.GetState() != kithv1.JobStatus_STATE_RUNNING || st.GetAttempt() != 1 {
		t.Errorf("while its host is cut off the job is %s", brief(st))
	}
	s.let("first") // it ends while no daemon hears of it
	s.eventually("the attempt ends", func() bool { return s.ledger().runs(jobID(t, id))[1].ends == 1 })
	s.heal()
	s.completed(id, 1, host.Name)
	s.nothingHeld()
	s.apart(id)
}

// Under race the job runs elsewhere at once; the later attempt is first, and
// the earlier one is stopped when it can be reached.
func TestRaceLaterWins(t *testing.T) {
	thorough(t)
	s := newStage(t)
	id := s.job(onRace)
	host := s.running(id)
	s.cutOff(host)
	other := s.starts(id, 2)
	s.let("later")
	s.completed(id, 2, other)
	s.heal()
	s.nothingHeld()
	if r := s.ledger().runs(jobID(t, id)); r[1].starts != 1 || r[2].starts != 1 || r[1].ends != 0 {
		t.Errorf("the ledger says %v", r)
	}
	s.completed(id, 2, other) // still
}

// The earlier attempt is first although it was given up: its result wins.
func TestRaceEarlierWins(t *testing.T) {
	s := newStage(t)
	id := s.job(onRace)
	host := s.running(id)
	s.cutOff(host)
	s.starts(id, 2)
	s.let("first")
	s.eventually("the first attempt ends", func() bool { return s.ledger().runs(jobID(t, id))[1].ends == 1 })
	s.heal()
	s.completed(id, 1, host.Name)
	s.nothingHeld()
	if r := s.ledger().runs(jobID(t, id)); r[2].ends != 0 {
		t.Errorf("the loser was not stopped: %v", r)
	}
}

// An operator gives a site up that is gone: its job runs again elsewhere,
// whatever it chose. If the site does come back, its attempt is stopped.
func TestForgetSiteRequeue(t *testing.T) {
	s := newStage(t)
	id := s.job(onWait)
	host := s.running(id)
	alpha := s.bed.sites[0]
	forget := func() (*kithv1.ForgetSiteResponse, error) {
		return alpha.Sites.ForgetSite(t.Context(), &kithv1.ForgetSiteRequest{SiteId: host.Name, Requeue: true})
	}
	if _, err := forget(); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a connected site was forgotten: %v", err)
	}
	host.Kill()
	s.eventually("the site can be forgotten", func() bool {
		r, err := forget()
		if err != nil && status.Code(err) != codes.FailedPrecondition {
			t.Fatal(err)
		}
		return r.GetJobsRevoked() == 1
	})
	if r, err := forget(); err != nil || r.GetJobsRevoked() != 0 {
		t.Errorf("forgotten again: %v, %v", r, err)
	}
	other := s.starts(id, 2)
	if other == host.Name {
		t.Errorf("the second attempt runs at %s", other)
	}
	s.start(host)
	s.event(id, kithv1.ClaimEvent_KIND_SUPERSEDED, 1, host.Name)
	s.let("later")
	s.completed(id, 2, other)
	s.nothingHeld()
}

// Without requeue the job is lost, and says why.
func TestForgetSite(t *testing.T) {
	thorough(t)
	s := newStage(t)
	id := s.job(onWait)
	host := s.running(id)
	host.Kill()
	s.eventually("the site can be forgotten", func() bool {
		r, err := s.bed.sites[0].Sites.ForgetSite(t.Context(), &kithv1.ForgetSiteRequest{SiteId: host.Name})
		return err == nil && r.GetJobsRevoked() == 1
	})
	st := s.wait(id, kithv1.JobStatus_STATE_LOST)
	if st.GetReason() == "" {
		t.Error("nothing says why the job is lost")
	}
	s.start(host)
	s.nothingHeld()
	if r := s.ledger().runs(jobID(t, id)); len(r) != 1 || r[1].ends != 0 {
		t.Errorf("the ledger says %v", r)
	}
}
