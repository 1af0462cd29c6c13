package metrics

import (
	"time"

	"kith/internal/job"
)

// Record is one job that has ended.
type Record struct {
	// Job is its number at its origin.
	Job int64
	// Origin is where it was submitted, Site where it ran.
	Origin, Site job.SiteID
	// User and Group are the submitter's, "" if unknown.
	User, Group string
	// Submit, Start and End are its instants.
	Submit, Start, End job.Time
	// Run is the run time by which slowdowns are measured: what the job itself
	// took where it ran, without data transfers. It is at most End − Start.
	Run time.Duration
	// Estimate is the user's.
	Estimate time.Duration
	// Procs is the width.
	Procs int32
}

// Wait returns the time from submission to start.
func (r *Record) Wait() time.Duration { return r.Start.Sub(r.Submit) }

// Turnaround returns the time from submission to end, also called response or
// completion time.
func (r *Record) Turnaround() time.Duration { return r.End.Sub(r.Submit) }

// run returns the run time that slowdowns divide by. No time counts as a second
// (spec 001 section 2.1).
func (r *Record) run() time.Duration {
	if r.Run <= 0 {
		return time.Second
	}
	return r.Run
}

// Slowdown returns turnaround ÷ run time, at least 1 where jobs run at once.
func (r *Record) Slowdown() float64 { return float64(r.Turnaround()) / float64(r.run()) }

// BoundedSlowdown returns max(1, turnaround ÷ max(run time, floor)). The usual
// floor is [Floor].
func (r *Record) BoundedSlowdown(floor time.Duration) float64 {
	return max(1, float64(r.Turnaround())/float64(max(r.run(), floor)))
}

// Work returns the processor-seconds that the job held.
func (r *Record) Work() float64 { return float64(r.Procs) * r.End.Sub(r.Start).Seconds() }

// Recorder collects records. The zero value is ready to use.
type Recorder struct {
	records []Record
}

// NewRecorder returns a recorder with room for n records.
func NewRecorder(n int) *Recorder { return &Recorder{records: make([]Record, 0, n)} }

// Add writes down a job that has ended.
func (r *Recorder) Add(x Record) { r.records = append(r.records, x) }

// Records returns what was written down, in order. It belongs to the recorder.
func (r *Recorder) Records() []Record { return r.records }

// Summary summarises what was written down, see [Summarise].
func (r *Recorder) Summary(o Options) Summary { return Summarise(r.records, o) }
