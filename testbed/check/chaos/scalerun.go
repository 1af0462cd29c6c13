package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"kith/cmd/kithd/config"
	"kith/internal/pause"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/testbed/check/wan"
	"kith/testbed/local"
)

// The ill sites are the last ones, in this order.
const ills = 4

// scaleRun is a scale run under way.
type scaleRun struct {
	opt     ScaleOptions
	fed     *local.Federation
	net     *wan.Proxy
	names   []string
	healthy int
	full    *disk    // of the third ill site; nil without the right to mount
	hung    *hanging // of the second one; nil if it is stopped by a signal instead
	ledger  string
	report  Scale
	began   time.Time

	mu       sync.Mutex
	accepted map[string]bool // job ids
	late     []time.Duration // answers of SubmitJob at healthy sites
}

func (r *scaleRun) note(format string, args ...any) { r.opt.Observe(fmt.Sprintf(format, args...)) }

func (r *scaleRun) problem(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.report.Problems) < maxProblems {
		r.report.Problems = append(r.report.Problems, fmt.Sprintf(format, args...))
	}
}

func (r *scaleRun) dead() int     { return r.healthy }
func (r *scaleRun) hanging() int  { return r.healthy + 1 }
func (r *scaleRun) fullDisk() int { return r.healthy + 2 }
func (r *scaleRun) slow() int     { return r.healthy + 3 }

