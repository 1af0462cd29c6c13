package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"kith/internal/identity"
	"kith/internal/job"
	statev1 "kith/proto/gen/kith/state/v1"
	"kith/store"
)

// bagKey is the key of something of a bag that has a number; those of one bag begin with
// its [JobKey].
func bagKey(id job.ID, number uint32) []byte {
	return binary.BigEndian.AppendUint32(JobKey(id), number)
}

// ResultsKey is the key of a block of results.
func ResultsKey(id job.ID, block uint32) []byte { return bagKey(id, block) }

func bagWrites(s *store.State, c *store.BagChanges) []Write {
	w := make([]Write, 0, len(c.Bags)+len(c.Bundles)+len(c.Pages)+len(c.TaskFiles)+6*len(c.ForgottenBags))
	for _, b := range c.Bags {
		if s.Bag(b.ID) == b {
			w = append(w, Write{Table: Bags, Key: JobKey(b.ID), Value: seal(bagMessage(b))})
		}
	}
	for _, p := range c.Pages {
		if b := s.Bag(p.Bag); b != nil {
			w = append(w, Write{Table: BagPages, Key: bagKey(b.ID, p.Page), Value: seal(pageMessage(b, p.Page))})
		}
	}
	for _, id := range c.Bundles {
		if t := s.TaskBundle(id); t != nil {
			w = append(w, Write{Table: TaskBundles, Key: bagKey(id.Job, id.Number), Value: seal(taskBundleMessage(id.Job, t))})
		} else {
			w = append(w, Write{Table: TaskBundles, Key: bagKey(id.Job, id.Number)})
		}
	}
	w = append(w, resultWrites(s, c.Results)...)
	w = append(w, filesWrites(s, c.TaskFiles)...)
	for _, id := range c.ForgottenBags {
		w = append(w, Write{Table: Bags, Key: JobKey(id)}, Write{Table: Payloads, Key: JobKey(id)})
		for _, t := range []Table{BagPages, TaskBundles, Results, TaskFiles} {
			w = append(w, Write{Table: t, Key: JobKey(id), Prefix: true})
		}
	}
	return append(w, heldWrites(s, c)...)
}

// BagReaders returns what reads each of [BagTables] and [AfterTables] that is read at a
// start, in the order in which they must be.
func (r *Reader) BagReaders() []TableReader {
	return []TableReader{{Bags, r.bag}, {BagPages, r.page}, {TaskBundles, r.taskBundle}, {Held, r.held}, {HeldBatches, r.heldBatch}, {After, r.after}}
}

// TableReader reads the records of a table, in the order of their keys.
type TableReader struct {
	Table Table
	Read  func(value []byte) error
}

func bagMessage(b *store.Bag) *statev1.BagRecord {
	m := &statev1.BagRecord{
		Name: jobName(b.ID), Request: requestMessage(&b.Request), RequestId: b.RequestID, BodyHash: b.BodyHash[:], Submitter: string(b.Submitter),
		Priority: b.Priority, MaxRunning: b.MaxRunning, Retries: uint32(b.Retries), State: uint32(b.State), CancelRequested: b.CancelRequested,
		Version: b.Version, Next: b.Next, Number: b.Number, Sums: sumsMessage(&b.Sums), SubmittedNs: int64(b.Submitted), ClosedNs: int64(b.Closed),
		Retried: b.Retried, MaxReplicas: uint32(b.MaxReplicas), TailAt: b.TailAt, TailSinceNs: int64(b.TailSince), Budget: b.Budget,
		Level: levelMessage(&b.BagLevel),
	}
	if p := &b.Policies; p.Stated() || p.Version > 0 {
		m.Policies = &statev1.BagPolicies{Texts: p.Texts[:], Version: p.Version}
	}
	for _, r := range b.Indices.Ranges() {
		m.Indices = append(m.Indices, r.First, r.Last, r.Step)
	}
	for _, a := range b.Acts {
		m.Acts = append(m.Acts, &statev1.ActRecord{TimeNs: int64(a.Time), Kind: uint32(a.Kind), Actor: string(a.Actor), Reason: a.Reason, Tasks: a.Tasks, RequestId: a.RequestID})
	}
	return m
}

