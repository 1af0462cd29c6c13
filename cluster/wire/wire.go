// Package wire converts what sites tell each other to the messages of kith.v1
// and back: names of jobs and attempts, what a copy asks for, how an attempt
// ended, how loaded a site is. The streams between sites (meta/peer), the pieces of
// files and gossip all use it.
//
// What a site keeps on disk has messages of its own in kith.state.v1, converted by
// store/codec: the one can change without the other.
package wire

import (
	"fmt"
	"math"
	"time"

	"kith/cluster"
	"kith/internal/forecast"
	"kith/internal/harvest"
	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

// JobName converts an id.
func JobName(id job.ID) *kithv1.JobName {
	return &kithv1.JobName{Origin: string(id.Origin), Generation: id.Generation, Seq: id.Seq}
}

// JobID converts back. A name that is no job's gives an error wrapping [job.ErrBadID].
func JobID(m *kithv1.JobName) (job.ID, error) {
	site, err := job.ParseSiteID(m.GetOrigin())
	if err != nil {
		return job.ID{}, err
	}
	return job.ID{Origin: site, Generation: m.GetGeneration(), Seq: m.GetSeq()}, nil
}

// AttemptName converts an attempt.
func AttemptName(a job.AttemptID) *kithv1.AttemptName {
	return &kithv1.AttemptName{Job: JobName(a.Job), Number: a.Number}
}

// AttemptID converts back.
func AttemptID(m *kithv1.AttemptName) (job.AttemptID, error) {
	id, err := JobID(m.GetJob())
	if err != nil {
		return job.AttemptID{}, err
	}
	if m.GetNumber() == 0 {
		return job.AttemptID{}, job.ErrBadID
	}
	return job.AttemptID{Job: id, Number: m.GetNumber()}, nil
}

// RequestMessage converts a request.
func RequestMessage(r *job.Request) *kithv1.CopyRequest {
	return &kithv1.CopyRequest{
		Name: r.Name, User: r.User, Processors: r.Processors, Copies: r.Copies, MemoryBytes: r.MemoryBytes,
		WalltimeNs: int64(r.Walltime), Directory: r.Directory, OnSiteLost: uint32(r.OnSiteLost), Runs: runNumbers(&r.Runs),
		Checkpoint: r.Checkpoint, AskSeconds: uint32(r.AskSeconds), SaveSeconds: r.SaveSeconds, Estimate: r.Estimate,
		Level: uint32(r.Level), Unknown: r.Unknown,
	}
}

// runNumbers converts the quantiles of a run time, nil if they say nothing.
func runNumbers(q *[9]uint16) []uint32 {
	if *q == ([9]uint16{}) {
		return nil
	}
	numbers := make([]uint32, len(q))
	for i, x := range q {
		numbers[i] = uint32(x)
	}
	return numbers
}

// runs converts back. What is no such list becomes one that falls, which
// [job.Request.Validate] refuses.
func runs(numbers []uint32) [9]uint16 {
	q, err := forecast.ParseRuns(numbers)
	if err != nil {
		return [9]uint16{math.MaxUint16}
	}
	return q
}

// Request converts back. It checks nothing: see [job.Request.Validate].
func Request(m *kithv1.CopyRequest) job.Request {
	return job.Request{
		Name: m.GetName(), User: m.GetUser(), Processors: m.GetProcessors(), Copies: m.GetCopies(),
		MemoryBytes: m.GetMemoryBytes(), Walltime: time.Duration(m.GetWalltimeNs()), Directory: m.GetDirectory(),
		OnSiteLost: job.OnSiteLost(min(m.GetOnSiteLost(), 255)), Runs: runs(m.GetRuns()),
		Checkpoint: m.GetCheckpoint(), Estimate: m.GetEstimate(), AskSeconds: uint16(min(m.GetAskSeconds(), 65535)), SaveSeconds: m.GetSaveSeconds(),
		Level: uint8(min(m.GetLevel(), 255)), Unknown: m.GetUnknown(),
	}
}

// ProgressMessage converts what a job of a hierarchy has done before; nothing is nil.
func ProgressMessage(p job.Progress) *kithv1.Progress {
	if p == (job.Progress{}) {
		return nil
	}
	return &kithv1.Progress{UsedNs: int64(p.Used), Done: p.Done, Bound: p.Bound, Last: p.Last}
}

// Progress converts back. It checks nothing: see [job.Progress.Validate].
func Progress(m *kithv1.Progress) job.Progress {
	return job.Progress{Used: time.Duration(m.GetUsedNs()), Done: m.GetDone(), Bound: m.GetBound(), Last: m.GetLast()}
}

// OutcomeMessage converts an outcome; nil stays nil.
func OutcomeMessage(o *job.Outcome) *kithv1.AttemptOutcome {
	if o == nil {
		return nil
	}
	return &kithv1.AttemptOutcome{
		Kind: uint32(o.Kind), ExitCode: o.ExitCode, Signal: o.Signal, Reason: o.Reason,
		StartTimeNs: int64(o.Start), EndTimeNs: int64(o.End), CpuTimeNs: int64(o.CPUTime),
		MaxRssBytes: o.MaxRSSBytes, Files: o.Files, FilesRemain: o.FilesRemain, FilesLost: o.FilesLost,
		CheckpointSequence: o.Checkpoint, DemotionCause: uint32(o.Cause), Bound: o.Bound,
	}
}

// Outcome converts back; nil stays nil, and so becomes one of an unknown kind.
func Outcome(m *kithv1.AttemptOutcome) *job.Outcome {
	kind := job.OutcomeKind(min(m.GetKind(), 255))
	if m == nil || !kind.Known() {
		return nil
	}
	return &job.Outcome{
		Kind: kind, ExitCode: m.GetExitCode(), Signal: m.GetSignal(), Reason: m.GetReason(),
		Start: job.Time(m.GetStartTimeNs()), End: job.Time(m.GetEndTimeNs()), CPUTime: time.Duration(m.GetCpuTimeNs()),
		MaxRSSBytes: m.GetMaxRssBytes(), Files: m.GetFiles(), FilesRemain: m.GetFilesRemain(), FilesLost: m.GetFilesLost(),
		Checkpoint: m.GetCheckpointSequence(), Cause: job.DemotionCause(min(m.GetDemotionCause(), 255)), Bound: job.SaneBound(m.GetBound()),
	}
}

// DigestMessage converts a load digest.
func DigestMessage(d *cluster.Digest) *kithv1.LoadDigest {
	return &kithv1.LoadDigest{
		SiteId: string(d.Site), Incarnation: d.Incarnation, Sequence: d.Sequence, Address: d.Address,
		Processors: d.Processors, MemoryBytes: d.MemoryBytes, FreeProcessors: d.Load.Free,
		QueuedCopies: uint32(max(0, d.Load.Queued)), RunningAttempts: uint32(max(0, d.Load.Running)),
		LoadWork: d.Load.Work, LoadProcs: d.Load.Procs, Policy: d.Policy, Speed: d.Speed, Draining: d.Draining,
		TimeNs: int64(d.Time), Version: d.Version, HomeJobs: kithv1.HomeJobs(d.HomeJobs), NotStarting: d.NotStarting,
		AuditHead: headMessage(d.Head), OwnerLoads: OwnerMessage(d.Owner), Blocked: d.Load.Blocked, Level: LevelMessage(d.Level),
		Settings: d.Settings, GuestWalltimeNs: int64(d.GuestWalltime), KeptFree: d.KeptFree, TimesFreed: d.TimesFreed,
	}
}

// LevelMessage converts what a site says of its level; nil stays nil.
func LevelMessage(l *cluster.Level) *kithv1.LevelState {
	if l == nil {
		return nil
	}
	m := &kithv1.LevelState{Rank: uint32(l.Rank), QueueLimitNs: int64(l.Queue), RunLimitNs: int64(l.Run), Work: l.Work, WorkLimit: l.Limit, LatencyNs: int64(l.Latency)}
	if l.Shares {
		m.AvailableProcessors = &l.Available
	}
	return m
}

// level converts back; nil stays nil. It checks nothing: see [cluster.Digest.Possible].
func level(m *kithv1.LevelState) *cluster.Level {
	if m == nil {
		return nil
	}
	return &cluster.Level{
		Rank: uint8(min(m.GetRank(), 255)), Queue: time.Duration(m.GetQueueLimitNs()), Run: time.Duration(m.GetRunLimitNs()),
		Work: m.GetWork(), Limit: m.GetWorkLimit(),
		Shares: m.AvailableProcessors != nil, Available: m.GetAvailableProcessors(), Latency: time.Duration(m.GetLatencyNs()),
	}
}

// OwnerMessage converts what a site says of its owner; nothing for nil.
func OwnerMessage(o *cluster.Owner) []*kithv1.OwnerLoad {
	if o == nil {
		return nil
	}
	list := make([]*kithv1.OwnerLoad, len(o.Loads))
	for i, l := range o.Loads {
		list[i] = &kithv1.OwnerLoad{Lambda: l.Lambda, Rho: l.Rho, Sigma: l.Sigma}
	}
	return list
}

// owner converts back; nothing is nil.
func owner(list []*kithv1.OwnerLoad) (*cluster.Owner, error) {
	if len(list) == 0 {
		return nil, nil
	}
	loads := make([]harvest.Load, len(list))
	for i, l := range list {
		loads[i] = harvest.Load{Lambda: l.GetLambda(), Rho: l.GetRho(), Sigma: l.GetSigma()}
	}
	return cluster.NewOwner(loads)
}

func headMessage(h *cluster.AuditHead) *kithv1.AuditHead {
	if h == nil {
		return nil
	}
	return &kithv1.AuditHead{Number: h.Number, Hash: h.Hash[:], TimeNs: int64(h.Time), Signature: h.Signature}
}

// auditHead converts back; nil stays nil.
func auditHead(m *kithv1.AuditHead) (*cluster.AuditHead, error) {
	if m == nil {
		return nil, nil
	}
	h := &cluster.AuditHead{Number: m.GetNumber(), Time: job.Time(m.GetTimeNs()), Signature: m.GetSignature()}
	if h.Number == 0 || copy(h.Hash[:], m.GetHash()) != len(h.Hash) {
		return nil, fmt.Errorf("%w: audit_head is line %d with a hash of %d bytes, must be a line from 1 with %d", cluster.ErrImpossible, h.Number, len(m.GetHash()), len(h.Hash))
	}
	return h, nil
}

// Digest converts back. The error wraps [job.ErrBadSiteID] or, for what no site can
// say of itself, [cluster.ErrImpossible].
func Digest(m *kithv1.LoadDigest) (cluster.Digest, error) {
	site, err := job.ParseSiteID(m.GetSiteId())
	if err != nil {
		return cluster.Digest{}, err
	}
	d := cluster.Digest{
		Site: site, Incarnation: m.GetIncarnation(), Sequence: m.GetSequence(), Address: m.GetAddress(),
		Processors: m.GetProcessors(), MemoryBytes: m.GetMemoryBytes(),
		Load: job.Load{
			Work: m.GetLoadWork(), Procs: m.GetLoadProcs(), Free: m.GetFreeProcessors(),
			Queued: count(m.GetQueuedCopies()), Running: count(m.GetRunningAttempts()), Blocked: m.GetBlocked(),
		},
		Policy: m.GetPolicy(), Speed: m.GetSpeed(), Draining: m.GetDraining(),
		Time: job.Time(m.GetTimeNs()), Version: m.GetVersion(), HomeJobs: homeJobs(m.GetHomeJobs()), NotStarting: m.GetNotStarting(),
		Level: level(m.GetLevel()), Settings: m.GetSettings(),
		GuestWalltime: time.Duration(m.GetGuestWalltimeNs()), KeptFree: m.GetKeptFree(), TimesFreed: m.GetTimesFreed(),
	}
	if d.Head, err = auditHead(m.GetAuditHead()); err != nil {
		return d, err
	}
	if d.Owner, err = owner(m.GetOwnerLoads()); err != nil {
		return d, err
	}
	return d, d.Possible()
}

// homeJobs converts what a site says of its own jobs. What a later version may
// say is as good as nothing.
func homeJobs(h kithv1.HomeJobs) cluster.HomeJobs {
	switch h {
	case kithv1.HomeJobs_HOME_JOBS_ALIKE:
		return cluster.HomeJobsAlike
	case kithv1.HomeJobs_HOME_JOBS_FIRST:
		return cluster.HomeJobsFirst
	}
	return cluster.HomeJobsUnknown
}

func count(n uint32) int32 { return int32(min(n, math.MaxInt32)) }
