package api

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"kith/internal/forecast"
	"kith/internal/identity"
	"kith/internal/job"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
)

// MaxAlternatives is how many alternatives of a job are looked at together.
const MaxAlternatives = 64

// ForecastJob implements kithv1.JobServiceServer.
func (s *Server) ForecastJob(ctx context.Context, r *kithv1.ForecastJobRequest) (*kithv1.ForecastJobResponse, error) {
	ev, places, err := s.whatIf(ctx, r)
	if err != nil {
		return nil, err
	}
	reply, err := s.Node.Ask(ctx, func(token uint64) meta.Event {
		ev.Token = token
		return ev
	})
	if err != nil {
		return nil, err
	}
	f := reply.Forecast
	m := &kithv1.ForecastJobResponse{MadeTime: stamp(f.Made), Scored: int32(f.Record.Forecasts), HeldShare: f.Record.Share()} //nolint:gosec // At most 1,000.
	if places == nil {
		for i := range f.Shapes {
			x := &f.Shapes[i]
			if x.Err != nil {
				m.Alternatives = append(m.Alternatives, alternative(f, x, nil))
			}
			for k := range x.Spreads {
				m.Alternatives = append(m.Alternatives, alternative(f, x, &x.Spreads[k]))
			}
		}
		return m, nil
	}
	for _, p := range places {
		x := &f.Shapes[p.shape]
		var spread *meta.SpreadForecast
		for i := range x.Spreads {
			if x.Spreads[i].Copies == p.copies {
				spread = &x.Spreads[i]
			}
		}
		m.Alternatives = append(m.Alternatives, alternative(f, x, spread))
	}
	return m, nil
}

// shapePlace says which shape and which number of copies an alternative is.
type shapePlace struct {
	shape  int
	copies int32
}

// whatIf checks a request. The places are those of its alternatives, nil if it has none.
func (s *Server) whatIf(ctx context.Context, r *kithv1.ForecastJobRequest) (ev meta.ForecastJob, places []shapePlace, err error) {
	if err := knownRequest(r); err != nil {
		return ev, nil, err
	}
	var f fieldErrors
	switch {
	case r.GetJobId() != "" && r.GetJob() != nil:
		f.add("job_id", "names a job beside job; give one of them")
	case r.GetJobId() != "":
		if ev.Job, err = jobID(r.GetJobId()); err != nil {
			return ev, nil, err
		}
	default:
		f = checkJob(r.GetJob())
		ev.Request = requestOf(r.GetJob(), s.userOf(identity.From(ctx)))
	}
	if x := r.SerialFraction; x != nil {
		if ev.Serial = x; !(*x >= 0 && *x <= 1) {
			f.add("serial_fraction", fmt.Sprintf("%v: must be 0 to 1", *x))
		}
	}
	if n := len(r.GetAlternatives()); n > MaxAlternatives {
		f.add("alternatives", fmt.Sprintf("%d of them; at most %d are looked at together", n, MaxAlternatives))
	} else {
		places = s.alternatives(&f, r, &ev)
	}
	f.addNew(breaches(r))
	if len(f) > 0 {
		return ev, nil, f
	}
	return ev, places, nil
}

// alternatives takes the alternatives apart into shapes and numbers of copies.
func (s *Server) alternatives(f *fieldErrors, r *kithv1.ForecastJobRequest, ev *meta.ForecastJob) (places []shapePlace) {
	for i, a := range r.GetAlternatives() {
		key := fmt.Sprintf("alternatives[%d].", i)
		x := meta.Shape{Walltime: a.GetWalltime().AsDuration(), Processors: a.GetProcessors()}
		if w := a.GetWalltime(); w != nil && (w.CheckValid() != nil || x.Walltime <= 0 || x.Walltime > job.MaxWalltime) {
			f.add(key+"walltime", "must be more than 0 and at most 10 years")
		}
		if x.Processors < 0 || x.Processors > job.MaxProcessors {
			f.add(key+"processors", fmt.Sprintf("%d: must be 1 to %d", x.Processors, job.MaxProcessors))
		}
		if k := a.GetCopies(); k < 0 || k > meta.MaxSpreads {
			f.add(key+"copies", fmt.Sprintf("%d: must be 1 to %d", k, meta.MaxSpreads))
		}
		shape := slices.Index(ev.Shapes, x)
		if shape < 0 {
			shape = len(ev.Shapes)
			ev.Shapes = append(ev.Shapes, x)
		}
		if !slices.Contains(ev.Copies, a.GetCopies()) {
			ev.Copies = append(ev.Copies, a.GetCopies())
		}
		places = append(places, shapePlace{shape, a.GetCopies()})
	}
	slices.Sort(ev.Copies)
	if len(ev.Shapes) > meta.MaxShapes {
		f.add("alternatives", fmt.Sprintf("%d combinations of walltime and processors; at most %d are looked at together", len(ev.Shapes), meta.MaxShapes))
	}
	return places
}

// alternative is what would become of a job; nil without a number of copies that it can have.
func alternative(f *meta.JobForecast, x *meta.ShapeForecast, spread *meta.SpreadForecast) *kithv1.AlternativeForecast {
	m := &kithv1.AlternativeForecast{Walltime: durationpb.New(x.Request.Walltime), Processors: x.Request.Processors}
	if x.Err != nil || spread == nil {
		m.Refused = "no site can take it now"
		if x.Err != nil {
			m.Refused = x.Err.Error()
		}
		return m
	}
	m.Copies = int32(len(spread.Sites)) //nolint:gosec // At most store.MaxForecastSites.
	if len(spread.Sites) == 0 {
		m.Refused = "no site can take it now"
	}
	m.RunBasis = x.RunBasis.String()
	if x.RunBasis != forecast.LimitOnly {
		m.StoppedShare = proto.Float64(x.Stopped)
	}
	m.Basis = spread.Basis.String()
	if spread.Basis != forecast.NoStart {
		m.StartLow, m.StartMedian, m.StartHigh = rangeAfter(f.Made, &spread.Waits)
		m.EndLow, m.EndMedian, m.EndHigh = rangeAfter(f.Made, &spread.Ends)
		m.MeanWaitSeconds = spread.Waits.Mean().Seconds()
	}
	for _, i := range spread.Sites {
		m.Sites = append(m.Sites, siteAlternative(f.Made, &x.Sites[i]))
	}
	return m
}

func siteAlternative(made job.Time, x *meta.SiteForecast) *kithv1.SiteAlternative {
	m := &kithv1.SiteAlternative{SiteId: string(x.Site), Basis: x.Basis.String(), LoadAge: durationpb.New(max(x.Age, 0))}
	if x.Basis != forecast.NoStart {
		m.StartLow, m.StartMedian, m.StartHigh = rangeAfter(made, &x.Waits)
		m.EndLow, m.EndMedian, m.EndHigh = rangeAfter(made, &x.Ends)
	}
	if x.Limit >= 0 {
		m.Latest = laterBy(made, x.Limit)
	}
	if x.Reason != job.NoReason {
		m.Reason = x.Reason.Sentence()
	}
	return m
}

// rangeAfter is a range of waits as instants.
func rangeAfter(made job.Time, w *forecast.Waits) (low, median, high *timestamppb.Timestamp) {
	r := w.Range()
	return laterBy(made, r.Low), laterBy(made, r.Median), laterBy(made, r.High)
}
