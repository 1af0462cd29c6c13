package api

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"kith/cluster/wire"
	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
)

// defaultExit is the exit code that says "saved, run me again" if the job names none.
const defaultExit = 85

// CheckpointExit returns the exit code that says that.
func CheckpointExit(c *kithv1.Checkpoint) int32 { return cmp.Or(c.GetExitCode(), defaultExit) }

// How a job is asked to save.
const (
	defaultSignal = "USR1"
	defaultGrace  = time.Minute
	mostGrace     = 24 * time.Hour
	mostBefore    = 65535 * time.Second
)

// askSignals are the signals with which a job can be asked to save: those that a program can catch
// and that say nothing of a mistake of its own.
var askSignals = map[string]syscall.Signal{
	"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "TERM": syscall.SIGTERM,
	"CONT": syscall.SIGCONT, "WINCH": syscall.SIGWINCH, "ALRM": syscall.SIGALRM, "VTALRM": syscall.SIGVTALRM,
}

// CheckpointSignal returns the signal that asks a job to save.
func CheckpointSignal(c *kithv1.Checkpoint) syscall.Signal {
	return askSignals[cmp.Or(c.GetSignal(), defaultSignal)]
}

// CheckpointGrace returns how long a job wants to answer.
func CheckpointGrace(c *kithv1.Checkpoint) time.Duration {
	return cmp.Or(c.GetGrace().AsDuration(), defaultGrace)
}

// mostExit is the largest exit code that a program gives by itself: shells have those above
// for commands that they could not run and for signals.
const mostExit = 125

// checkCheckpoint returns what is wrong with how a job saves what it has done.
func checkCheckpoint(f *fieldErrors, j *kithv1.Job) {
	c := j.GetCheckpoint()
	if c == nil {
		return
	}
	if code := c.GetExitCode(); code < 0 || code > mostExit {
		f.add("job.checkpoint.exit_code", fmt.Sprintf("%d: must be 1 to %d, or 0 for %d", code, mostExit, defaultExit))
	}
	if _, known := askSignals[cmp.Or(c.GetSignal(), defaultSignal)]; !known {
		f.add("job.checkpoint.signal", fmt.Sprintf("%q: choose one of %s", c.GetSignal(), strings.Join(slices.Sorted(maps.Keys(askSignals)), ", ")))
	}
	span := func(field string, d *durationpb.Duration, least, most time.Duration) {
		if d == nil {
			return
		}
		if v := d.AsDuration(); d.CheckValid() != nil || v != 0 && v < least || v > most {
			f.add("job.checkpoint."+field, fmt.Sprintf("%v: must be 0 or %v to %v", v, least, most))
		}
	}
	span("grace", c.GetGrace(), time.Millisecond, mostGrace)
	span("every", c.GetEvery(), time.Second, job.MaxWalltime)
	if c.GetEvery().GetNanos() != 0 {
		f.add("job.checkpoint.every", fmt.Sprintf("%v: give whole seconds", c.GetEvery().AsDuration()))
	}
	span("before_walltime", c.GetBeforeWalltime(), time.Second, max(time.Second, min(mostBefore, j.GetWalltime().AsDuration()-time.Millisecond)))
	if c.GetBeforeWalltime().GetNanos() != 0 {
		f.add("job.checkpoint.before_walltime", fmt.Sprintf("%v: give whole seconds", c.GetBeforeWalltime().AsDuration()))
	}
	if n := len(c.GetPaths()); n == 0 || n > wire.CheckpointPaths {
		f.add("job.checkpoint.paths", fmt.Sprintf("%d of them: must be 1 to %d, of the files that the job writes into KITH_CHECKPOINT_DIR", n, wire.CheckpointPaths))
		return
	}
	for i, p := range c.GetPaths() {
		field := fmt.Sprintf("job.checkpoint.paths[%d]", i)
		checkPath(f, field, p)
		if _, err := path.Match(path.Base(p), "x"); err != nil {
			f.add(field, fmt.Sprintf("%q is not a pattern", p))
		}
		if path.Clean(p) != strings.TrimRight(p, "/") {
			f.add(field, fmt.Sprintf("%q: write it as %q", p, path.Clean(p)))
		}
	}
	if j.GetOnSiteLost() == kithv1.Job_ON_SITE_LOST_RACE {
		f.add("job.on_site_lost", "RACE runs a job at two sites at a time, and both would go on from one checkpoint: write WAIT or RERUN, or leave job.checkpoint out")
	}
	for i, in := range j.GetInputs() {
		if strings.HasPrefix(path.Clean(in.GetPath())+"/", CheckpointFolder+"/") {
			f.add(fmt.Sprintf("job.inputs[%d].path", i), fmt.Sprintf("%q is where the job finds its checkpoint", in.GetPath()))
		}
	}
	for i, out := range j.GetOutputs() {
		if strings.HasPrefix(path.Clean(out.GetPath())+"/", CheckpointFolder+"/") {
			f.add(fmt.Sprintf("job.outputs[%d].path", i), fmt.Sprintf("%q is of its checkpoint: write what is to stay elsewhere", out.GetPath()))
		}
	}
}

// causes are why attempts end with their jobs to go on.
var causes = map[job.DemotionCause]kithv1.Demotion_Cause{
	job.OwnAccord: kithv1.Demotion_CAUSE_OWN_ACCORD, job.Evicted: kithv1.Demotion_CAUSE_EVICTED, job.OutOfLevel: kithv1.Demotion_CAUSE_OUT_OF_LEVEL,
	job.Requested: kithv1.Demotion_CAUSE_REQUESTED, job.AtWalltime: kithv1.Demotion_CAUSE_WALLTIME,
	job.HostLost: kithv1.Demotion_CAUSE_HOST_LOST,
}

// fillDemotions adds what became of attempts that ended with the job to go on.
func fillDemotions(s *kithv1.JobStatus, j *store.Job) {
	if v := j.Saved; v != nil {
		s.SavedSequence, s.SavedAttempt, s.SavedTime = v.Sequence, int32(v.Attempt), stamp(v.Time)
	}
	s.CheckpointSequence = j.StartedFrom()
	if len(j.Demotions) == 0 {
		return
	}
	for _, d := range j.Demotions {
		s.Demotions = append(s.Demotions, &kithv1.Demotion{
			Attempt: int32(d.Attempt), SiteId: string(d.Site), StartTime: stamp(d.Start), EndTime: stamp(d.End), CheckpointSequence: d.Sequence, Reason: d.Reason, Level: int32(d.Level),
			Cause: causes[d.Cause],
		})
	}
	s.Used = durationpb.New(j.Used())
}
