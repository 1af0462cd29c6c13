package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"kith/cmd/kithd/config"
	"kith/internal/pause"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/testbed/local"
)

// MembersOptions say what is done to a site of three machines.
type MembersOptions struct {
	// Dir holds the sites' data, their logs and the ledger. It must exist and be empty.
	Dir string
	// Seed is where faults and jobs come from.
	Seed uint64
	// Rounds is how often each kind of fault is injected, in an order that is drawn for each round: 1 to 1000.
	Rounds int
	// Observe learns what is done, as a line of text.
	Observe func(line string)
}

// DefaultMembersOptions are those of the run in docs/reliability.md.
func DefaultMembersOptions() MembersOptions { return MembersOptions{Seed: 1, Rounds: 3} }

// Validate returns what is wrong, naming field, value and remedy.
func (o *MembersOptions) Validate() error {
	if o.Rounds < 1 || o.Rounds > 1000 {
		return fmt.Errorf("rounds %d: choose 1 to 1000", o.Rounds)
	}
	return nil
}

// MemberFault is what is done to the machines of a site.
type MemberFault string

// Kinds of faults. Machines of a site reach each other directly, so that one that is to be cut off is paused.
const (
	KillLeader      MemberFault = "kill-leader"
	PauseLeader     MemberFault = "pause-leader"
	PauseMinority   MemberFault = "pause-minority" // one that follows
	PauseMajority   MemberFault = "pause-majority" // both that follow: nothing is taken
	KillMachines    MemberFault = "kill-machines"
	EmptyDisk       MemberFault = "empty-disk"       // of one that follows, which is replaced by the procedure of docs/operations.md
	RestartExecutor MemberFault = "restart-executor" // kithd of the machine that runs the jobs is killed
	SilentExecutor  MemberFault = "silent-executor"  // it is killed or paused for longer than members.executor_lost, while jobs run
	Rolling         MemberFault = "rolling-restart"  // one after the other, in order
)

// MemberFaults returns all kinds.
func MemberFaults() []MemberFault {
	return []MemberFault{KillLeader, PauseLeader, PauseMinority, PauseMajority, KillMachines, EmptyDisk, RestartExecutor, SilentExecutor, Rolling}
}

// answersAgain is how long after a fault of its machines a site should take a submission.
const answersAgain = 15 * time.Second

// membersRun is one under way. Its campaign has two sites: the one of three machines, of which users ask each machine in
// turn, and one of one machine.
type membersRun struct {
	*campaign
	three *local.Members
	rng   *rand.Rand
	made  map[string]int // faults
	// all is there until the last job has ended or patience has.
	all context.Context //nolint:containedctx // users begin what lasts for as long
	// silent is when the machine that runs the jobs was away, with what it took until the site was whole again.
	silent []window
	caught []string // jobs that ran there when it fell silent for long
}

// RunMembers starts a site of three machines, whose jobs a fourth one runs, beside a site of one, gives both jobs, and
// does to the machines what they must bear. The history is checked as [Run] checks it.
func RunMembers(ctx context.Context, opt MembersOptions) (*Result, error) {
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	dir, err := filepath.EvalSymlinks(opt.Dir)
	if err != nil {
		return nil, err
	}
	o := Options{Dir: dir, Sites: 2, Seed: opt.Seed, Observe: opt.Observe, Duration: time.Minute}.withDefaults()
	r := &membersRun{campaign: &campaign{}, rng: rand.New(rand.NewPCG(opt.Seed, 500)), made: make(map[string]int)}
	if err := r.start(ctx, &o); err != nil {
		return nil, errors.Join(err, r.stop())
	}
	result, err := r.injectAndCheck(ctx, opt.Rounds)
	err = errors.Join(err, r.stop())
	if result != nil {
		result.LeftProcesses = r.sweep(grace + 5*time.Second)
		result.Crashes = r.logs.crashes
		if n := len(r.logs.problems); n > 0 {
			result.OtherProblems += n
			result.Problems = append(result.Problems, r.logs.problems...)
		}
	}
	return result, err
}

