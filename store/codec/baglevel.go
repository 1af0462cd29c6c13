package codec

import (
	"math"
	"time"

	"kith/internal/job"
	statev1 "kith/proto/gen/kith/state/v1"
	"kith/store"
)

func levelMessage(l *store.BagLevel) *statev1.BagLevel {
	if l.Level == 0 {
		return nil
	}
	m := &statev1.BagLevel{Level: uint32(l.Level), SinceNs: int64(l.Since), BegunNs: int64(l.Begun), LimitNs: int64(l.Limit)}
	for i := range l.Demotions {
		d := &l.Demotions[i]
		m.Demotions = append(m.Demotions, &statev1.BagDemotion{
			TimeNs: int64(d.Time), From: uint32(d.From), To: uint32(d.To), Reason: uint32(d.Reason), SiteId: string(d.Site), UsedNs: int64(d.Used),
		})
	}
	return m
}

func (r *Reader) bagLevel(m *statev1.BagLevel) store.BagLevel {
	l := store.BagLevel{Level: uint8(min(m.GetLevel(), job.MaxLevel)), Since: job.Time(m.GetSinceNs()), Begun: job.Time(m.GetBegunNs()), Limit: time.Duration(m.GetLimitNs())}
	for _, d := range m.GetDemotions() {
		l.Demotions = append(l.Demotions, store.BagDemotion{
			Time: job.Time(d.GetTimeNs()), From: uint8(min(d.GetFrom(), job.MaxLevel)), To: uint8(min(d.GetTo(), job.MaxLevel)),
			Reason: job.Reason(min(d.GetReason(), math.MaxUint8)), Site: r.names.site(d.GetSiteId()), Used: time.Duration(d.GetUsedNs()),
		})
	}
	return l
}
