package api

import (
	"context"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"kith/internal/job"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
)

// untouched is a node that must not be asked: what is refused must be refused first.
type untouched struct {
	Node
	t *testing.T
}

func (n untouched) Ask(context.Context, func(uint64) meta.Event) (meta.Reply, error) {
	n.t.Error("the engine was asked")
	return meta.Reply{}, ErrStopping
}

func (n untouched) Look(context.Context, func(job.Time, meta.Views)) error {
	n.t.Error("the engine was looked at")
	return ErrStopping
}

func (n untouched) Glance(ctx context.Context, look func(job.Time, meta.Views)) error {
	return n.Look(ctx, look)
}

func (n untouched) Payload(job.ID) ([]byte, error) { return nil, store.ErrUnknown }

// watcher is a stream on which nothing may be sent.
type watcher struct {
	grpc.ServerStream
	ctx context.Context
}

func (w watcher) Context() context.Context             { return w.ctx }
func (w watcher) Send(*kithv1.WatchJobsResponse) error { panic("sent") }

type outputWatcher struct{ watcher }

func (w outputWatcher) Send(*kithv1.GetJobOutputResponse) error { panic("sent") }

// Every request with a bad field is refused before the engine hears of it, and
// the answer names the field.
func TestBadRequests(t *testing.T) {
	s := testServer()
	s.Node, s.Changes = untouched{t: t}, NewChanges(7)
	ctx := t.Context()
	long := strings.Repeat("x", 300)
	first := func(_ any, err error) error { return err }
	for name, c := range map[string]struct {
		err   error
		field string
	}{
		"get nothing":          {first(s.GetJob(ctx, &kithv1.GetJobRequest{})), "job_id"},
		"get nonsense":         {first(s.GetJob(ctx, &kithv1.GetJobRequest{JobId: "Not An Id"})), "job_id"},
		"cancel nonsense":      {first(s.CancelJob(ctx, &kithv1.CancelJobRequest{JobId: "alpha.1"})), "job_id"},
		"hold nonsense":        {first(s.HoldJob(ctx, &kithv1.HoldJobRequest{JobId: "alpha.1.x.1"})), "job_id"},
		"release nonsense":     {first(s.ReleaseJob(ctx, &kithv1.ReleaseJobRequest{JobId: long})), "job_id"},
		"long request id":      {first(s.CancelJob(ctx, &kithv1.CancelJobRequest{JobId: "alpha.1.1", RequestId: long})), "request_id"},
		"submit, long id":      {first(s.SubmitJob(ctx, &kithv1.SubmitJobRequest{Job: goodJob(), RequestId: long})), "request_id"},
		"submit nothing":       {first(s.SubmitJob(ctx, &kithv1.SubmitJobRequest{})), "job"},
		"negative page":        {first(s.ListJobs(ctx, &kithv1.ListJobsRequest{PageSize: -1})), "page_size"},
		"large page":           {first(s.ListJobs(ctx, &kithv1.ListJobsRequest{PageSize: largestPage + 1})), "page_size"},
		"odd page":             {first(s.ListJobs(ctx, &kithv1.ListJobsRequest{PageToken: "2"})), "page_token"},
		"drain, long reason":   {first(s.DrainSite(ctx, &kithv1.DrainSiteRequest{Reason: long})), "reason"},
		"resume, long id":      {first(s.ResumeSite(ctx, &kithv1.ResumeSiteRequest{RequestId: long})), "request_id"},
		"forget nobody":        {first(s.ForgetSite(ctx, &kithv1.ForgetSiteRequest{})), "site_id"},
		"trust nobody":         {first(s.TrustHost(ctx, &kithv1.TrustHostRequest{})), "site_id"},
		"history, large page":  {first(s.ListHistory(ctx, &kithv1.ListHistoryRequest{PageSize: largestPage + 1})), "page_size"},
		"history, odd page":    {first(s.ListHistory(ctx, &kithv1.ListHistoryRequest{PageToken: "-1"})), "page_token"},
		"forget nonsense":      {first(s.ForgetSite(ctx, &kithv1.ForgetSiteRequest{SiteId: "No Site"})), "site_id"},
		"watch nonsense":       {s.WatchJobs(&kithv1.WatchJobsRequest{JobIds: []string{"alpha.1.1", "?"}}, watcher{ctx: ctx}), "job_ids[1]"},
		"watch too many":       {s.WatchJobs(&kithv1.WatchJobsRequest{JobIds: slices.Repeat([]string{"alpha.1.1"}, largestPage+1)}, watcher{ctx: ctx}), "job_ids"},
		"watch from nonsense":  {s.WatchJobs(&kithv1.WatchJobsRequest{Cursor: "yesterday"}, watcher{ctx: ctx}), "cursor"},
		"watch from nothing":   {s.WatchJobs(&kithv1.WatchJobsRequest{Cursor: "7-0"}, watcher{ctx: ctx}), "cursor"},
		"output of nonsense":   {s.GetJobOutput(&kithv1.GetJobOutputRequest{JobId: "?"}, outputWatcher{watcher{ctx: ctx}}), "job_id"},
		"output of attempt -1": {s.GetJobOutput(&kithv1.GetJobOutputRequest{JobId: "alpha.1.1", Attempt: -1}, outputWatcher{watcher{ctx: ctx}}), "attempt"},
		"output before 0":      {s.GetJobOutput(&kithv1.GetJobOutputRequest{JobId: "alpha.1.1", Offset: -1}, outputWatcher{watcher{ctx: ctx}}), "offset"},
	} {
		w := onWire(t, c.err)
		if w.code != codes.InvalidArgument || len(w.fields) != 1 || !strings.HasPrefix(w.fields[0], c.field+": ") {
			t.Errorf("%s: %+v, want something about %s", name, w, c.field)
		}
	}
	old := s.WatchJobs(&kithv1.WatchJobsRequest{Cursor: "6-1"}, watcher{ctx: ctx})
	if w := onWire(t, old); w.code != codes.OutOfRange || w.reason != "CURSOR_TOO_OLD" {
		t.Errorf("a cursor of an earlier daemon: %+v", w)
	}
}
