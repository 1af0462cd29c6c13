package peer

import (
	"errors"
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"kith/cluster/wire"
	"kith/internal/forecast"
	"kith/internal/job"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
)

// ErrMessage is returned when a peer's message makes no sense. The stream goes on without it.
var ErrMessage = errors.New("message makes no sense")

func toProto(m meta.Message) *kithv1.PeerMessage {
	switch m := m.(type) {
	case meta.PlaceCopy:
		return &kithv1.PeerMessage{Message: &kithv1.PeerMessage_PlaceCopy{PlaceCopy: &kithv1.PlaceCopy{
			Attempt: wire.AttemptName(m.Attempt), Request: wire.RequestMessage(&m.Request), OriginTooSmall: m.OriginTooSmall, Stays: m.Stays,
			Before: wire.ProgressMessage(m.Before), ElsewhereNs: int64(m.Elsewhere),
		}}}
	case meta.CopyAnswer:
		return &kithv1.PeerMessage{Message: &kithv1.PeerMessage_CopyAnswer{CopyAnswer: &kithv1.CopyAnswer{
			Attempt: wire.AttemptName(m.Attempt), Accepted: m.Accepted, Reason: uint32(m.Reason), Final: m.Final,
		}}}
	case meta.Claim:
		return &kithv1.PeerMessage{Message: &kithv1.PeerMessage_Claim{Claim: &kithv1.Claim{
			Attempt: wire.AttemptName(m.Attempt), Stamp: m.Stamp, SentTimeNs: int64(m.Sent),
		}}}
	case meta.Verdict:
		return &kithv1.PeerMessage{Message: &kithv1.PeerMessage_Verdict{Verdict: &kithv1.Verdict{
			Attempt: wire.AttemptName(m.Attempt), Granted: m.Granted, Reason: uint32(m.Reason),
			WinnerSiteId: string(m.Winner), Payload: m.Payload, Lease: leaseToProto(m.Lease), SentTimeNs: int64(m.Sent), Stamp: m.Stamp,
		}}}
	case meta.Renew:
		return &kithv1.PeerMessage{Message: &kithv1.PeerMessage_Renew{Renew: &kithv1.Renew{
			Attempt: wire.AttemptName(m.Attempt), SentTimeNs: int64(m.Sent),
		}}}
	case meta.Renewed:
		return &kithv1.PeerMessage{Message: &kithv1.PeerMessage_Renewed{Renewed: &kithv1.Renewed{
			Attempt: wire.AttemptName(m.Attempt), SentTimeNs: int64(m.Sent), Lease: leaseToProto(m.Lease),
		}}}
	case meta.Withdraw:
		return &kithv1.PeerMessage{Message: &kithv1.PeerMessage_Withdraw{Withdraw: &kithv1.Withdraw{Attempt: wire.AttemptName(m.Attempt)}}}
	case meta.WithdrawAck:
		return &kithv1.PeerMessage{Message: &kithv1.PeerMessage_WithdrawAck{WithdrawAck: &kithv1.WithdrawAck{Attempt: wire.AttemptName(m.Attempt)}}}
	case meta.Started:
		return &kithv1.PeerMessage{Message: &kithv1.PeerMessage_Started{Started: &kithv1.Started{
			Attempt: wire.AttemptName(m.Attempt), StartTimeNs: int64(m.At), Over: m.Over, Bound: m.Bound,
		}}}
	case meta.Result:
		return &kithv1.PeerMessage{Message: &kithv1.PeerMessage_Result{Result: &kithv1.Result{
			Attempt: wire.AttemptName(m.Attempt), Outcome: wire.OutcomeMessage(&m.Outcome),
		}}}
	case meta.ResultAck:
		return &kithv1.PeerMessage{Message: &kithv1.PeerMessage_ResultAck{ResultAck: &kithv1.ResultAck{
			Attempt: wire.AttemptName(m.Attempt), Accepted: m.Accepted,
		}}}
	case meta.Stop:
		return &kithv1.PeerMessage{Message: &kithv1.PeerMessage_Stop{Stop: &kithv1.Stop{Attempt: wire.AttemptName(m.Attempt), Stale: m.Stale}}}
	case meta.Demote:
		return &kithv1.PeerMessage{Message: &kithv1.PeerMessage_Demote{Demote: &kithv1.Demote{Attempt: wire.AttemptName(m.Attempt)}}}
	case meta.Saved:
		return &kithv1.PeerMessage{Message: &kithv1.PeerMessage_Saved{Saved: &kithv1.Saved{
			Attempt: wire.AttemptName(m.Attempt), Sequence: m.Sequence, Files: m.Files, FilesRemain: m.FilesRemain, RanNs: int64(m.Ran), Reason: m.Reason,
		}}}
	case meta.SavedAck:
		return &kithv1.PeerMessage{Message: &kithv1.PeerMessage_SavedAck{SavedAck: &kithv1.SavedAck{
			Attempt: wire.AttemptName(m.Attempt), Sequence: m.Sequence, Accepted: m.Accepted,
		}}}
	case meta.GiveBack:
		return &kithv1.PeerMessage{Message: &kithv1.PeerMessage_GiveBack{GiveBack: &kithv1.GiveBack{
			Attempt: wire.AttemptName(m.Attempt), Reason: uint32(m.Reason), Stamp: m.Stamp, Final: m.Final,
		}}}
	case meta.CopySummary:
		return &kithv1.PeerMessage{Message: &kithv1.PeerMessage_CopySummary{CopySummary: &kithv1.CopySummary{Count: m.Count, Hash: m.Hash, GivenUp: m.GivenUp}}}
	case meta.DigestRequest:
		return &kithv1.PeerMessage{Message: &kithv1.PeerMessage_DigestRequest{DigestRequest: &kithv1.DigestRequest{}}}
	case meta.CopyDigest:
		return &kithv1.PeerMessage{Message: &kithv1.PeerMessage_CopyDigest{CopyDigest: digestToProto(&m)}}
	case meta.LoadDigest:
		return &kithv1.PeerMessage{Message: &kithv1.PeerMessage_LoadDigest{LoadDigest: wire.DigestMessage(&m.Digest)}}
	case meta.StartQuery:
		return &kithv1.PeerMessage{Message: &kithv1.PeerMessage_StartQuery{StartQuery: &kithv1.StartQuery{
			Query: m.Query, Request: wire.RequestMessage(&m.Request), Predict: m.Predict, Draws: uint32(m.Draws), Attempt: attemptOrNone(m.Attempt),
			Before: wire.ProgressMessage(m.Before),
		}}}
	case meta.SiteBundle:
		return siteBundle(&kithv1.SiteBundle{Bundle: m.Bundle.Data})
	case meta.BundleTaken:
		return &kithv1.PeerMessage{Message: &kithv1.PeerMessage_BundleTaken{BundleTaken: &kithv1.BundleTaken{Sequence: m.Sequence}}}
	case meta.StartAnswer:
		return &kithv1.PeerMessage{Message: &kithv1.PeerMessage_StartAnswer{StartAnswer: &kithv1.StartAnswer{
			Query: m.Query, Wait: durationpb.New(m.Wait), Reason: uint32(m.Reason), WaitQuantilesNs: waitNumbers(&m), Basis: uint32(m.Basis),
		}}}
	}
	if p := taskToProto(m); p != nil {
		return p
	}
	panic(fmt.Sprintf("peer: no wire form of %T", m))
}

