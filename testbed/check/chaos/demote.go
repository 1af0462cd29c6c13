package chaos

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kith/internal/pause"
	kithv1 "kith/proto/gen/kith/v1"
)

// askPause is how long a job runs at most until its user asks it to go on elsewhere.
const askPause = 3 * time.Second

// demote has a job go on elsewhere as often as its user wants that, while it runs.
func (u *user) demote(ctx context.Context, j *submitted) {
	for asked := 0; asked < j.counts.asks; {
		now, err := getJob(ctx, u.site, j.id)
		if ctx.Err() != nil || status.Code(err) == codes.NotFound || err == nil && ended(now) {
			return
		}
		if st := now.GetStatus(); err != nil || st.GetState() != kithv1.JobStatus_STATE_RUNNING {
			pause.For(ctx, pollPause)
			continue
		} else if !pause.For(ctx, time.Duration(j.pick(asked)%uint64(askPause))) || !u.askToLeave(ctx, j.id) {
			continue
		} else if u.left(ctx, j.id, len(st.GetDemotions())) {
			asked++
		}
	}
}

// pick draws from the seed of the run when a job is asked.
func (t *task) pick(n int) uint64 {
	return uint64(t.counts.to+7*n+len(t.request)) * 0x9E3779B97F4A7C15 >> 1
}

// askToLeave asks a job; it may have ended, or not run any more.
func (u *user) askToLeave(ctx context.Context, id string) bool {
	err := retry(ctx, func(ctx context.Context) error {
		_, err := u.site.Jobs.CheckpointJob(ctx, &kithv1.CheckpointJobRequest{JobId: id})
		return err
	})
	if err != nil && ctx.Err() == nil && status.Code(err) != codes.FailedPrecondition {
		u.logs.problem("job %s, asked to go on elsewhere: %v", id, err)
	}
	return err == nil
}

// left waits until a job has ended, or an attempt has ended with it to go on.
func (u *user) left(ctx context.Context, id string, before int) bool {
	for pause.For(ctx, pollPause) {
		if now, err := getJob(ctx, u.site, id); err == nil && (ended(now) || len(now.GetStatus().GetDemotions()) > before) {
			return true
		}
	}
	return false
}
