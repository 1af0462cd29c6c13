package metrics

import "github.com/prometheus/client_golang/prometheus"

// Flight returns figures of a recording that figures tells.
func Flight(figures func() (recording bool, bytes, failures uint64)) []prometheus.Collector {
	return []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "kith_flight_recording", Help: "Whether what the engines are fed is recorded now.",
		}, func() float64 {
			recording, _, _ := figures()
			return truth(recording)
		}),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "kith_flight_written_bytes_total", Help: "Bytes of flight recordings that were written.",
		}, func() float64 {
			_, bytes, _ := figures()
			return float64(bytes)
		}),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "kith_flight_failures_total", Help: "Flight recordings that ended because they could not be written.",
		}, func() float64 {
			_, _, failures := figures()
			return float64(failures)
		}),
	}
}