// attemptOrNone converts an attempt that a message need not name.
func attemptOrNone(a job.AttemptID) *kithv1.AttemptName {
	if a.Number == 0 {
		return nil
	}
	return wire.AttemptName(a)
}

// waitNumbers are the quantiles of an answer that has some.
func waitNumbers(m *meta.StartAnswer) []int64 {
	if m.Basis == forecast.NoStart {
		return nil
	}
	numbers := make([]int64, len(m.Waits))
	for i, w := range m.Waits {
		numbers[i] = int64(w)
	}
	return numbers
}

// startAnswer converts an answer. A forecast that is none counts as no answer: the site lies
// about its own queue only.
func startAnswer(a *kithv1.StartAnswer) meta.StartAnswer {
	m := meta.StartAnswer{Query: a.GetQuery(), Wait: max(0, durationOf(a.GetWait())), Reason: reason(a.GetReason())}
	if b := forecast.StartBasis(min(a.GetBasis(), 255)); b != forecast.NoStart {
		waits, err := forecast.ParseWaits(a.GetWaitQuantilesNs())
		switch {
		case err == nil && b <= forecast.ByPastWaits:
			m.Waits, m.Basis = waits, b
		case m.Reason == job.NoReason:
			m.Reason = job.NoAnswer
		}
	}
	return m
}

// leaseToProto leaves no lease out of the message: most grants have none.
func leaseToProto(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}

