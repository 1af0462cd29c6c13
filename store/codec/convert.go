package codec

import (
	"math"
	"time"

	"kith/internal/identity"
	"kith/internal/job"
	statev1 "kith/proto/gen/kith/state/v1"
	"kith/store"
)

// jobName converts an id.
func jobName(id job.ID) *statev1.JobName {
	m := new(statev1.JobName)
	nameJob(m, id)
	return m
}

func nameJob(m *statev1.JobName, id job.ID) {
	*m = statev1.JobName{Origin: string(id.Origin), Generation: id.Generation, Seq: id.Seq}
}

// jobID converts back. A name that is no job's gives an error wrapping [job.ErrBadID].
func jobID(m *statev1.JobName) (job.ID, error) {
	site, err := job.ParseSiteID(m.GetOrigin())
	if err != nil {
		return job.ID{}, err
	}
	return job.ID{Origin: site, Generation: m.GetGeneration(), Seq: m.GetSeq()}, nil
}

// attemptName converts an attempt.
func attemptName(a job.AttemptID) *statev1.AttemptName {
	return &statev1.AttemptName{Job: jobName(a.Job), Number: a.Number}
}

// attemptID converts back.
func attemptID(m *statev1.AttemptName) (job.AttemptID, error) {
	id, err := jobID(m.GetJob())
	if err != nil {
		return job.AttemptID{}, err
	}
	if m.GetNumber() == 0 {
		return job.AttemptID{}, job.ErrBadID
	}
	return job.AttemptID{Job: id, Number: m.GetNumber()}, nil
}

// requestMessage converts a request.
func requestMessage(r *job.Request) *statev1.Request {
	m := new(statev1.Request)
	fillRequest(m, r)
	return m
}

func fillRequest(m *statev1.Request, r *job.Request) {
	*m = statev1.Request{
		Name: r.Name, User: r.User, Processors: r.Processors, Copies: r.Copies, MemoryBytes: r.MemoryBytes,
		WalltimeNs: int64(r.Walltime), Directory: r.Directory, OnSiteLost: uint32(r.OnSiteLost), Runs: runBytes(&r.Runs), Script: r.Script,
		Checkpoint: r.Checkpoint, AskSeconds: uint32(r.AskSeconds), SaveSeconds: r.SaveSeconds, Estimate: r.Estimate,
		Level: uint32(r.Level), Unknown: r.Unknown,
	}
}

// request converts back. It checks nothing: see [job.Request.Validate].
func request(m *statev1.Request) job.Request {
	return job.Request{
		Name: m.GetName(), User: m.GetUser(), Processors: m.GetProcessors(), Copies: m.GetCopies(),
		MemoryBytes: m.GetMemoryBytes(), Walltime: time.Duration(m.GetWalltimeNs()), Directory: m.GetDirectory(),
		OnSiteLost: job.OnSiteLost(min(m.GetOnSiteLost(), 255)), Runs: runs(m.GetRuns()), Script: m.GetScript(),
		Checkpoint: m.GetCheckpoint(), Estimate: m.GetEstimate(), AskSeconds: uint16(min(m.GetAskSeconds(), 65535)), SaveSeconds: m.GetSaveSeconds(),
		Level: uint8(min(m.GetLevel(), 255)), Unknown: m.GetUnknown(),
	}
}

// outcomeMessage converts an outcome; nil stays nil.
func outcomeMessage(o *job.Outcome) *statev1.StoredOutcome {
	if o == nil {
		return nil
	}
	return &statev1.StoredOutcome{
		Kind: uint32(o.Kind), ExitCode: o.ExitCode, Signal: o.Signal, Reason: o.Reason,
		StartTimeNs: int64(o.Start), EndTimeNs: int64(o.End), CpuTimeNs: int64(o.CPUTime),
		MaxRssBytes: o.MaxRSSBytes, Files: o.Files, FilesRemain: o.FilesRemain, FilesLost: o.FilesLost,
		CheckpointSequence: o.Checkpoint, DemotionCause: uint32(o.Cause), Bound: o.Bound,
	}
}

