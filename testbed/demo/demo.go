// Package demo shows Kith at work: it starts a few real sites on this machine,
// submits real jobs at two of them, and counts from the sites' own logs and
// from what the jobs themselves wrote down that each ran exactly once.
package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	kithv1 "kith/proto/gen/kith/v1"
	"kith/testbed/local"
)

// Options say what to show.
type Options struct {
	// Jobs is how many jobs to submit, Sites how many sites to start, Copies
	// how many of them a job queues at.
	Jobs, Sites, Copies int
	// Levels is how many of the sites, the last ones, are levels of a hierarchy, at most 8.
	Levels int
	// Command is what every job runs; empty for a mixture.
	Command []string
	// Dir keeps data and logs of the sites.
	Dir string
	// Insecure leaves the sites without keys, on plaintext.
	Insecure bool
	// Patience bounds the whole; what has not ended then counts as lost.
	Patience time.Duration
	// Note is told what takes time before the sites start; nil for no one.
	Note func(text string)
	// Observe learns of everything that happens, by several goroutines.
	Observe func(Event)
}

// Event is a job that changed.
type Event struct {
	At    time.Time
	Job   string
	Name  string
	State kithv1.JobStatus_State
	Host  string // the site that has the claim
	Sites []string
}

// Result is what came of it.
type Result struct {
	JobsSubmitted   int     `json:"jobs_submitted"`
	JobsSucceeded   int     `json:"jobs_succeeded"`
	JobsFailed      int     `json:"jobs_failed"`
	AttemptsStarted int     `json:"attempts_started"`
	DoubleStarts    int     `json:"double_starts"`
	LostJobs        int     `json:"lost_jobs"`
	Seconds         float64 `json:"seconds"`
	// ClaimMessagesPerJob is the paper's count, K for K copies;
	// WireMessagesPerJob are those that crossed between sites.
	ClaimMessagesPerJob float64      `json:"claim_messages_per_job"`
	WireMessagesPerJob  float64      `json:"wire_messages_per_job"`
	Sites               []SiteResult `json:"sites"`
	// Problems explain failures, for people.
	Problems []string `json:"problems,omitempty"`
}

// SiteResult is what one site did.
type SiteResult struct {
	Site            string  `json:"site"`
	Address         string  `json:"address"` // host:port
	Target          string  `json:"target"`  // for kith --site
	Processors      int32   `json:"processors"`
	Policy          string  `json:"policy"`
	JobsRun         int64   `json:"jobs_run"`
	JobsRunForOther int64   `json:"jobs_run_for_others"`
	CopiesQueued    int64   `json:"copies_queued"`
	ClaimsGranted   int64   `json:"claims_granted"`
	ClaimsDenied    int64   `json:"claims_denied"`
	Withdrawals     int64   `json:"withdrawals"`
	MeanWaitSeconds float64 `json:"mean_wait_seconds"`
}

// Good reports whether every job ran exactly once and succeeded.
func (r *Result) Good() bool {
	return r.JobsSucceeded == r.JobsSubmitted && r.AttemptsStarted == r.JobsSubmitted && r.DoubleStarts == 0 && r.LostJobs == 0
}

// Demo is a running demonstration.
type Demo struct {
	opt    Options
	fed    *local.Federation
	ledger string

	mu     sync.Mutex
	starts map[string]int // by job, from the logs
	ended  map[string]kithv1.JobStatus_State
	why    map[string]string
	all    chan struct{} // closed when all jobs have ended
	jobs   []string
}

// Start starts the sites.
func Start(ctx context.Context, opt Options) (*Demo, error) {
	d := &Demo{
		opt: opt, ledger: filepath.Join(opt.Dir, "ledger"), starts: make(map[string]int),
		ended: make(map[string]kithv1.JobStatus_State), why: make(map[string]string), all: make(chan struct{}),
	}
	fed, err := local.Start(ctx, local.Config{Dir: opt.Dir, Sites: sites(opt.Sites, opt.Levels), Log: d.logged, Note: opt.Note, Insecure: opt.Insecure})
	if err != nil {
		return nil, err
	}
	d.fed = fed
	if !opt.Insecure {
		if err := d.makeToken(ctx); err != nil {
			return nil, errors.Join(err, d.Close())
		}
	}
	return d, nil
}

