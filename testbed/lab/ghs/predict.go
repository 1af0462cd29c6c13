package ghs

import (
	"context"
	"fmt"
	"time"

	"kith/internal/harvest"
	"kith/internal/job"
	"kith/testbed/lab"
)

// history is how long an owner is measured before anything runs: four weeks.
const history = 28 * day

// The sizes of tasks, in hours: on one machine, and on each of several.
var (
	singleHours = []int{1, 2, 4, 8, 16, 24}
	nodeHours   = []int{1, 2, 4, 8, 16}
)

// errorName is a figure of tasks of that many hours.
func errorName(what string, hours int) string { return fmt.Sprintf("%s, %d h", what, hours) }

// predictAt is what the sensor predicts for work of x seconds that begins at t.
func predictAt(s *sensor, t, x float64) (harvest.Prediction, error) {
	last, err := s.record(t)
	if err != nil {
		return harvest.Prediction{}, err
	}
	return s.usage.PredictTask(last, job.Time(t*float64(time.Second)), x), nil
}

// runSingle runs tasks one after another on one machine.
func runSingle(ctx context.Context, _ trial, b *bench) (outcome, error) {
	errors := make(map[string]*spread)
	add := func(name string, hours int, x float64) {
		key := errorName(name, hours)
		if errors[key] == nil {
			errors[key] = &spread{}
		}
		errors[key].add(x)
	}
	for r := range b.runs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		rng := random(b.seed, single, r)
		o := habitual(random(b.seed, single, -1-r), 0.1+0.4*rng.Float64())
		s := watch(o)
		t := history + day*7*rng.Float64()
		for _, hours := range singleHours {
			x := float64(hours) * hour
			t = o.idleFrom(t + day*rng.Float64()) // each begins after some moment of a day
			p, err := predictAt(s, t, x)
			if err != nil {
				return nil, err
			}
			known := o.expected(t, x)
			nws := map[string]float64{"NWS of 10 s": x / s.available(t, 10, nil), "NWS of 5 min": x / s.available(t, 300, nil)}
			ends := o.run(t, x)
			took := ends - t
			ghs := x / (1 - p.Rho)
			add("GHS", hours, off(ghs, took))
			add("true rates", hours, off(known, took))
			add("GHS, squared", hours, (ghs-took)*(ghs-took))
			add("utilisation", hours, off(p.Rho, 1-x/took))
			for name, is := range nws {
				add(name, hours, off(is, took))
				add(name+", squared", hours, (is-took)*(is-took))
			}
			if took > x {
				add("earlier", hours, 0)
			} else {
				add("earlier", hours, 1)
			}
			t = ends
		}
	}
	o := make(outcome)
	for key, s := range errors {
		o[key], o[key+", variance"] = s.mean(), s.variance()
	}
	return o, nil
}

// runPredicted runs parallel tasks on size machines, the same work on each, one after another.
func runPredicted(ctx context.Context, t trial, b *bench) (outcome, error) {
	errors := make([]spread, len(nodeHours))
	for r := range max(1, b.runs*6/runsOf) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		rng := random(b.seed, predicted, r)
		owners, sensors := make([]*owner, t.size), make([]*sensor, t.size)
		for i := range owners {
			own := random(b.seed, predicted, r*1000+i+1)
			owners[i] = habitual(own, 0.1+0.4*own.Float64())
			sensors[i] = watch(owners[i])
		}
		begin := history + day*7*rng.Float64()
		for k, hours := range nodeHours {
			x := float64(hours) * hour
			ms, works := make([]harvest.Machine, t.size), make([]float64, t.size)
			starts := make([]float64, t.size)
			for i, o := range owners {
				starts[i] = o.idleFrom(begin)
				p, err := predictAt(sensors[i], starts[i], x)
				if err != nil {
					return nil, err
				}
				ms[i], works[i] = p.Machine(1), x
			}
			all, err := harvest.NewParallel(ms, works, harvest.Method{})
			if err != nil {
				return nil, err
			}
			took, ends := 0.0, begin
			for i, o := range owners {
				real := x
				if t.what == noisy {
					// Communication is 10 % of the work in the mean, 5 to 15 % in a run.
					real *= (1.05 + 0.1*rng.Float64()) / 1.1
				}
				end := o.run(starts[i], real)
				took, ends = max(took, end-starts[i]), max(ends, end)
			}
			errors[k].add(off(all.Mean(), took))
			begin = ends
		}
	}
	o := make(outcome)
	for k, hours := range nodeHours {
		o[errorName("GHS", hours)], o[errorName("GHS, variance", hours)] = errors[k].mean(), errors[k].variance()
	}
	return o, nil
}

