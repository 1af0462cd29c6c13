package chaos

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	kithv1 "kith/proto/gen/kith/v1"
)

func TestDisagreements(t *testing.T) {
	job := func(state kithv1.JobStatus_State, attempt int32, host string, at ...string) *kithv1.Job {
		st := &kithv1.JobStatus{State: state, Attempt: attempt, HostSiteId: host}
		for _, s := range at {
			st.Copies = append(st.Copies, &kithv1.CopyStatus{SiteId: s, State: kithv1.CopyStatus_STATE_QUEUED})
		}
		return &kithv1.Job{Id: "a.1.7", Status: st}
	}
	race := func(j *kithv1.Job) *kithv1.Job {
		j.OnSiteLost = kithv1.Job_ON_SITE_LOST_RACE
		return j
	}
	const (
		queued    = kithv1.JobStatus_STATE_QUEUED
		running   = kithv1.JobStatus_STATE_RUNNING
		completed = kithv1.JobStatus_STATE_COMPLETED
	)
	for name, c := range map[string]struct {
		job  *kithv1.Job // of site a
		at   string      // the site that holds a copy of it
		n    int32       // its attempt
		how  string
		want []string
	}{
		"queued as expected":         {job(queued, 1, "", "a", "b"), "b", 1, "queued", nil},
		"runs as expected":           {job(running, 1, "b"), "b", 1, "running", nil},
		"the job has ended":          {nil, "b", 1, "queued", []string{"b holds 1"}},
		"the job has ended meantime": {job(completed, 1, "c"), "b", 1, "queued", []string{"b holds 1"}},
		"another site runs it":       {job(running, 1, "a"), "b", 1, "queued", []string{"b holds 1"}},
		"another site waits for it":  {job(queued, 1, "", "c"), "b", 1, "queued", []string{"b holds 1", "c lacks 1"}},
		"an earlier attempt":         {job(running, 2, "a"), "b", 1, "running", []string{"b holds 1"}},
		"an earlier attempt races":   {race(job(running, 2, "a")), "b", 1, "running", nil},
		"a racing copy waits":        {race(job(running, 2, "a")), "b", 1, "queued", []string{"b holds 1"}},
		"a copy is missing":          {job(queued, 1, "", "b", "c"), "c", 1, "queued", []string{"b lacks 1"}},
		"the attempt is missing":     {job(running, 1, "c"), "b", 1, "running", []string{"b holds 1", "c lacks 1"}},
	} {
		v := &view{
			jobs:   map[string][]*kithv1.Job{"a": nil},
			copies: map[string][]*kithv1.HostedCopy{c.at: {{JobId: "a.1.7", Attempt: c.n, State: c.how}}},
		}
		if c.job != nil {
			v.jobs["a"] = append(v.jobs["a"], c.job)
		}
		var got []string
		for d := range v.disagreements() {
			word := "lacks"
			if d.stray {
				word = "holds"
			}
			got = append(got, fmt.Sprintf("%s %s %d", d.site, word, d.attempt))
		}
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// What was there when the last site came back must go; what comes later is new.
func TestSettling(t *testing.T) {
	set := func(jobs ...string) map[disagreement]bool {
		m := make(map[disagreement]bool)
		for _, j := range jobs {
			m[disagreement{copyAt{"b", j, 1}, true}] = true
		}
		return m
	}
	var s settling
	for i, step := range []struct {
		connected bool
		found     map[disagreement]bool
		settled   bool
		left      int
	}{
		{false, set(), false, 0},
		{false, set("old"), false, 1},
		{true, set("old", "older"), false, 2},
		{false, set("old", "older", "new"), false, 2},
		{true, set("older", "new"), false, 1},
		{true, set("new"), true, 0},
	} {
		if got := s.see(step.connected, maps.Clone(step.found)); got != step.settled || len(s.left) != step.left {
			t.Errorf("step %d: settled %v with %d left, want %v with %d", i, got, len(s.left), step.settled, step.left)
		}
	}
}
