package api

import (
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/tasks"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
)

var bagStates = map[job.BagState]kithv1.BagStatus_State{
	job.BagOpen: kithv1.BagStatus_STATE_OPEN, job.BagOnHold: kithv1.BagStatus_STATE_HELD, job.BagCancelling: kithv1.BagStatus_STATE_CANCELLING,
	job.BagReturning: kithv1.BagStatus_STATE_RETURNING, job.BagCompleted: kithv1.BagStatus_STATE_COMPLETED,
	job.BagFailed: kithv1.BagStatus_STATE_FAILED, job.BagCancelled: kithv1.BagStatus_STATE_CANCELLED,
	job.BagBlocked: kithv1.BagStatus_STATE_BLOCKED,
}

func bagState(s job.BagState) kithv1.BagStatus_State { return bagStates[s] }

// What answers leave out of a bag. No answer has its rows.
var (
	leftOutOfBag = []string{"values.rows", "table.data", "table.upload_id", "job.inputs.data"}
	// Lists and watches read no payload; watches say what has come of the bag.
	leftOutOfBagList = []string{
		"job.command", "job.script", "job.arguments", "job.environment", "job.working_directory", "job.tasks", "job.inputs", "job.outputs", "job.labels",
		"job.stdout_path", "job.stderr_path", "job.hold", "job.require_outputs", "indices", "values", "matrix", "table", "policies",
		"status.parameter_names", "status.failures", "status.sites", "status.acts",
	}
	leftOutOfBagWatch = []string{
		"job.command", "job.script", "job.arguments", "job.environment", "job.working_directory", "job.tasks", "job.inputs", "job.outputs", "job.labels",
		"job.stdout_path", "job.stderr_path", "job.hold", "job.require_outputs", "indices", "values", "matrix", "table", "status.parameter_names",
	}
)

// briefBag is a bag as lists show it.
func briefBag(v *meta.BagView) *kithv1.Bag {
	rec := &v.Record
	r := &rec.Request
	after, singleton := afterMessages(v.After)
	b := &kithv1.Bag{
		After: after, Singleton: singleton,
		Id: rec.ID.String(), MaxRunning: int32(min(rec.MaxRunning, math.MaxInt32)), Retries: int32(rec.Retries), Priority: rec.Priority,
		BudgetProcessorSeconds: int64(rec.Budget), MaxReplicas: int32(rec.MaxReplicas), TailAt: int32(min(rec.TailAt, math.MaxInt32)),
		Job: &kithv1.Job{
			Name: clip(r.Name), Processors: r.Processors, MemoryBytes: r.MemoryBytes, Walltime: walltimeOf(r), WalltimeUnknown: r.Unknown, Level: int32(r.Level),
			Copies: r.Copies, OnSiteLost: onSiteLost[r.OnSiteLost],
		},
		Status: &kithv1.BagStatus{
			State: bagState(rec.State), Reason: explainBag(v), OriginSiteId: string(rec.ID.Origin), User: clip(r.User), SubmitTime: stamp(rec.Submitted),
			Version: int64(rec.Version), RunCount: int64(rec.Sums.Runs), WastedRunCount: int64(rec.Sums.Wasted), MissedDeadlineCount: int64(v.Missed),
			ReplicaCount: int64(rec.Sums.Replicas), WastedTime: secondsOf(rec.Sums.WastedTime),
			RunTime: secondsOf(rec.Sums.RunTime), CpuTime: secondsOf(rec.Sums.CPUTime), UsedProcessorSeconds: rec.Used(),
			Tasks: &kithv1.TaskCounts{
				Total: int64(rec.Tasks()), Waiting: int64(v.Waiting), AtSite: int64(v.AtSites), Stopping: int64(v.Stopping),
				Completed: int64(v.Done), Failed: int64(v.Failed), Cancelled: int64(v.Cancelled),
			},
		},
	}
	b.Status.Level = bagLevel(v)
	if rec.TailSince != 0 {
		b.Status.TailTime = stamp(rec.TailSince)
	}
	if rec.State.Terminal() {
		b.Status.EndTime = stamp(rec.Closed)
	}
	return b
}

// secondsOf converts a sum of seconds, which may be beyond what a duration can say.
func secondsOf(s float64) *durationpb.Duration {
	return durationpb.New(time.Duration(min(s, math.MaxInt64/1e9/2) * 1e9))
}

