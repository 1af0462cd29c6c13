package peer

import (
	"errors"
	"fmt"
	"math"
	"time"

	"kith/cluster/wire"
	"kith/internal/job"
	"kith/meta"
	"kith/meta/bags"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
)

// maxVerdictPayloads bounds what the payloads of a verdict take together, in bytes, once
// what they share is written out for each of them.
const maxVerdictPayloads = maxReadyBytes + wire.Payload

// taskToProto converts a message about tasks, nil for any other.
func taskToProto(m meta.Message) *kithv1.PeerMessage {
	switch m := m.(type) {
	case meta.Offer:
		return &kithv1.PeerMessage{Message: &kithv1.PeerMessage_Offer{Offer: &kithv1.Offer{Shape: m.Shape.Number(), Tasks: number(m.Tasks)}}}
	case meta.TaskClaim:
		a := m.Ask.Bounded()
		return &kithv1.PeerMessage{Message: &kithv1.PeerMessage_TaskClaim{TaskClaim: &kithv1.TaskClaim{
			Stamp: m.Stamp, SentTimeNs: int64(m.Sent), Shape: a.Shape.Number(), Node: a.Node, Places: number(a.Places), Running: number(a.Running),
			Stock: number(a.Stock), MeanRunTimeNs: int64(a.Mean), Want: number(a.Want),
		}}}
	case meta.TaskVerdict:
		return &kithv1.PeerMessage{Message: &kithv1.PeerMessage_TaskVerdict{TaskVerdict: &kithv1.TaskVerdict{
			Stamp: m.Stamp, SentTimeNs: int64(m.Sent), Bundles: bundlesToProto(m.Bundles),
		}}}
	case meta.TaskResults:
		return &kithv1.PeerMessage{Message: &kithv1.PeerMessage_TaskResults{TaskResults: resultsToProto(&m)}}
	case meta.TaskResultsAck:
		return &kithv1.PeerMessage{Message: &kithv1.PeerMessage_TaskResultsAck{TaskResultsAck: &kithv1.TaskResultsAck{
			Bundle: wire.AttemptName(m.Bundle), Batch: m.Batch, Unknown: m.Unknown,
		}}}
	case meta.Recall:
		return &kithv1.PeerMessage{Message: &kithv1.PeerMessage_Recall{Recall: &kithv1.Recall{Bundle: wire.AttemptName(m.Bundle), Most: number(m.Most)}}}
	case meta.StopTasks:
		p := &kithv1.StopTasks{Bundle: wire.AttemptName(m.Bundle), Waiting: m.Waiting}
		if m.Tasks != nil {
			p.Tasks = m.Tasks.AppendBinary([]byte{})
		}
		return &kithv1.PeerMessage{Message: &kithv1.PeerMessage_StopTasks{StopTasks: p}}
	}
	return nil
}

func number(n int) uint32 { return uint32(min(max(0, n), math.MaxUint32)) }

// bundlesToProto converts bundles. What the payload of one has in common with that before
// is sent once: bundles of one bag run the same, and differ by the rows of their tasks.
func bundlesToProto(list []meta.GivenBundle) []*kithv1.GivenBundle {
	var out []*kithv1.GivenBundle
	var before []byte
	for i := range list {
		b := &list[i]
		shared := commonPrefix(before, b.Payload)
		out = append(out, &kithv1.GivenBundle{
			Bundle: wire.AttemptName(b.Bundle), Request: wire.RequestMessage(&b.Request), Tasks: b.Tasks.AppendBinary(nil), Lease: leaseToProto(b.Lease),
			SharedBytes: uint32(shared), Payload: b.Payload[shared:],
		})
		before = b.Payload
	}
	return out
}

