package api

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"kith/cluster/wire"
	"kith/internal/identity"
	"kith/internal/job"
	"kith/meta"
	"kith/meta/transfer"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
)

// stamp converts an instant; zero is no instant.
func stamp(t job.Time) *timestamppb.Timestamp {
	if t == 0 {
		return nil
	}
	return timestamppb.New(t.Wall())
}

var states = map[job.State]kithv1.JobStatus_State{
	job.Pending: kithv1.JobStatus_STATE_PENDING, job.OnHold: kithv1.JobStatus_STATE_HELD,
	job.Queued: kithv1.JobStatus_STATE_QUEUED, job.Claimed: kithv1.JobStatus_STATE_CLAIMED,
	job.Running: kithv1.JobStatus_STATE_RUNNING, job.Cancelling: kithv1.JobStatus_STATE_CANCELLING,
	job.Returning: kithv1.JobStatus_STATE_RETURNING, job.Completed: kithv1.JobStatus_STATE_COMPLETED,
	job.Failed: kithv1.JobStatus_STATE_FAILED, job.TimedOut: kithv1.JobStatus_STATE_TIMEOUT,
	job.Cancelled: kithv1.JobStatus_STATE_CANCELLED, job.Lost: kithv1.JobStatus_STATE_LOST,
	job.Blocked: kithv1.JobStatus_STATE_BLOCKED,
}

func stateMessage(s job.State) kithv1.JobStatus_State { return states[s] }

var onSiteLost = map[job.OnSiteLost]kithv1.Job_OnSiteLost{
	job.Wait: kithv1.Job_ON_SITE_LOST_WAIT, job.Rerun: kithv1.Job_ON_SITE_LOST_RERUN, job.Race: kithv1.Job_ON_SITE_LOST_RACE,
}

// scriptOf is a hash of what a job runs: its script or command with the arguments. It is never zero.
func scriptOf(j *kithv1.Job) uint64 {
	h := fnv.New64a()
	add := func(text string) {
		h.Write([]byte(text))
		h.Write([]byte{0})
	}
	add(j.GetScript())
	for _, words := range [][]string{j.GetCommand(), j.GetArguments()} {
		for _, word := range words {
			add(word)
		}
	}
	return max(h.Sum64(), 1)
}

// requestOf takes from a checked job what scheduling reads.
func requestOf(j *kithv1.Job, user string) job.Request {
	r := job.Request{
		Name: j.GetName(), User: user, Processors: j.GetProcessors(), Copies: j.GetCopies(),
		MemoryBytes: j.GetMemoryBytes(), Walltime: j.GetWalltime().AsDuration(), Script: scriptOf(j),
	}
	if strings.HasPrefix(j.GetWorkingDirectory(), "/") {
		r.Directory = j.GetWorkingDirectory()
	}
	switch j.GetOnSiteLost() {
	case kithv1.Job_ON_SITE_LOST_RERUN:
		r.OnSiteLost = job.Rerun
	case kithv1.Job_ON_SITE_LOST_RACE:
		r.OnSiteLost = job.Race
	}
	r.Checkpoint, r.AskSeconds = j.GetCheckpoint() != nil, uint16(min(j.GetCheckpoint().GetBeforeWalltime().GetSeconds(), 65535))
	r.Estimate = j.GetEstimate() != ""
	r.SaveSeconds = uint32(min(max(0, j.GetCheckpoint().GetEvery().GetSeconds()), math.MaxUint32))
	fillLevel(&r, j)
	return r
}

// briefJob is a job without what only its payload knows.
func briefJob(v *meta.JobView) *kithv1.Job {
	r := &v.Record.Request
	after, singleton := afterMessages(v.After)
	return &kithv1.Job{
		Id: v.Record.ID.String(), Name: r.Name, Processors: r.Processors, MemoryBytes: r.MemoryBytes,
		Walltime: walltimeOf(r), WalltimeUnknown: r.Unknown, Level: int32(r.Level), Copies: v.WantedCopies, OnSiteLost: onSiteLost[r.OnSiteLost], Status: briefStatus(v),
		After: after, Singleton: singleton,
	}
}