// fullBag is a bag with what came of it, as far as its record tells.
func fullBag(v *meta.BagView) *kithv1.Bag {
	b := briefBag(v)
	s, rec := b.Status, &v.Record
	b.Policies = policiesMessage(&rec.Policies)
	for _, k := range rec.Sums.Failures {
		m := &kithv1.TaskFailures{Ending: kithv1.Task_Ending(k.Kind), ExitCode: k.ExitCode, Signal: k.Signal, Count: int64(k.Count), ErrorLine: k.ErrorLine}
		for _, task := range k.Tasks {
			m.Indices = append(m.Indices, int32(rec.Indices.Index(task)))
		}
		s.Failures = append(s.Failures, m)
	}
	at := make(map[job.SiteID]int64)
	for _, site := range v.Sites {
		at[site.Site] = int64(site.Tasks)
	}
	for _, site := range rec.Sums.Sites {
		s.Sites = append(s.Sites, &kithv1.BagSite{
			SiteId: string(site.Site), AtSite: at[site.Site], Completed: int64(site.Done), Failed: int64(site.Failed), Lost: int64(site.Lost),
			RunTime: secondsOf(site.RunTime),
		})
		delete(at, site.Site)
	}
	for _, site := range v.Sites {
		if n, left := at[site.Site]; left && len(s.Sites) < store.MaxSiteSums {
			s.Sites = append(s.Sites, &kithv1.BagSite{SiteId: string(site.Site), AtSite: n})
		}
	}
	s.Acts = append(s.Acts, &kithv1.JobAct{Time: stamp(rec.Submitted), Kind: kithv1.JobAct_KIND_SUBMIT, Actor: rec.Submitter.String()})
	for _, a := range rec.Acts {
		s.Acts = append(s.Acts, &kithv1.JobAct{
			Time: stamp(a.Time), Kind: kithv1.JobAct_Kind(a.Kind), Actor: actorOf(a.Actor, a.Reason), Reason: a.Reason, TaskCount: int64(a.Tasks),
		})
	}
	return b
}

// fillFromBagPayload adds what was submitted, without rows and the contents of files.
func fillFromBagPayload(b *kithv1.Bag, p *kithv1.BagPayload) error {
	fillFromPayload(b.Job, &kithv1.Payload{Job: p.GetTemplate(), Inputs: p.GetInputs()})
	b.Indices = p.GetIndices()
	switch given := p.GetParameters().(type) {
	case *kithv1.BagPayload_Matrix:
		b.Parameters = &kithv1.Bag_Matrix{Matrix: given.Matrix}
	case *kithv1.BagPayload_Values:
		b.Parameters = &kithv1.Bag_Values{Values: &kithv1.ParameterRows{Names: given.Values.GetNames()}}
	case *kithv1.BagPayload_Table:
		b.Parameters = &kithv1.Bag_Table{Table: &kithv1.TaskTable{Format: kithv1.TaskTable_Format(given.Table.GetFormat())}}
	}
	names, err := tasks.NamesOf(p)
	b.Status.ParameterNames = names
	return err
}

// processorHours is a budget in words.
func processorHours(seconds uint64) string {
	return fmt.Sprintf("%.4g processor-hours", float64(seconds)/3600)
}

// explainBag says in a sentence why a bag is where it is.
func explainBag(v *meta.BagView) string {
	rec := &v.Record
	switch rec.State {
	case job.BagOnHold:
		return "held" + bagActText(rec, store.ActHold)
	case job.BagBlocked:
		return waitsFor(v.After)
	case job.BagCancelling:
		return fmt.Sprintf("cancelled%s; sites have yet to confirm the end of %d tasks", bagActText(rec, store.ActCancel), v.AtSites)
	case job.BagCancelled:
		return "cancelled" + bagActText(rec, store.ActCancel)
	case job.BagReturning:
		return "all tasks have ended; output is on its way"
	case job.BagFailed:
		return fmt.Sprintf("%d of %d tasks failed", v.Failed, rec.Tasks())
	case job.BagOpen:
		switch {
		case v.Waiting > 0 && rec.Spent():
			return fmt.Sprintf("its budget of %s is used up; no task is given to a site before it is raised", processorHours(rec.Budget))
		case v.Waiting > 0 && rec.Affords() == 0:
			return fmt.Sprintf("its tasks at sites may use up what is left of its budget of %s", processorHours(rec.Budget))
		case v.Waiting == 0 || v.AtSites > 0:
		case v.Done+v.Failed > 0:
			return "no site has tasks of it now"
		default:
			return "no site has got tasks of it yet"
		}
	}
	return ""
}

// bagActText says who did something to a bag last, and why if that is known.
func bagActText(rec *store.Bag, kind store.ActKind) string {
	return byWhom(&store.Job{Acts: rec.Acts}, kind)
}
