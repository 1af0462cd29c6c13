package api

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"kith/internal/job"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/sitesched"
	"kith/sitesched/harm"
	"kith/store"
)

const (
	harmDays    = 7
	mostDays    = 3660
	mostHarmAge = time.Hour
	// freshHarm is how old an answer may be for whoever asks: to reckon takes up to a second
	// where much is past.
	freshHarm = 5 * time.Second
)

// reckoned is the latest answer. Whoever holds the place in busy may reckon another one.
type reckoned struct {
	busy chan struct{}
	days int32
	at   job.Time
	resp *kithv1.GetHarmResponse
}

func newReckoned() reckoned { return reckoned{busy: make(chan struct{}, 1)} }

// GetHarm implements kithv1.SiteServiceServer. It reads the disk, reckons beside the loop, and
// asks the loop only for what has not ended.
func (s *Server) GetHarm(ctx context.Context, r *kithv1.GetHarmRequest) (*kithv1.GetHarmResponse, error) {
	days, age := r.GetDays(), r.GetMaxAge().AsDuration()
	switch {
	case days < 0 || days > mostDays:
		return nil, &FieldError{Field: "days", Reason: "is not 1 to 3660, or 0 for 7"}
	case age < 0 || age > mostHarmAge:
		return nil, &FieldError{Field: "max_age", Reason: "is not 0 to 1 h"}
	case days == 0:
		days = harmDays
	}
	select {
	case s.reckoned.busy <- struct{}{}:
		defer func() { <-s.reckoned.busy }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	k := &s.reckoned
	p, err := s.present(ctx, false)
	if err != nil {
		return nil, err
	}
	if k.resp == nil || k.days != days || p.now.Sub(k.at) > max(age, freshHarm) || p.now < k.at {
		if p, err = s.present(ctx, true); err != nil {
			return nil, err
		}
		resp, err := s.reckon(ctx, days, p)
		if err != nil {
			return nil, err
		}
		k.days, k.at, k.resp = days, p.now, resp
	}
	resp := proto.CloneOf(k.resp)
	resp.Counters = harmCountersMessage(&p.count, p.does)
	return resp, nil
}

// present is what the engine knows of harm.
type present struct {
	now     job.Time
	jobs    []meta.HomeJob
	next    uint64
	count   meta.HarmCounters
	does    bool
	noHarm  meta.NoHarm
	speed   float64
	self    job.SiteID
	own     bool     // its own scheduler
	drains  job.Time // since when it drains, 0 if it does not
	planned sitesched.Config
}

// present asks the loop; for all jobs that have not ended, too, if they are needed.
func (s *Server) present(ctx context.Context, jobs bool) (p present, err error) {
	err = s.Node.Look(ctx, func(now job.Time, v meta.Views) {
		p.now = now
		if p.count, p.does = v.HarmCounters(); !jobs {
			return
		}
		p.jobs, p.next = v.HomeJobs(now)
		p.noHarm, p.speed = v.NoHarm()
		p.self = v.Sites(now)[0].Site
		p.drains = v.DrainsSince()
	})
	p.planned, p.own = s.Node.Plan()
	return p, err
}

// reckon holds the home jobs against a schedule without guests.
func (s *Server) reckon(ctx context.Context, days int32, p present) (*kithv1.GetHarmResponse, error) {
	since := p.now.Add(-time.Duration(days) * 24 * time.Hour)
	here := func(run time.Duration) time.Duration {
		if p.speed > 0 {
			return job.Scaled(run, p.speed)
		}
		return run
	}
	var jobs []harm.Job
	var guests []harm.Guest
	var drains []harm.Drain
	var first job.Time
	for a, err := range store.AllPast(s.Node) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		if a.Number >= p.next {
			break
		}
		if first == 0 {
			first = a.Ended
		}
		if a.Drained() {
			drains = append(drains, harm.Drain{From: a.Started, Until: a.Ended})
			continue
		}
		if a.Origin != p.self {
			guests = append(guests, harm.Guest{Processors: a.Processors, Came: a.Submitted, Started: a.Started, Run: here(a.Run)})
			continue
		}
		j := harm.Job{
			ID: job.AttemptID{Job: job.ID{Origin: a.Origin, Seq: a.Number}, Number: 1}, Processors: a.Processors, MemoryBytes: a.MemoryBytes, Limit: a.Limit,
			Submitted: a.Submitted, Ready: a.Ready, Started: a.Started, Run: here(a.Run), Blocked: a.Harm.Blocked, Moved: a.Harm.Moved,
		}
		if a.Kind == job.Cancel || a.Started == 0 {
			j.Left = a.Ended
		}
		jobs = append(jobs, j)
	}
	for i := range p.jobs {
		j := &p.jobs[i]
		jobs = append(jobs, harm.Job{
			ID: job.AttemptID{Job: j.ID, Number: 1}, Processors: j.Request.Processors, MemoryBytes: j.Request.MemoryBytes, Limit: j.Request.Walltime,
			Submitted: j.Submitted, Ready: j.Ready, Started: j.Started, Run: here(j.Run), Open: !j.Over, Blocked: j.Harm.Blocked, Moved: j.Harm.Moved,
		})
	}
	if p.drains != 0 {
		drains = append(drains, harm.Drain{From: p.drains})
	}
	q := harm.Question{Site: p.planned, Now: p.now, Since: since, Bound: p.noHarm.Bound, Drains: drains}
	if !p.own {
		q.Site = sitesched.Config{Processors: job.MaxProcessors} // what is compared with it is left out
	}
	rep, err := harm.Compare(q, jobs, guests)
	if err != nil {
		return nil, err
	}
	resp := &kithv1.GetHarmResponse{
		Time: stamp(p.now), SinceTime: stamp(since), FirstTime: stamp(first), Jobs: figuresMessage(&rep.All, p.own),
		Bound: durationpb.New(p.noHarm.Bound), GuestWalltime: durationpb.New(p.noHarm.GuestWalltime), KeepFree: p.planned.KeepFree,
		Mode: string(meta.HarmPromise), Promises: p.own && p.planned.HomeFirst(),
		GuestAttempts: int64(rep.Guests), GuestProcessorSeconds: rep.GuestWork, GuestWaitSeconds: rep.GuestWait,
	}
	if p.own {
		resp.ShadowTime, resp.AssumedJobs = stamp(rep.Reached), int64(rep.Assumed)
	}
	for i := range rep.Classes {
		resp.Classes = append(resp.Classes, figuresMessage(&rep.Classes[i], p.own))
	}
	return resp, nil
}

