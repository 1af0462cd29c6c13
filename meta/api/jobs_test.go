package api

import (
	"maps"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	kithv1 "kith/proto/gen/kith/v1"
)

func labelled(labels map[string]string) func(*kithv1.Job) {
	return func(j *kithv1.Job) { j.Labels = labels }
}

// A list is cut into pages that together have every job once, in the order of
// submission, whatever is filtered.
func TestListJobsInPages(t *testing.T) {
	s, m := serve(t)
	var all, even []string
	for i := range 25 {
		labels := map[string]string{"odd": "yes"}
		if i%2 == 0 {
			labels = map[string]string{"odd": "no"}
		}
		all = append(all, submit(t, s, labelled(labels)))
		if i%2 == 0 {
			even = append(even, all[i])
		}
	}
	pages := func(r *kithv1.ListJobsRequest) (ids []string) {
		for {
			got, err := s.ListJobs(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			if len(got.GetJobs()) > int(r.GetPageSize()) {
				t.Fatalf("%d jobs on a page of %d", len(got.GetJobs()), r.GetPageSize())
			}
			for _, j := range got.GetJobs() {
				ids = append(ids, j.GetId())
			}
			if r.PageToken = got.GetNextPageToken(); r.PageToken == "" {
				return ids
			}
		}
	}
	for _, size := range []int32{1, 2, 7, 24, 25, 26, 1000} {
		if got := pages(&kithv1.ListJobsRequest{PageSize: size}); !slices.Equal(got, all) {
			t.Errorf("pages of %d: %v", size, got)
		}
		if got := pages(&kithv1.ListJobsRequest{PageSize: size, Labels: map[string]string{"odd": "no"}}); !slices.Equal(got, even) {
			t.Errorf("pages of %d with a label: %v", size, got)
		}
	}
	if got := pages(&kithv1.ListJobsRequest{PageSize: 10, Labels: map[string]string{"odd": "maybe"}}); len(got) != 0 {
		t.Errorf("a label that no job has: %v", got)
	}
	m.end() // the first two
	if got := pages(&kithv1.ListJobsRequest{PageSize: 10}); !slices.Equal(got, all[2:]) {
		t.Errorf("without ended ones: %v", got)
	}
	completed := []kithv1.JobStatus_State{kithv1.JobStatus_STATE_COMPLETED}
	if got := pages(&kithv1.ListJobsRequest{PageSize: 1, States: completed}); !slices.Equal(got, all[:2]) {
		t.Errorf("ended ones: %v", got)
	}
	if got := pages(&kithv1.ListJobsRequest{PageSize: 10, AllStates: true}); !slices.Equal(got, all) {
		t.Errorf("in all states: %v", got)
	}
}

// has reports whether a field is set, by its path from the job.
func has(m protoreflect.Message, path string) bool {
	for {
		name, rest, more := cut(path)
		f := m.Descriptor().Fields().ByName(protoreflect.Name(name))
		if f == nil {
			panic("no field " + path)
		}
		if !more {
			return m.Has(f)
		}
		m, path = m.Get(f).Message(), rest
	}
}

func cut(path string) (name, rest string, more bool) {
	i := slices.Index([]byte(path), '.')
	if i < 0 {
		return path, "", false
	}
	return path[:i], path[i+1:], true
}

// What an answer has not, it says: whatever GetJob has of a job, a list and a watch
// have, too, or name among what they leave out. Defaults are resolved everywhere.
func TestListsSayWhatTheyLeaveOut(t *testing.T) {
	s, _ := serve(t)
	id := submit(t, s, func(j *kithv1.Job) {
		j.Labels, j.Environment = map[string]string{"sweep": "a"}, map[string]string{"A": "b"}
		j.Outputs, j.Tasks, j.WorkingDirectory = []*kithv1.OutputFile{{Path: "out"}}, 1, "sub"
		j.StdoutPath, j.StderrPath = "o", "e"
	})
	got, err := s.GetJob(t.Context(), &kithv1.GetJobRequest{JobId: id})
	if err != nil {
		t.Fatal(err)
	}
	list, err := s.ListJobs(t.Context(), &kithv1.ListJobsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	all, one := watch(t, s, &kithv1.WatchJobsRequest{}), watch(t, s, &kithv1.WatchJobsRequest{JobIds: []string{id}})
	answers := map[string]*kithv1.Job{
		"GetJob": got.GetJob(), "ListJobs": list.GetJobs()[0], "WatchJobs": all.next(t).GetJob(), "WatchJobs of one": one.next(t).GetJob(),
	}
	whole := got.GetJob()
	paths := func(prefix string, m protoreflect.Message) (set []string) {
		m.Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
			set = append(set, prefix+string(f.Name()))
			return true
		})
		return set
	}
	fields := append(paths("", whole.ProtoReflect()), paths("status.", whole.GetStatus().ProtoReflect())...)
	for name, j := range answers {
		if j.GetCopies() != 3 || j.GetOnSiteLost() != kithv1.Job_ON_SITE_LOST_WAIT || j.GetWalltime().AsDuration() == 0 {
			t.Errorf("%s: copies %d, %v, walltime %v", name, j.GetCopies(), j.GetOnSiteLost(), j.GetWalltime())
		}
		for _, f := range fields {
			if there, said := has(j.ProtoReflect(), f), slices.Contains(j.GetLeftOut(), f); !there && !said {
				t.Errorf("%s leaves out %s and does not say so", name, f)
			}
		}
		for _, f := range j.GetLeftOut() {
			if f != "status.outcome.outputs" && has(j.ProtoReflect(), f) {
				t.Errorf("%s has %s, which it says to leave out", name, f)
			}
		}
	}
	if l := answers["ListJobs"]; !maps.Equal(l.GetLabels(), whole.GetLabels()) || !slices.Equal(l.GetCommand(), whole.GetCommand()) {
		t.Errorf("listed: labels %v, command %q", l.GetLabels(), l.GetCommand())
	}
}