// makeToken has the first site make a token, so that it can be asked over TCP too.
func (d *Demo) makeToken(ctx context.Context) error {
	r, err := d.fed.Nodes()[0].Trust.CreateToken(ctx, &kithv1.CreateTokenRequest{User: "demo", Lifetime: durationpb.New(12 * time.Hour)})
	if err != nil {
		return fmt.Errorf("make a token: %w", err)
	}
	return os.WriteFile(d.TokenPath(), []byte(r.GetToken()+"\n"), 0o600)
}

// TokenPath is the file of a token that the first site takes, if the sites have keys.
func (d *Demo) TokenPath() string { return filepath.Join(d.opt.Dir, "token") }

// Federation returns the sites.
func (d *Demo) Federation() *local.Federation { return d.fed }

// Close cancels what still runs and stops the sites.
func (d *Demo) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	d.fed.Cancel(ctx)
	return d.fed.Close()
}

// logged counts the starts that the sites log: what runs, not what the
// protocol believes.
func (d *Demo) logged(_ string, line []byte) {
	var l struct {
		Msg   string
		JobID string `json:"job_id"`
	}
	if json.Unmarshal(line, &l) != nil || l.Msg != "attempt started" {
		return
	}
	d.mu.Lock()
	d.starts[l.JobID]++
	d.mu.Unlock()
}

// Run submits the jobs, waits for them and counts.
func (d *Demo) Run(ctx context.Context) (*Result, error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, d.opt.Patience)
	defer cancel()
	origins := d.fed.Nodes()[:min(2, len(d.fed.Nodes()))]
	var watchers sync.WaitGroup
	watching, stopWatching := context.WithCancel(ctx)
	// A watch tells of no job that had ended before it began.
	var following sync.WaitGroup
	for _, n := range origins {
		following.Add(1)
		watchers.Go(func() { d.watch(watching, n, sync.OnceFunc(following.Done)) })
	}
	following.Wait()
	err := d.submitAll(ctx, origins)
	if err == nil {
		select {
		case <-d.all:
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), context.Canceled) {
				err = context.Canceled
			}
		}
	}
	seconds := time.Since(began).Seconds()
	stopWatching()
	watchers.Wait()
	if err != nil {
		return nil, err
	}
	return d.count(seconds)
}

