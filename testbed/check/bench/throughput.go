package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"kith/cmd/kithd/config"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/testbed/local"
)

// submittersPerSite is how many clients submit at a site at a time.
const submittersPerSite = 16

// throughput submits jobs of /bin/true at all sites at once and waits for the
// last to end.
func (b *bench) throughput(ctx context.Context) error {
	rate, answered, err := b.rate(ctx, nil)
	if err != nil {
		return err
	}
	m := b.report.Machine
	b.add(fmt.Sprintf("%d jobs of /bin/true over %d sites, K=%d", b.opt.Jobs, b.opt.Sites, b.opt.Copies), rate, "jobs/s")
	b.add("submissions answered meanwhile", answered, "jobs/s")
	b.addTarget("share of the machine's rate of fork and exec, all processors", 100*rate/m.ForkExecParallel, "%", 40, false)
	b.add("share of its rate one after another", 100*rate/m.ForkExecSerial, "%")
	return nil
}

// rate returns how many jobs a second a federation runs, and how many submissions it
// answers meanwhile. Its sites are tuned, if tune is not nil.
func (b *bench) rate(ctx context.Context, tune func(*config.Config)) (ran, answered float64, err error) {
	var sites []local.Site
	for i := range b.opt.Sites {
		sites = append(sites, local.Site{Name: fmt.Sprintf("site%02d", i), Tune: func(c *config.Config) {
			c.Scheduler.Processors = 4
			if tune != nil {
				tune(c)
			}
		}})
	}
	f, stop, err := b.federation(ctx, sites)
	if err != nil {
		return 0, 0, err
	}
	defer stop() //nolint:errcheck // what was measured counts
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()

	ended := make(chan error, b.opt.Jobs)
	for _, n := range f.Nodes() {
		stream, err := n.Jobs.WatchJobs(ctx, &kithv1.WatchJobsRequest{})
		if err != nil {
			return 0, 0, err
		}
		go watchEnds(stream, ended)
	}
	began := time.Now()
	errs := make(chan error, len(f.Nodes())*submittersPerSite)
	var wg sync.WaitGroup
	jobs := make(chan int, b.opt.Jobs)
	for i := range b.opt.Jobs {
		jobs <- i
	}
	close(jobs)
	for _, n := range f.Nodes() {
		for range submittersPerSite {
			wg.Go(func() { errs <- submitFrom(ctx, n, jobs, int32(b.opt.Copies)) })
		}
	}
	wg.Wait()
	submitted := time.Since(began)
	close(errs)
	for err := range errs {
		if err != nil {
			return 0, 0, err
		}
	}
	for i := range b.opt.Jobs {
		select {
		case err := <-ended:
			if err != nil {
				return 0, 0, err
			}
		case <-ctx.Done():
			return 0, 0, fmt.Errorf("%d of %d jobs ended: %w", i, b.opt.Jobs, ctx.Err())
		}
	}
	ran = float64(b.opt.Jobs) / time.Since(began).Seconds()
	return ran, float64(b.opt.Jobs) / submitted.Seconds(), startedOnce(ctx, f, int64(b.opt.Jobs))
}

func submitFrom(ctx context.Context, n *local.Node, jobs <-chan int, copies int32) error {
	for range jobs {
		_, err := n.Jobs.SubmitJob(ctx, &kithv1.SubmitJobRequest{Job: &kithv1.Job{
			Name: "true", Command: []string{"/bin/true"}, Processors: 1, Walltime: durationpb.New(time.Minute), Copies: copies,
		}})
		if err != nil {
			return fmt.Errorf("submit at %s: %w", n.Name, err)
		}
	}
	return nil
}

// watchEnds reports every job that ended, an error if it did not succeed.
func watchEnds(stream kithv1.JobService_WatchJobsClient, ended chan<- error) {
	seen := make(map[string]bool)
	for {
		r, err := stream.Recv()
		if err != nil {
			return // those that wait have a deadline
		}
		j := r.GetJob()
		state := j.GetStatus().GetState()
		if state < kithv1.JobStatus_STATE_COMPLETED || seen[j.GetId()] {
			continue
		}
		seen[j.GetId()] = true
		if state != kithv1.JobStatus_STATE_COMPLETED {
			err = fmt.Errorf("job %s: %s: %s", j.GetId(), state, j.GetStatus().GetReason())
		}
		ended <- err
	}
}

// startedOnce compares the sites' counts of started attempts with the jobs.
func startedOnce(ctx context.Context, f *local.Federation, jobs int64) error {
	var started int64
	var errs []error
	for _, n := range f.Nodes() {
		s, err := n.Sites.GetSite(ctx, &kithv1.GetSiteRequest{})
		errs = append(errs, err)
		started += s.GetCounters().GetAttemptsStarted()
	}
	if started != jobs {
		errs = append(errs, fmt.Errorf("%d attempts started for %d jobs", started, jobs))
	}
	return errors.Join(errs...)
}
