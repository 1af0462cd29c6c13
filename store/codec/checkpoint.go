package codec

import (
	"encoding/binary"
	"time"

	"kith/internal/job"
	statev1 "kith/proto/gen/kith/state/v1"
	"kith/store"
)

func demotionMessages(list []store.Demotion) []*statev1.DemotionRecord {
	if len(list) == 0 {
		return nil
	}
	messages := make([]*statev1.DemotionRecord, len(list))
	for i, d := range list {
		messages[i] = &statev1.DemotionRecord{
			Attempt: d.Attempt, Site: string(d.Site), StartTimeNs: int64(d.Start), EndTimeNs: int64(d.End), Sequence: d.Sequence, Reason: d.Reason,
			Cause: uint32(d.Cause),
			Level: uint32(d.Level), Speed: d.Speed, Bound: d.Bound,
		}
	}
	return messages
}

func (n *names) demotions(messages []*statev1.DemotionRecord) []store.Demotion {
	if len(messages) == 0 {
		return nil
	}
	list := make([]store.Demotion, len(messages))
	for i, m := range messages {
		list[i] = store.Demotion{
			Attempt: m.GetAttempt(), Site: n.site(m.GetSite()), Start: job.Time(m.GetStartTimeNs()), End: job.Time(m.GetEndTimeNs()),
			Sequence: m.GetSequence(), Reason: m.GetReason(), Cause: job.DemotionCause(min(m.GetCause(), 255)),
			Level: uint8(min(m.GetLevel(), job.MaxLevel)), Speed: m.GetSpeed(), Bound: m.GetBound(),
		}
	}
	return list
}

func savedMessage(s *store.Saved) *statev1.SavedRecord {
	if s == nil {
		return nil
	}
	return &statev1.SavedRecord{Attempt: s.Attempt, Site: string(s.Site), Sequence: s.Sequence, TimeNs: int64(s.Time), RanNs: int64(s.Ran), Speed: s.Speed, From: s.From}
}

func (n *names) saved(m *statev1.SavedRecord) *store.Saved {
	if m == nil {
		return nil
	}
	return &store.Saved{
		Attempt: m.GetAttempt(), Site: n.site(m.GetSite()), Sequence: m.GetSequence(), Time: job.Time(m.GetTimeNs()), Ran: time.Duration(m.GetRanNs()), Speed: m.GetSpeed(), From: m.GetFrom(),
	}
}

// AttemptKey is the key of what an attempt left that its job has gone on from, or, with the number 0, of
// what came home last from one that ran. Those of a job
// begin with its [JobKey].
func AttemptKey(a job.AttemptID) []byte {
	return binary.BigEndian.AppendUint32(JobKey(a.Job), a.Number)
}
