package forecasts

import (
	"time"

	"kith/internal/forecast"
	"kith/testbed/workload"
)

// scenarios are our starts: what scenarios came to.
type scenarios []forecast.Samples

func (m scenarios) ask(i int, d *forecast.Dist) forecast.Class {
	m[i].Dist(d)
	return forecast.StartClass(d.Quantile(.5))
}

func (m scenarios) learn(int) {}

// ring is the latest values of something.
type ring struct {
	of   []float64
	next int
}

// ringSize is how much of the past the simple methods go by.
const ringSize = 500

func (r *ring) add(x float64) {
	if len(r.of) < ringSize {
		r.of = append(r.of, x)
		return
	}
	r.of[r.next] = x
	r.next = (r.next + 1) % ringSize
}

// times makes d a base times the ratios in the ring, none above most; without any it is even
// up to the base.
func (r *ring) times(base, most time.Duration, d *forecast.Dist) {
	d.Reset()
	for _, x := range r.of {
		d.Add(min(time.Duration(min(x*float64(base), float64(most))), most), 1)
	}
	if len(r.of) == 0 {
		const pieces = 20
		for i := range pieces {
			d.Add(time.Duration((float64(i)+0.5)/pieces*float64(base)), 1)
		}
	}
}

// longest is longer than any wait.
const longest = 20 * 366 * forecast.Day

// pastRatio forecasts a start by what WhatIf says, times what the truth was of it before.
type pastRatio struct {
	items  []item
	latest []time.Duration
	ratios ring
}

func (m *pastRatio) ask(i int, d *forecast.Dist) forecast.Class {
	m.ratios.times(m.latest[i], longest, d)
	return forecast.StartClass(d.Quantile(.5))
}

func (m *pastRatio) learn(i int) {
	m.ratios.add(min(float64(m.items[i].truth)/float64(max(m.latest[i], time.Second)), 1000))
}

// pastWaits forecasts a start by the waits of jobs of about the same width before, as QBETS does.
type pastWaits struct {
	items  []item
	widths []int32
	waits  [8]ring
}

func (m *pastWaits) of(i int) *ring {
	c := 0
	for w := m.widths[i]; w > 1 && c < len(m.waits)-1; w >>= 1 {
		c++
	}
	return &m.waits[c]
}

func (m *pastWaits) ask(i int, d *forecast.Dist) forecast.Class {
	m.of(i).times(time.Second, longest, d)
	return forecast.StartClass(d.Quantile(.5))
}

func (m *pastWaits) learn(i int) { m.of(i).add(m.items[i].truth.Seconds()) }

// runs is what all methods for run times share.
type runs struct {
	items []item
	jobs  []workload.Job
	users map[string]int // ended jobs
}

func (m *runs) class(i int) forecast.Class {
	return forecast.RunClass(m.jobs[i].Estimate, m.users[m.jobs[i].User])
}

func (m *runs) ended(i int) { m.users[m.jobs[i].User]++ }

// similar are our run times: those of similar jobs.
type similar struct {
	runs
	history *forecast.History
}

func (m *similar) ask(i int, d *forecast.Dist) forecast.Class {
	j := &m.jobs[i]
	m.history.Runs(&forecast.Question{User: j.User, Procs: j.Procs, Limit: j.Estimate}, d)
	return m.class(i)
}

func (m *similar) learn(i int) {
	j := &m.jobs[i]
	m.ended(i)
	m.history.Ended(&forecast.Past{User: j.User, Procs: j.Procs, Limit: j.Estimate, Run: m.items[i].truth, Stopped: m.items[i].truth >= j.Estimate})
}

// ofLimit forecasts a run time by the limit, times what run times were of theirs before.
type ofLimit struct {
	runs
	ratios ring
}

func (m *ofLimit) ask(i int, d *forecast.Dist) forecast.Class {
	m.ratios.times(m.jobs[i].Estimate, m.jobs[i].Estimate, d)
	return m.class(i)
}

func (m *ofLimit) learn(i int) {
	m.ended(i)
	m.ratios.add(float64(m.items[i].truth) / float64(m.jobs[i].Estimate))
}

// lastTwo forecasts a run time by the mean of the user's last two, times what run times were
// of that before.
type lastTwo struct {
	runs
	last   map[string][2]time.Duration
	bases  []time.Duration
	ratios ring
}

func (m *lastTwo) ask(i int, d *forecast.Dist) forecast.Class {
	j := &m.jobs[i]
	base := j.Estimate
	if x := m.last[j.User]; x[1] > 0 {
		base = min(base, (x[0]+x[1])/2)
	} else if x[0] > 0 {
		base = min(base, x[0])
	}
	m.bases[i] = max(base, time.Second)
	m.ratios.times(m.bases[i], j.Estimate, d)
	return m.class(i)
}

func (m *lastTwo) learn(i int) {
	m.ended(i)
	user := m.jobs[i].User
	m.last[user] = [2]time.Duration{m.items[i].truth, m.last[user][0]}
	m.ratios.add(float64(m.items[i].truth) / float64(m.bases[i]))
}