// outcome converts back; nil stays nil, and so becomes one of an unknown kind.
func outcome(m *statev1.StoredOutcome) *job.Outcome {
	kind := job.OutcomeKind(min(m.GetKind(), 255))
	if m == nil || !kind.Known() {
		return nil
	}
	return &job.Outcome{
		Kind: kind, ExitCode: m.GetExitCode(), Signal: m.GetSignal(), Reason: m.GetReason(),
		Start: job.Time(m.GetStartTimeNs()), End: job.Time(m.GetEndTimeNs()), CPUTime: time.Duration(m.GetCpuTimeNs()),
		MaxRSSBytes: m.GetMaxRssBytes(), Files: m.GetFiles(), FilesRemain: m.GetFilesRemain(), FilesLost: m.GetFilesLost(),
		Checkpoint: m.GetCheckpointSequence(), Cause: job.DemotionCause(min(m.GetDemotionCause(), 255)), Bound: m.GetBound(),
	}
}

func (n *names) job(m *statev1.JobRecord) (store.Job, error) {
	id, err := jobID(m.GetId())
	if err != nil {
		return store.Job{}, err
	}
	id.Origin = n.site(string(id.Origin))
	j := store.Job{
		ID: id, Request: n.request(m.GetRequest()), RequestID: m.GetRequestId(),
		State: job.State(min(m.GetState(), 255)), Attempt: m.GetAttempt(), Holder: n.site(m.GetHolder()),
		HolderStamp: m.GetHolderStamp(), HolderGeneration: m.GetHolderGeneration(), CancelRequested: m.GetCancelRequested(), Submitted: job.Time(m.GetSubmitTimeNs()),
		Started: job.Time(m.GetStartTimeNs()), Closed: job.Time(m.GetCloseTimeNs()), Outcome: outcome(m.GetOutcome()),
		Lease: time.Duration(m.GetLeaseNs()), Submitter: identity.Actor(n.text(m.GetSubmitter())), Version: m.GetVersion(),
	}
	copy(j.BodyHash[:], m.GetBodyHash())
	for _, s := range m.GetSites() {
		j.Sites = append(j.Sites, n.site(s))
	}
	j.Revoked = uint8(min(m.GetRevoked(), math.MaxUint8))
	for _, h := range m.GetEarlier() {
		j.Earlier = append(j.Earlier, store.Holding{Attempt: h.GetAttempt(), Site: n.site(h.GetSite())})
	}
	if m.GetOpened() >= j.NextAttempt() { // of an earlier version
		j.Earlier = append(j.Earlier, store.Holding{Attempt: m.GetOpened()})
	}
	for _, e := range m.GetClaimEvents() {
		j.Events = append(j.Events, store.ClaimEvent{
			Time: job.Time(e.GetTimeNs()), Attempt: e.GetAttempt(), Kind: store.ClaimEventKind(min(e.GetKind(), 255)),
			Site: n.site(e.GetSite()), Reason: job.Reason(min(e.GetReason(), 255)),
		})
	}
	for _, a := range m.GetActs() {
		j.Acts = append(j.Acts, store.Act{
			Time: job.Time(a.GetTimeNs()), Kind: store.ActKind(min(a.GetKind(), 255)), Actor: identity.Actor(n.text(a.GetActor())),
			Reason: a.GetReason(), Site: n.site(a.GetSite()),
		})
	}
	j.Forecast = n.forecast(m.GetForecast())
	j.Level, j.Guess = uint8(min(m.GetLevel(), job.MaxLevel)), float32(job.SaneBound(m.GetGuess()))
	j.Demotions, j.Checkpoint = n.demotions(m.GetDemotions()), m.GetCheckpointAttempt()
	j.Saved = n.saved(m.GetSaved())
	j.SaveAsked = m.GetAskedAttempt() != 0 && m.GetAskedAttempt() == j.Attempt
	return j, nil
}

