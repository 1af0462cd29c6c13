package api

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"google.golang.org/protobuf/types/known/durationpb"

	"kith/cluster/wire"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
)

// defaultExit is the exit code that says "saved, run me again" if the job names none.
const defaultExit = 85

// CheckpointExit returns the exit code that says that.
func CheckpointExit(c *kithv1.Checkpoint) int32 { return cmp.Or(c.GetExitCode(), defaultExit) }

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

// fillDemotions adds what became of attempts that ended with the job to go on.
func fillDemotions(s *kithv1.JobStatus, j *store.Job) {
	if len(j.Demotions) == 0 {
		return
	}
	for _, d := range j.Demotions {
		s.Demotions = append(s.Demotions, &kithv1.Demotion{
			Attempt: int32(d.Attempt), SiteId: string(d.Site), StartTime: stamp(d.Start), EndTime: stamp(d.End), CheckpointSequence: d.Sequence, Reason: d.Reason,
		})
	}
	s.CheckpointSequence, s.Used = j.Resume().Sequence, durationpb.New(j.Used())
}
