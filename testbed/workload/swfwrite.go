package workload

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"
)

// SWFLog is what a site did, to be written in the Standard Workload Format.
type SWFLog struct {
	// Site is its name, in one line, and Processors its size, zero if unknown.
	Site       string
	Processors int32
	// Notes are further lines of the header, each "Name: value".
	Notes []string
	Jobs  []SWFJob
}

// SWFJob is a job of an [SWFLog].
type SWFJob struct {
	// Submit is when it was submitted, Start when it began to run, zero if it never did.
	Submit, Start time.Time
	// Run is how long it ran, and Estimate its limit; zero if unknown.
	Run, Estimate time.Duration
	Processors    int32
	Status        SWFStatus
	// User, Executable and Partition are numbers, zero if unknown.
	User, Executable, Partition int64
}

// SWFStatus says how a job ended.
type SWFStatus int8

// The ends of a job, as the format has them.
const (
	SWFUnknown   SWFStatus = -1
	SWFFailed    SWFStatus = 0
	SWFCompleted SWFStatus = 1
	SWFCancelled SWFStatus = 5
)

// WriteSWF writes a log, sorted by submission. The format has whole seconds: instants are
// those that they are in, a limit is rounded up, a run time to the nearest second and to one
// at least, for a job without a run time is left out by who reads it. The earliest submission
// is second 0. It sorts l.Jobs.
func WriteSWF(out io.Writer, l *SWFLog) error {
	slices.SortStableFunc(l.Jobs, func(a, b SWFJob) int { return a.Submit.Compare(b.Submit) })
	w := &swfWriter{out: out}
	w.header(l)
	for i := range l.Jobs {
		w.job(i+1, &l.Jobs[i], l.Jobs[0].Submit.Unix())
	}
	return w.err
}

// swfWriter keeps the first error.
type swfWriter struct {
	out io.Writer
	err error
}

func (w *swfWriter) printf(format string, args ...any) {
	if w.err == nil {
		_, w.err = fmt.Fprintf(w.out, format, args...)
	}
}

func (w *swfWriter) header(l *SWFLog) {
	w.printf("; Version: 2.2\n; Installation: %s\n; MaxJobs: %d\n; MaxRecords: %d\n", l.Site, len(l.Jobs), len(l.Jobs))
	if len(l.Jobs) > 0 {
		first, last := l.Jobs[0].Submit, time.Time{}
		for i := range l.Jobs {
			if j := &l.Jobs[i]; j.Start.Add(j.Run).After(last) {
				last = j.Start.Add(j.Run)
			}
		}
		w.printf("; UnixStartTime: %d\n; TimeZoneString: UTC\n; StartTime: %s\n", first.Unix(), first.UTC().Format(time.UnixDate))
		if last.After(first) {
			w.printf("; EndTime: %s\n", last.UTC().Format(time.UnixDate))
		}
	}
	if l.Processors > 0 {
		w.printf("; MaxNodes: %d\n; MaxProcs: %d\n", l.Processors, l.Processors)
	}
	for _, n := range l.Notes {
		w.printf("; %s\n", n)
	}
}

func (w *swfWriter) job(number int, j *SWFJob, zero int64) {
	wait, run, estimate := int64(-1), int64(-1), int64(-1)
	if !j.Start.IsZero() {
		wait = max(0, j.Start.Unix()-j.Submit.Unix()) // they may be of two clocks
	}
	if j.Run > 0 {
		run = max(1, int64(j.Run.Round(time.Second)/time.Second))
	}
	if j.Estimate > 0 {
		estimate = int64((j.Estimate + time.Second - 1) / time.Second)
	}
	known := func(n int64) int64 { return cmp.Or(n, -1) }
	procs := known(int64(j.Processors))
	w.printf("%d %d %d %d %d -1 -1 %d %d -1 %d %d -1 %d -1 %d -1 -1\n", number, j.Submit.Unix()-zero, wait, run, procs, procs, estimate,
		j.Status, known(j.User), known(j.Executable), known(j.Partition))
}
