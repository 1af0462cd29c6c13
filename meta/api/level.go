package api

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/types/known/durationpb"

	"kith/cluster/wire"
	"kith/internal/job"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
)

// movesOrReruns is what a job of a hierarchy must do when it leaves its level, stoppedTasks what tasks
// of a bag must.
const (
	movesOrReruns = "such a job is moved while it runs: set job.checkpoint, so that it goes on where it was, or job.on_site_lost to RERUN, so that it may begin again"
	stoppedTasks  = "tasks that run are stopped when such a bag goes a level down, and run again: leave job.on_site_lost out, or set it to RERUN"
)

// checkLevel returns what is wrong with the place of a job in a hierarchy.
func checkLevel(f *fieldErrors, j *kithv1.Job) {
	if l := j.GetLevel(); l < 0 || l > job.MaxLevel {
		f.add("job.level", fmt.Sprintf("%d: must be 1 to %d, or 0 for a job of no hierarchy", l, job.MaxLevel))
	}
	checkEstimate(f, j)
	if !ofHierarchy(j) {
		return
	}
	field := "job.level"
	if j.GetWalltimeUnknown() {
		field = "job.walltime_unknown"
	}
	switch lost := j.GetOnSiteLost(); {
	case lost == kithv1.Job_ON_SITE_LOST_RACE:
		f.add("job.on_site_lost", "RACE runs a job at two sites at a time, and a job of a hierarchy goes from level to level: write WAIT or RERUN")
	case j.GetCheckpoint() == nil && lost != kithv1.Job_ON_SITE_LOST_RERUN:
		f.add(field, movesOrReruns)
	}
}

// checkEstimate returns what is wrong with the estimator of a job.
func checkEstimate(f *fieldErrors, j *kithv1.Job) {
	switch e := j.GetEstimate(); {
	case e == "":
	case !ofHierarchy(j):
		f.add("job.estimate", "an estimator is for a job that goes from level to level: set job.walltime_unknown or job.level, or leave it out")
	case len(e) > wire.Estimate:
		f.add("job.estimate", fmt.Sprintf("%d bytes: must be at most %d; put what it does into a script that is an input", len(e), wire.Estimate))
	case strings.TrimSpace(e) == "" || strings.IndexByte(e, 0) >= 0:
		f.add("job.estimate", "must be a command for /bin/sh, without a NUL byte")
	}
}

// EstimateCommand returns what runs the estimator of a job.
func EstimateCommand(j *kithv1.Job) []string { return []string{"/bin/sh", "-c", j.GetEstimate()} }

// ofHierarchy reports whether a submitted job is one of a hierarchy.
func ofHierarchy(j *kithv1.Job) bool { return j.GetLevel() > 0 || j.GetWalltimeUnknown() }

// fillLevel adds where a job is in its hierarchy.
func fillLevel(r *job.Request, j *kithv1.Job) {
	if j.GetWalltimeUnknown() {
		r.Unknown, r.Walltime = true, job.MaxWalltime
	}
	if r.Level = uint8(min(max(0, j.GetLevel()), job.MaxLevel)); r.Unknown && r.Level == 0 {
		r.Level = 1
	}
}

// levelStatus adds where a job is in its hierarchy, and what the sites of its level say of it.
func levelStatus(s *kithv1.JobStatus, v *meta.JobView) {
	j := &v.Record
	if s.Level = int32(j.Level); j.Level == 0 {
		return
	}
	s.WorkDone, s.WorkBound, s.WorkGuess = j.Done(), j.Bound(), float64(j.Guess)
	s.AttemptBound = v.Bound
	for _, l := range v.Levels {
		s.LevelSites = append(s.LevelSites, &kithv1.LevelStanding{
			SiteId: string(l.Site), QueueLimit: durationpb.New(l.Level.Queue), RunLimit: durationpb.New(l.Level.Run),
			Work: l.Level.Work, WorkLimit: l.Level.Limit,
		})
	}
}

// walltimeOf is the walltime of a job, nil if nobody knows it.
func walltimeOf(r *job.Request) *durationpb.Duration {
	if r.Unknown {
		return nil
	}
	return durationpb.New(r.Walltime)
}
