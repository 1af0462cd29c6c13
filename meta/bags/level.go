package bags

import (
	"time"

	"kith/internal/job"
)

// Level is how a stock stands: what an ask for it says.
type Level struct {
	// Places is how many pilots take from it, Running how many of them run a task.
	Places, Running int
	// Stock is how many tasks are in it, Mean how long tasks have run there, 0 if none has
	// ended.
	Stock int
	Mean  time.Duration
}

// low returns how many tasks the places use up in half of [Ahead], at least one: before
// fewer are there the next ones should be on their way.
func (l *Level) low() int { return max(1, fit(time.Duration(l.Places)*Ahead/2, l.mean())) }

// high returns how many they use up in all of it.
func (l *Level) high() int { return max(1, fit(time.Duration(l.Places)*Ahead, l.mean())) }

// mean takes what is not known for as long as can be: who fetches too little asks again.
func (l *Level) mean() time.Duration {
	if l.Mean <= 0 {
		return job.MaxWalltime
	}
	return l.Mean
}

// Want returns how many tasks the host should ask for, 0 for no ask: one for each idle
// place and, when less is left than is used up in a second, as much as fills two seconds.
// So places of long tasks have one task ahead among them, and those of short ones ask at
// most once a second. No ask may be under way for the stock.
func (l Level) Want() int {
	if l.Places <= 0 {
		return 0
	}
	idle := max(0, l.Places-l.Running)
	if l.Stock-idle >= l.low() {
		return 0
	}
	return min(max(0, idle+l.high()-l.Stock), MaxAsk)
}

// meanWeight is what the latest run counts in a [Mean].
const meanWeight = 10

// Mean is how long tasks run of late: the average of the first ten, then one in which each
// run counts for a tenth. The zero value is of no runs.
type Mean struct {
	mean  time.Duration
	count int
}

// Add counts a run.
func (m *Mean) Add(run time.Duration) {
	m.count = min(m.count+1, meanWeight)
	m.mean += (run - m.mean) / time.Duration(m.count)
}

// Run returns the mean, 0 if nothing has run; at least a nanosecond otherwise.
func (m *Mean) Run() time.Duration {
	if m.count == 0 {
		return 0
	}
	return max(1, m.mean)
}
