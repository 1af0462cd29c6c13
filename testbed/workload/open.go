package workload

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"kith/internal/job"
)

// Bounds on what is read.
const (
	// MaxLineLength is the longest line, in bytes. Longer ones are skipped.
	MaxLineLength = 256 << 10
	// MaxJobs is the most jobs of one log. The largest logs of the archive have
	// some millions.
	MaxJobs = 20_000_000
	// MaxSpan is the longest time from the first submission to the last. It
	// keeps the end of a simulated run far from the end of time.
	MaxSpan = 100 * 366 * 24 * time.Hour
)

// Errors of [Open] and [Read]; the text says where and what.
var (
	// ErrUnknownFormat is returned when a file is none of the known logs.
	ErrUnknownFormat = errors.New("not a log in the Standard Workload Format, of sacct -P, or of PBS")
	// ErrNoJobs is returned when no line of a log is a job that can be run.
	ErrNoJobs = errors.New("no job that could be run")
	// ErrTruncated is wrapped when compressed data end too early.
	ErrTruncated = errors.New("the compressed data are cut off")
	// ErrTooManyJobs is returned when a log is longer than MaxJobs.
	ErrTooManyJobs = fmt.Errorf("more than %d jobs", MaxJobs)
)

// Open reads the log at path, plain or gzip. Its format is recognised by its
// content: the Standard Workload Format, the output of sacct -P with its header
// line, or the accounting log of PBS or Torque.
//
// Jobs that make no sense are skipped and counted, see [Workload.Report]. What
// is returned has at least one job, and each has a width of at least 1 and a
// run time and an estimate of at least a second. Overruns are left as they are;
// [Workload.Fit] settles them.
func Open(path string) (*Workload, error) { return OpenIn(path, time.UTC) }

// OpenIn is [Open] for a log that may tell times by the wall clock of a zone
// without naming it, as sacct does. Instants that have a zone of their own keep
// it. Without knowing better [time.UTC] will do: only an hour or two a year, in
// which the clock is set, and the date of the start come out wrong.
func OpenIn(path string, zone *time.Location) (*Workload, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err // names the path
	}
	defer f.Close() //nolint:errcheck // Only read from.
	w, err := ReadIn(filepath.Base(path), f, zone)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return w, nil
}

// Read is [Open] for a log that is open already; name becomes the workload's.
// An error names the line that was reached.
func Read(name string, r io.Reader) (*Workload, error) { return ReadIn(name, r, time.UTC) }

// ReadIn is [OpenIn] for a log that is open already, see [Read].
func ReadIn(name string, r io.Reader, zone *time.Location) (*Workload, error) {
	in, err := newLines(r)
	if err != nil {
		return nil, err
	}
	defer in.close()
	in.zone = zone
	w := &Workload{Name: name, Tick: time.Second}
	parse, err := recognise(in)
	if err != nil {
		return nil, err
	}
	if err := parse(in, w); err != nil {
		return nil, err
	}
	if len(w.Jobs) == 0 {
		for k := range w.Report.All() {
			return nil, fmt.Errorf("%w; %s", ErrNoJobs, w.Report.First(k))
		}
		return nil, ErrNoJobs
	}
	w.settle()
	return w, nil
}

// settle puts the jobs in order, from submission 0 on, and leaves out those
// that were submitted too long after the first.
func (w *Workload) settle() {
	last := w.Jobs[0].Submit
	sorted := true
	for i := range w.Jobs {
		j := &w.Jobs[i]
		if j.Submit < last {
			sorted = false
			w.Report.add(OutOfOrder, func() string {
				return fmt.Sprintf("job %d was submitted %v before one ahead of it", j.ID, last.Sub(j.Submit))
			})
		}
		last = max(last, j.Submit)
	}
	if !sorted {
		w.order()
	}
	w.rebase()
	n := len(w.Jobs)
	for n > 0 && w.Jobs[n-1].Submit > job.Time(MaxSpan) {
		n--
		j := &w.Jobs[n]
		w.Report.add(TooLate, func() string {
			return fmt.Sprintf("job %d is submitted %v after the first", j.ID, time.Duration(j.Submit))
		})
	}
	w.Jobs = w.Jobs[:n]
}

// add appends a job as a log has it, or counts why not. Times are in seconds,
// submissions on any clock; request 0 or less stands for none.
func (w *Workload) add(line int, j *logged) error {
	kind := kinds
	limit := int64(job.MaxWalltime / time.Second)
	switch {
	case j.run <= 0:
		kind = NoRun
	case j.procs <= 0:
		kind = NoProcessors
	case j.run > limit || j.request > limit:
		kind = TooLong
	case j.procs > job.MaxProcessors:
		kind = TooWide
	case j.submit > maxClock || j.submit < -maxClock:
		kind = TooLate
	}
	if kind != kinds {
		w.Report.add(kind, func() string {
			return fmt.Sprintf("line %d: job %d, submitted at %d s, run time %d s, request %d s, %d processors", line, j.id, j.submit, j.run, j.request, j.procs)
		})
		return nil
	}
	if len(w.Jobs) >= MaxJobs {
		return fmt.Errorf("line %d: %w", line, ErrTooManyJobs)
	}
	if j.request <= 0 {
		j.request = j.run
		w.Report.add(NoEstimate, func() string { return fmt.Sprintf("line %d: job %d", line, j.id) })
	}
	w.Jobs = append(w.Jobs, Job{
		ID: j.id, Submit: job.Time(j.submit * int64(time.Second)), Run: time.Duration(j.run) * time.Second,
		Estimate: time.Duration(j.request) * time.Second, Procs: int32(j.procs), MemoryBytes: j.memory, User: j.user, Group: j.group,
	})
	return nil
}

// maxClock is the latest submission that fits into nanoseconds from 1970 with
// room for MaxSpan and more, in seconds.
const maxClock = 1 << 32

// logged is a job in the words of a log.
type logged struct {
	id, submit, run, request, procs, memory int64
	user, group                             string
}
