package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"kith/cmd/kithd/config"
	"kith/internal/pause"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/testbed/local"
)

// BagOptions say how large the bag is that sites run while their daemons are killed.
type BagOptions struct {
	// Dir holds the sites' data, their logs and the ledger. It must exist and be empty.
	Dir string
	// Sites is how many there are, 1 to 16; the first is the bag's origin and a host too.
	Sites int
	// Tasks is how many the bag has, 100 to 16,777,216. Each signs the ledger.
	Tasks int
	// Kills is how often a daemon is killed, and in the midst all of them at once.
	Kills int
	// Insecure leaves the sites without keys, on plaintext.
	Insecure bool
	// Observe learns what is done, as a line of text.
	Observe func(line string)
}

// DefaultBagOptions are those of the figures in docs/reliability.md.
func DefaultBagOptions() BagOptions { return BagOptions{Sites: 3, Tasks: 1_000_000, Kills: 30} }

// Validate returns what is wrong, naming field, value and remedy.
func (o *BagOptions) Validate() error {
	var errs []error
	if o.Sites < 1 || o.Sites > 16 {
		errs = append(errs, fmt.Errorf("sites %d: choose 1 to 16", o.Sites))
	}
	if o.Tasks < 100 || o.Tasks > 1<<24 {
		errs = append(errs, fmt.Errorf("tasks %d: choose 100 to %d", o.Tasks, 1<<24))
	}
	if o.Kills < 0 || o.Kills > o.Tasks/10 {
		errs = append(errs, fmt.Errorf("kills %d: choose 0 to a tenth of the tasks", o.Kills))
	}
	return errors.Join(errs...)
}

// BagKills is what came of it.
type BagKills struct {
	Sites int `json:"sites"`
	Tasks int `json:"tasks"`
	// Kills counts daemons. They are fewer than were asked for if the bag ended before.
	Kills   int     `json:"kills"`
	Seconds float64 `json:"seconds"` // from the submission to the end
	// Completed is what the origin says, Runs how many processes of tasks it counts, Signed
	// how many there were by the ledger once the sites were down and nothing ran any more.
	Completed int64 `json:"completed"`
	Runs      int64 `json:"runs"`
	Signed    int64 `json:"signed"`
	// Failed are runs that the origin counts as failed or lost, whether or not their tasks
	// ran again.
	Failed int64 `json:"failed"`
	// DoubleStarts are tasks that signed more than once; Missing ones signed never, or have
	// not completed.
	DoubleStarts int      `json:"double_starts"`
	Missing      int      `json:"missing"`
	Problems     []string `json:"problems,omitempty"`
}

// Sound reports whether every task ran exactly once and completed, and each was counted once.
func (r *BagKills) Sound() bool {
	return r.DoubleStarts+r.Missing+len(r.Problems) == 0 && r.Failed == 0 && r.Completed == int64(r.Tasks) && r.Runs == r.Completed && r.Signed == r.Completed
}

// RunBagKills runs it. Beside an error it returns what is known nevertheless, nil if no
// site has started.
func RunBagKills(ctx context.Context, opt BagOptions) (*BagKills, error) {
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	if opt.Observe == nil {
		opt.Observe = func(string) {}
	}
	r := &bagKillsRun{opt: opt, ledger: filepath.Join(opt.Dir, "ledger"), report: BagKills{Sites: opt.Sites, Tasks: opt.Tasks}}
	cfg := local.Config{Dir: opt.Dir, StartTimeout: time.Minute, Insecure: opt.Insecure}
	for i := range opt.Sites {
		address, err := local.LastingAddress() // it starts again there
		if err != nil {
			return nil, err
		}
		cfg.Sites = append(cfg.Sites, local.Site{Name: fmt.Sprintf("site%02d", i), Tune: func(c *config.Config) { c.Listen.Address = address }})
	}
	var err error
	if r.fed, err = local.Start(ctx, cfg); err != nil {
		return nil, err
	}
	err = r.run(ctx)
	// Only now: what runs late signs, too.
	err = errors.Join(err, r.fed.Close(), r.settle(), r.count())
	return &r.report, err
}

// bagKillsRun is one under way.
type bagKillsRun struct {
	opt    BagOptions
	fed    *local.Federation
	ledger string
	report BagKills
}

func (r *bagKillsRun) origin() *local.Node { return r.fed.Nodes()[0] }

