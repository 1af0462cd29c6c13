package chaos

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"kith/cmd/kithd/config"
	"kith/internal/pause"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/testbed/local"
)

// OverloadOptions say how to overload a site.
type OverloadOptions struct {
	// Dir holds the site's data. It must exist and be empty.
	Dir string
	// Length is how long the overload lasts.
	Length time.Duration
	// Factor is how many times the load that the site can take it is offered.
	Factor float64
	// Jobs is how many jobs the site is configured to take on at a time.
	Jobs int
	// Users, if not 0, makes as many users submit as fast as they get answers,
	// heeding no advice, instead of a rate of Factor times what the site takes.
	Users int
	// Insecure leaves the site without keys, on plaintext.
	Insecure bool
	// Observe learns what is done, as a line of text.
	Observe func(line string)
}

// DefaultOverloadOptions are those of the figures in docs/reliability.md.
func DefaultOverloadOptions() OverloadOptions {
	return OverloadOptions{Length: time.Minute, Factor: 10, Jobs: 2000}
}

// Overload is what came of it. Times are in seconds, sizes in MiB.
type Overload struct {
	// Takes is how many jobs a second the site can run, one after the other on
	// each of its processors; Offered is how many a second were submitted.
	Takes   float64 `json:"takes_per_s"`
	Offered float64 `json:"offered_per_s"`
	Seconds float64 `json:"seconds"`
	// Accepted and Refused count answers; a refusal says when to try again.
	// Unanswered are all others.
	Accepted   int `json:"accepted"`
	Refused    int `json:"refused"`
	Unanswered int `json:"unanswered"`
	// MedianAnswer, LateAnswer (999 of 1000 are earlier) and WorstAnswer are
	// those of submissions, as their users saw them.
	MedianAnswer float64 `json:"median_answer_s"`
	LateAnswer   float64 `json:"late_answer_s"`
	WorstAnswer  float64 `json:"worst_answer_s"`
	// IdleMemory and PeakMemory are the resident memory of kithd.
	IdleMemory float64 `json:"idle_memory_mib"`
	PeakMemory float64 `json:"peak_memory_mib"`
	// Recovery is from the end of the overload until a job that is submitted
	// is accepted within the time that it takes on an idle site, or ten times that.
	Recovery float64 `json:"recovery_s"`
	// Drained is from the end of the overload until all accepted jobs had ended.
	Drained float64 `json:"drained_s"`
	// Lost jobs were accepted and did not end, or not well; DoubleStarts
	// signed more than once.
	Lost         int      `json:"lost_jobs"`
	DoubleStarts int      `json:"double_starts"`
	Problems     []string `json:"problems,omitempty"`
	// Missed are the targets that were.
	Missed []string `json:"missed_targets,omitempty"`
}

// The targets of an overload, in seconds and MiB.
const (
	// AnswerTarget is for 999 of 1000 answers.
	AnswerTarget   = 1.0
	RecoveryTarget = 10.0
	// MemoryTarget is by how much kithd may grow beyond what it takes when idle.
	MemoryTarget = 256.0
)

// Good reports whether nothing is wrong and all targets are met.
func (o *Overload) Good() bool { return o.Sound() && len(o.Misses(1)) == 0 }

// Sound reports whether nothing was lost, run twice, or left unanswered.
func (o *Overload) Sound() bool { return o.Lost+o.DoubleStarts+o.Unanswered == 0 }

// Misses describes the targets that are missed, those of time by more than a factor.
func (o *Overload) Misses(slack float64) []string {
	var missed targets
	missed.atMost(slack, "seconds to an answer, 999 of 1000", o.LateAnswer, AnswerTarget)
	missed.atMost(slack, "seconds until a job is accepted as on an idle site", o.Recovery, RecoveryTarget)
	missed.atMost(1, "MiB of memory beyond what an idle site takes", o.PeakMemory-o.IdleMemory, MemoryTarget)
	return missed
}

// RunOverload offers one site many times the load that it can take.
func RunOverload(ctx context.Context, opt OverloadOptions) (*Overload, error) {
	if opt.Observe == nil {
		opt.Observe = func(string) {}
	}
	fed, err := local.Start(ctx, local.Config{Dir: opt.Dir, Insecure: opt.Insecure, Sites: []local.Site{{Name: "alpha", Tune: func(c *config.Config) {
		c.Scheduler.Processors, c.Limits.Jobs = floodProcessors, opt.Jobs
	}}}})
	if err != nil {
		return nil, err
	}
	f := &flood{opt: opt, node: fed.Nodes()[0], ledger: filepath.Join(opt.Dir, "ledger")}
	err = f.run(ctx)
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if err != nil || !f.report.Sound() {
		fed.Cancel(end)
	}
	f.report.Missed = f.report.Misses(1)
	return &f.report, errors.Join(err, fed.Close())
}

