package codec

import (
	"fmt"
	"math"

	"kith/internal/job"
	statev1 "kith/proto/gen/kith/state/v1"
	"kith/store"
)

func afterWrites(s *store.State, changed []job.ID) []Write {
	var w []Write
	for _, id := range changed {
		if after := s.After(id); after != nil {
			w = append(w, Write{Table: After, Key: JobKey(id), Value: seal(afterMessage(id, after))})
		} else {
			w = append(w, Write{Table: After, Key: JobKey(id)})
		}
	}
	return w
}

func afterMessage(id job.ID, after []job.Dependency) *statev1.AfterRecord {
	m := &statev1.AfterRecord{Generation: id.Generation, Seq: id.Seq}
	for _, d := range after {
		m.After = append(m.After, &statev1.DependencyRecord{
			Generation: d.On.Generation, Seq: d.On.Seq, Condition: uint32(d.Condition), State: uint32(d.State),
		})
	}
	return m
}

func (r *Reader) after(value []byte) error {
	var m statev1.AfterRecord
	if err := open(value, &m); err != nil {
		return fmt.Errorf("record of dependencies: %w", err)
	}
	after := make([]job.Dependency, len(m.GetAfter()))
	for i, d := range m.GetAfter() {
		after[i] = job.Dependency{Condition: job.Condition(min(d.GetCondition(), math.MaxUint8)), State: job.DependencyState(min(d.GetState(), math.MaxUint8))}
		if after[i].Condition != job.Singleton {
			after[i].On = r.bagID(d.GetGeneration(), d.GetSeq())
		}
	}
	return r.state.RestoreAfter(r.bagID(m.GetGeneration(), m.GetSeq()), after)
}