func sumsMessage(s *store.BagSums) *statev1.BagSums {
	m := &statev1.BagSums{Runs: s.Runs, Wasted: s.Wasted, RunTime: s.RunTime, CpuTime: s.CPUTime, Squares: s.Squares, Replicas: s.Replicas, WastedTime: s.WastedTime}
	for _, site := range s.Sites {
		m.Sites = append(m.Sites, &statev1.SiteSums{SiteId: string(site.Site), Done: site.Done, Failed: site.Failed, Lost: site.Lost, RunTime: site.RunTime})
	}
	for _, f := range s.Failures {
		m.Failures = append(m.Failures, &statev1.FailureKind{Kind: uint32(f.Kind), ExitCode: f.ExitCode, Signal: f.Signal, Count: f.Count, Tasks: f.Tasks, ErrorLine: f.ErrorLine})
	}
	return m
}

func (r *Reader) bag(value []byte) error {
	var m statev1.BagRecord
	if err := open(value, &m); err != nil {
		return fmt.Errorf("bag record: %w", err)
	}
	id, err := jobID(m.GetName())
	if err == nil && len(m.GetIndices())%3 != 0 {
		err = job.ErrBadIndices
	}
	var ranges []job.IndexRange
	for part := range slices.Chunk(m.GetIndices(), 3) {
		if len(part) == 3 {
			ranges = append(ranges, job.IndexRange{First: part[0], Last: part[1], Step: part[2]})
		}
	}
	indices, wrong := job.RestoreIndices(ranges)
	if err := errors.Join(err, wrong); err != nil {
		return fmt.Errorf("bag record: %w: %w", err, store.ErrCorrupt)
	}
	id.Origin = r.names.site(string(id.Origin))
	b := store.Bag{
		ID: id, Request: r.names.request(m.GetRequest()), Indices: indices, RequestID: m.GetRequestId(), Submitter: identity.Actor(r.names.text(m.GetSubmitter())),
		Priority: m.GetPriority(), MaxRunning: m.GetMaxRunning(), Retries: uint8(min(m.GetRetries(), math.MaxUint8)),
		State: job.BagState(min(m.GetState(), math.MaxUint8)), CancelRequested: m.GetCancelRequested(), Version: m.GetVersion(),
		Next: m.GetNext(), Number: m.GetNumber(), Submitted: job.Time(m.GetSubmittedNs()), Closed: job.Time(m.GetClosedNs()),
		Sums: r.sums(m.GetSums()), Retried: m.GetRetried(),
		MaxReplicas: uint8(min(m.GetMaxReplicas(), store.MaxReplicas)), TailAt: m.GetTailAt(), TailSince: job.Time(m.GetTailSinceNs()), Budget: min(m.GetBudget(), store.MaxBudget),
		BagLevel: r.bagLevel(m.GetLevel()),
	}
	copy(b.BodyHash[:], m.GetBodyHash())
	copy(b.Policies.Texts[:], m.GetPolicies().GetTexts())
	b.Policies.Version = m.GetPolicies().GetVersion()
	for _, a := range m.GetActs() {
		b.Acts = append(b.Acts, store.Act{
			Time: job.Time(a.GetTimeNs()), Kind: store.ActKind(min(a.GetKind(), math.MaxUint8)), Actor: identity.Actor(r.names.text(a.GetActor())), Reason: a.GetReason(),
			Tasks: a.GetTasks(), RequestID: a.GetRequestId(),
		})
	}
	return r.state.RestoreBag(b)
}

func (r *Reader) sums(m *statev1.BagSums) store.BagSums {
	s := store.BagSums{
		Runs: m.GetRuns(), Wasted: m.GetWasted(), Replicas: m.GetReplicas(), WastedTime: m.GetWastedTime(),
		RunTime: m.GetRunTime(), CPUTime: m.GetCpuTime(), Squares: m.GetSquares(),
	}
	for _, site := range m.GetSites() {
		s.Sites = append(s.Sites, store.SiteSums{Site: r.names.site(site.GetSiteId()), Done: site.GetDone(), Failed: site.GetFailed(), Lost: site.GetLost(), RunTime: site.GetRunTime()})
	}
	for _, f := range m.GetFailures() {
		s.Failures = append(s.Failures, store.FailureKind{
			Kind: job.OutcomeKind(min(f.GetKind(), math.MaxUint8)), ExitCode: f.GetExitCode(), Signal: f.GetSignal(), Count: f.GetCount(), Tasks: f.GetTasks(), ErrorLine: f.GetErrorLine(),
		})
	}
	return s
}

