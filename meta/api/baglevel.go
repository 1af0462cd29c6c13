package api

import (
	"google.golang.org/protobuf/types/known/durationpb"

	"kith/internal/job"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
)

// bagLevel says where a bag is in its hierarchy, nil for a bag of none.
func bagLevel(v *meta.BagView) *kithv1.BagLevel {
	l := &v.Record.BagLevel
	if l.Level == 0 {
		return nil
	}
	m := &kithv1.BagLevel{Level: int32(l.Level), ArriveTime: stamp(l.Since)}
	if l.Begun != 0 {
		m.BeginTime = stamp(l.Begun)
	}
	if v.Run > 0 {
		m.RunLimit, m.QueueLimit = durationpb.New(v.Run), durationpb.New(v.Queue)
	}
	for i := range l.Demotions {
		d := &l.Demotions[i]
		why := d.Reason.Sentence()
		if d.Reason == job.Level { // which says of a site that it is of another one
			why = "no site of that level was in reach"
		}
		m.Demotions = append(m.Demotions, &kithv1.BagDemotion{
			Time: stamp(d.Time), Level: int32(d.From), ToLevel: int32(d.To), Reason: why, SiteId: string(d.Site), UsedTime: durationpb.New(d.Used),
		})
	}
	return m
}
