package workload

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"time"

	"kith/internal/job"
)

// Job is one job of a workload. Schedulers may read all but Run.
type Job struct {
	// ID is the number in the log, or counts from 1 where a model made the job.
	// Logs may repeat a number; the index in [Workload.Jobs] is unique.
	ID int64
	// Submit counts from the first submission of the workload.
	Submit job.Time
	// Run is how long the job really runs, at least one tick.
	Run time.Duration
	// Estimate is the user's estimate and limit, at least one tick. It may be
	// less than Run until [Workload.Fit] has settled that.
	Estimate time.Duration
	// Procs is the width, 1 to [job.MaxProcessors].
	Procs int32
	// MemoryBytes is the memory of the whole job, zero if the log does not say.
	MemoryBytes int64
	// User and Group are names or numbers as in the log, "" if unknown.
	User, Group string
}

// Work returns Procs × Run in processor-seconds.
func (j *Job) Work() float64 { return float64(j.Procs) * j.Run.Seconds() }

// Workload is a sequence of jobs for one site, or made at one.
type Workload struct {
	// Name says where it is from, for people: a file's name, or a model with
	// its parameters.
	Name string
	// Jobs are in the order (Submit, position in the log). They belong to the
	// workload and must not be changed.
	Jobs []Job
	// Processors is the size of the machine it is from, zero if unknown.
	Processors int32
	// Tick is the grain of its times: a second for logs, a nanosecond for models
	// of continuous time. Transformations round to it.
	Tick time.Duration
	// Start is the instant of Submit 0 on the calendar of the site, in its zone;
	// zero if unknown.
	Start time.Time
	// WallClock says that the log tells times by a clock whose zone it does not
	// name. Start is right only if the reader knew it, see [OpenIn].
	WallClock bool
	// Report says what was skipped or mended on the way here.
	Report Report
}

// Span returns the time from the first submission to the last.
func (w *Workload) Span() time.Duration {
	if len(w.Jobs) == 0 {
		return 0
	}
	return w.Jobs[len(w.Jobs)-1].Submit.Sub(w.Jobs[0].Submit)
}

// Work returns the sum of [Job.Work], in processor-seconds.
func (w *Workload) Work() float64 {
	sum := 0.0
	for i := range w.Jobs {
		sum += w.Jobs[i].Work()
	}
	return sum
}

// OfferedLoad returns the work that is submitted over what p processors can do
// in the time from the first submission to the last; zero if that is no time.
func (w *Workload) OfferedLoad(p int32) float64 {
	capacity := float64(p) * w.Span().Seconds()
	if capacity <= 0 {
		return 0
	}
	return w.Work() / capacity
}

// Hash returns a fingerprint of the jobs of all ws: equal workloads have equal
// ones. Experiments that compare configurations show by it that all of them ran
// the same jobs (common random numbers, spec 004 section 5).
func Hash(ws ...*Workload) string {
	h := sha256.New()
	var b []byte
	for _, w := range ws {
		b = binary.LittleEndian.AppendUint64(b[:0], uint64(len(w.Jobs)))
		h.Write(b)
		for i := range w.Jobs {
			j := &w.Jobs[i]
			b = b[:0]
			for _, v := range [...]int64{j.ID, int64(j.Submit), int64(j.Run), int64(j.Estimate), int64(j.Procs), j.MemoryBytes} {
				b = binary.LittleEndian.AppendUint64(b, uint64(v)) // bits are bits
			}
			for _, s := range [...]string{j.User, j.Group} {
				b = binary.LittleEndian.AppendUint64(b, uint64(len(s)))
				b = append(b, s...)
			}
			h.Write(b)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// NewRand returns the source of randomness that a seed stands for. Streams of
// one seed that differ in stream have nothing in common.
func NewRand(seed, stream uint64) *rand.Rand {
	const salt = 0x6b697468                         // so that small seeds do not start alike elsewhere
	return rand.New(rand.NewPCG(seed, stream^salt)) //nolint:gosec // A simulation, no secret.
}