func digestToProto(m *meta.CopyDigest) *kithv1.CopyDigest {
	d := &kithv1.CopyDigest{Stamp: m.Stamp, Entries: make([]*kithv1.DigestEntry, len(m.Entries))}
	if !m.After.IsZero() {
		d.After = wire.JobName(m.After)
	}
	if !m.Through.IsZero() {
		d.Through = wire.JobName(m.Through)
	}
	for i, e := range m.Entries {
		phase := kithv1.CopyPhase_COPY_PHASE_QUEUED
		switch {
		case e.Ended:
			phase = kithv1.CopyPhase_COPY_PHASE_ENDED
		case e.Begun:
			phase = kithv1.CopyPhase_COPY_PHASE_BEGUN
		}
		d.Entries[i] = &kithv1.DigestEntry{Attempt: wire.AttemptName(e.Attempt), Phase: phase, StartTimeNs: int64(e.Started)}
	}
	return d
}

// reader collects the first error of a conversion.
type reader struct{ err error }

func (r *reader) attempt(m *kithv1.AttemptName) job.AttemptID {
	a, err := wire.AttemptID(m)
	if err != nil && r.err == nil {
		r.err = err
	}
	return a
}

func (r *reader) jobID(m *kithv1.JobName) job.ID {
	if m == nil {
		return job.ID{}
	}
	id, err := wire.JobID(m)
	if err != nil && r.err == nil {
		r.err = err
	}
	return id
}

func reason(n uint32) job.Reason { return job.Reason(min(n, 255)) }

// fromProto converts a protocol message of a peer. It returns an error
// wrapping [ErrMessage] for what is not one or breaks a bound.
func fromProto(p *kithv1.PeerMessage) (meta.Message, error) {
	if broken := wire.Check(p); len(broken) > 0 {
		return nil, fmt.Errorf("%s: %w: %w", kindOf(p), ErrMessage, broken[0])
	}
	var r reader
	m := r.message(p)
	if r.err != nil {
		return nil, fmt.Errorf("%s: %w: %w", kindOf(p), ErrMessage, r.err)
	}
	if m == nil {
		return nil, fmt.Errorf("%s: %w", kindOf(p), ErrMessage)
	}
	return m, nil
}

// kindOf is the name of what a message of a peer has, as proto/kith/v1 has it.
func kindOf(p *kithv1.PeerMessage) string {
	m := p.ProtoReflect()
	if has := m.WhichOneof(m.Descriptor().Oneofs().ByName("message")); has != nil {
		return string(has.Name())
	}
	return "a message of no known kind"
}

