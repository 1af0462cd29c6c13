package api

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	kithv1 "kith/proto/gen/kith/v1"
)

// wide is a job that needs the whole site of serve for that long.
func wide(limit time.Duration) func(*kithv1.Job) {
	return func(j *kithv1.Job) { j.Processors, j.Walltime = 2, durationpb.New(limit) }
}

// Of jobs that wait for the whole site, each starts when the limits of those ahead
// are used up; a job that runs or is held has no estimated start.
func TestEstimatedStarts(t *testing.T) {
	s, m := serve(t)
	const limit = time.Minute
	submit(t, s, wide(limit))
	began := m.now
	for range 3 {
		submit(t, s, wide(limit))
	}
	submit(t, s, func(j *kithv1.Job) { wide(limit)(j); j.Hold = true })
	m.now = m.now.Add(10 * time.Second)
	list, err := s.ListJobs(t.Context(), &kithv1.ListJobsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, j := range list.GetJobs() {
		one, err := s.GetJob(t.Context(), &kithv1.GetJobRequest{JobId: j.GetId()})
		if err != nil {
			t.Fatal(err)
		}
		at := j.GetStatus().GetEstimatedStartTime()
		if alone := one.GetJob().GetStatus().GetEstimatedStartTime(); at.AsTime() != alone.AsTime() {
			t.Errorf("%s: listed with %v, alone with %v", j.GetId(), at, alone)
		}
		if at == nil {
			got = append(got, "-")
			continue
		}
		got = append(got, at.AsTime().Sub(began.Wall()).String())
	}
	if want := []string{"-", "1m0s", "2m0s", "3m0s", "-"}; !slices.Equal(got, want) {
		t.Errorf("starts %v after the first, want %v", got, want)
	}
}

// However many jobs wait, only the first of them cost anything.
func TestEstimatedStartsAreFew(t *testing.T) {
	s, _ := serve(t)
	for range mostStarts + 20 {
		submit(t, s, wide(time.Minute))
	}
	list, err := s.ListJobs(t.Context(), &kithv1.ListJobsRequest{PageSize: largestPage})
	if err != nil {
		t.Fatal(err)
	}
	for i, j := range list.GetJobs() {
		// The first of them runs.
		if got, want := j.GetStatus().GetEstimatedStartTime() != nil, i >= 1 && i <= mostStarts; got != want {
			t.Errorf("job %d: has an estimated start: %v, want %v", i, got, want)
		}
	}
}

// BenchmarkListJobs lists a page of a site where many jobs wait.
func BenchmarkListJobs(b *testing.B) {
	s, _ := serve(b)
	for i := range 10_000 {
		_, err := s.SubmitJob(b.Context(), &kithv1.SubmitJobRequest{Job: &kithv1.Job{
			Name: fmt.Sprint(i), Command: []string{"/bin/true"}, Processors: int32(1 + i%2), Walltime: durationpb.New(time.Duration(1+i%60) * time.Minute),
		}})
		if err != nil {
			b.Fatal(err)
		}
	}
	for _, size := range []int32{100, largestPage} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			for b.Loop() {
				if _, err := s.ListJobs(b.Context(), &kithv1.ListJobsRequest{PageSize: size}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
