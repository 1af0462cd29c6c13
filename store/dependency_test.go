package store_test

import (
	"slices"
	"strings"
	"testing"

	"kith/internal/job"
	"kith/store"
)

// ended submits a job and has it end: well, by itself or as its user cancels it.
func ended(t *testing.T, s *store.State, how job.State) job.ID {
	t.Helper()
	id := s.NextID()
	must(t, s, store.SubmitJob{ID: id})
	end(t, s, id, how)
	return id
}

func end(t *testing.T, s *store.State, id job.ID, how job.State) {
	t.Helper()
	if how == job.Cancelled {
		must(t, s, store.CancelJob{Job: id})
		return
	}
	kind := map[job.State]job.OutcomeKind{job.Completed: job.Success, job.Failed: job.Failure, job.TimedOut: job.Timeout, job.Lost: job.Loss}[how]
	a := job.AttemptID{Job: id, Number: 1}
	must(t, s, store.OpenAttempt{Attempt: a, Sites: []job.SiteID{"alpha"}}, store.GrantClaim{Attempt: a, Site: "alpha"},
		store.RecordOutcome{Attempt: a, Site: "alpha", Outcome: job.Outcome{Kind: kind}}, store.CloseJob{Job: id})
}

// Each condition against each end of a job, when the end was there before and when it comes.
func TestConditions(t *testing.T) {
	for _, how := range []job.State{job.Completed, job.Failed, job.TimedOut, job.Cancelled, job.Lost} {
		for condition, starts := range map[job.Condition]bool{
			job.AfterOK: how == job.Completed, job.AfterAny: true, job.AfterNotOK: how != job.Completed,
		} {
			s := store.NewState("alpha", 9)
			want, word := job.Pending, job.DependencyMet
			if !starts {
				want, word = job.Cancelled, job.DependencyBroken
			}
			check := func(when string, id job.ID) {
				t.Helper()
				if got := s.Job(id).State; got != want || s.After(id)[0].State != word {
					t.Errorf("%v %v, which is %v %s: %v, %v; want %v", condition, id, how, when, got, s.After(id), want)
				}
				if act, ok := s.Job(id).LastAct(store.ActCancel); ok == starts || !starts && (!strings.Contains(act.Reason, s.After(id)[0].String()) || !strings.Contains(act.Reason, how.String()) || s.Job(id).Closed != 7) {
					t.Errorf("%v: cancelled because %q at %d", condition, act.Reason, s.Job(id).Closed)
				}
			}
			on := ended(t, s, how)
			late := s.NextID()
			must(t, s, store.SubmitJob{ID: late, After: []job.Dependency{{On: on, Condition: condition}}, Time: 7})
			check("before", late)

			on = s.NextID()
			waits := job.ID{Origin: on.Origin, Generation: on.Generation, Seq: on.Seq + 1}
			must(t, s, store.SubmitJob{ID: on}, store.SubmitJob{ID: waits, After: []job.Dependency{{On: on, Condition: condition}}})
			refused(t, s, store.ResolveDependency{ID: waits, On: on}, store.ErrState)
			refused(t, s, store.OpenAttempt{Attempt: job.AttemptID{Job: waits, Number: 1}, Sites: []job.SiteID{"alpha"}}, store.ErrState)
			if s.Job(waits).State != job.Blocked {
				t.Errorf("%v: %v before the end", condition, s.Job(waits).State)
			}
			end(t, s, on, how)
			must(t, s, store.ResolveDependency{ID: waits, On: on, Time: 7})
			check("after", waits)
			refused(t, s, store.ResolveDependency{ID: waits, On: on}, store.ErrState)
			if err := s.Check(); err != nil {
				t.Error(err)
			}
		}
	}
}

