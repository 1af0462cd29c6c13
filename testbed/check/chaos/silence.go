package chaos

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"kith/internal/job"
	"kith/internal/pause"
	kithv1 "kith/proto/gen/kith/v1"
)

// executorLost is members.executor_lost of the site of three machines: longer than its faults but one
// last on a machine that is not too busy.
const executorLost = 6 * time.Second

// Bounds of a silence. Jobs that are meant to be caught by it run for longer than it lasts.
const (
	beyondLost = 2 * time.Second // and up to 4 s that are drawn
	staying    = executorLost + beyondLost + 8*time.Second
	// caughtWithin is how long jobs are waited for to be caught.
	caughtWithin = time.Minute
)

// silence kills or pauses the machine that runs the jobs for longer than the site waits for it, while
// jobs that would wait for it, and others that would run again, run there.
func (r *membersRun) silence(ctx context.Context, lasts time.Duration) error {
	caught, err := r.staying(ctx)
	if err != nil {
		return err
	}
	r.caught = append(r.caught, caught...)
	lasts += executorLost + beyondLost
	if r.rng.IntN(2) == 0 {
		return killed(ctx, lasts, r.three.Executor)
	}
	return paused(ctx, lasts, r.three.Executor)
}

// staying submits jobs until some of both kinds run at the site of three, and returns those.
func (r *membersRun) staying(ctx context.Context) (caught []string, err error) {
	policies := []kithv1.Job_OnSiteLost{kithv1.Job_ON_SITE_LOST_WAIT, kithv1.Job_ON_SITE_LOST_RERUN}
	u := r.users[0]
	for until := time.Now().Add(caughtWithin); time.Now().Before(until); {
		for _, p := range policies {
			u.add(r.all, u.maker.folders.stayingTask(len(u.all()), p))
		}
		for range 10 {
			if !pause.For(ctx, pollPause) {
				return nil, ctx.Err()
			}
			if caught, err = r.runningThere(ctx, policies); len(caught) > 0 {
				return caught, nil
			}
		}
	}
	return nil, fmt.Errorf("no jobs of both kinds run at site %s within %v: %w", u.site.Name, caughtWithin, err)
}

// runningThere returns the jobs meant to be caught that run at the site of three, none unless there
// is one of each policy.
func (r *membersRun) runningThere(ctx context.Context, policies []kithv1.Job_OnSiteLost) (ids []string, err error) {
	s := r.sites[0]
	jobs, _, err := listJobs(ctx, s, false)
	if err != nil {
		return nil, err
	}
	have := make(map[kithv1.Job_OnSiteLost]bool)
	for _, j := range jobs {
		if strings.HasPrefix(j.GetName(), stayingName) && j.GetStatus().GetState() == kithv1.JobStatus_STATE_RUNNING && j.GetStatus().GetHostSiteId() == s.Name {
			have[j.GetOnSiteLost()] = true
			ids = append(ids, j.GetId())
		}
	}
	if slices.ContainsFunc(policies, func(p kithv1.Job_OnSiteLost) bool { return !have[p] }) {
		return nil, nil
	}
	return ids, nil
}

const stayingName = "staying-"

// stayingTask is a job that runs for longer than a silence.
func (f *folders) stayingTask(n int, policy kithv1.Job_OnSiteLost) *task {
	t := &task{request: fmt.Sprintf("%s%d-%d", stayingName, policy, n), policy: policy, duration: staying}
	t.job = &kithv1.Job{
		Name: t.request, Processors: 1, Walltime: durationpb.New(time.Minute), Copies: 1, OnSiteLost: policy,
		Environment: map[string]string{"CHAOS_LEDGER": f.ledger, "CHAOS_LOCKS": f.locks}, Labels: map[string]string{"request": t.request},
		Script: fmt.Sprintf("#!/bin/sh\n%ssleep %.2f\necho \"done $KITH_JOB_ID\"\necho \"end $KITH_ATTEMPT $KITH_SITE\" >>\"$CHAOS_LEDGER\"\n", sign, staying.Seconds()),
	}
	return t
}

// longerThan returns the windows that are longer than a bound.
func longerThan(bound time.Duration, list []window) (long []window) {
	for _, w := range list {
		if w.to.Sub(w.from) > bound {
			long = append(long, w)
		}
	}
	return long
}

// lostWithNode reports whether a job that waits for its host ran at the machine of a site that was
// silent for longer than the site waits.
func (c *checker) lostWithNode(j *submitted, st *kithv1.JobStatus) bool {
	from, to := life(st)
	return j.policy == kithv1.Job_ON_SITE_LOST_WAIT && st.GetHostSiteId() == c.apart && strings.HasPrefix(st.GetReason(), "node lost") &&
		slices.ContainsFunc(c.silent, func(w window) bool { return w.meets(from, to) })
}

// reached checks that the silences did what they are for: of the jobs that they caught some are lost,
// and some ran again.
func (c *checker) reached(caught []string, silences int) {
	if silences == 0 {
		return
	}
	r, again := c.result, 0
	for _, text := range caught {
		if id, err := job.ParseID(text); err == nil && len(c.ledger.runs(id)) > 1 {
			again++
		}
	}
	if r.Jobs.LostWithNode == 0 || again == 0 {
		c.problem(&r.OtherProblems, "%d silences of the machine that runs the jobs of %s, longer than %v, lost %d jobs and had %d of %d that ran there run again; some of both should be",
			silences, c.apart, executorLost, r.Jobs.LostWithNode, again, len(caught))
	}
}