func pageMessage(b *store.Bag, page uint32) *statev1.BagPageRecord {
	p := b.Page(page)
	m := &statev1.BagPageRecord{
		Generation: b.ID.Generation, Seq: b.ID.Seq, Again: p.Again.AppendBinary(nil), Done: p.Done.AppendBinary(nil),
		Failed: p.Failed.AppendBinary(nil), Cancelled: p.Cancelled.AppendBinary(nil), Stopping: p.Stopping.AppendBinary(nil),
	}
	for _, task := range slices.Sorted(maps.Keys(p.Tries)) {
		m.Tries = append(m.Tries, task, uint32(p.Tries[task].Failures), uint32(p.Tries[task].Losses))
	}
	return m
}

// emptyPage reports whether there is nothing to tell of a page.
func emptyPage(m *statev1.BagPageRecord) bool {
	return len(m.Again)+len(m.Done)+len(m.Failed)+len(m.Cancelled)+len(m.Stopping)+len(m.Tries) == 0
}

func (r *Reader) page(value []byte) error {
	var m statev1.BagPageRecord
	if err := open(value, &m); err != nil {
		return fmt.Errorf("page record of a bag: %w", err)
	}
	var p store.PageSets
	var errs []error
	set := func(to *job.TaskSet, b []byte) {
		tasks, err := job.DecodeTaskSet(b)
		*to = tasks
		errs = append(errs, err)
	}
	set(&p.Again, m.GetAgain())
	set(&p.Done, m.GetDone())
	set(&p.Failed, m.GetFailed())
	set(&p.Cancelled, m.GetCancelled())
	set(&p.Stopping, m.GetStopping())
	for part := range slices.Chunk(m.GetTries(), 3) {
		if len(part) != 3 || part[1] > math.MaxUint8 || part[2] > math.MaxUint8 {
			errs = append(errs, errors.New("tries that are none"))
			break
		}
		if p.Tries == nil {
			p.Tries = make(map[uint32]store.Tries)
		}
		p.Tries[part[0]] = store.Tries{Failures: uint8(part[1]), Losses: uint8(part[2])}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("page record of a bag: %w: %w", err, store.ErrCorrupt)
	}
	return r.state.RestorePage(r.bagID(m.GetGeneration(), m.GetSeq()), p)
}

// bagID returns the name of a bag of the site that is read.
func (r *Reader) bagID(generation uint32, seq uint64) job.ID {
	return job.ID{Origin: r.state.Site().ID, Generation: generation, Seq: seq}
}

func taskBundleMessage(id job.ID, t *store.TaskBundle) *statev1.TaskBundleRecord {
	return &statev1.TaskBundleRecord{
		Generation: id.Generation, Seq: id.Seq, Number: t.Number, SiteId: string(t.Site), Node: t.Node, Stamp: t.Stamp, HolderGeneration: t.Generation,
		LeaseNs: int64(t.Lease), GrantedNs: int64(t.Granted), DeadlineNs: int64(t.Deadline), Tasks: t.Tasks.AppendBinary(nil), Batch: t.Batch, Late: t.Late, Replica: t.Replica,
		Level: uint32(t.Level), LimitNs: int64(t.Limit),
	}
}

func (r *Reader) taskBundle(value []byte) error {
	var m statev1.TaskBundleRecord
	if err := open(value, &m); err != nil {
		return fmt.Errorf("bundle record: %w", err)
	}
	tasks, err := job.DecodeTaskSet(m.GetTasks())
	if err != nil {
		return fmt.Errorf("bundle record: %w: %w", err, store.ErrCorrupt)
	}
	return r.state.RestoreTaskBundle(r.bagID(m.GetGeneration(), m.GetSeq()), store.TaskBundle{
		Number: m.GetNumber(), Site: r.names.site(m.GetSiteId()), Node: r.names.text(m.GetNode()), Stamp: m.GetStamp(), Generation: m.GetHolderGeneration(),
		Lease: time.Duration(m.GetLeaseNs()), Granted: job.Time(m.GetGrantedNs()), Deadline: job.Time(m.GetDeadlineNs()),
		Tasks: tasks, Batch: m.GetBatch(), Late: m.GetLate(), Replica: m.GetReplica(),
		Level: uint8(min(m.GetLevel(), job.MaxLevel)), Limit: time.Duration(m.GetLimitNs()),
	})
}
