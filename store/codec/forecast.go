package codec

import (
	"encoding/binary"
	"math"
	"time"

	"kith/internal/job"
	statev1 "kith/proto/gen/kith/state/v1"
	"kith/store"
)

// runBytes converts the quantiles of a run time, nil if they say nothing.
func runBytes(q *[9]uint16) []byte {
	if *q == ([9]uint16{}) {
		return nil
	}
	b := make([]byte, 0, 2*len(q))
	for _, x := range q {
		b = binary.LittleEndian.AppendUint16(b, x)
	}
	return b
}

// runs converts back. Any other number of bytes says nothing.
func runs(b []byte) (q [9]uint16) {
	if len(b) == 2*len(q) {
		for i := range q {
			q[i] = binary.LittleEndian.Uint16(b[2*i:])
		}
	}
	return q
}

func forecastMessage(f *store.Forecast) *statev1.ForecastRecord {
	if f == nil {
		return nil
	}
	m := &statev1.ForecastRecord{
		Attempt: f.Attempt, TimeNs: int64(f.Made), Basis: uint32(f.Basis), RawNs: waitNumbers(&f.Raw), ToldNs: waitNumbers(&f.Told),
		LimitNs: int64(f.Limit), WaitedNs: int64(f.Waited), End: uint32(f.End),
	}
	for i := range f.Sites {
		s := &f.Sites[i]
		x := &statev1.SiteForecastRecord{Site: string(s.Site), Basis: uint32(s.Basis)}
		if s.Basis != 0 {
			x.WaitNs = waitNumbers(&s.Waits)
		}
		m.Sites = append(m.Sites, x)
	}
	return m
}

func (n *names) forecast(m *statev1.ForecastRecord) *store.Forecast {
	if m == nil {
		return nil
	}
	f := &store.Forecast{
		Attempt: m.GetAttempt(), Made: job.Time(m.GetTimeNs()), Basis: uint8(min(m.GetBasis(), math.MaxUint8)), Raw: waits(m.GetRawNs()), Told: waits(m.GetToldNs()),
		Limit: time.Duration(m.GetLimitNs()), Waited: time.Duration(m.GetWaitedNs()), End: store.ForecastEnd(min(m.GetEnd(), math.MaxUint8)),
	}
	for _, s := range m.GetSites() {
		f.Sites = append(f.Sites, store.SiteForecast{Site: n.site(s.GetSite()), Basis: uint8(min(s.GetBasis(), math.MaxUint8)), Waits: waits(s.GetWaitNs())})
	}
	return f
}

func waitNumbers(w *[9]time.Duration) []int64 {
	numbers := make([]int64, len(w))
	for i, x := range w {
		numbers[i] = int64(x)
	}
	return numbers
}

// waits converts back. Those that are lacking are zero.
func waits(numbers []int64) (w [9]time.Duration) {
	for i := range min(len(w), len(numbers)) {
		w[i] = time.Duration(numbers[i])
	}
	return w
}