func (n *names) copy(m *statev1.CopyRecord) (store.Copy, error) {
	id, err := attemptID(m.GetAttempt())
	if err != nil {
		return store.Copy{}, err
	}
	id.Job.Origin = n.site(string(id.Job.Origin))
	r := n.request(m.GetRequest())
	return store.Copy{
		ID: id, Request: &r, Phase: store.Phase(m.GetPhase()), Arrived: job.Time(m.GetArrivalTimeNs()),
		Begun: job.Time(m.GetBeginTimeNs()), BootID: m.GetBootId(), Outcome: outcome(m.GetOutcome()),
		OriginTooSmall: m.GetOriginTooSmall(), LimitSeconds: m.GetLimitSeconds(), Before: progress(m.GetBefore()), Stays: m.GetStays(), GoesOn: m.GetGoesOn(),
	}, nil
}

func progressMessage(p *job.Progress) *statev1.Progress {
	if p == nil {
		return nil
	}
	return &statev1.Progress{UsedNs: int64(p.Used), Done: p.Done, Bound: p.Bound, Last: p.Last}
}

// progress converts back; nil stays nil.
func progress(m *statev1.Progress) *job.Progress {
	if m == nil {
		return nil
	}
	return &job.Progress{Used: time.Duration(m.GetUsedNs()), Done: m.GetDone(), Bound: m.GetBound(), Last: m.GetLast()}
}

func siteMessage(s store.Site) *statev1.SiteRecord {
	return &statev1.SiteRecord{
		SiteId: string(s.ID), Generation: s.Generation, NextSeq: s.NextSeq, Draining: s.Draining, DrainReason: s.DrainReason,
		DrainActor: string(s.DrainActor), DrainChangedNs: int64(s.DrainChanged), LatestNs: int64(s.Latest),
		Incarnation: s.Incarnation, Steps: s.Steps, Folder: folderBytes(s.Folder), BundleSequence: s.BundleSequence, Runs: s.Runs,
	}
}

func folderBytes(f store.Folder) []byte {
	if f == (store.Folder{}) {
		return nil
	}
	return f[:]
}

func decisionMessage(d *store.Decision) *statev1.DecisionRecord {
	m := &statev1.DecisionRecord{Rank: uint32(d.Rank), Verdicts: make([]*statev1.DecisionRecord_Verdict, len(d.Sites))}
	for i, v := range d.Sites {
		m.Verdicts[i] = &statev1.DecisionRecord_Verdict{
			Site: string(v.Site), Chosen: v.Chosen, Reason: uint32(v.Reason), Score: v.Score, Weight: v.Weight, AgeNs: int64(v.Age),
		}
	}
	return m
}

func decision(m *statev1.DecisionRecord) *store.Decision {
	d := &store.Decision{Rank: uint8(min(m.GetRank(), 255)), Sites: make([]store.SiteDecision, len(m.GetVerdicts()))}
	for i, v := range m.GetVerdicts() {
		d.Sites[i] = store.SiteDecision{
			Site: job.SiteID(v.GetSite()), Chosen: v.GetChosen(), Reason: job.Reason(min(v.GetReason(), 255)),
			Score: v.GetScore(), Weight: v.GetWeight(), Age: time.Duration(v.GetAgeNs()),
		}
	}
	return d
}

// names makes equal texts one text while a large state is read: a hundred
// thousand jobs name a handful of sites and users.
type names struct{ known map[string]string }

func (n *names) text(s string) string {
	if s == "" {
		return ""
	}
	if t, ok := n.known[s]; ok {
		return t
	}
	if n.known == nil {
		n.known = make(map[string]string)
	}
	if len(n.known) < 1<<16 {
		n.known[s] = s
	}
	return s
}

func (n *names) site(s string) job.SiteID { return job.SiteID(n.text(s)) }

func (n *names) request(m *statev1.Request) job.Request {
	r := request(m)
	r.Name, r.User, r.Directory = n.text(r.Name), n.text(r.User), n.text(r.Directory)
	return r
}
