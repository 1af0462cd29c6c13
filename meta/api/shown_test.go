package api

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

// reads counts what is read of the store.
type reads struct {
	*memorySite
	n int
}

func (r *reads) Payload(id job.ID) ([]byte, error) {
	r.n++
	return r.memorySite.Payload(id)
}

// Who asks for the queue again and again has each payload read once, unless it is large,
// and sees the same as the first time. Those of jobs that have ended are not kept.
func TestListsReadAPayloadOnce(t *testing.T) {
	s, m := serve(t)
	ended := submit(t, s, func(j *kithv1.Job) { j.Hold = true })
	if _, err := s.CancelJob(t.Context(), &kithv1.CancelJobRequest{JobId: ended}); err != nil {
		t.Fatal(err)
	}
	submit(t, s, func(j *kithv1.Job) {
		j.Hold, j.Labels, j.WorkingDirectory, j.StdoutPath = true, map[string]string{"a": "b"}, "sub", "out"
		j.Environment = map[string]string{"A": strings.Repeat("x", 10*shownBytes)}
		j.Outputs = []*kithv1.OutputFile{{Path: "z"}}
	})
	submit(t, s, func(j *kithv1.Job) { j.Hold, j.Command = true, []string{"large", strings.Repeat("x", shownBytes)} })
	r := &reads{memorySite: m}
	s.Node = r
	list := func(all bool, want int) *kithv1.ListJobsResponse {
		t.Helper()
		r.n = 0
		l, err := s.ListJobs(t.Context(), &kithv1.ListJobsRequest{AllStates: all})
		if err != nil {
			t.Fatal(err)
		}
		if r.n != want {
			t.Errorf("%d payloads were read, want %d", r.n, want)
		}
		return l
	}
	first := list(false, 2)
	if len(first.GetJobs()) != 2 || first.GetJobs()[0].GetLabels()["a"] != "b" || len(first.GetJobs()[0].GetOutputs()) != 1 {
		t.Fatalf("%v", first)
	}
	if again := list(false, 1); !proto.Equal(first, again) {
		t.Errorf("%v, the first time %v", again, first)
	}
	list(true, 2)
	list(true, 2)
}

// What was asked for lately is kept, and no more than that.
func TestShownIsBounded(t *testing.T) {
	var s shown
	p := &kithv1.Payload{Job: goodJob()}
	for n := range 10 * mostShown {
		s.put(numbered(n), p)
		if s.get(numbered(0)) == nil {
			t.Fatalf("what is asked for all the time is gone after %d", n)
		}
	}
	if n := len(s.newer) + len(s.older); n > 2*mostShown {
		t.Errorf("%d are kept, at most %d", n, 2*mostShown)
	}
	if s.get(numbered(1)) != nil {
		t.Error("what nobody asked for is kept")
	}
}
