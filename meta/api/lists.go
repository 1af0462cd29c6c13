package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"kith/internal/job"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
)

// Pages of ListJobs.
const (
	defaultPage = 100
	largestPage = 1000
	// pageBytes is about what a page may have: it ends with the job that goes beyond.
	pageBytes = 1 << 20
	// A call looks at no more than lookedAt records, and no more than lookedAtOnce
	// between two events of the site.
	lookedAt     = 10_000
	lookedAtOnce = 1_000
)

// mostStarts is how many copies at the head of the queue get an estimated start: it
// bounds what a list costs the site, however many jobs wait.
const mostStarts = 100

// copiesToken begins the token of a page of copies; behind it stands the attempt
// after which the page begins.
const copiesToken = "copies:"

// ListJobs implements kithv1.JobServiceServer.
func (s *Server) ListJobs(ctx context.Context, r *kithv1.ListJobsRequest) (*kithv1.ListJobsResponse, error) {
	p, err := newPage(s, r)
	if err != nil {
		return nil, err
	}
	for !p.full() && !p.copying {
		if err := p.addJobs(ctx); err != nil {
			return nil, err
		}
	}
	if p.copying && !p.full() {
		if err := p.addCopies(ctx); err != nil {
			return nil, err
		}
	}
	return p.resp, nil
}

// page is a page of a list in the making. The token of its response says where it
// ended; it is empty at the end of everything.
type page struct {
	s     *Server
	r     *kithv1.ListJobsRequest
	resp  *kithv1.ListJobsResponse
	keep  func(*store.Job) bool
	ended bool // jobs that have ended are asked for, too
	size  int  // the most entries
	bytes int

	after   job.ID
	looked  int
	starts  map[job.AttemptID]job.Time
	copying bool // all jobs are done, copies follow
	behind  job.AttemptID
}

func newPage(s *Server, r *kithv1.ListJobsRequest) (*page, error) {
	p := &page{s: s, r: r, resp: &kithv1.ListJobsResponse{}, size: int(r.GetPageSize())}
	if p.size == 0 {
		p.size = defaultPage
	}
	if p.size < 0 || p.size > largestPage {
		return nil, &FieldError{Field: "page_size", Reason: fmt.Sprintf("%d: must be 0 to %d", p.size, largestPage)}
	}
	var err error
	if text, ok := strings.CutPrefix(r.GetPageToken(), copiesToken); ok {
		p.copying = true
		if text != "" {
			p.behind, err = job.ParseAttemptID(text)
		}
	} else if text != "" {
		p.after, err = job.ParseID(text)
	}
	if err != nil {
		return nil, &FieldError{Field: "page_token", Reason: "is not one that ListJobs returned", Err: err}
	}
	p.keep, p.ended = selection(r)
	return p, nil
}

// full reports whether the page has all that it may have.
func (p *page) full() bool {
	return len(p.resp.Jobs)+len(p.resp.RemoteCopies) >= p.size || p.bytes >= pageBytes || p.looked >= lookedAt
}

// addJobs adds what a look at the site brings.
func (p *page) addJobs(ctx context.Context) error {
	var list meta.JobList
	err := p.s.Node.Glance(ctx, func(now job.Time, v meta.Views) {
		list = v.ListJobs(meta.JobQuery{
			After: p.after, Limit: p.size - len(p.resp.Jobs), Look: lookedAtOnce, Ended: p.ended, Keep: p.keep,
		})
		if p.starts == nil && slices.ContainsFunc(list.Jobs, waits) {
			p.starts = v.Starts(now, mostStarts) // once, however many looks the page takes
		}
	})
	if err != nil {
		return err
	}
	p.looked += list.Looked
	for i := range list.Jobs {
		if err := p.addJob(&list.Jobs[i]); err != nil {
			return err
		}
		if p.bytes >= pageBytes && (list.More || i < len(list.Jobs)-1) {
			p.resp.NextPageToken = list.Jobs[i].Record.ID.String()
			return nil
		}
	}
	p.after = list.Through
	switch {
	case list.More:
		p.resp.NextPageToken = p.after.String()
	case p.r.GetIncludeRemote():
		p.resp.NextPageToken, p.copying = copiesToken, true
	default:
		p.resp.NextPageToken, p.copying = "", true
	}
	return nil
}

// addJob adds a job that has the labels that are asked for.
func (p *page) addJob(v *meta.JobView) error {
	payload, err := p.s.shownPayload(v.Record.ID, !v.Record.State.Terminal())
	if errors.Is(err, store.ErrUnknown) {
		return nil // purged meanwhile
	}
	if err != nil {
		return err
	}
	if hasLabels(payload.GetJob(), p.r.GetLabels()) {
		j := listedJob(v, payload, p.starts)
		p.resp.Jobs = append(p.resp.Jobs, j)
		p.bytes += proto.Size(j)
	}
	return nil
}

// addCopies adds copies of other origins, if they are asked for.
func (p *page) addCopies(ctx context.Context) error {
	if !p.r.GetIncludeRemote() {
		return nil
	}
	var copies []meta.HostedCopy
	var more bool
	err := p.s.Node.Glance(ctx, func(_ job.Time, v meta.Views) {
		copies, more = v.HostedCopies(p.behind, p.size-len(p.resp.Jobs))
	})
	if err != nil {
		return err
	}
	p.resp.NextPageToken = ""
	for i := range copies {
		c := hostedMessage(&copies[i])
		p.resp.RemoteCopies = append(p.resp.RemoteCopies, c)
		p.bytes += proto.Size(c)
		if end := i == len(copies)-1; end && more || !end && p.bytes >= pageBytes {
			p.resp.NextPageToken = copiesToken + copies[i].Attempt.String()
			return nil
		}
	}
	return nil
}

// waits reports whether copies of a job are queued.
func waits(v meta.JobView) bool { return v.Record.State == job.Queued }

// selection returns what a request selects by that the site's records know, and
// whether jobs that have ended may be among it.
func selection(r *kithv1.ListJobsRequest) (keep func(*store.Job) bool, ended bool) {
	wanted := make(map[kithv1.JobStatus_State]bool)
	for _, st := range r.GetStates() {
		wanted[st] = true
	}
	ended = r.GetAllStates()
	for st, message := range states {
		ended = ended || st.Terminal() && wanted[message]
	}
	since, until := job.Time(0), job.Never
	if t := r.GetSubmittedSince(); t != nil {
		since = instant(t.AsTime())
	}
	if t := r.GetSubmittedUntil(); t != nil {
		until = instant(t.AsTime())
	}
	all := r.GetAllStates() || len(wanted) == 0
	users, names := r.GetUsers(), r.GetNames()
	return func(j *store.Job) bool {
		return (all || wanted[stateMessage(j.State)]) && j.Submitted >= since && j.Submitted <= until &&
			(len(users) == 0 || slices.Contains(users, j.Request.User)) && (len(names) == 0 || slices.Contains(names, j.Request.Name))
	}, ended
}

// instant is the nearest instant to t that a [job.Time] can say.
func instant(t time.Time) job.Time {
	switch {
	case t.Before(time.Unix(0, 0)):
		return 0
	case t.After(job.Never.Wall()):
		return job.Never
	}
	return job.Instant(t)
}

func hasLabels(j *kithv1.Job, labels map[string]string) bool {
	for k, v := range labels {
		if got, ok := j.GetLabels()[k]; !ok || got != v {
			return false
		}
	}
	return true
}