// A job waits for all that it names, through a hold, and for none any more once it has ended.
func TestDependenciesOfOneJob(t *testing.T) {
	s := store.NewState("alpha", 9)
	var on []job.ID
	for range 3 {
		on = append(on, s.NextID())
		must(t, s, store.SubmitJob{ID: s.NextID()})
	}
	after := []job.Dependency{{On: on[0], Condition: job.AfterOK}, {On: on[1], Condition: job.AfterAny}, {Condition: job.Singleton, State: job.DependencyWaits}}
	id := s.NextID()
	must(t, s, store.SubmitJob{ID: id, After: after}, store.HoldJob{Job: id})
	j := s.Job(id)
	end(t, s, on[0], job.Completed)
	must(t, s, store.ResolveDependency{ID: id, On: on[0]})
	if j.State != job.OnHold || job.Waiting(s.After(id)) != 2 {
		t.Fatalf("on hold: %v, %v", j.State, s.After(id))
	}
	must(t, s, store.ReleaseJob{Job: id})
	if j.State != job.Blocked {
		t.Fatalf("released: %v", j.State)
	}
	must(t, s, store.ResolveDependency{ID: id})
	if j.State != job.Blocked {
		t.Fatalf("one left: %v", j.State)
	}
	end(t, s, on[1], job.Failed)
	must(t, s, store.HoldJob{Job: id}, store.ResolveDependency{ID: id, On: on[1]}, store.ReleaseJob{Job: id})
	if j.State != job.Pending || job.Waiting(s.After(id)) != 0 {
		t.Fatalf("all met: %v, %v", j.State, s.After(id))
	}

	// One that is broken cancels it, also on hold, and the others do not matter any more.
	second := s.NextID()
	must(t, s, store.SubmitJob{ID: second, After: []job.Dependency{{On: id, Condition: job.AfterAny}, {On: on[2], Condition: job.AfterOK}}}, store.HoldJob{Job: second})
	end(t, s, on[2], job.Failed)
	must(t, s, store.ResolveDependency{ID: second, On: on[2]})
	if j, after := s.Job(second), s.After(second); j.State != job.Cancelled || after[0].State != job.DependencyDropped || after[1].State != job.DependencyBroken {
		t.Fatalf("broken on hold: %v, %v", j.State, after)
	}
	third := s.NextID()
	must(t, s, store.SubmitJob{ID: third, After: []job.Dependency{{On: id, Condition: job.AfterAny}}}, store.CancelJob{Job: third})
	if job.Waiting(s.After(third)) != 0 {
		t.Errorf("cancelled and it waits: %v", s.After(third))
	}
	must(t, s, store.PurgeJob{Job: third})
	if s.After(third) != nil {
		t.Errorf("purged, and there is %v", s.After(third))
	}
	if got := slices.Collect(func(yield func(job.ID) bool) {
		for id := range s.Dependants {
			if !yield(id) {
				return
			}
		}
	}); !slices.Equal(got, []job.ID{id, second}) {
		t.Errorf("dependants %v", got)
	}
}

func TestDependenciesThatCannotBe(t *testing.T) {
	s := store.NewState("alpha", 9)
	on := s.NextID()
	must(t, s, store.SubmitJob{ID: on})
	own := s.NextID()
	for name, c := range map[string]struct {
		after []job.Dependency
		want  error
	}{
		"itself":        {[]job.Dependency{{On: own, Condition: job.AfterAny}}, store.ErrUnknown},
		"another site":  {[]job.Dependency{{On: job.ID{Origin: "beta", Generation: 9, Seq: 1}, Condition: job.AfterAny}}, store.ErrUnknown},
		"no condition":  {[]job.Dependency{{On: on}}, store.ErrBounds},
		"a condition 5": {[]job.Dependency{{On: on, Condition: 5}}, store.ErrBounds},
		"nothing":       {[]job.Dependency{{Condition: job.AfterOK}}, store.ErrBounds},
		"too many":      {slices.Repeat([]job.Dependency{{On: on, Condition: job.AfterOK}}, job.MaxDependencies+1), store.ErrBounds},
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, s, store.SubmitJob{ID: own, After: c.after}, c.want)
			refused(t, s, store.SubmitBag{ID: own, Indices: job.FirstIndices(3), After: c.after}, c.want)
		})
	}
	refused(t, s, store.ResolveDependency{ID: own, On: on}, store.ErrUnknown)
	refused(t, s, store.ResolveDependency{ID: on}, store.ErrState)
}

// A bag that can never start ends with all tasks cancelled; its user may have them run all the same.
func TestBagThatCanNeverStart(t *testing.T) {
	s := store.NewState("alpha", 9)
	on := ended(t, s, job.Failed)
	id := s.NextID()
	must(t, s, store.SubmitBag{ID: id, Indices: job.FirstIndices(3), After: []job.Dependency{{On: on, Condition: job.AfterOK}}})
	b := s.Bag(id)
	if b.State != job.BagReturning || b.Cancelled.Count() != 3 || len(b.Acts) != 1 || b.Acts[0].Actor != "" {
		t.Fatalf("bag %v, %d cancelled, acts %+v", b.State, b.Cancelled.Count(), b.Acts)
	}
	must(t, s, store.CloseBag{Bag: id})
	waits := s.NextID()
	must(t, s, store.SubmitJob{ID: waits, After: []job.Dependency{{On: id, Condition: job.AfterNotOK}}})
	if s.Job(waits).State != job.Pending {
		t.Errorf("after a cancelled bag: %v", s.Job(waits).State)
	}
	must(t, s, store.RetryTasks{Bag: id, Tasks: job.TaskRange(0, 3)})
	if b.State != job.BagOpen || b.Waiting() != 3 {
		t.Errorf("retried: %v, %d tasks wait", b.State, b.Waiting())
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}
