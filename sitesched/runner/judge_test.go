package runner

import (
	"testing"

	"kith/internal/job"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
)

// What an end of an attempt is for its job: also if nobody asked it in time, and if none may follow it.
func TestJudge(t *testing.T) {
	t.Parallel()
	const saved = 85
	for _, c := range []struct {
		name   string
		ending meta.Ending
		ask    uint16
		kind   job.OutcomeKind
		code   int32
		want   job.OutcomeKind
		cause  job.DemotionCause
	}{
		{"limit of its level", meta.Ending{GoesOn: true}, 0, job.Timeout, 0, job.Demoted, job.OutOfLevel},
		{"its own limit", meta.Ending{}, 0, job.Timeout, 0, job.Timeout, job.OwnAccord},
		{"its own limit, before which it was to be asked", meta.Ending{}, 60, job.Timeout, 0, job.Demoted, job.AtWalltime},
		{"the same, and it is the last attempt", meta.Ending{Last: true}, 60, job.Timeout, 0, job.Timeout, job.OwnAccord},
		{"saved", meta.Ending{}, 0, job.Failure, saved, job.Demoted, job.OwnAccord},
		{"saved in the last attempt", meta.Ending{Last: true}, 0, job.Failure, saved, job.Failure, job.OwnAccord},
		{"success within the limit of its level", meta.Ending{GoesOn: true}, 0, job.Success, 0, job.Success, job.OwnAccord},
		{"cancelled there", meta.Ending{GoesOn: true}, 0, job.Cancel, 0, job.Cancel, job.OwnAccord},
	} {
		// The request counts: it is what is left of the job's time, and may be too short to ask.
		p := &payload{job: &kithv1.Job{Checkpoint: &kithv1.Checkpoint{}}}
		r := &run{ending: c.ending, request: job.Request{Checkpoint: true, AskSeconds: c.ask}, payload: p}
		o := job.Outcome{Kind: c.kind, ExitCode: c.code, Start: 1, End: 2}
		if r.judge(&o); o.Kind != c.want || o.Cause != c.cause {
			t.Errorf("%s: it ends as %d with %v, want %d with %v", c.name, o.Kind, o.Cause, c.want, c.cause)
		}
	}
}
