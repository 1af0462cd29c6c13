package api

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	kithv1 "kith/proto/gen/kith/v1"
)

// What a job would meet is told, and nothing is left behind.
func TestValidateOnly(t *testing.T) {
	s, m := serve(t)
	const limit = time.Minute
	submit(t, s, wide(limit))
	preview := func(j *kithv1.Job) (*kithv1.JobStatus, error) {
		r, err := s.SubmitJob(t.Context(), &kithv1.SubmitJobRequest{Job: j, ValidateOnly: true})
		if r.GetJobId() != "" {
			t.Errorf("it has the id %s", r.GetJobId())
		}
		return r.GetPreview(), err
	}
	p, err := preview(&kithv1.Job{Command: []string{"/bin/true"}, Processors: 1, Walltime: durationpb.New(limit)})
	if err != nil {
		t.Fatal(err)
	}
	if got := p.GetEstimatedStartTime().AsTime().Sub(m.now.Wall()); got != limit {
		t.Errorf("it would start in %v, want %v, when the job ahead has ended", got, limit)
	}
	if !slices.ContainsFunc(p.GetDecisions(), func(d *kithv1.SiteDecision) bool { return d.GetChosen() }) {
		t.Errorf("no site is chosen among %v", p.GetDecisions())
	}
	if _, err := preview(&kithv1.Job{}); err == nil {
		t.Error("a job without a command would be accepted")
	}
	list, err := s.ListJobs(t.Context(), &kithv1.ListJobsRequest{})
	if err != nil || len(list.GetJobs()) != 1 {
		t.Errorf("%d jobs are there, %v; want the one that was submitted", len(list.GetJobs()), err)
	}
}

// A preview is refused as the submission would be, so that no job is called
// acceptable that is not.
func TestValidateOnlyRefusesAsSubmission(t *testing.T) {
	s, _ := serve(t)
	for name, j := range map[string]*kithv1.Job{
		"too wide":          {Command: []string{"/bin/true"}, Processors: 1000, Walltime: durationpb.New(time.Minute)},
		"too much memory":   {Command: []string{"/bin/true"}, Processors: 1, Walltime: durationpb.New(time.Minute), MemoryBytes: 1 << 60},
		"without a command": {Processors: 1, Walltime: durationpb.New(time.Minute)},
		"a long source": {
			Command: []string{"/bin/true"}, Processors: 1, Walltime: durationpb.New(time.Minute),
			Inputs: []*kithv1.InputFile{{Path: "in", Content: &kithv1.InputFile_Source{Source: "/" + strings.Repeat("x", 5000)}}},
		},
		"without processors": {Command: []string{"/bin/true"}, Walltime: durationpb.New(time.Minute)},
	} {
		_, submitted := s.SubmitJob(t.Context(), &kithv1.SubmitJobRequest{Job: j, RequestId: name})
		_, previewed := s.SubmitJob(t.Context(), &kithv1.SubmitJobRequest{Job: j, ValidateOnly: true})
		if submitted == nil || previewed == nil || submitted.Error() != previewed.Error() {
			t.Errorf("a job %s: submitted %v, previewed %v; want the same refusal", name, submitted, previewed)
		}
	}
}