// The trials of predictions.
var (
	oneMachine = trial{single, 1}
	nodes32    = trial{predicted, 32}
	nodes8     = trial{predicted, 8}
	cactus     = trial{noisy, 8}
)

// errorsOf are the errors of a trial by hours, in percent.
func (a *answers) errorsOf(t trial, what string, hours []int) []lab.Spread {
	var list []lab.Spread
	for _, h := range hours {
		list = append(list, a.Of(t, percent(errorName(what, h))))
	}
	return list
}

// whyHeavy says why errors are large with the source's life times.
const whyHeavy = "One owner's job in 1,800 lasts an hour: the source's life times, cut there, vary by seven times their mean, so that an owner takes much more or less than his mean share even in 8 h. That is most of the error: by the true rates of arrivals, which nobody knows, it would not be much less (S1, the table). The source does not say where it cut its life times."

func predictionQuestions() []question {
	return []question{{
		ID: "S1", Kind: lab.Exact, Text: "One machine, tasks of 1 to 24 h: mean and variance of the error fall with the work; from 8 h on it is below 10 %.",
		Source: "< 10 % from 8 h", Band: "mean and variance fall from size to size, within noise; ≤ 10 % at 8, 16 and 24 h",
		Needs: []trial{oneMachine}, Judge: func(a *answers) lab.Finding {
			means := a.errorsOf(oneMachine, "GHS", singleHours)
			var parts []lab.Reading
			for i, h := range singleHours {
				parts = append(parts, lab.Check(fmt.Sprintf("%d h", h), means[i], "%", h < 8 || means[i].Mean() <= 10))
			}
			var variances []lab.Spread
			for _, h := range singleHours {
				variances = append(variances, a.Of(oneMachine, figure(errorName("GHS", h)+", variance")))
			}
			parts = append(parts, lab.Shown("8 h, by the true rates of arrivals", a.errorsOf(oneMachine, "true rates", []int{8})[0], "%"))
			parts = append(parts, lab.Check("the mean falls", nil, "", falling(means)), lab.Check("the variance falls", nil, "", falling(variances)))
			return lab.Conclude(parts...).Noted("", whyHeavy)
		},
	}, {
		ID: "S2", Kind: lab.Direction, Text: "The error of the completion time is larger than that of the utilisation; short tasks end earlier than predicted.",
		Source: "larger; earlier", Band: "completion ÷ utilisation > 1 at each size; that short tasks end earlier is an effect of the operating system and only shown",
		Needs: []trial{oneMachine}, Judge: func(a *answers) lab.Finding {
			var parts []lab.Reading
			for _, h := range singleHours {
				parts = append(parts, lab.Above(fmt.Sprintf("%d h", h), a.over(oneMachine, errorName("GHS", h), errorName("utilisation", h)), 1))
			}
			parts = append(parts, lab.Shown("tasks of 1 h that no job of the owner met", a.errorsOf(oneMachine, "earlier", []int{1})[0], "%"))
			return lab.Conclude(parts...).Noted("", "By arithmetic: T = x ÷ (1 − ρ), so that the same miss of ρ makes a relative error of T that is ρ ÷ (1 − ρ) times that of ρ: less for owners who take less than half, as these do. The source puts it down to its operating system, which gave a guest of lowest priority some time beside the owner's jobs.")
		},
	}, {
		ID: "S3", Kind: lab.Direction, Enforced: true, Text: "32 nodes, 32 to 512 h in all: the error falls with the demand.",
		Source: "falls (Figure 9)", Band: "error at 512 h ≤ 0.6 × error at 32 h",
		Needs: []trial{nodes32}, Judge: func(a *answers) lab.Finding {
			e := a.errorsOf(nodes32, "GHS", nodeHours)
			parts := []lab.Reading{lab.Within("512 h ÷ 32 h", lab.Spread{e[4].Mean() / e[0].Mean()}, 0, 0.6)}
			for i, h := range nodeHours {
				parts = append(parts, lab.Shown(fmt.Sprintf("%d h", 32*h), e[i], "%"))
			}
			return lab.Conclude(parts...).Noted("", whyHeavy)
		},
	}, {
		ID: "S4", Kind: lab.Exact, Text: "A shared machine of 8 processors: the error falls faster.",
		Source: "8 h in all 9.31 %, 16 h 4.18 %", Band: "≤ 12 % and ≤ 8 %, falling",
		Needs: []trial{nodes8}, Judge: func(a *answers) lab.Finding {
			e := a.errorsOf(nodes8, "GHS", nodeHours)
			return lab.Conclude(lab.Within("8 h", e[0], 0, 12), lab.Within("16 h", e[1], 0, 8), lab.Check("falls", nil, "", e[1].Mean() < e[0].Mean())).
				Noted("", "Each processor has an owner of its own here. The operating system of a shared machine moves the guest's parts to processors that are idle, which evens the owners out. "+whyHeavy)
		},
	}, {
		ID: "S5", Kind: lab.Exact, Text: "A program that communicates, 8 nodes, 8 h each: 5.9 %, more than without communication.",
		Source: "5.9 %", Band: "none: communication is noise of 5 to 15 % here (≤ 12 % and more than S3's were expected)",
		Needs: []trial{cactus, nodes8}, Judge: func(a *answers) lab.Finding {
			f := lab.Conclude(
				lab.Shown("8 h each", a.errorsOf(cactus, "GHS", []int{8})[0], "%"),
				lab.Shown("without communication", a.errorsOf(nodes8, "GHS", []int{8})[0], "%"))
			f.Result = lab.Informational
			return f
		},
	}}
}

