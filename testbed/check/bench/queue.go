package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"kith/cmd/kithd/config"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/testbed/local"
)

// queue fills the queue of a site whose processors are taken, looks at its
// memory, kills it and looks how long it takes to come back.
func (b *bench) queue(ctx context.Context) error {
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
	memory, err := resident(n.PID())
	if err != nil {
		return err
	}
	n.Kill()
	began := time.Now()
	if err := n.Start(ctx); err != nil {
		return err
	}
	s, err := n.Sites.GetSite(ctx, &kithv1.GetSiteRequest{})
	if err != nil {
		return err
	}
	back := time.Since(began)
	if queued := int(s.GetSite().GetQueuedCopies()); queued != b.opt.Queued {
		return fmt.Errorf("%d jobs are queued after the restart, %d were before", queued, b.opt.Queued)
	}
	restarted, err := resident(n.PID())
	if err != nil {
		return err
	}
	b.addTarget(fmt.Sprintf("resident memory with %d queued jobs", b.opt.Queued), memory, "MiB", 400, true)
	b.add("resident memory after the restart", restarted, "MiB")
	b.addTarget("kill -9 to first answer", back.Seconds(), "s", 5, true)
	return nil
}

// withRoomFor lets a site take n jobs.
func withRoomFor(c *config.Config, n int) {
	c.Limits.Jobs = max(c.Limits.Jobs, n+1000)
	c.Limits.Copies = max(c.Limits.Copies, n+1000)
	c.Limits.CopiesPerOrigin = max(c.Limits.CopiesPerOrigin, n+1000)
}

// block takes all processors of a site for long and returns the job that does.
func block(ctx context.Context, n *local.Node) (string, error) {
	s, err := n.Sites.GetSite(ctx, &kithv1.GetSiteRequest{})
	if err != nil {
		return "", err
	}
	r, err := n.Jobs.SubmitJob(ctx, &kithv1.SubmitJobRequest{Job: &kithv1.Job{
		Name: "blocker", Command: []string{"/bin/sleep", "600"}, Processors: s.GetSite().GetProcessors(), Walltime: durationpb.New(time.Hour),
	}})
	return r.GetJobId(), err
}

// fillers is how many submissions of [fill] are under way at a time.
const fillers = 64

// fill submits jobs at a site.
func fill(ctx context.Context, n *local.Node, jobs int, copies int32) error {
	todo := make(chan int, jobs)
	for i := range jobs {
		todo <- i
	}
	close(todo)
	errs := make([]error, fillers)
	var wg sync.WaitGroup
	for i := range fillers {
		wg.Go(func() {
			for k := range todo {
				r := &kithv1.SubmitJobRequest{RequestId: fmt.Sprintf("fill-%d", k), Job: &kithv1.Job{
					Name: fmt.Sprintf("job-%d", k), Command: []string{"/bin/true"}, Processors: 1, Walltime: durationpb.New(time.Hour), Copies: copies,
				}}
				_, errs[i] = n.Jobs.SubmitJob(ctx, r)
				for try := 0; again(status.Code(errs[i]), try) && ctx.Err() == nil; try++ {
					time.Sleep(20 * time.Millisecond)
					_, errs[i] = n.Jobs.SubmitJob(ctx, r)
				}
				if errs[i] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// again reports whether a submission is to be asked once more: a busy machine lets in fewer at a time, and of
// several another one may lead from now on.
func again(code codes.Code, try int) bool {
	const patience = 1000 // times 20 ms
	return code == codes.ResourceExhausted || code == codes.Unavailable && try < patience
}

// resident returns the MiB of memory that a process takes.
func resident(pid int) (float64, error) { return memoryOf(pid, "VmRSS:") }

// computed returns how long a process has computed.
func computed(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest) // from the third field on: the 14th and 15th are user and system time
	if len(fields) < 13 {
		return 0, fmt.Errorf("process %d: no times", pid)
	}
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	const tick = 10 * time.Millisecond // on every Linux
	return time.Duration(user+system) * tick, errors.Join(err1, err2)
}

// memoryOf returns what the kernel counts under a word of a process, in MiB.
func memoryOf(pid int, word string) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, word); ok {
			kib, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 64)
			return kib / 1024, err
		}
	}
	return 0, fmt.Errorf("process %d: no %s", pid, strings.TrimSuffix(word, ":"))
}