// start starts the sites.
func (r *membersRun) start(ctx context.Context, opt *Options) error {
	if err := r.makeFolders(opt); err != nil {
		return err
	}
	r.bed = &bed{opt: opt, logs: newLogs(), stopping: make(chan struct{})}
	var err error
	r.fed, err = local.Start(ctx, local.Config{Dir: opt.Dir, Log: r.logs.line, Sites: []local.Site{{Name: "beta", Tune: func(c *config.Config) {
		tune(c)
		c.Scheduler.Processors = 4
	}}}})
	if err != nil {
		return err
	}
	r.three, err = r.fed.StartMembers(ctx, "alpha", func(c *config.Config) {
		tune(c)
		c.Scheduler.Processors = 4
		c.Members.ExecutorLost = executorLost
	})
	if err != nil {
		return err
	}
	for i, n := range []*local.Node{r.three.Front(), r.fed.Nodes()[0]} {
		s := &site{Node: n, index: i, processors: 4, acked: make(chan struct{}, 1), children: make(map[process]bool)}
		r.sites = append(r.sites, s)
		m := newMaker(opt, i, s.processors, 10*time.Second, r.folders)
		m.tame = true // what jobs do to their folders is not what this run is about
		r.users = append(r.users, newUser(s, m, r.logs, false))
	}
	return nil
}

// stop ends the sites.
func (r *membersRun) stop() error {
	var errs []error
	if r.three != nil {
		errs = append(errs, r.three.Close())
	}
	if r.fed != nil {
		errs = append(errs, r.fed.Close())
	}
	return errors.Join(errs...)
}

// injectAndCheck lets users submit, injects all faults, waits and checks.
func (r *membersRun) injectAndCheck(ctx context.Context, rounds int) (*Result, error) {
	began := time.Now()
	finish := r.submitting(ctx)
	defer finish()
	for range rounds {
		kinds := MemberFaults()
		r.rng.Shuffle(len(kinds), func(i, k int) { kinds[i], kinds[k] = kinds[k], kinds[i] })
		for _, kind := range kinds {
			if !pause.For(ctx, time.Duration(500+r.rng.IntN(1500))*time.Millisecond) {
				return nil, ctx.Err()
			}
			if err := r.inject(ctx, kind); err != nil {
				return nil, fmt.Errorf("fault %s: %w", kind, err)
			}
		}
	}
	r.minutes = time.Since(began).Minutes()
	finish()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return r.judge(ctx)
}

// submitting lets users submit. The function that it returns has them stop, and returns when all jobs have ended or
// patience has.
func (r *membersRun) submitting(ctx context.Context) (finish func()) {
	working, rest := context.WithCancel(ctx)
	all, done := context.WithCancel(ctx)
	r.all = all
	var submitting, following sync.WaitGroup
	for _, u := range r.users {
		submitting.Go(func() { u.submit(working, all, r.pace(u)) })
		following.Go(func() { u.follow(all) })
	}
	var once sync.Once
	return func() {
		once.Do(func() {
			rest()
			submitting.Wait()
			if ctx.Err() == nil {
				r.drain(ctx)
			}
			done()
			following.Wait()
			for _, u := range r.users {
				u.asking.Wait()
			}
		})
	}
}

// inject injects a fault, undoes it, and sees to it that the site takes jobs.
func (r *membersRun) inject(ctx context.Context, kind MemberFault) error {
	leader, err := r.three.Leader(ctx)
	if err != nil {
		return err
	}
	var others []*local.Node
	for _, n := range r.three.Nodes {
		if n != leader {
			others = append(others, n)
		}
	}
	r.rng.Shuffle(len(others), func(i, k int) { others[i], others[k] = others[k], others[i] })
	lasts := time.Duration(r.rng.IntN(4000)) * time.Millisecond
	r.opt.note("%s, machine %s leads", kind, leader.Config.Members.Self)
	began := time.Now()
	switch kind {
	case KillLeader:
		err = killed(ctx, lasts, leader)
	case PauseLeader:
		err = paused(ctx, lasts, leader)
	case PauseMinority:
		err = paused(ctx, lasts, others[0])
	case PauseMajority:
		err = paused(ctx, lasts, others...)
	case KillMachines:
		err = killed(ctx, lasts, r.three.Nodes...)
	case EmptyDisk:
		err = r.emptied(ctx, others[0])
	case RestartExecutor:
		err = killed(ctx, lasts, r.three.Executor)
	case SilentExecutor:
		err = r.silence(ctx, lasts)
	case Rolling:
		err = r.rolled(ctx)
	}
	if err != nil {
		return err
	}
	r.made[string(kind)]++
	healed := time.Now()
	if _, err := r.three.Leader(ctx); err != nil {
		return err
	}
	if err := r.takesJobs(ctx); err != nil {
		return err
	}
	r.heals = append(r.heals, time.Since(healed))
	if kind == RestartExecutor || kind == SilentExecutor || kind == Rolling {
		r.silent = append(r.silent, window{began, time.Now()})
	}
	r.opt.note("%s is over after %.1f s; the site takes jobs %.1f s later", kind, healed.Sub(began).Seconds(), time.Since(healed).Seconds())
	return nil
}

