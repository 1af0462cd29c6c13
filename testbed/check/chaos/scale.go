package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ScaleOptions say how large a federation is and how much it has to do while four
// of its sites are ill: one dead, one with a disk that hangs, one with a full disk,
// one behind a slow line.
type ScaleOptions struct {
	// Dir holds the sites' data, their logs and the ledger. It must exist and be empty.
	Dir string
	// Sites is how many there are, the four included: 7 to 50.
	Sites int
	// Jobs is how many are submitted: half at the first site, a quarter at the
	// second, a tenth in equal parts at the dead one and the one that hangs, before
	// they fall ill, and the rest at all others.
	Jobs int
	// Processors is how many each site has, JobTime how long a job runs.
	Processors int32
	JobTime    time.Duration
	// Insecure leaves the sites without keys, on plaintext.
	Insecure bool
	// Seed is that of the network.
	Seed uint64
	// Observe learns what is done, as a line of text.
	Observe func(line string)
}

// DefaultScaleOptions are those of the figures in docs/reliability.md.
func DefaultScaleOptions() ScaleOptions {
	return ScaleOptions{Sites: 20, Jobs: 20_000, Processors: 8, JobTime: time.Second}
}

// Validate returns what is wrong, naming field, value and remedy.
func (o *ScaleOptions) Validate() error {
	var errs []error
	if o.Sites < 7 || o.Sites > 50 {
		errs = append(errs, fmt.Errorf("sites %d: choose 7 to 50", o.Sites))
	}
	if o.Jobs < 100 || o.Jobs > 100_000 {
		errs = append(errs, fmt.Errorf("jobs %d: choose 100 to 100000", o.Jobs))
	}
	if o.Processors < 1 || o.Processors > 64 {
		errs = append(errs, fmt.Errorf("processors %d: choose 1 to 64", o.Processors))
	}
	if o.JobTime < 50*time.Millisecond || o.JobTime > time.Minute {
		errs = append(errs, fmt.Errorf("job time %v: choose 50ms to 1m", o.JobTime))
	}
	return errors.Join(errs...)
}

// Scale is what came of it. Times are in seconds, sizes in MiB. Healthy sites are
// all but the four; the healthy jobs are those submitted at healthy sites.
type Scale struct {
	Sites   int `json:"sites"`
	Healthy int `json:"healthy_sites"`
	Jobs    int `json:"jobs"`
	// Ills say how the four sites are ill.
	Ills []string `json:"ills"`
	// Drained is from the first submission until the last healthy job had ended;
	// Ideal is that time with no processor ever idle of the sites that are neither dead
	// nor have a disk that hangs: the other two run jobs as well.
	Drained float64 `json:"drained_s"`
	Ideal   float64 `json:"ideal_s"`
	// Idle is the share of the processor-seconds of healthy sites that were free, as
	// the sites count, while at the looks before and after more healthy jobs had not
	// started than the healthy sites have processors. IdleByLedger is the same by
	// what the jobs signed: the time between two jobs counts as idle.
	Idle         float64 `json:"idle_share"`
	IdleByLedger float64 `json:"idle_share_by_ledger"`
	// LongestIdle is the longest time in a row in which a healthy site had a free
	// processor meanwhile.
	LongestIdle float64 `json:"longest_idle_s"`
	// LateSubmit and LateSite are the times to an answer of SubmitJob and GetSite at
	// healthy sites; 99 of 100 are earlier.
	LateSubmit float64 `json:"submit_p99_s"`
	LateSite   float64 `json:"get_site_p99_s"`
	// LateMachine is how late sleeps of 10 ms ended in the program that measures, 99 of
	// 100: no site answers earlier than the machine lets it.
	LateMachine float64 `json:"machine_p99_s"`
	// PeakMemory is the largest resident memory of a healthy site's kithd.
	PeakMemory float64 `json:"peak_memory_mib"`
	// CopiesPerJob is how many copies sites took for each job, WithdrawnPerJob how many
	// their origins took back, MessagesPerJob how many claims and withdrawals crossed
	// between sites, repeats included. CPUPerJob is what the kithds of healthy sites
	// needed, without the jobs themselves.
	CopiesPerJob    float64 `json:"copies_per_job"`
	WithdrawnPerJob float64 `json:"withdrawn_per_job"`
	MessagesPerJob  float64 `json:"claim_messages_per_job"`
	CPUPerJob       float64 `json:"cpu_s_per_job"`
	// Recovered is from the healing of the four sites until every job had ended.
	Recovered float64 `json:"recovered_s"`
	// Lost jobs were accepted and did not complete; DoubleStarts signed more than once.
	Lost         int      `json:"lost_jobs"`
	DoubleStarts int      `json:"double_starts"`
	Problems     []string `json:"problems,omitempty"`
}

// The targets of the scale run, in seconds but for the share.
const (
	IdleTarget       = 0.02
	LateAnswerTarget = 0.05
)

// Sound reports whether every job ran once and completed.
func (s *Scale) Sound() bool { return s.Lost+s.DoubleStarts+len(s.Problems) == 0 }

// Misses describes the targets that are missed, those of time by more than a factor.
func (s *Scale) Misses(slack float64) []string {
	var missed targets
	missed.atMost(slack, "idle share of the healthy sites' processors while jobs waited", s.Idle, IdleTarget)
	missed.atMost(slack, "seconds to an answer of SubmitJob, 99 of 100", s.LateSubmit, LateAnswerTarget)
	missed.atMost(slack, "seconds to an answer of GetSite, 99 of 100", s.LateSite, LateAnswerTarget)
	return missed
}

// RunScale runs it.
func RunScale(ctx context.Context, opt ScaleOptions) (_ *Scale, err error) {
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	if opt.Observe == nil {
		opt.Observe = func(string) {}
	}
	r, err := newScaleRun(ctx, opt)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }() // also in a panic: a disk that hangs would hold what cleans up
	return &r.report, r.run(ctx)
}