func (r *bagKillsRun) run(ctx context.Context) error {
	began := time.Now()
	a, err := r.origin().Bags.SubmitBag(ctx, &kithv1.SubmitBagRequest{Bag: &kithv1.Bag{
		Indices: fmt.Sprintf("0-%d", r.opt.Tasks-1),
		Job: &kithv1.Job{
			// A short write at the end of a file is one piece.
			Command: []string{"/bin/sh", "-c", "echo {{index}} >>" + r.ledger}, Processors: 1, Walltime: durationpb.New(time.Minute),
		},
	}})
	if err != nil {
		return err
	}
	for i := range r.opt.Kills {
		ended, err := r.reach(ctx, a.GetBagId(), int64(r.opt.Tasks)*int64(i+1)/int64(r.opt.Kills+1))
		if err != nil {
			return err
		}
		if ended != nil {
			r.opt.Observe(fmt.Sprintf("the bag ended before kill %d of %d", i+1, r.opt.Kills))
			break
		}
		if err := r.kill(ctx, i); err != nil {
			return err
		}
	}
	end, err := r.reach(ctx, a.GetBagId(), int64(r.opt.Tasks)+1)
	if err != nil {
		return err
	}
	r.report.Seconds = time.Since(began).Seconds()
	if end.GetState() != kithv1.BagStatus_STATE_COMPLETED {
		r.report.Problems = append(r.report.Problems, fmt.Sprintf("the bag is %v: %s", end.GetState(), end.GetReason()))
	}
	return nil
}

// kill kills the daemon whose turn it is, in the midst all, and starts it again. Its shims
// work on meanwhile.
func (r *bagKillsRun) kill(ctx context.Context, i int) error {
	victims := r.fed.Nodes()[i%r.opt.Sites:][:1]
	if i == r.opt.Kills/2 {
		victims = r.fed.Nodes()
	}
	for _, n := range victims {
		n.Kill()
		r.report.Kills++
	}
	if !pause.For(ctx, time.Duration(i%5)*100*time.Millisecond) {
		return ctx.Err()
	}
	var errs []error
	for _, n := range victims {
		errs = append(errs, n.Start(ctx))
	}
	return errors.Join(errs...)
}

// reach waits until so many tasks of a bag have completed, and returns its end if that came
// before. It fails if none completes for two minutes.
func (r *bagKillsRun) reach(ctx context.Context, id string, want int64) (ended *kithv1.BagStatus, err error) {
	const patience = 2 * time.Minute
	most, moved := int64(-1), time.Now()
	for {
		b, err := getBag(ctx, &site{Node: r.origin()}, id)
		if err == nil {
			r.report.take(b.GetStatus())
			switch done := b.GetStatus().GetTasks().GetCompleted(); {
			case bagEnded(b.GetStatus()):
				return b.GetStatus(), nil
			case done >= want:
				r.opt.Observe(fmt.Sprintf("%d of %d tasks have completed", done, r.opt.Tasks))
				return nil, nil
			case done > most:
				most, moved = done, time.Now()
			}
		}
		if time.Since(moved) > patience {
			return nil, fmt.Errorf("bag %s: none of its tasks has completed for %v, after %d: %w", id, patience, most, errors.Join(err, errStands))
		}
		if !pause.For(ctx, 20*time.Millisecond) {
			return nil, ctx.Err()
		}
	}
}

// take takes over what the origin counts.
func (r *BagKills) take(b *kithv1.BagStatus) {
	r.Completed, r.Runs, r.Failed = b.GetTasks().GetCompleted(), b.GetRunCount(), 0
	for _, s := range b.GetSites() {
		r.Failed += s.GetFailed() + s.GetLost()
	}
}

// settle waits until no task runs any more.
func (r *bagKillsRun) settle() error {
	for stop := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		left := len(processesUnder(r.opt.Dir))
		for _, n := range r.fed.Nodes() {
			left += len(runningAt(n.Config.Data))
		}
		if left == 0 {
			return nil
		}
		if time.Now().After(stop) {
			return fmt.Errorf("%d tasks still run a minute after their sites have ended: %w", left, errStands)
		}
	}
}

// count reads the ledger: an index for each start of a task.
func (r *bagKillsRun) count() error {
	text, err := os.ReadFile(r.ledger)
	if err != nil {
		return err
	}
	starts := make([]uint8, r.opt.Tasks)
	for line := range bytes.Lines(text) {
		i, err := strconv.Atoi(string(bytes.TrimSuffix(line, []byte("\n"))))
		if err != nil || i < 0 || i >= len(starts) {
			return fmt.Errorf("ledger: %q is no index of a task", line)
		}
		r.report.Signed++
		starts[i] = min(starts[i], 254) + 1
	}
	for i, n := range starts {
		switch {
		case n == 0:
			r.report.Missing++
		case n > 1:
			r.report.DoubleStarts++
		default:
			continue
		}
		if len(r.report.Problems) < maxProblems {
			r.report.Problems = append(r.report.Problems, fmt.Sprintf("task %d signed %d times", i, n))
		}
	}
	return nil
}