// killed kills machines, and starts them again after a while.
func killed(ctx context.Context, lasts time.Duration, machines ...*local.Node) error {
	for _, n := range machines {
		n.Kill()
	}
	pause.For(ctx, lasts)
	var errs []error
	for _, n := range machines {
		errs = append(errs, n.Start(ctx))
	}
	return errors.Join(errs...)
}

// paused pauses machines for a while.
func paused(ctx context.Context, lasts time.Duration, machines ...*local.Node) error {
	var errs []error
	for _, n := range machines {
		errs = append(errs, n.Signal(sigstop))
	}
	pause.For(ctx, lasts)
	for _, n := range machines {
		errs = append(errs, n.Signal(sigcont))
	}
	return errors.Join(errs...)
}

// emptied has a machine lose its disk and be taken in again.
func (r *membersRun) emptied(ctx context.Context, n *local.Node) error {
	n.Kill()
	if err := r.three.Remove(ctx, n); err != nil {
		return err
	}
	if err := errors.Join(n.Empty(), n.Start(ctx)); err != nil {
		return err
	}
	return r.three.Add(ctx, n)
}

// rolled stops one machine after the other in order and starts it again, as an upgrade does.
func (r *membersRun) rolled(ctx context.Context) error {
	for _, n := range r.three.All() {
		n.Stop()
		if err := n.Start(ctx); err != nil {
			return err
		}
		if n == r.three.Executor {
			continue
		}
		err := r.three.Answers(ctx, n)
		if err != nil {
			return err
		}
	}
	return nil
}

// takesJobs returns when the site has answered a submission.
func (r *membersRun) takesJobs(ctx context.Context) error {
	s := r.sites[0]
	for len(s.acked) > 0 {
		<-s.acked
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	select {
	case <-s.acked:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("site %s has acknowledged no job for two minutes: %w", s.Name, ctx.Err())
	}
}

// judge checks what is known of the run.
func (r *membersRun) judge(ctx context.Context) (*Result, error) {
	heals := sumUp(r.heals)
	heals.Target = answersAgain.Seconds()
	result := &Result{Seed: r.opt.Seed, Minutes: r.minutes, Sites: len(r.sites), Faults: r.made, Heals: heals}
	for _, n := range r.made {
		result.FaultCount += n
	}
	result.Missed = result.Misses(1)
	k := &checker{result: result, secret: sum([]byte(secretText)), killed: map[int]bool{}, lost: r.logs.lost, apart: r.sites[0].Name, silent: longerThan(executorLost, r.silent)}
	file, err := os.Open(r.folders.ledger)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	if k.ledger, err = readLedger(file); err != nil {
		return nil, err
	}
	r.settleDown(ctx)
	for _, u := range r.users {
		r.checkUser(ctx, k, u)
	}
	k.leftOver(ctx, r.bed)
	k.reached(r.caught, r.made[string(SilentExecutor)])
	for _, n := range append(r.three.All(), r.fed.Nodes()...) {
		if n.Ended() {
			r.logs.crashed(filepath.Base(n.LogPath()))
		}
	}
	return result, ctx.Err()
}

// settleDown waits until no site holds anything, but not for long: what is left then is told.
func (r *membersRun) settleDown(ctx context.Context) {
	for until := time.Now().Add(2 * settleTarget); time.Now().Before(until); {
		left := 0
		for _, s := range r.sites {
			jobs, copies, err := listJobs(ctx, s, false)
			g, err2 := s.Sites.GetSite(ctx, &kithv1.GetSiteRequest{})
			if err != nil || err2 != nil || len(jobs)+len(copies)+len(runningAt(s.Config.Data)) > 0 || g.GetSite().GetFreeProcessors() != g.GetSite().GetProcessors() {
				left++
			}
		}
		if left == 0 || !pause.For(ctx, lookPause) {
			return
		}
	}
}