// What lists and watches leave out. ListJobs says neither what is large nor what
// takes more than a job's record and payload; WatchJobs reads no payload.
var (
	leftOutOfList = []string{
		"script", "arguments", "environment", "inputs", "status.outcome.outputs", "status.outcome.missing_outputs", "status.decisions",
		"status.rank", "status.copies", "status.claim_events", "status.acts", "status.forecast", "status.forecast_pending",
		"status.demotions", "status.checkpoint_sequence", "status.used",
		"status.saved_sequence", "status.saved_attempt", "status.saved_time", "status.save_trouble",
		"status.level", "status.work_done", "status.work_bound", "status.level_sites",
	}
	leftOutOfWatch = []string{
		"command", "script", "arguments", "environment", "working_directory", "tasks", "inputs", "outputs", "labels", "stdout_path", "stderr_path",
		"hold", "require_outputs", "checkpoint", "estimate", "status.outcome.outputs", "status.outcome.missing_outputs", "status.decisions", "status.rank",
		"status.estimated_start_time", "status.forecast", "status.forecast_pending",
		"status.demotions", "status.checkpoint_sequence", "status.used",
		"status.saved_sequence", "status.saved_attempt", "status.saved_time", "status.save_trouble",
		"status.level", "status.work_done", "status.work_bound", "status.level_sites",
	}
	leftOutOfPresent = append(slices.Clone(leftOutOfWatch), "status.copies", "status.claim_events", "status.acts")
)

// listedJob is a job as ListJobs shows it.
func listedJob(v *meta.JobView, p *kithv1.Payload, starts map[job.AttemptID]job.Time) *kithv1.Job {
	j := briefJob(v)
	j.Status.EstimatedStartTime = stamp(starts[v.Record.AttemptID()])
	fillFromPayload(j, p)
	leaveOut(j)
	j.LeftOut = leftOutOfList
	return j
}

// leaveOut takes out of what was submitted what lists leave out.
func leaveOut(j *kithv1.Job) { j.Script, j.Arguments, j.Environment, j.Inputs = "", nil, nil, nil }

// fillFromPayload adds what was submitted, without the contents of files.
func fillFromPayload(j *kithv1.Job, p *kithv1.Payload) {
	from := p.GetJob()
	j.Command, j.Arguments, j.Environment = from.GetCommand(), from.GetArguments(), from.GetEnvironment()
	j.WorkingDirectory, j.Tasks, j.Labels = from.GetWorkingDirectory(), from.GetTasks(), from.GetLabels()
	j.Outputs = from.GetOutputs()
	j.StdoutPath, j.StderrPath, j.Hold = from.GetStdoutPath(), from.GetStderrPath(), from.GetHold()
	j.RequireOutputs, j.Checkpoint, j.Estimate = from.GetRequireOutputs(), from.GetCheckpoint(), from.GetEstimate()
	for _, f := range p.GetInputs().GetFiles() {
		if f.GetPath() == ScriptPath {
			j.Script = string(f.GetInline())
			continue
		}
		j.Inputs = append(j.Inputs, &kithv1.InputFile{Path: f.GetPath(), Executable: f.GetExecutable()})
	}
}

func briefStatus(v *meta.JobView) *kithv1.JobStatus {
	rec := &v.Record
	s := &kithv1.JobStatus{
		State: stateMessage(rec.State), Reason: explain(v), OriginSiteId: string(rec.ID.Origin), User: clip(rec.Request.User), Version: int64(rec.Version),
		SubmitTime: stamp(rec.Submitted), StartTime: stamp(rec.Started), Attempt: int32(rec.Attempt), HostSiteId: string(rec.Holder),
		HostUnreachableSince: stamp(v.HostAway),
	}
	if o := rec.Outcome; o != nil {
		s.EndTime = stamp(o.End)
		s.Outcome = outcomeMessage(o)
	} else if rec.State.Terminal() {
		s.EndTime = stamp(rec.Closed)
	}
	return s
}

func outcomeMessage(o *job.Outcome) *kithv1.Outcome {
	return &kithv1.Outcome{
		ExitCode: o.ExitCode, Signal: o.Signal, Reason: o.Reason, CpuTime: durationpb.New(o.CPUTime), MaxRssBytes: o.MaxRSSBytes,
		OutputLost: o.FilesLost,
	}
}

// fillOutputs lists the files that came back, and what was declared and did not.
func fillOutputs(m *kithv1.Outcome, declared []*kithv1.OutputFile, files []byte) {
	set, err := transfer.Decode(files)
	if err != nil {
		m.Reason = strings.TrimPrefix(m.Reason+"; its output cannot be read", "; ")
		return
	}
	for _, f := range set.Files {
		m.Outputs = append(m.Outputs, &kithv1.OutputInfo{Path: f.Path, SizeBytes: f.Size})
	}
	paths := make([]string, 0, len(declared))
	for _, o := range declared {
		paths = append(paths, o.GetPath())
	}
	m.MissingOutputs = transfer.Missing(paths, set)
}