// flood is an overload under way.
type flood struct {
	opt    OverloadOptions
	node   *local.Node
	ledger string
	report Overload

	mu      sync.Mutex
	answers []time.Duration
	taken   map[string]bool // accepted jobs, by id
}

func (f *flood) note(format string, args ...any) { f.opt.Observe(fmt.Sprintf(format, args...)) }

// Size and load of the site: its processors, not the machine, are what limits it.
const (
	floodProcessors = 8
	floodSleep      = "0.05"
)

// job is a short one that signs for itself.
func (f *flood) job() *kithv1.Job {
	return &kithv1.Job{
		Command:    []string{"/bin/sh", "-c", `echo "$KITH_JOB_ID" >>"$LEDGER"; exec sleep ` + floodSleep},
		Processors: 1, Walltime: durationpb.New(time.Minute), Copies: 1, Environment: map[string]string{"LEDGER": f.ledger},
	}
}

func (f *flood) run(ctx context.Context) error {
	f.taken = make(map[string]bool)
	idle, err := f.measure(ctx)
	if err != nil {
		return err
	}
	f.report.IdleMemory = resident(f.node.PID())
	f.note("the site takes %.0f jobs a second, and is offered more for %v", f.report.Takes, f.opt.Length)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var watcher sync.WaitGroup
	watcher.Go(func() { f.watchMemory(watching) })
	if err := f.pour(ctx); err != nil {
		return err
	}
	over := time.Now()
	f.note("over: %d accepted, %d refused, worst answer %.2f s", f.report.Accepted, f.report.Refused, f.report.WorstAnswer)
	if err := f.recover(ctx, idle); err != nil {
		return err
	}
	f.report.Recovery = time.Since(over).Seconds()
	f.note("recovered after %.1f s", f.report.Recovery)
	if err := f.drain(ctx); err != nil {
		return err
	}
	f.report.Drained = time.Since(over).Seconds()
	stop()
	watcher.Wait()
	return f.count(ctx)
}

// measure finds out what the site can take, and how long it takes to answer
// when it is idle.
func (f *flood) measure(ctx context.Context) (idle time.Duration, err error) {
	var alone []time.Duration
	for range 21 {
		began := time.Now()
		if err := f.submit(ctx, fmt.Sprintf("idle-%d", len(alone))); err != nil {
			return 0, err
		}
		alone = append(alone, time.Since(began))
	}
	slices.Sort(alone)
	if err := f.drain(ctx); err != nil {
		return 0, err
	}
	jobs := max(1, min(40*floodProcessors, f.opt.Jobs/2)) // the site takes them all, however late they end
	before := time.Now()
	for n := range jobs {
		if err := f.submit(ctx, fmt.Sprintf("measure-%d", n)); err != nil {
			return 0, err
		}
	}
	if err := f.drain(ctx); err != nil {
		return 0, err
	}
	f.report.Takes = float64(jobs) / time.Since(before).Seconds()
	return alone[len(alone)/2], nil
}

// submit submits a job as a user does, and notes it when it is accepted.
func (f *flood) submit(ctx context.Context, request string) error {
	r, err := f.node.Jobs.SubmitJob(ctx, &kithv1.SubmitJobRequest{RequestId: request, Job: f.job()})
	if err == nil {
		f.mu.Lock()
		f.taken[r.GetJobId()] = true
		f.mu.Unlock()
	}
	return err
}

// open returns how many jobs have not ended.
func (f *flood) open(ctx context.Context) int64 {
	r, err := f.node.Sites.GetSite(ctx, &kithv1.GetSiteRequest{})
	if err != nil {
		return -1
	}
	return r.GetCounters().GetJobsSubmitted() - r.GetCounters().GetJobsClosed()
}

// pour submits, whether or not the site can take it.
func (f *flood) pour(ctx context.Context) error {
	var wg sync.WaitGroup
	began := time.Now()
	n := 0
	if f.opt.Users > 0 {
		f.users(ctx, &wg, began)
	}
	rate := f.report.Takes * f.opt.Factor
	for f.opt.Users == 0 && time.Since(began) < f.opt.Length && ctx.Err() == nil {
		for due := int(time.Since(began).Seconds() * rate); n < due; n++ {
			request := fmt.Sprintf("flood-%d", n)
			wg.Go(func() { f.one(ctx, request) })
		}
		time.Sleep(time.Millisecond)
	}
	f.report.Seconds = time.Since(began).Seconds()
	wg.Wait()
	slices.Sort(f.answers)
	at := func(q float64) float64 {
		return f.answers[min(len(f.answers)-1, int(q*float64(len(f.answers))))].Seconds()
	}
	if len(f.answers) > 0 {
		f.report.MedianAnswer, f.report.LateAnswer, f.report.WorstAnswer = at(0.5), at(0.999), at(1)
	}
	f.report.Offered = float64(len(f.answers)) / f.report.Seconds
	return ctx.Err()
}