// over is one figure of a trial over another, for each seed.
func (a *answers) over(t trial, name, over string) lab.Spread {
	return a.Of(t, func(o outcome) float64 { return o[name] / o[over] })
}

func forecastQuestion() question {
	return question{
		ID: "S10", Kind: lab.Direction, Enforced: true, Text: "Errors by short forecasts of availability (NWS, 10 s and 5 min) stay high, those of GHS fall with the work; squared, they are always larger.",
		Source: "Figures 14 and 15", Band: "at 8, 16 and 24 h GHS ≤ 0.6 × either; squared errors of either more than GHS at each size",
		Needs: []trial{oneMachine}, Judge: func(a *answers) lab.Finding {
			var parts []lab.Reading
			for _, name := range []string{"NWS of 10 s", "NWS of 5 min"} {
				for _, h := range []int{8, 16, 24} {
					v := a.over(oneMachine, errorName("GHS", h), errorName(name, h))
					parts = append(parts, lab.Within(fmt.Sprintf("GHS ÷ %s, %d h", name, h), v, 0, 0.6))
				}
				least := lab.Unbounded
				for _, h := range singleHours {
					v := a.Of(oneMachine, figure(errorName(name+", squared", h))).Mean() / a.Of(oneMachine, figure(errorName("GHS, squared", h))).Mean()
					least = min(least, v)
				}
				parts = append(parts, lab.Above(name+" ÷ GHS, squared, least of all sizes", lab.Spread{least}, 1))
			}
			return lab.Conclude(parts...)
		},
	}
}