func commonPrefix(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func resultsToProto(m *meta.TaskResults) *kithv1.TaskResults {
	p := &kithv1.TaskResults{Bundle: wire.AttemptName(m.Bundle), Batch: m.Batch, Run: m.Run, Returned: m.Returned.AppendBinary(nil)}
	for i := range m.Results {
		r := &m.Results[i]
		p.Results = append(p.Results, &kithv1.TaskResult{
			Ordinal: r.Ordinal, Kind: uint32(r.Kind), ExitCode: r.ExitCode, Signal: r.Signal, StartTimeNs: int64(r.Start), RunTimeNs: int64(r.Run),
			CpuTimeNs: int64(r.CPUTime), MaxRssBytes: r.MaxRSSBytes, FilesLost: r.FilesLost, ErrorLine: r.ErrorLine,
		})
	}
	for _, f := range m.Files {
		p.Files = append(p.Files, &kithv1.TaskFiles{Ordinal: f.Ordinal, Files: f.Set})
	}
	return p
}

// taskMessage converts a message about tasks, nil for any other. Bounds on texts and lists
// have been checked.
func (r *reader) taskMessage(p *kithv1.PeerMessage) meta.Message {
	switch m := p.GetMessage().(type) {
	case *kithv1.PeerMessage_Offer:
		return meta.Offer{Shape: r.shape(m.Offer.GetShape()), Tasks: int(min(m.Offer.GetTasks(), job.MaxTasks))}
	case *kithv1.PeerMessage_TaskClaim:
		c := m.TaskClaim
		return meta.TaskClaim{Stamp: c.GetStamp(), Sent: job.Time(c.GetSentTimeNs()), Ask: bags.Ask{
			Node: c.GetNode(), Shape: r.shape(c.GetShape()), Places: int(c.GetPlaces()), Running: int(c.GetRunning()), Stock: int(c.GetStock()),
			Mean: time.Duration(c.GetMeanRunTimeNs()), Want: int(c.GetWant()),
		}.Bounded()}
	case *kithv1.PeerMessage_TaskVerdict:
		v := m.TaskVerdict
		return meta.TaskVerdict{Stamp: v.GetStamp(), Sent: job.Time(v.GetSentTimeNs()), Bundles: r.bundles(v.GetBundles())}
	case *kithv1.PeerMessage_TaskResults:
		return r.taskResults(m.TaskResults)
	case *kithv1.PeerMessage_TaskResultsAck:
		a := m.TaskResultsAck
		return meta.TaskResultsAck{Bundle: r.attempt(a.GetBundle()), Batch: a.GetBatch(), Unknown: a.GetUnknown()}
	case *kithv1.PeerMessage_Recall:
		return meta.Recall{Bundle: r.attempt(m.Recall.GetBundle()), Most: int(min(m.Recall.GetMost(), store.MaxBundleTasks))}
	case *kithv1.PeerMessage_StopTasks:
		s := meta.StopTasks{Bundle: r.attempt(m.StopTasks.GetBundle()), Waiting: m.StopTasks.GetWaiting()}
		if p := m.StopTasks; p.Tasks != nil {
			tasks := r.tasks(p.GetTasks())
			s.Tasks = &tasks
		}
		return s
	}
	return nil
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

func (r *reader) shape(number uint64) bags.Shape {
	s, ok := bags.ParseShape(number)
	if !ok {
		r.fail("shape %#x is none", number)
	}
	return s
}

// tasks reads a set of tasks of a bundle.
func (r *reader) tasks(b []byte) job.TaskSet {
	set, err := job.DecodeTaskSet(b)
	if err != nil {
		r.fail("tasks: %w", err)
	}
	if set.Count() > store.MaxBundleTasks {
		r.fail("%d tasks, a bundle has at most %d", set.Count(), store.MaxBundleTasks)
		return job.TaskSet{}
	}
	return set
}

func (r *reader) bundles(list []*kithv1.GivenBundle) (bundles []meta.GivenBundle) {
	var before []byte
	total := 0
	for i, p := range list {
		b := meta.GivenBundle{
			Bundle: r.attempt(p.GetBundle()), Request: wire.Request(p.GetRequest()), Tasks: r.tasks(p.GetTasks()), Lease: max(0, durationOf(p.GetLease())),
		}
		shared := int(p.GetSharedBytes())
		size := shared + len(p.GetPayload())
		switch total += size; {
		case b.Tasks.Empty():
			r.fail("bundles[%d]: no tasks", i)
		case shared > len(before):
			r.fail("bundles[%d]: shares %d bytes of %d", i, shared, len(before))
		case size > wire.Payload:
			r.fail("bundles[%d]: a payload of %d bytes, at most %d", i, size, wire.Payload)
		case total > maxVerdictPayloads:
			r.fail("payloads of %d bytes up to bundles[%d], at most %d", total, i, maxVerdictPayloads)
		}
		if r.err != nil {
			return nil
		}
		if size > 0 {
			b.Payload = append(append(make([]byte, 0, size), before[:shared]...), p.GetPayload()...)
		}
		before = b.Payload
		bundles = append(bundles, b)
	}
	return bundles
}

func (r *reader) taskResults(p *kithv1.TaskResults) meta.Message {
	m := meta.TaskResults{Bundle: r.attempt(p.GetBundle()), Batch: p.GetBatch(), Run: p.GetRun(), Returned: r.tasks(p.GetReturned())}
	for _, t := range p.GetResults() {
		result := job.TaskResult{
			Ordinal: t.GetOrdinal(), Kind: job.OutcomeKind(min(t.GetKind(), 255)), ExitCode: t.GetExitCode(), Signal: t.GetSignal(),
			Start: job.Time(t.GetStartTimeNs()), Run: time.Duration(t.GetRunTimeNs()), CPUTime: time.Duration(t.GetCpuTimeNs()), MaxRSSBytes: t.GetMaxRssBytes(), FilesLost: t.GetFilesLost(), ErrorLine: t.GetErrorLine(),
		}
		if err := result.Validate(); err != nil {
			r.fail("%w", err)
		}
		m.Results = append(m.Results, result)
	}
	at, size := 0, 0
	for _, f := range p.GetFiles() {
		if size += len(f.GetFiles()); size > store.MaxBatchFiles || len(f.GetFiles()) == 0 {
			r.fail("files of task %d have %d bytes, and %d with those before them, at most %d and more than 0", f.GetOrdinal(), len(f.GetFiles()), size, store.MaxBatchFiles)
		}
		for at < len(m.Results) && m.Results[at].Ordinal != f.GetOrdinal() {
			at++
		}
		if at++; at > len(m.Results) {
			r.fail("files of task %d, which has no result, or stands elsewhere in their order", f.GetOrdinal())
			break
		}
		m.Files = append(m.Files, store.TaskFiles{Ordinal: f.GetOrdinal(), Set: f.GetFiles()})
	}
	if m.Batch == 0 {
		r.fail("%w", errNoBatch)
	}
	return m
}

var errNoBatch = errors.New("batch 0: they are counted from 1")