// explain says in a sentence why a job is where it is.
func explain(v *meta.JobView) string {
	rec := &v.Record
	if v.HostAway != 0 {
		return hostAway(rec)
	}
	switch {
	case v.FilesWait != "" && rec.State == job.Returning:
		return fmt.Sprintf("output is kept at site %s until there is room here: %s; \"kith fetch\" reads it there", rec.Holder, clip(v.FilesWait))
	case v.FilesWait != "":
		return "it is over, and its output waits for room: " + clip(v.FilesWait)
	case v.Over:
		return fmt.Sprintf("its processes have ended; site %s collects its output, and the result follows", rec.Holder)
	}
	switch rec.State {
	case job.Pending:
		return "no site can take it now" + blockers(v.Decision)
	case job.OnHold:
		return "held" + byWhom(rec, store.ActHold)
	case job.Blocked:
		return waitsFor(v.After)
	case job.Queued:
		return "waits at " + strings.Join(waitsAt(v), ", ")
	case job.Claimed:
		return fmt.Sprintf("site %s prepares the start", rec.Holder)
	case job.Cancelling:
		return fmt.Sprintf("cancelled%s; site %s has yet to confirm the end", byWhom(rec, store.ActCancel), rec.Holder)
	case job.Cancelled:
		return "cancelled" + byWhom(rec, store.ActCancel)
	case job.Returning:
		return fmt.Sprintf("output is on its way from site %s", rec.Holder)
	}
	if rec.Outcome != nil {
		return rec.Outcome.Reason
	}
	return ""
}

// hostAway says what is not known of a job whose host is out of reach.
func hostAway(rec *store.Job) string {
	switch rec.State {
	case job.Running:
		return fmt.Sprintf("site %s cannot be reached; the job may still run there or have ended since", rec.Holder)
	case job.Cancelling:
		return fmt.Sprintf("site %s cannot be reached; it has yet to confirm the end", rec.Holder)
	case job.Returning:
		return fmt.Sprintf("site %s cannot be reached; it has the output", rec.Holder)
	}
	return fmt.Sprintf("site %s cannot be reached; the job may have started there", rec.Holder)
}

// actorOf names who did something to a job or a bag, "" if a rule of the site did it: it
// gives a reason and names nobody.
func actorOf(actor identity.Actor, reason string) string {
	if actor == "" && reason != "" {
		return ""
	}
	return actor.String()
}

// byWhom says who did something to a job, and why if that is known.
func byWhom(rec *store.Job, kind store.ActKind) string {
	a, ok := rec.LastAct(kind)
	switch o := rec.Outcome; {
	case !ok && o != nil && o.Bound > 0 && o.Start == 0: // by its estimate, at the last level
		return ": " + o.Reason
	case ok && a.Actor == "" && a.Reason != "": // by a rule of the site
		return ": " + a.Reason
	case !ok || a.Actor == "":
		return " by the user"
	case a.Reason == "":
		return " by " + a.Actor.String()
	}
	return fmt.Sprintf(" by %s: %s", a.Actor, a.Reason)
}

// waitsAt names the sites of a queued job's copies; a brief view knows no more
// of them.
func waitsAt(v *meta.JobView) []string {
	var sites []string
	if v.Copies == nil {
		for _, s := range v.Record.Sites {
			sites = append(sites, string(s))
		}
		return sites
	}
	for _, c := range v.Copies {
		name := string(c.Site)
		if c.State == meta.CopyPlacing {
			name += " (not confirmed)"
		}
		if c.Behind {
			name += " (no guaranteed start yet: more jobs wait ahead of it than scheduler.guarantee_depth)"
		}
		sites = append(sites, name)
	}
	return sites
}

