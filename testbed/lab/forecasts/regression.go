package forecasts

import (
	"math"
	"slices"
	"time"

	"kith/internal/forecast"
)

// regression forecasts the quantiles of a run time as linear functions of what is known of the
// job and of its user's last ones; the weights are learnt as jobs end (online quantile
// regression with AdaGrad).
type regression struct {
	runs
	last    map[string]*userState
	weights [len(forecast.Levels)][features]float64
	squares [len(forecast.Levels)][features]float64
	seen    [][features]float64 // of each job, when it was asked about
}

// userState is what of a user's past the features are made of.
type userState struct{ last, before, mean, ended float64 }

const (
	features = 7
	rate     = 0.1
)

func newRegression(r runs) *regression {
	m := &regression{runs: r, last: make(map[string]*userState), seen: make([][features]float64, len(r.jobs))}
	for i, p := range forecast.Levels {
		m.weights[i][0] = p
	}
	return m
}

// describe returns the features of job i: all within 0 to 1 or a little more.
func (m *regression) describe(i int) [features]float64 {
	j := &m.jobs[i]
	limit := j.Estimate.Seconds()
	x := [features]float64{1, math.Log(limit) / 12, math.Log(float64(j.Procs)) / 8}
	if u := m.last[j.User]; u != nil {
		x[3], x[4], x[5] = min(u.last/limit, 1), min((u.last+u.before)/2/limit, 1), min(u.mean/limit, 1)
	} else {
		x[6] = 1
	}
	return x
}

func (m *regression) ask(i int, d *forecast.Dist) forecast.Class {
	m.seen[i] = m.describe(i)
	var q forecast.Runs
	for k := range q {
		f := 0.0
		for n, x := range m.seen[i] {
			f += m.weights[k][n] * x
		}
		q[k] = uint16(math.Round(min(max(f, 0), 1) * math.MaxUint16))
	}
	slices.Sort(q[:])
	q.Dist(m.jobs[i].Estimate, d)
	return m.class(i)
}

func (m *regression) learn(i int) {
	m.ended(i)
	truth := float64(m.items[i].truth) / float64(m.jobs[i].Estimate)
	x := &m.seen[i]
	for k, p := range forecast.Levels {
		f := 0.0
		for n := range x {
			f += m.weights[k][n] * x[n]
		}
		slope := p
		if truth < f {
			slope = p - 1
		}
		for n := range x {
			g := slope * x[n]
			m.squares[k][n] += g * g
			m.weights[k][n] += rate * g / math.Sqrt(m.squares[k][n]+1e-8)
		}
	}
	user := m.jobs[i].User
	u := m.last[user]
	if u == nil {
		u = &userState{}
		m.last[user] = u
	}
	run := m.items[i].truth / time.Second
	u.before, u.last = u.last, float64(run)
	if u.ended == 0 {
		u.before = u.last
	}
	u.ended++
	u.mean += (u.last - u.mean) / u.ended
}
