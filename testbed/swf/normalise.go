package swf

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Job is one job of a log, ready to be simulated. Times are in seconds.
type Job struct {
	// Number is the job's number in the log.
	Number int64
	// Submit counts from the submission of the first job.
	Submit int64
	// Run is the run time, at least 1.
	Run int64
	// Request is the user's estimate, at least 1.
	Request int64
	// Processors is the width, at least 1.
	Processors int64
	// User and Group are as in the log, -1 if unknown.
	User, Group int64
}

// Overrun says what becomes of a job that ran longer than its request.
type Overrun uint8

const (
	// Kill cuts the run time down to the request, as a site does.
	Kill Overrun = iota
	// Raise sets the request to the run time, which keeps the work comparable
	// (spec 001 section 2.7).
	Raise
	// Keep leaves both.
	Keep
)

var overrunNames = [...]string{"kill", "raise", "keep"}

// String returns the word that [ParseOverrun] reads.
func (o Overrun) String() string {
	if int(o) < len(overrunNames) {
		return overrunNames[o]
	}
	return fmt.Sprintf("unknown(%d)", uint8(o))
}

// ErrOverrun is returned for a word that names no [Overrun].
var ErrOverrun = errors.New("not one of kill, raise, keep")

// ParseOverrun reads kill, raise or keep.
func ParseOverrun(s string) (Overrun, error) {
	for i, name := range overrunNames {
		if s == name {
			return Overrun(i), nil // three words
		}
	}
	return 0, fmt.Errorf("overrun %.40q: %w", s, ErrOverrun)
}

// Counts says what [Normalise] dropped or changed.
type Counts struct {
	// Jobs were kept.
	Jobs int
	// NoRun, NoProcessors and TooWide were dropped: they ran for no time, on no
	// processors, or need more than there are. A job counts once, in this order.
	NoRun, NoProcessors, TooWide int
	// NoRequest were given their run time as request.
	NoRequest int
	// Overran ran longer than requested and were treated as the Overrun says.
	Overran int
	// OutOfOrder were submitted before a job ahead of them in the log.
	OutOfOrder int
	// ShiftSeconds was taken from every submission, so that the first is 0.
	ShiftSeconds int64
}

// Normalise returns the jobs of t that a machine of the given size can run, in
// the order (submission, position in the log). The width is what was
// requested, else what was allocated; a missing request is the run time.
func Normalise(t *Trace, processors int64, overrun Overrun) ([]Job, Counts) {
	var n Counts
	jobs := make([]Job, 0, len(t.Records))
	for i := range t.Records {
		r := &t.Records[i]
		j := Job{
			Number: r.Job, Submit: r.Submit, Run: r.Run, Request: r.RequestedTime,
			Processors: r.RequestedProcessors, User: r.User, Group: r.Group,
		}
		if j.Processors <= 0 {
			j.Processors = r.AllocatedProcessors
		}
		switch {
		case j.Run <= 0:
			n.NoRun++
			continue
		case j.Processors <= 0:
			n.NoProcessors++
			continue
		case j.Processors > processors:
			n.TooWide++
			continue
		}
		n.mendRequest(&j, overrun)
		if len(jobs) > 0 && j.Submit < jobs[len(jobs)-1].Submit {
			n.OutOfOrder++
		}
		jobs = append(jobs, j)
	}
	n.Jobs = len(jobs)
	slices.SortStableFunc(jobs, func(a, b Job) int { return cmp.Compare(a.Submit, b.Submit) })
	if len(jobs) > 0 {
		n.ShiftSeconds = jobs[0].Submit
	}
	for i := range jobs {
		jobs[i].Submit -= n.ShiftSeconds
	}
	return jobs, n
}

// mendRequest applies the rules about a missing request and an overrun.
func (n *Counts) mendRequest(j *Job, overrun Overrun) {
	if j.Request <= 0 {
		n.NoRequest++
		j.Request = j.Run
	}
	if j.Run <= j.Request {
		return
	}
	n.Overran++
	switch overrun {
	case Kill:
		j.Run = j.Request
	case Raise:
		j.Request = j.Run
	case Keep:
	}
}
