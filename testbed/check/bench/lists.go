package bench

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"kith/cmd/kithd/config"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/testbed/local"
)

// The clients that ask for lists beside one that submits.
const (
	pollers     = 10
	pollerRests = 100 * time.Millisecond // between an answer and the next question
	listRounds  = 3
)

// lists has a site with many jobs that have ended answer clients that ask for its queue,
// and measures what a client that submits meanwhile notices of that.
func (b *bench) lists(ctx context.Context) error {
	f, stop, err := b.federation(ctx, []local.Site{{Name: "alpha", Tune: func(c *config.Config) { withRoomFor(c, b.opt.Queued) }}})
	if err != nil {
		return err
	}
	defer stop() //nolint:errcheck // what was measured counts
	n := f.Nodes()[0]
	blocker, err := block(ctx, n)
	if err != nil {
		return err
	}
	defer n.Jobs.CancelJob(ctx, &kithv1.CancelJobRequest{JobId: blocker}) //nolint:errcheck // its site ends, and it with its walltime
	if err := fill(ctx, n, b.opt.Queued, 1); err != nil {
		return err
	}
	if err := cancelAll(ctx, n, blocker); err != nil {
		return err
	}
	var alone, beside, answers []time.Duration
	for range listRounds {
		took, err := b.submitOneByOne(ctx, n, nil)
		if err != nil {
			return err
		}
		alone = append(alone, took...)
		var mu sync.Mutex
		asked := func(took time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			answers = append(answers, took)
		}
		if took, err = b.submitOneByOne(ctx, n, asked); err != nil {
			return err
		}
		beside = append(beside, took...)
		if err := cancelAll(ctx, n, blocker); err != nil {
			return err
		}
	}
	for _, all := range [][]time.Duration{alone, beside, answers} {
		slices.Sort(all)
	}
	b.add(fmt.Sprintf("submissions of one client, %d jobs have ended", b.opt.Queued), rateOf(alone), "jobs/s")
	b.addTarget(fmt.Sprintf("share of them beside %d that ask for the queue, each %v after its answer", pollers, pollerRests), 100*rateOf(beside)/rateOf(alone), "%", 80, false)
	b.addTarget("their answers, 99 of 100", milliseconds(quantile(answers, 0.99)), "ms", 50, true)
	b.add("submissions beside them, 99 of 100", milliseconds(quantile(beside, 0.99)), "ms")
	return nil
}

func rateOf(took []time.Duration) float64 {
	var sum time.Duration
	for _, d := range took {
		sum += d
	}
	return float64(len(took)) / sum.Seconds()
}

// submitOneByOne submits jobs, one after the other, and returns how long each took. With
// asked, others ask for the queue meanwhile; it learns how long each answer took.
func (b *bench) submitOneByOne(ctx context.Context, n *local.Node, asked func(time.Duration)) (took []time.Duration, err error) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	var failed atomic.Pointer[error]
	for range pollers {
		if asked == nil {
			break
		}
		wg.Go(func() {
			for ctx.Err() == nil {
				began := time.Now()
				_, err := n.Jobs.ListJobs(ctx, &kithv1.ListJobsRequest{})
				if err != nil && ctx.Err() == nil {
					failed.Store(&err)
					return
				}
				asked(time.Since(began))
				time.Sleep(pollerRests)
			}
		})
	}
	for range 3 * b.opt.Starts {
		began := time.Now()
		_, err := n.Jobs.SubmitJob(ctx, &kithv1.SubmitJobRequest{Job: &kithv1.Job{
			Name: "listed", Command: []string{"/bin/true"}, Processors: 1, Walltime: durationpb.New(time.Minute),
		}})
		if err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
	}
	if err := failed.Load(); err != nil {
		return nil, fmt.Errorf("list of jobs: %w", *err)
	}
	return took, nil
}

// cancelAll cancels every open job but one and waits until none is open.
func cancelAll(ctx context.Context, n *local.Node, but string) error {
	for {
		r, err := n.Jobs.ListJobs(ctx, &kithv1.ListJobsRequest{})
		if err != nil {
			return err
		}
		ids := make(chan string, len(r.GetJobs()))
		for _, j := range r.GetJobs() {
			if j.GetId() != but {
				ids <- j.GetId()
			}
		}
		close(ids)
		if len(ids) == 0 {
			return nil
		}
		errs := make(chan error, submittersPerSite)
		for range submittersPerSite {
			go func() {
				var failed error
				for id := range ids {
					_, err := n.Jobs.CancelJob(ctx, &kithv1.CancelJobRequest{JobId: id})
					failed = cmp.Or(failed, err)
				}
				errs <- failed
			}()
		}
		for range submittersPerSite {
			err = cmp.Or(err, <-errs)
		}
		if err != nil {
			return err
		}
	}
}