// users submit without pause.
func (f *flood) users(ctx context.Context, wg *sync.WaitGroup, began time.Time) {
	for u := range f.opt.Users {
		wg.Go(func() {
			for n := 0; time.Since(began) < f.opt.Length && ctx.Err() == nil; n++ {
				f.one(ctx, fmt.Sprintf("user-%d-%d", u, n))
			}
		})
	}
	pause.For(ctx, f.opt.Length)
}

// one is a submission of the flood.
func (f *flood) one(ctx context.Context, request string) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	began := time.Now()
	err := f.submit(ctx, request)
	took := time.Since(began)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers = append(f.answers, took)
	switch {
	case err == nil:
		f.report.Accepted++
	case hinted(err):
		f.report.Refused++
	default:
		f.report.Unanswered++
		f.problem("no answer after %v: %v", took, err)
	}
}

func (f *flood) problem(format string, args ...any) {
	if len(f.report.Problems) < maxProblems {
		f.report.Problems = append(f.report.Problems, fmt.Sprintf(format, args...))
	}
}

// hinted reports whether a refusal says when to try again.
func hinted(err error) bool {
	st := status.Convert(err)
	if st.Code() != codes.ResourceExhausted && st.Code() != codes.Unavailable {
		return false
	}
	for _, d := range st.Details() {
		if r, ok := d.(*errdetails.RetryInfo); ok && r.GetRetryDelay().AsDuration() > 0 {
			return true
		}
	}
	return false
}

// How long is waited for a site after the overload.
const (
	recoveryBound = time.Minute // until it is as fast as an idle one
	drainBound    = time.Minute // from the end of one job to that of the next
)

// recover submits one job after the other until one is accepted as fast as on
// an idle site, or nearly so.
func (f *flood) recover(ctx context.Context, idle time.Duration) error {
	over := time.Now()
	for n := 0; ; n++ {
		began := time.Now()
		err := f.submit(ctx, fmt.Sprintf("after-%d", n))
		took := time.Since(began)
		if err == nil && took <= 10*idle {
			return nil
		}
		if err != nil && !hinted(err) {
			return err
		}
		if time.Since(over) > recoveryBound {
			return fmt.Errorf("%v after the overload the site does not accept a job as an idle one does, within %v: the last took %v: %w",
				recoveryBound, 10*idle, took, errors.Join(err, errNotIdle))
		}
		if !pause.For(ctx, 10*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// Errors of a site that does not get over an overload.
var (
	errNotIdle = errors.New("the site does not recover")
	errStands  = errors.New("the site does not run what it has accepted")
)

// drain waits until all jobs have ended, for as long as one after the other does.
func (f *flood) drain(ctx context.Context) error {
	least, moved := int64(math.MaxInt64), time.Now()
	for {
		open := f.open(ctx)
		switch {
		case open == 0:
			return nil
		case open > 0 && open < least:
			least, moved = open, time.Now()
		case time.Since(moved) > drainBound:
			return fmt.Errorf("of %d jobs that are open none has ended for %v: %w", least, drainBound, errStands)
		}
		if !pause.For(ctx, 20*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// count compares the accepted jobs with how they ended and what they signed.
func (f *flood) count(ctx context.Context) error {
	text, err := os.ReadFile(f.ledger)
	if err != nil {
		return err
	}
	signed := make(map[string]int)
	for line := range strings.Lines(string(text)) {
		id := strings.TrimSpace(line)
		if signed[id]++; signed[id] > 1 {
			f.report.DoubleStarts++
			f.problem("job %s signed %d times", id, signed[id])
		}
	}
	completed := make(map[string]bool)
	jobs, _, err := listJobs(ctx, &site{Node: f.node}, true)
	for _, j := range jobs {
		completed[j.GetId()] = j.GetStatus().GetState() == kithv1.JobStatus_STATE_COMPLETED
	}
	for id := range f.taken {
		if !completed[id] || signed[id] == 0 {
			f.report.Lost++
			f.problem("job %s was accepted: completed %v, signed %d times", id, completed[id], signed[id])
		}
	}
	return err
}

// watchMemory notes the largest resident memory.
func (f *flood) watchMemory(ctx context.Context) {
	for pause.For(ctx, 20*time.Millisecond) {
		f.report.PeakMemory = max(f.report.PeakMemory, resident(f.node.PID()))
	}
}

// resident returns the resident memory of a process in MiB, 0 if it has ended.
func resident(pid int) float64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0
	}
	f := strings.Fields(string(text))
	if len(f) < 2 {
		return 0
	}
	pages, err := strconv.Atoi(f[1])
	if err != nil {
		return 0
	}
	return float64(pages) * float64(os.Getpagesize()) / (1 << 20)
}