func (d *Demo) submitAll(ctx context.Context, origins []*local.Node) error {
	var wg sync.WaitGroup
	errs := make([]error, len(origins))
	for k, n := range origins {
		wg.Go(func() {
			for i := k; i < d.opt.Jobs; i += len(origins) {
				j := d.job(i)
				r, err := n.Jobs.SubmitJob(ctx, &kithv1.SubmitJobRequest{RequestId: fmt.Sprintf("demo-%d", i), Job: j})
				if err != nil {
					errs[k] = fmt.Errorf("submit job %d at %s: %w", i, n.Name, err)
					return
				}
				d.mu.Lock()
				d.jobs = append(d.jobs, r.GetJobId())
				d.checkAll()
				d.mu.Unlock()
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// watch follows the jobs of an origin. It calls following once no job's end is missed any
// more, or when it ends.
func (d *Demo) watch(ctx context.Context, n *local.Node, following func()) {
	defer following()
	for ctx.Err() == nil {
		stream, err := n.Jobs.WatchJobs(ctx, &kithv1.WatchJobsRequest{})
		for err == nil {
			var r *kithv1.WatchJobsResponse
			if r, err = stream.Recv(); err != nil {
				break
			}
			if r.GetJob() != nil {
				d.see(r.GetJob())
			} else {
				following()
			}
		}
	}
}

func (d *Demo) see(j *kithv1.Job) {
	s := j.GetStatus()
	if d.opt.Observe != nil {
		ev := Event{At: time.Now(), Job: j.GetId(), Name: j.GetName(), State: s.GetState(), Host: s.GetHostSiteId()}
		for _, c := range s.GetCopies() {
			ev.Sites = append(ev.Sites, c.GetSiteId())
		}
		d.opt.Observe(ev)
	}
	if s.GetState() < kithv1.JobStatus_STATE_COMPLETED {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended[j.GetId()] = s.GetState()
	d.why[j.GetId()] = s.GetReason()
	d.checkAll()
}

// checkAll closes d.all when every job has ended; d.mu is held.
func (d *Demo) checkAll() {
	if len(d.jobs) < d.opt.Jobs || len(d.ended) < d.opt.Jobs {
		return
	}
	select {
	case <-d.all:
	default:
		close(d.all)
	}
}

// count sums up from the sites' counters, their logs and the ledger.
func (d *Demo) count(seconds float64) (*Result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	r := &Result{Seconds: seconds}
	var logical, wire int64
	for _, n := range d.fed.Nodes() {
		s, err := n.Sites.GetSite(ctx, &kithv1.GetSiteRequest{})
		if err != nil {
			return nil, fmt.Errorf("site %s: %w", n.Name, err)
		}
		c := s.GetCounters()
		sr := SiteResult{
			Site: n.Name, Address: n.Address, Target: n.Target(), Processors: s.GetSite().GetProcessors(), Policy: s.GetSite().GetPolicy(),
			JobsRun: c.GetAttemptsStarted(), JobsRunForOther: c.GetAttemptsStartedRemote(), CopiesQueued: c.GetCopiesQueued(),
			ClaimsGranted: c.GetClaimsGranted(), ClaimsDenied: c.GetClaimsDenied(), Withdrawals: c.GetWithdrawals(),
		}
		if sr.JobsRun > 0 {
			sr.MeanWaitSeconds = c.GetWaitSeconds() / float64(sr.JobsRun)
		}
		logical += c.GetClaimMessagesLogical()
		wire += c.GetClaimMessagesWire()
		r.Sites = append(r.Sites, sr)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	r.JobsSubmitted = len(d.jobs)
	if r.JobsSubmitted > 0 {
		r.ClaimMessagesPerJob = float64(logical) / float64(r.JobsSubmitted)
		r.WireMessagesPerJob = float64(wire) / float64(r.JobsSubmitted)
	}
	d.countJobs(r)
	return r, nil
}

func (d *Demo) countJobs(r *Result) {
	signed := d.readLedger()
	problem := func(format string, args ...any) {
		if len(r.Problems) < 20 {
			r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
		}
	}
	for _, id := range d.jobs {
		n := max(d.starts[id], signed[id])
		r.AttemptsStarted += n
		if n > 1 {
			r.DoubleStarts++
			problem("job %s was started %d times", id, n)
		}
		switch state, ended := d.ended[id]; {
		case !ended:
			r.LostJobs++
			problem("job %s has not ended", id)
		case state == kithv1.JobStatus_STATE_COMPLETED:
			r.JobsSucceeded++
		case state == kithv1.JobStatus_STATE_LOST:
			r.LostJobs++
			problem("job %s is lost: %s", id, d.why[id])
		default:
			r.JobsFailed++
			problem("job %s is %s: %s", id, strings.TrimPrefix(state.String(), "STATE_"), d.why[id])
		}
	}
}

// readLedger counts how often each job signed for itself. Jobs of a user's own
// command do not.
func (d *Demo) readLedger() map[string]int {
	signed := make(map[string]int)
	text, err := os.ReadFile(d.ledger)
	if err != nil {
		return signed
	}
	for line := range strings.Lines(string(text)) {
		id, _, _ := strings.Cut(strings.TrimSpace(line), "#")
		signed[id]++
	}
	return signed
}
