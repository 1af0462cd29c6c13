package api

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"kith/internal/job"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
)

// withEnded has a site with that many jobs that have ended and then some that wait.
func withEnded(t *testing.T, ended, open int) (*Server, *memorySite) {
	t.Helper()
	s, m := serve(t)
	for range ended {
		id := submit(t, s, func(j *kithv1.Job) { j.Hold = true })
		if _, err := s.CancelJob(t.Context(), &kithv1.CancelJobRequest{JobId: id}); err != nil {
			t.Fatal(err)
		}
	}
	for range open {
		submit(t, s, func(j *kithv1.Job) { j.Hold = true })
	}
	return s, m
}

// A list of open jobs looks at open jobs, however many have ended.
func TestListOfOpenJobsLooksAtNoEndedOnes(t *testing.T) {
	_, m := withEnded(t, 3000, 3)
	looked := 0
	list := m.engine.Views().ListJobs(meta.JobQuery{Limit: 100, Look: 1 << 30, Keep: func(j *store.Job) bool {
		looked++
		return !j.State.Terminal()
	}})
	if len(list.Jobs) != 3 || looked != 3 || list.More {
		t.Errorf("%d jobs, looked at %d of 3,003, more %v", len(list.Jobs), looked, list.More)
	}
}

// looks counts what each look at the site costs.
type looks struct {
	*memorySite
	n int
}

func (l *looks) Glance(ctx context.Context, look func(job.Time, meta.Views)) error {
	l.n++
	return l.memorySite.Look(ctx, look) //nolint:staticcheck // it would call itself
}

// However few jobs of many a list wants, each call looks at a bounded number, gives
// the site back in between, and the next page goes on.
func TestListLooksAtABoundedNumberOfJobs(t *testing.T) {
	s, m := withEnded(t, lookedAt+lookedAtOnce, 1)
	l := &looks{memorySite: m}
	s.Node = l
	r := &kithv1.ListJobsRequest{States: []kithv1.JobStatus_State{kithv1.JobStatus_STATE_HELD, kithv1.JobStatus_STATE_COMPLETED}}
	first, err := s.ListJobs(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if want := lookedAt / lookedAtOnce; len(first.GetJobs()) != 0 || first.GetNextPageToken() == "" || l.n != want {
		t.Fatalf("%d jobs, token %q after %d looks, want %d", len(first.GetJobs()), first.GetNextPageToken(), l.n, want)
	}
	r.PageToken = first.GetNextPageToken()
	second, err := s.ListJobs(t.Context(), r)
	if err != nil || len(second.GetJobs()) != 1 || second.GetNextPageToken() != "" {
		t.Errorf("%v, %v", second, err)
	}
}

// pagesOf follows a list to its end and checks the bounds of each page.
func pagesOf(t *testing.T, s *Server, r *kithv1.ListJobsRequest, largest int) (jobs []string, copies []string) {
	t.Helper()
	for range 10_000 {
		page, err := s.ListJobs(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if n := proto.Size(page); n > largest {
			t.Errorf("a page of %d bytes, at most %d", n, largest)
		}
		for _, j := range page.GetJobs() {
			jobs = append(jobs, j.GetId())
		}
		for _, c := range page.GetRemoteCopies() {
			copies = append(copies, c.GetJobId())
		}
		if r.PageToken = page.GetNextPageToken(); r.PageToken == "" {
			return jobs, copies
		}
	}
	t.Fatal("the list does not end")
	return nil, nil
}

// Pages end by bytes, too: jobs with long commands come a few at a time, each once.
func TestPagesEndByBytes(t *testing.T) {
	s, _ := serve(t)
	var all []string
	for range 30 {
		all = append(all, submit(t, s, func(j *kithv1.Job) { j.Command = []string{"/bin/true", strings.Repeat("x", 100_000)} }))
	}
	got, _ := pagesOf(t, s, &kithv1.ListJobsRequest{PageSize: 1000}, 1<<20+200_000)
	if !slices.Equal(got, all) {
		t.Errorf("%v, want %v", got, all)
	}
}

// Copies of other origins come in pages behind the jobs; what a site of an older
// version took in with names without a bound is cut, so nothing can break the list.
func TestRemoteCopiesComeInPages(t *testing.T) {
	s, m := serve(t)
	own := submit(t, s, nil)
	m.settle(m.engine.Step(m.now, meta.PeerUp{Site: "beta", Generation: 1}))
	var want []string
	for n := range 200 {
		a := job.AttemptID{Job: job.ID{Origin: "beta", Generation: 1, Seq: uint64(n + 1)}, Number: 1}
		m.settle(m.engine.Step(m.now, meta.Receive{From: "beta", Message: meta.PlaceCopy{Attempt: a, Request: job.Request{
			Name: "n", User: strings.Repeat("u", 1<<20), Processors: 2, Walltime: time.Hour,
		}}}))
		want = append(want, a.Job.String())
	}
	jobs, copies := pagesOf(t, s, &kithv1.ListJobsRequest{PageSize: 70, IncludeRemote: true}, 1<<20)
	if !slices.Equal(jobs, []string{own}) || !slices.Equal(copies, want) {
		t.Errorf("jobs %v, %d copies of %d", jobs, len(copies), len(want))
	}
	if jobs, copies := pagesOf(t, s, &kithv1.ListJobsRequest{PageSize: 1}, pageBytes); !slices.Equal(jobs, []string{own}) || len(copies) != 0 {
		t.Errorf("without copies: %v, %v", jobs, copies)
	}
}

// The site selects by user, name and time of submission.
func TestSiteSelectsByUserNameAndTime(t *testing.T) {
	s, m := serve(t)
	var ids []string
	for i := range 6 {
		s.User = []string{"ada", "bob"}[i%2]
		ids = append(ids, submit(t, s, func(j *kithv1.Job) { j.Name, j.Hold = fmt.Sprint("n", i/2), true }))
	}
	third := m.engine.Views().ListJobs(meta.JobQuery{Limit: 9, Look: 9, Keep: func(*store.Job) bool { return true }}).Jobs[2].Record.Submitted
	at := timestamppb.New(third.Wall())
	for _, c := range []struct {
		r    *kithv1.ListJobsRequest
		want []int
	}{
		{&kithv1.ListJobsRequest{Users: []string{"ada"}}, []int{0, 2, 4}},
		{&kithv1.ListJobsRequest{Users: []string{"ada", "bob"}, Names: []string{"n1"}}, []int{2, 3}},
		{&kithv1.ListJobsRequest{Names: []string{"other"}}, nil},
		{&kithv1.ListJobsRequest{SubmittedSince: at}, []int{2, 3, 4, 5}},
		{&kithv1.ListJobsRequest{SubmittedUntil: at}, []int{0, 1, 2}},
		{&kithv1.ListJobsRequest{SubmittedSince: at, SubmittedUntil: at, Users: []string{"bob"}}, nil},
		{&kithv1.ListJobsRequest{SubmittedUntil: timestamppb.New(time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC))}, []int{0, 1, 2, 3, 4, 5}},
	} {
		var want []string
		for _, i := range c.want {
			want = append(want, ids[i])
		}
		if got, _ := pagesOf(t, s, c.r, pageBytes); !slices.Equal(got, want) {
			t.Errorf("%v: %v, want %v", c.r, got, want)
		}
	}
}
