package codec

import (
	"encoding/binary"

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
			Sequence: m.GetSequence(), Reason: m.GetReason(),
		}
	}
	return list
}

// AttemptKey is the key of what an attempt left that its job has gone on from. Those of a job
// begin with its [JobKey].
func AttemptKey(a job.AttemptID) []byte {
	return binary.BigEndian.AppendUint32(JobKey(a.Job), a.Number)
}