// newScaleRun starts the sites.
func newScaleRun(ctx context.Context, opt ScaleOptions) (*scaleRun, error) {
	r := &scaleRun{opt: opt, healthy: opt.Sites - ills, ledger: filepath.Join(opt.Dir, "ledger"), accepted: make(map[string]bool)}
	for i := range opt.Sites {
		r.names = append(r.names, fmt.Sprintf("site%02d", i))
	}
	r.report = Scale{Sites: opt.Sites, Healthy: r.healthy, Jobs: opt.Jobs, Ills: []string{r.names[r.dead()] + " is dead"}}
	if err := r.giveDisks(); err != nil {
		return nil, errors.Join(err, r.close())
	}
	cfg, err := r.configure()
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	if r.fed, err = local.Start(ctx, cfg); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

// giveDisks puts two sites on disks of their own, where that is possible.
func (r *scaleRun) giveDisks() error {
	name := r.names[r.hanging()]
	var err error
	if r.hung, err = mountHanging(filepath.Join(r.opt.Dir, name), 1<<30); err != nil {
		r.note("no disk that hangs: %v", err)
		r.report.Ills = append(r.report.Ills, name+" is stopped by a signal")
	} else {
		r.report.Ills = append(r.report.Ills, name+" has a disk that hangs")
	}
	name = r.names[r.fullDisk()]
	if r.full, err = mountDisk(filepath.Join(r.opt.Dir, name), 128<<20); err != nil {
		r.note("no small disk: %v", err)
		r.report.Ills = append(r.report.Ills, name+" drains")
	} else {
		r.report.Ills = append(r.report.Ills, name+" has a full disk")
	}
	r.report.Ills = append(r.report.Ills, r.names[r.slow()]+" is behind a slow line")
	return nil
}

// configure makes the slow line and says what sites there are. The slow site is
// the last one: it dials all others, through the line.
func (r *scaleRun) configure() (local.Config, error) {
	addresses := make([]string, len(r.names))
	var links []wan.LinkConfig
	slow := r.names[r.slow()]
	for i, name := range r.names {
		var err error
		if addresses[i], err = local.LastingAddress(); err != nil {
			return local.Config{}, err
		}
		if name != slow {
			links = append(links, wan.LinkConfig{
				From: slow, To: name, Listen: "127.0.0.1:0", Target: addresses[i],
				Path: wan.Path{Delay: 200 * time.Millisecond, BytesPerSecond: 50_000},
			})
		}
	}
	var err error
	if r.net, err = wan.Start(wan.Config{Seed: r.opt.Seed, Links: links}, nil); err != nil {
		return local.Config{}, err
	}
	cfg := local.Config{Dir: r.opt.Dir, StartTimeout: time.Minute, Insecure: r.opt.Insecure, Via: func(from, to string) string {
		if at, err := r.net.Addr(from, to); err == nil {
			return at.String()
		}
		if to == slow {
			return "" // it dials
		}
		return addresses[slices.Index(r.names, to)]
	}}
	for i, name := range r.names {
		cfg.Sites = append(cfg.Sites, local.Site{Name: name, Tune: func(c *config.Config) {
			c.Scheduler.Processors = r.opt.Processors
			c.Listen.Address = addresses[i]
			if !r.opt.Insecure {
				c.Listen.Advertise = "none" // others dial where invitations say
			}
			for p := range c.Peers {
				if at, err := r.net.Addr(name, c.Peers[p].Site); err == nil {
					c.Peers[p].Address = at.String()
				}
			}
		}})
	}
	return cfg, nil
}

func (r *scaleRun) close() error {
	var errs []error
	if r.fed != nil {
		if r.report.Lost > 0 || len(r.report.Problems) > 0 {
			end, cancel := context.WithTimeout(context.Background(), time.Minute)
			r.fed.Cancel(end)
			cancel()
		}
		errs = append(errs, r.fed.Close())
	}
	if r.net != nil {
		errs = append(errs, r.net.Close())
	}
	if r.hung != nil {
		errs = append(errs, r.hung.unmount())
	}
	if r.full != nil {
		errs = append(errs, r.full.unmount())
	}
	return errors.Join(errs...)
}

func (r *scaleRun) run(ctx context.Context) error {
	n := r.opt.Jobs
	if err := r.submit(ctx, map[int]int{r.dead(): n / 20, r.hanging(): n / 20}); err != nil {
		return err
	}
	if err := r.fallIll(ctx); err != nil {
		return err
	}
	r.note("%d of %d sites are ill; submitting", ills, r.opt.Sites)
	shares := map[int]int{0: n / 2, 1: n / 4}
	rest := n - n/20*2 - n/2 - n/4
	for i := 2; i < r.healthy; i++ {
		shares[i] = rest / (r.healthy - 2)
	}
	shares[2] += rest - rest/(r.healthy-2)*(r.healthy-2)
	w := newScaleWatch(r)
	looking, stop := context.WithCancel(ctx)
	defer stop()
	var looks sync.WaitGroup
	looks.Go(func() { w.watch(looking) })
	looks.Go(func() { w.nap(looking) })
	r.began = time.Now()
	if err := r.submit(ctx, shares); err != nil {
		return err
	}
	r.note("submitted in %.1f s", time.Since(r.began).Seconds())
	err := r.drain(ctx)
	r.report.Drained = time.Since(r.began).Seconds()
	stop()
	looks.Wait()
	w.sum()
	r.report.LateSubmit = p99(r.late)
	r.report.Ideal = float64(n-n/20*2) * r.opt.JobTime.Seconds() / float64((r.healthy+2)*int(r.opt.Processors))
	if err != nil {
		return err
	}
	r.note("healthy jobs have ended after %.1f s, ideal are %.1f s; healing", r.report.Drained, r.report.Ideal)
	healed := time.Now()
	if err := r.heal(ctx); err != nil {
		return err
	}
	if err := r.drainAll(ctx); err != nil {
		return err
	}
	r.report.Recovered = time.Since(healed).Seconds()
	if err := r.sumWork(ctx); err != nil {
		return err
	}
	if err := r.keptPromises(ctx); err != nil {
		return err
	}
	return r.count(ctx)
}

// keptPromises looks whether guests moved a promise anywhere.
func (r *scaleRun) keptPromises(ctx context.Context) error {
	var p promises
	for _, n := range r.fed.Nodes() {
		if err := p.look(ctx, n.Name, n.Sites); err != nil {
			return err
		}
	}
	_, broken := p.broken()
	for _, text := range broken {
		r.problem("%s", text)
	}
	return nil
}

// fallIll makes the four sites ill; the slow line always is.
func (r *scaleRun) fallIll(ctx context.Context) error {
	nodes := r.fed.Nodes()
	nodes[r.dead()].Kill()
	var errs []error
	if r.hung != nil {
		errs = append(errs, r.hung.hang())
	} else {
		errs = append(errs, nodes[r.hanging()].Signal(sigstop))
	}
	if r.full != nil {
		errs = append(errs, r.full.fill())
	} else {
		_, err := nodes[r.fullDisk()].Sites.DrainSite(ctx, &kithv1.DrainSiteRequest{Reason: "ill"})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// heal undoes that.
func (r *scaleRun) heal(ctx context.Context) error {
	nodes := r.fed.Nodes()
	errs := []error{nodes[r.dead()].Start(ctx)}
	if r.hung != nil {
		errs = append(errs, r.hung.release())
	} else {
		errs = append(errs, nodes[r.hanging()].Signal(sigcont))
	}
	if r.full != nil {
		errs = append(errs, r.full.free())
	} else {
		_, err := nodes[r.fullDisk()].Sites.ResumeSite(ctx, &kithv1.ResumeSiteRequest{})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// submit submits so many jobs at each site, with four clients a site.
func (r *scaleRun) submit(ctx context.Context, shares map[int]int) error {
	const clients = 4
	var wg sync.WaitGroup
	errs := make(chan error, clients*len(shares))
	for i, jobs := range shares {
		for c := range clients {
			wg.Go(func() {
				for n := c; n < jobs; n += clients {
					if err := r.one(ctx, i, n); err != nil {
						errs <- fmt.Errorf("submit at %s: %w", r.names[i], err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
	close(errs)
	return <-errs
}

// one submits a job, and again while it is told to try later.
func (r *scaleRun) one(ctx context.Context, i, n int) error {
	job := &kithv1.SubmitJobRequest{RequestId: fmt.Sprintf("scale-%d", n), Job: &kithv1.Job{
		Command: []string{"/bin/sh", "-c", fmt.Sprintf(
			`echo "S $KITH_JOB_ID $KITH_SITE" >>"$LEDGER"; sleep %.3f; echo "E $KITH_JOB_ID $KITH_SITE" >>"$LEDGER"`, r.opt.JobTime.Seconds())},
		Processors: 1, Walltime: durationpb.New(time.Minute), Environment: map[string]string{"LEDGER": r.ledger},
	}}
	for {
		limited, cancel := context.WithTimeout(ctx, 30*time.Second)
		began := time.Now()
		answer, err := r.fed.Nodes()[i].Jobs.SubmitJob(limited, job)
		took := time.Since(began)
		cancel()
		r.mu.Lock()
		if i < r.healthy {
			r.late = append(r.late, took)
		}
		if err == nil {
			r.accepted[answer.GetJobId()] = true
		}
		r.mu.Unlock()
		if status.Code(err) != codes.ResourceExhausted {
			return err
		}
		if !pause.For(ctx, 20*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// drain waits until no job of a healthy site is open but those that an ill site
// has, for as long as some end.
func (r *scaleRun) drain(ctx context.Context) error {
	nodes := r.fed.Nodes()
	return r.await(ctx, "no job of a healthy site is open that an ill one does not have", func() (open int64, err error) {
		for i := range r.healthy {
			n, err := openAt(ctx, nodes[i])
			if err != nil {
				return 0, err
			}
			open += n
		}
		if open > int64(ills*r.opt.Processors) || open == 0 {
			return open, nil
		}
		open = 0
		for i := range r.healthy {
			jobs, _, err := listJobs(ctx, &site{Node: nodes[i]}, false)
			if err != nil {
				return 0, err
			}
			for _, j := range jobs {
				if at := slices.Index(r.names, j.GetStatus().GetHostSiteId()); at < r.healthy {
					open++
				}
			}
		}
		return open, nil
	})
}

// drainAll waits until no job is open anywhere.
func (r *scaleRun) drainAll(ctx context.Context) error {
	return r.await(ctx, "no job is open", func() (open int64, err error) {
		for _, n := range r.fed.Nodes() {
			here, err := openAt(ctx, n)
			if err != nil {
				return 0, err
			}
			open += here
		}
		return open, nil
	})
}

// await waits for a count to become 0, as long as it falls.
func (r *scaleRun) await(ctx context.Context, what string, count func() (int64, error)) error {
	const patience = 2 * time.Minute
	least, moved := int64(-1), time.Now()
	for {
		open, err := count()
		switch {
		case err == nil && open == 0:
			return nil
		case err == nil && (least < 0 || open < least):
			least, moved = open, time.Now()
		case time.Since(moved) > patience:
			return fmt.Errorf("waiting until %s: %d are open, and none has ended for %v: %w", what, least, patience, errors.Join(err, errStands))
		}
		if !pause.For(ctx, 200*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// openAt returns how many jobs of a site have not ended.
func openAt(ctx context.Context, n *local.Node) (int64, error) {
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	jobs, err := n.Jobs.ListJobs(limited, &kithv1.ListJobsRequest{PageSize: 1})
	if err != nil || len(jobs.GetJobs()) == 0 {
		return 0, err
	}
	s, err := n.Sites.GetSite(limited, &kithv1.GetSiteRequest{})
	return max(1, s.GetCounters().GetJobsSubmitted()-s.GetCounters().GetJobsClosed()), err
}

// count compares the accepted jobs with how they ended and what they signed.
func (r *scaleRun) count(ctx context.Context) error {
	text, err := os.ReadFile(r.ledger)
	if err != nil {
		return err
	}
	signed := make(map[string]int)
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "S" {
			if signed[f[1]]++; signed[f[1]] > 1 {
				r.report.DoubleStarts++
				r.problem("job %s started %d times", f[1], signed[f[1]])
			}
		}
	}
	completed := make(map[string]bool)
	for _, n := range r.fed.Nodes() {
		jobs, _, err := listJobs(ctx, &site{Node: n}, true)
		if err != nil {
			return err
		}
		for _, j := range jobs {
			completed[j.GetId()] = j.GetStatus().GetState() == kithv1.JobStatus_STATE_COMPLETED
			if !completed[j.GetId()] {
				r.problem("job %s is %s: %s", j.GetId(), j.GetStatus().GetState(), j.GetStatus().GetReason())
			}
		}
	}
	for id := range r.accepted {
		if !completed[id] || signed[id] == 0 {
			r.report.Lost++
			r.problem("job %s was accepted: completed %v, started %d times", id, completed[id], signed[id])
		}
	}
	return nil
}