// Every call about a job goes through its states as it says.
func TestJobThroughItsStates(t *testing.T) {
	s, m := serve(t)
	ctx := t.Context()
	first := func(_ any, err error) error { return err }
	reason := func(err error) string {
		if err == nil {
			return ""
		}
		return onWire(t, err).reason
	}
	held := submit(t, s, func(j *kithv1.Job) { j.Hold = true })
	running := submit(t, s, nil)
	submit(t, s, nil)
	waiting := submit(t, s, nil)
	for i, c := range []struct {
		err  error
		want string
	}{
		{first(s.ReleaseJob(ctx, &kithv1.ReleaseJobRequest{JobId: running})), "JOB_NOT_HELD"},
		{first(s.HoldJob(ctx, &kithv1.HoldJobRequest{JobId: running})), "JOB_STARTED"},
		{first(s.HoldJob(ctx, &kithv1.HoldJobRequest{JobId: waiting})), ""},
		{first(s.HoldJob(ctx, &kithv1.HoldJobRequest{JobId: waiting})), ""}, // it may be repeated
		{first(s.ReleaseJob(ctx, &kithv1.ReleaseJobRequest{JobId: waiting})), ""},
		{first(s.CancelJob(ctx, &kithv1.CancelJobRequest{JobId: waiting})), ""},
		{first(s.CancelJob(ctx, &kithv1.CancelJobRequest{JobId: waiting})), ""},
		{first(s.HoldJob(ctx, &kithv1.HoldJobRequest{JobId: waiting})), "JOB_ENDED"},
		{first(s.ReleaseJob(ctx, &kithv1.ReleaseJobRequest{JobId: held})), ""},
		{first(s.GetJob(ctx, &kithv1.GetJobRequest{JobId: "alpha.1.99"})), "JOB_NOT_FOUND"},
		{first(s.GetJob(ctx, &kithv1.GetJobRequest{JobId: "beta.1.1"})), "JOB_OF_ANOTHER_SITE"},
		{first(s.CancelJob(ctx, &kithv1.CancelJobRequest{JobId: "alpha.1.99"})), "JOB_NOT_FOUND"},
		{first(s.CancelJob(ctx, &kithv1.CancelJobRequest{JobId: "beta.1.1"})), "JOB_OF_ANOTHER_SITE"},
		{first(s.HoldJob(ctx, &kithv1.HoldJobRequest{JobId: "alpha.1.99"})), "JOB_NOT_FOUND"},
		{first(s.ReleaseJob(ctx, &kithv1.ReleaseJobRequest{JobId: "alpha.1.99"})), "JOB_NOT_FOUND"},
	} {
		if got := reason(c.err); got != c.want {
			t.Errorf("call %d: %q, want %q (%v)", i, got, c.want, c.err)
		}
	}
	m.end()
	m.end()
	if got := reason(first(s.CancelJob(ctx, &kithv1.CancelJobRequest{JobId: running}))); got != "JOB_ENDED" {
		t.Errorf("cancelling a completed job: %q", got)
	}
	for id, want := range map[string]kithv1.JobStatus_State{
		running: kithv1.JobStatus_STATE_COMPLETED, waiting: kithv1.JobStatus_STATE_CANCELLED, held: kithv1.JobStatus_STATE_COMPLETED,
	} {
		if got, err := s.GetJob(ctx, &kithv1.GetJobRequest{JobId: id}); err != nil || got.GetJob().GetStatus().GetState() != want {
			t.Errorf("job %s: %v, want %v; %v", id, got.GetJob().GetStatus().GetState(), want, err)
		}
	}
	// A submission may be repeated, but its name not be used for another job.
	again := &kithv1.SubmitJobRequest{RequestId: "r1", Job: goodJob()}
	again.Job.Processors, again.Job.Tasks = 1, 0
	one, err := s.SubmitJob(ctx, proto.CloneOf(again))
	if err != nil {
		t.Fatal(err)
	}
	if two, err := s.SubmitJob(ctx, proto.CloneOf(again)); err != nil || two.GetJobId() != one.GetJobId() {
		t.Errorf("repeated: %v, %v", two, err)
	}
	again.Job.Processors = 2
	if got := reason(first(s.SubmitJob(ctx, again))); got != "REQUEST_ID_REUSED" {
		t.Errorf("another job under the same request_id: %q", got)
	}
	wide := goodJob()
	wide.Processors, wide.Tasks = 99, 0
	if w := onWire(t, first(s.SubmitJob(ctx, &kithv1.SubmitJobRequest{Job: wide}))); w.code != codes.FailedPrecondition || w.reason != "NO_SITE_LARGE_ENOUGH" {
		t.Errorf("too wide: %+v", w)
	}
}