func blockers(d *store.Decision) string {
	if d == nil || len(d.Sites) == 0 {
		return ""
	}
	parts := make([]string, 0, 4)
	for _, site := range d.Sites {
		if len(parts) == 4 {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, fmt.Sprintf("%s: %s", site.Site, site.Reason))
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// fullStatus adds decisions, copies, claim events and acts.
func fullStatus(s *kithv1.JobStatus, v *meta.JobView, d *store.Decision) {
	if v.Decision != nil {
		d = v.Decision
	}
	if d != nil {
		s.Rank = meta.Rank(d.Rank).String()
		for i := range d.Sites {
			s.Decisions = append(s.Decisions, decisionMessage(&d.Sites[i]))
		}
	}
	fillDemotions(s, &v.Record)
	s.SaveTrouble = v.SaveTrouble
	levelStatus(s, v)
	for _, c := range v.Copies {
		s.Copies = append(s.Copies, &kithv1.CopyStatus{SiteId: string(c.Site), State: kithv1.CopyStatus_State(c.State)})
	}
	for _, e := range v.Record.Events {
		s.ClaimEvents = append(s.ClaimEvents, &kithv1.ClaimEvent{
			Time: stamp(e.Time), Attempt: int32(e.Attempt), Kind: kithv1.ClaimEvent_Kind(e.Kind), SiteId: string(e.Site), Detail: e.Reason.String(),
		})
	}
	s.Acts = append(s.Acts, &kithv1.JobAct{
		Time: stamp(v.Record.Submitted), Kind: kithv1.JobAct_KIND_SUBMIT, Actor: v.Record.Submitter.String(),
	})
	for _, a := range v.Record.Acts {
		s.Acts = append(s.Acts, &kithv1.JobAct{
			Time: stamp(a.Time), Kind: kithv1.JobAct_Kind(a.Kind), Actor: actorOf(a.Actor, a.Reason), Reason: a.Reason, SiteId: string(a.Site),
		})
	}
}

func decisionMessage(v *store.SiteDecision) *kithv1.SiteDecision {
	m := &kithv1.SiteDecision{
		SiteId: string(v.Site), Chosen: v.Chosen, Reason: v.Reason.String(), Score: v.Score, Weight: v.Weight,
		LoadAge: durationpb.New(v.Age),
	}
	if v.Reason != job.NoReason {
		m.Detail = v.Reason.Sentence()
	}
	return m
}

// clip cuts a text that a version without bounds may have taken in to at most
// maxShortText bytes.
func clip(text string) string { return job.ClipText(text, maxShortText) }

func hostedMessage(c *meta.HostedCopy) *kithv1.HostedCopy {
	return &kithv1.HostedCopy{
		JobId: c.Attempt.Job.String(), Attempt: int32(c.Attempt.Number), Name: clip(c.Request.Name), User: clip(c.Request.User),
		Processors: c.Request.Processors, Walltime: walltimeOf(&c.Request), State: c.State,
	}
}

func siteMessage(v *meta.SiteView, now job.Time, address string, t Trouble) *kithv1.Site {
	m := &kithv1.Site{
		Id: string(v.Site), Reachability: kithv1.Site_REACHABILITY_UNREACHABLE, Address: v.Address,
		Processors: v.Processors, MemoryBytes: v.MemoryBytes, FreeProcessors: v.Load.Free,
		QueuedCopies: int64(v.Load.Queued), RunningAttempts: int64(v.Load.Running), LoadWorkSeconds: v.Load.Work,
		LoadProcessorsRatio: v.Load.Procs, Policy: v.Policy, Draining: v.Draining, LoadStale: v.Stale, Version: v.Version,
		Speed: v.Speed, NameConflict: t.Clash, LoadRefused: t.Load, NotStarting: v.NotStarting, StartTrouble: v.StartTrouble,
		OwnerLoads: wire.OwnerMessage(v.Owner), Level: wire.LevelMessage(v.Level),
	}
	if v.Known {
		m.LoadTime = stamp(v.Time)
		m.LoadAge = durationpb.New(max(0, now.Sub(v.SeenAt)).Round(time.Millisecond))
	}
	if v.Draining || v.Drain.Changed != 0 {
		m.DrainReason, m.DrainChangedTime = v.Drain.Reason, stamp(v.Drain.Changed)
		if v.Self {
			m.DrainActor = v.Drain.Actor.String()
		}
	}
	if address != "" {
		m.Address = address
	}
	switch {
	case !v.Self && !v.Connected:
		m.ConnectionError, m.ConnectionErrorSince = t.Why, stamp(t.Since)
	case v.Self:
		m.Reachability = kithv1.Site_REACHABILITY_SELF
	case v.Connected:
		m.Reachability = kithv1.Site_REACHABILITY_CONNECTED
	}
	return m
}

func countersMessage(c meta.Counters, d *Description) *kithv1.SiteCounters {
	return &kithv1.SiteCounters{
		JobsSubmitted: c.JobsSubmitted, JobsClosed: c.JobsClosed, CopiesQueued: c.CopiesQueued, CopiesRefused: c.CopiesRefused,
		AttemptsStarted: c.AttemptsStarted, AttemptsStartedRemote: c.AttemptsStartedRemote, ClaimsGranted: c.ClaimsGranted,
		ClaimsDenied: c.ClaimsDenied, ClaimsTimedOut: c.ClaimsTimedOut, ClaimMessagesLogical: c.ClaimMessagesLogical,
		ClaimMessagesWire: c.ClaimMessagesWire, Withdrawals: c.Withdrawals, WaitSeconds: c.WaitSeconds,
		FileBytesSent: d.FileBytesSent, FileBytesReceived: d.FileBytesReceived,
	}
}
