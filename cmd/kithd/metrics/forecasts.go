package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	kithv1 "kith/proto/gen/kith/v1"
)

func forecastGauge(name, help string, of func(*kithv1.ForecastRecord) float64) figure[*kithv1.ForecastRecord] {
	return gauge("forecast_"+name, help, of, "of", "class")
}

// forecasts are told of each class of forecasts that has any, of starts and of run times.
var forecasts = []figure[*kithv1.ForecastRecord]{
	forecastGauge("ranges", "The latest ranges of 80 % that were compared with what came true, at most 1,000.", func(r *kithv1.ForecastRecord) float64 { return float64(r.GetForecasts()) }),
	forecastGauge("ranges_held", "Those of the latest ranges that held.", (*kithv1.ForecastRecord).GetHeld),
	forecastGauge("ranges_early", "Those whose job started earlier, or ran for less.", (*kithv1.ForecastRecord).GetEarlier),
	forecastGauge("ranges_late", "Those whose job started later, or ran for longer.", (*kithv1.ForecastRecord).GetLater),
	forecastGauge("pinball_loss_seconds", "Mean pinball loss of the latest forecasts: the less, the better.", (*kithv1.ForecastRecord).GetPinballSeconds),
}

func tellForecasts(to chan<- prometheus.Metric, r *kithv1.GetForecastsResponse) {
	for of, list := range map[string][]*kithv1.ForecastRecord{"starts": r.GetStarts(), "runs": r.GetRuns()} {
		for _, f := range list {
			if f.GetForecasts() > 0 {
				tell(to, forecasts, f, of, f.GetClass())
			}
		}
	}
}
