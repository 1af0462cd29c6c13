package api

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	kithv1 "kith/proto/gen/kith/v1"
)

// after lists dependencies of one condition.
func after(c kithv1.Dependency_Condition, ids ...string) []*kithv1.Dependency {
	var list []*kithv1.Dependency
	for _, id := range ids {
		list = append(list, &kithv1.Dependency{Id: id, Condition: c})
	}
	return list
}

// narrow has a job fit the site of these tests.
func narrow(j *kithv1.Job) *kithv1.Job {
	j.Processors, j.Tasks = 1, 0
	return j
}

// What cannot be waited for is refused with field, value and remedy, for jobs and for bags,
// and changes nothing.
func TestDependenciesThatCannotBe(t *testing.T) {
	s, _ := serve(t)
	first := submit(t, s, labelled(nil))
	site, rest, _ := strings.Cut(first, ".")
	generation, _, _ := strings.Cut(rest, ".")
	many := make([]string, 65)
	for i := range many {
		many[i] = first
	}
	const ok = kithv1.Dependency_CONDITION_OK
	for name, c := range map[string]struct {
		after     []*kithv1.Dependency
		singleton bool
		field     string
		says      []string
	}{
		"unknown":       {after(ok, first, site+"."+generation+".99"), false, "after[1].id", []string{".99", "forgotten", "kith queue --all"}},
		"the next id":   {after(ok, site+"."+generation+".2"), false, "after[0].id", []string{"no job or bag"}},
		"another site":  {after(ok, "elsewhere.1.1"), false, "after[0].id", []string{"elsewhere", "kith wait"}},
		"no id":         {after(ok, "tomorrow"), false, "after[0].id", []string{"tomorrow"}},
		"a task":        {after(ok, first+"_3"), false, "after[0].id", []string{"task", first}},
		"no condition":  {after(0, first), false, "after[0].condition", []string{"OK, ANY or NOT_OK"}},
		"condition 9":   {after(9, first), false, "after[0].condition", []string{"9"}},
		"its state":     {[]*kithv1.Dependency{{Id: first, Condition: ok, State: 1}}, false, "after[0].state", []string{"leave it empty"}},
		"too many":      {after(ok, many...), false, "after", []string{"65", "64"}},
		"64, singleton": {after(ok, many[:64]...), true, "after", []string{"64"}},
	} {
		t.Run(name, func(t *testing.T) {
			check := func(what string, err error) {
				t.Helper()
				st := status.Convert(s.toStatus(t.Context(), "test", err))
				if st.Code() != codes.InvalidArgument || !strings.HasPrefix(st.Message(), what+"."+c.field+": ") {
					t.Errorf("%s: %v", what, st.Err())
				}
				for _, word := range c.says {
					if !strings.Contains(st.Message(), word) {
						t.Errorf("%s: %q does not say %q", what, st.Message(), word)
					}
				}
			}
			j := narrow(goodJob())
			j.After, j.Singleton = c.after, c.singleton
			_, err := s.SubmitJob(t.Context(), &kithv1.SubmitJobRequest{Job: j})
			check("job", err)
			_, err = s.SubmitBag(t.Context(), &kithv1.SubmitBagRequest{Bag: with(goodBag(), func(b *kithv1.Bag) { narrow(b.Job); b.After, b.Singleton = c.after, c.singleton })})
			check("bag", err)
		})
	}
	_, err := s.SubmitBag(t.Context(), &kithv1.SubmitBagRequest{Bag: with(goodBag(), func(b *kithv1.Bag) { b.Job.Singleton = true })})
	if st := status.Convert(s.toStatus(t.Context(), "test", err)); !strings.HasPrefix(st.Message(), "bag.job.after: ") || !strings.Contains(st.Message(), "bag.singleton") {
		t.Errorf("a singleton in a bag's job: %v", st.Err())
	}
	if next := submit(t, s, labelled(nil)); !strings.HasSuffix(next, ".2") {
		t.Errorf("what was refused took a number: the next job is %s", next)
	}
}

// What waits is shown as BLOCKED, with what it waits for, until that has ended.
func TestBlockedJobs(t *testing.T) {
	s, m := serve(t)
	first := submit(t, s, labelled(nil))
	second := submit(t, s, labelled(nil))
	wants := append(after(kithv1.Dependency_CONDITION_OK, first), after(kithv1.Dependency_CONDITION_ANY, second)...)
	id := submit(t, s, func(j *kithv1.Job) { j.After = wants })
	never := submit(t, s, func(j *kithv1.Job) { j.After = after(kithv1.Dependency_CONDITION_NOT_OK, first) })
	get := func(id string) *kithv1.Job {
		t.Helper()
		got, err := s.GetJob(t.Context(), &kithv1.GetJobRequest{JobId: id})
		if err != nil {
			t.Fatal(err)
		}
		return got.GetJob()
	}
	bag, err := s.SubmitBag(t.Context(), &kithv1.SubmitBagRequest{Bag: with(goodBag(), func(b *kithv1.Bag) {
		narrow(b.Job).Name = get(id).GetName()
		b.After, b.Singleton = after(kithv1.Dependency_CONDITION_OK, id), true
	})})
	if err != nil {
		t.Fatal(err)
	}
	j := get(id)
	if j.GetStatus().GetState() != kithv1.JobStatus_STATE_BLOCKED || j.GetStatus().GetReason() != "waits for "+first+" (afterok), "+second+" (afterany)" {
		t.Errorf("%v: %s", j.GetStatus().GetState(), j.GetStatus().GetReason())
	}
	for i, d := range j.GetAfter() {
		wants[i].State = kithv1.Dependency_STATE_WAITS
		if !proto.Equal(d, wants[i]) {
			t.Errorf("after[%d] is %v, want %v", i, d, wants[i])
		}
	}
	b, err := s.GetBag(t.Context(), &kithv1.GetBagRequest{BagId: bag.GetBagId()})
	if err != nil {
		t.Fatal(err)
	}
	if st := b.GetBag().GetStatus(); st.GetState() != kithv1.BagStatus_STATE_BLOCKED || !strings.Contains(st.GetReason(), "singleton") || !b.GetBag().GetSingleton() || len(b.GetBag().GetAfter()) != 1 {
		t.Errorf("bag %v", b)
	}
	m.end() // the first two
	if j = get(id); j.GetStatus().GetState() == kithv1.JobStatus_STATE_BLOCKED || j.GetAfter()[0].GetState() != kithv1.Dependency_STATE_MET {
		t.Errorf("after the end: %v", j)
	}
	st := get(never).GetStatus()
	if st.GetState() != kithv1.JobStatus_STATE_CANCELLED || !strings.Contains(st.GetReason(), "afternotok:"+first) || !strings.Contains(st.GetReason(), "COMPLETED") || st.GetEndTime() == nil {
		t.Errorf("never: %v", st)
	}
	// Nobody is said to have done what a rule of the site did.
	if acts := st.GetActs(); len(acts) != 2 || acts[1].GetKind() != kithv1.JobAct_KIND_CANCEL || acts[1].GetActor() != "" || acts[1].GetReason() == "" {
		t.Errorf("acts on what can never start: %v", acts)
	}
}
