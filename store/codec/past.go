package codec

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"kith/internal/job"
	statev1 "kith/proto/gen/kith/state/v1"
	"kith/store"
)

// PastKey is the key of an attempt that has ended; keys order as numbers do.
func PastKey(number uint64) []byte { return binary.BigEndian.AppendUint64(nil, number) }

// PastNumber is the number in a key.
func PastNumber(key []byte) (uint64, error) {
	if len(key) != 8 {
		return 0, fmt.Errorf("key of %d bytes of what is past: %w", len(key), store.ErrCorrupt)
	}
	return binary.BigEndian.Uint64(key), nil
}

func pastWrites(c *store.PastChanges) []Write {
	w := make([]Write, 0, len(c.Past)+len(c.ForgottenPast))
	for i := range c.Past {
		w = append(w, Write{Table: Past, Key: PastKey(c.Past[i].Number), Value: seal(pastMessage(&c.Past[i]))})
	}
	for _, number := range c.ForgottenPast {
		w = append(w, Write{Table: Past, Key: PastKey(number)})
	}
	return w
}

// PastNumbers tells the state the least and the greatest key of what is past.
func (r *Reader) PastNumbers(first, last []byte) error {
	from, err := PastNumber(first)
	if err != nil {
		return err
	}
	to, err := PastNumber(last)
	if err != nil {
		return err
	}
	r.state.RestorePast(from, to)
	return nil
}

func pastMessage(p *store.Past) *statev1.PastRecord {
	return &statev1.PastRecord{
		Origin: string(p.Origin), Site: string(p.Site), User: p.User, Name: p.Name, Processors: p.Processors, LimitNs: int64(p.Limit), RunNs: int64(p.Run),
		SubmitTimeNs: int64(p.Submitted), StartTimeNs: int64(p.Started), EndTimeNs: int64(p.Ended), Kind: uint32(p.Kind),
		ReadyTimeNs: int64(p.Ready), BlockedNs: int64(p.Harm.Blocked), PromisesMoved: p.Harm.Moved, MemoryBytes: p.MemoryBytes, Script: p.Script,
		BeforeNs: int64(p.Before),
	}
}

// PastRecord checks and returns an attempt that has ended, by its number.
func PastRecord(number uint64, value []byte) (store.Past, error) {
	var m statev1.PastRecord
	if err := open(value, &m); err != nil {
		return store.Past{}, fmt.Errorf("record %d of what is past: %w", number, err)
	}
	return store.Past{
		Number: number, Origin: job.SiteID(m.GetOrigin()), Site: job.SiteID(m.GetSite()), User: m.GetUser(), Name: m.GetName(), Processors: m.GetProcessors(),
		Limit: time.Duration(m.GetLimitNs()), Run: time.Duration(m.GetRunNs()), Submitted: job.Time(m.GetSubmitTimeNs()), Started: job.Time(m.GetStartTimeNs()),
		Ended: job.Time(m.GetEndTimeNs()), Kind: job.OutcomeKind(min(m.GetKind(), math.MaxUint8)),
		Ready: job.Time(m.GetReadyTimeNs()), Harm: store.Harm{Blocked: time.Duration(max(m.GetBlockedNs(), 0)), Moved: m.GetPromisesMoved()}, MemoryBytes: max(m.GetMemoryBytes(), 0), Script: m.GetScript(),
		Before: time.Duration(min(max(m.GetBeforeNs(), 0), int64(job.MaxWalltime))),
	}, nil
}