func (r *reader) message(p *kithv1.PeerMessage) meta.Message {
	switch m := p.GetMessage().(type) {
	case *kithv1.PeerMessage_PlaceCopy:
		p := m.PlaceCopy
		return meta.PlaceCopy{Attempt: r.attempt(p.GetAttempt()), Request: wire.Request(p.GetRequest()), Before: wire.Progress(p.GetBefore()), OriginTooSmall: p.GetOriginTooSmall(), Stays: p.GetStays(), Elsewhere: time.Duration(p.GetElsewhereNs())}
	case *kithv1.PeerMessage_CopyAnswer:
		a := m.CopyAnswer
		return meta.CopyAnswer{Attempt: r.attempt(a.GetAttempt()), Accepted: a.GetAccepted(), Reason: reason(a.GetReason()), Final: a.GetFinal()}
	case *kithv1.PeerMessage_Claim:
		return meta.Claim{Attempt: r.attempt(m.Claim.GetAttempt()), Stamp: m.Claim.GetStamp(), Sent: job.Time(m.Claim.GetSentTimeNs())}
	case *kithv1.PeerMessage_Verdict:
		v := m.Verdict
		return meta.Verdict{
			Attempt: r.attempt(v.GetAttempt()), Granted: v.GetGranted(), Reason: reason(v.GetReason()),
			Winner: job.SiteID(v.GetWinnerSiteId()), Payload: v.GetPayload(),
			Lease: max(0, durationOf(v.GetLease())), Sent: job.Time(v.GetSentTimeNs()), Stamp: v.GetStamp(),
		}
	case *kithv1.PeerMessage_Renew:
		return meta.Renew{Attempt: r.attempt(m.Renew.GetAttempt()), Sent: job.Time(m.Renew.GetSentTimeNs())}
	case *kithv1.PeerMessage_Renewed:
		return meta.Renewed{
			Attempt: r.attempt(m.Renewed.GetAttempt()), Sent: job.Time(m.Renewed.GetSentTimeNs()), Lease: max(0, durationOf(m.Renewed.GetLease())),
		}
	case *kithv1.PeerMessage_Withdraw:
		return meta.Withdraw{Attempt: r.attempt(m.Withdraw.GetAttempt())}
	case *kithv1.PeerMessage_WithdrawAck:
		return meta.WithdrawAck{Attempt: r.attempt(m.WithdrawAck.GetAttempt())}
	case *kithv1.PeerMessage_Started:
		return meta.Started{Attempt: r.attempt(m.Started.GetAttempt()), At: job.Time(m.Started.GetStartTimeNs()), Over: m.Started.GetOver(), Bound: job.SaneBound(m.Started.GetBound())}
	case *kithv1.PeerMessage_Result:
		return r.result(m.Result)
	case *kithv1.PeerMessage_ResultAck:
		return meta.ResultAck{Attempt: r.attempt(m.ResultAck.GetAttempt()), Accepted: m.ResultAck.GetAccepted()}
	case *kithv1.PeerMessage_Stop:
		return meta.Stop{Attempt: r.attempt(m.Stop.GetAttempt()), Stale: m.Stop.GetStale()}
	case *kithv1.PeerMessage_Demote:
		return meta.Demote{Attempt: r.attempt(m.Demote.GetAttempt())}
	case *kithv1.PeerMessage_Saved:
		return meta.Saved{
			Attempt: r.attempt(m.Saved.GetAttempt()), Sequence: m.Saved.GetSequence(), Files: m.Saved.GetFiles(), FilesRemain: m.Saved.GetFilesRemain(),
			Ran: max(0, time.Duration(m.Saved.GetRanNs())), Reason: m.Saved.GetReason(),
		}
	case *kithv1.PeerMessage_SavedAck:
		return meta.SavedAck{Attempt: r.attempt(m.SavedAck.GetAttempt()), Sequence: m.SavedAck.GetSequence(), Accepted: m.SavedAck.GetAccepted()}
	case *kithv1.PeerMessage_GiveBack:
		return meta.GiveBack{Attempt: r.attempt(m.GiveBack.GetAttempt()), Reason: reason(m.GiveBack.GetReason()), Stamp: m.GiveBack.GetStamp(), Final: m.GiveBack.GetFinal()}
	case *kithv1.PeerMessage_CopySummary:
		return meta.CopySummary{Count: m.CopySummary.GetCount(), Hash: m.CopySummary.GetHash(), GivenUp: m.CopySummary.GetGivenUp()}
	case *kithv1.PeerMessage_DigestRequest:
		return meta.DigestRequest{}
	case *kithv1.PeerMessage_CopyDigest:
		return r.digest(m.CopyDigest)
	case *kithv1.PeerMessage_LoadDigest:
		d, err := wire.Digest(m.LoadDigest)
		if err != nil {
			r.err = err
		}
		return meta.LoadDigest{Digest: d}
	case *kithv1.PeerMessage_StartQuery:
		q := m.StartQuery
		asked := meta.StartQuery{Query: q.GetQuery(), Request: wire.Request(q.GetRequest()), Before: wire.Progress(q.GetBefore()), Predict: q.GetPredict(), Draws: uint16(min(q.GetDraws(), math.MaxUint16))}
		if q.GetAttempt() != nil {
			asked.Attempt = r.attempt(q.GetAttempt())
		}
		return asked
	case *kithv1.PeerMessage_SiteBundle: // what it says is read by Config.ReadBundle
		return meta.SiteBundle{Bundle: store.Bundle{Data: m.SiteBundle.GetBundle()}}
	case *kithv1.PeerMessage_BundleTaken:
		return meta.BundleTaken{Sequence: m.BundleTaken.GetSequence()}
	case *kithv1.PeerMessage_StartAnswer:
		return startAnswer(m.StartAnswer)
	}
	return r.taskMessage(p)
}

func durationOf(d *durationpb.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return d.AsDuration()
}

func (r *reader) result(m *kithv1.Result) meta.Message {
	outcome := wire.Outcome(m.GetOutcome())
	if outcome == nil {
		r.err = errors.New("no outcome of a known kind")
		return nil
	}
	return meta.Result{Attempt: r.attempt(m.GetAttempt()), Outcome: *outcome}
}

func (r *reader) digest(m *kithv1.CopyDigest) meta.Message {
	d := meta.CopyDigest{
		Stamp: m.GetStamp(), After: r.jobID(m.GetAfter()), Through: r.jobID(m.GetThrough()),
		Entries: make([]meta.DigestEntry, len(m.GetEntries())),
	}
	for i, e := range m.GetEntries() {
		phase := e.GetPhase()
		d.Entries[i] = meta.DigestEntry{
			Attempt: r.attempt(e.GetAttempt()), Started: job.Time(e.GetStartTimeNs()),
			Begun: phase == kithv1.CopyPhase_COPY_PHASE_BEGUN || phase == kithv1.CopyPhase_COPY_PHASE_ENDED,
			Ended: phase == kithv1.CopyPhase_COPY_PHASE_ENDED,
		}
	}
	return d
}
