package replay

import "kith/internal/job"

// end is when a running job will end.
type end struct {
	at  job.Time
	job int32 // its place in the workload
}

// before is the order of completions: by instant, then by job.
func (e end) before(f end) bool { return e.at < f.at || e.at == f.at && e.job < f.job }

// ends is a heap of the jobs that run, soonest first. It is written out for
// speed: it is half of what a driver does beside the scheduler.
type ends []end

func (h *ends) push(at job.Time, place int32) {
	s := append(*h, end{})
	e := end{at, place}
	i := len(s) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !e.before(s[up]) {
			break
		}
		s[i] = s[up]
		i = up
	}
	s[i] = e
	*h = s
}

// pop removes the first and returns its job.
func (h *ends) pop() int32 {
	s := *h
	first := s[0].job
	last := s[len(s)-1]
	s = s[:len(s)-1]
	i := 0
	for {
		down := 2*i + 1
		if down >= len(s) {
			break
		}
		if down+1 < len(s) && s[down+1].before(s[down]) {
			down++
		}
		if last.before(s[down]) {
			break
		}
		s[i] = s[down]
		i = down
	}
	if i < len(s) {
		s[i] = last
	}
	*h = s
	return first
}