func figuresMessage(f *harm.Figures, compared bool) *kithv1.HarmFigures {
	m := &kithv1.HarmFigures{
		Jobs: int64(f.Jobs), BlockedJobs: int64(f.Blocked), Blocked_10MJobs: int64(f.Blocked10m), Blocked_1HJobs: int64(f.Blocked1h),
		BlockedSeconds: f.BlockedSeconds, WorstBlockedSeconds: f.Worst, Violations: int64(f.Violations), PromisesMoved: int64(f.Moved), //nolint:gosec // A count.
	}
	if compared {
		m.ComparedJobs, m.WaitSeconds, m.AloneWaitSeconds, m.DelaySeconds, m.DelayP95Seconds = int64(f.Compared), f.Wait, f.Alone, f.Mean, f.P95
		m.Later_1MJobs, m.Later_10MJobs, m.Later_1HJobs = int64(f.Later[0]), int64(f.Later[1]), int64(f.Later[2])
		m.DelaysSeconds, m.GainsSeconds = f.Delays, f.Gains
	}
	return m
}

func harmCountersMessage(n *meta.HarmCounters, measured bool) *kithv1.HarmCounters {
	m := &kithv1.HarmCounters{
		Measured: measured, LeftCopies: n.Left[:], BlockedSeconds: n.Seconds, Violations: n.Violations, PromisesMoved: n.Moved, BlockedNow: int32(n.Blocked), //nolint:gosec // Far fewer.
	}
	return m
}
