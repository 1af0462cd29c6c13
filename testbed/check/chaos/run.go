package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"kith/internal/pause"
	kithv1 "kith/proto/gen/kith/v1"
)

// campaign is a run.
type campaign struct {
	*bed
	in      *injector
	users   []*user
	bags    []*bagUser
	folders folders
	heals   []time.Duration
	strays  []string
	// promises are looked at after each heal and at the end.
	promises promises
	minutes  float64
}

// Run starts sites, does to them what the options say, and checks the history.
// The error says why the run could not be made; what is wrong with the sites is
// in the result. When ctx is done it ends everything and returns its error.
func Run(ctx context.Context, opt Options) (*Result, error) {
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	opt = opt.withDefaults()
	dir, err := filepath.EvalSymlinks(opt.Dir)
	if err != nil {
		return nil, err
	}
	if opt.Dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	if _, err := exec.LookPath("flock"); err != nil {
		return nil, fmt.Errorf("jobs tell with flock whether they run alone: %w; install util-linux", err)
	}
	c := &campaign{}
	if err := c.open(ctx, &opt); err != nil {
		return nil, err
	}
	result, err := c.run(ctx)
	return result, errors.Join(err, c.end(result))
}

// open starts everything.
func (c *campaign) open(ctx context.Context, opt *Options) error {
	err := c.makeFolders(opt)
	if err != nil {
		return err
	}
	if c.bed, err = openBed(ctx, opt, tune, opt.Sites-1); err != nil {
		return err
	}
	disk := -1
	for i, s := range c.sites {
		if s.disk != nil {
			disk = i
		}
	}
	if disk < 0 && slices.Contains(opt.Kinds, string(FullDisk)) {
		return errors.Join(fmt.Errorf("fault %s: %s; leave it out, or run this as root", FullDisk, c.noDisk), c.close())
	}
	c.in = newInjector(c.bed, newPlanner(opt, disk))
	c.workload()
	return nil
}

// makeFolders makes what jobs write to.
func (c *campaign) makeFolders(opt *Options) error {
	jobs, err := opt.folder("jobs")
	if err != nil {
		return err
	}
	c.folders = folders{ledger: filepath.Join(jobs, "ledger"), taskLedger: filepath.Join(jobs, "tasks"), locks: filepath.Join(jobs, "locks"), secret: filepath.Join(jobs, "secret"), counts: filepath.Join(jobs, "counts")}
	for _, dir := range []string{c.folders.locks, c.folders.counts} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	return os.WriteFile(c.folders.secret, []byte(secretText), 0o600)
}

// skipped are the kinds of which no fault came about though they were wanted.
func (c *campaign) skipped(r *Result) []Skipped {
	var list []Skipped
	missed := make(map[Kind]string)
	for _, f := range c.in.done {
		missed[f.Kind] = f.Missed
	}
	for _, k := range Kinds() {
		wanted := len(c.opt.Kinds) == 0 || slices.Contains(c.opt.Kinds, string(k))
		if k == HungDisk && !c.opt.wants(k) { // it was not asked for
			continue
		}
		if !wanted || r.Faults[string(k)] > 0 {
			continue
		}
		reason := "none was drawn in so short a time"
		switch text, drawn := missed[k]; {
		case k.trusts() && c.opt.Insecure:
			reason = "the sites have no keys"
		case k == Upgrade && c.noUpgrade != "":
			reason = c.noUpgrade
		case k == Upgrade && c.opt.UpgradeFrom == "":
			reason = "no earlier version is named"
		case k == FullDisk && c.noDisk != "":
			reason = c.noDisk
		case drawn:
			reason = "whenever one was drawn: " + text
		}
		list = append(list, Skipped{k, reason})
	}
	return list
}

// workload makes the users with their pace.
func (c *campaign) workload() {
	for i, s := range c.sites {
		m := newMaker(c.opt, i, s.processors, min(25*time.Second, c.opt.Duration/2), c.folders)
		m.tame = c.opt.UpgradeFrom != "" || c.opt.Demotions // earlier versions waited for what such a job left
		m.count = c.opt.Demotions
		c.users = append(c.users, newUser(s, m, c.logs, c.opt.UpgradeFrom != "" || c.in.planner.draws(Reconfigure)))
		if c.opt.UpgradeFrom == "" && !c.opt.Demotions { // earlier versions know no bags
			c.bags = append(c.bags, newBagUser(c.opt, s, c.folders, c.logs))
		}
	}
}

// shares are how busy the users of a site are, in turn: where more is submitted
// than the site can run, jobs run elsewhere.
var shares = []float64{1.6, 0.8, 0.4, 1.2}

// countShares are those of sites of which one hides guests and one bounds what they cost: they have jobs of
// their own, too.
var countShares = []float64{1.4, 1, 0.8, 0.8}

// pace is how many jobs a user submits in a second.
func (c *campaign) pace(u *user) float64 {
	if c.opt.JobsPerSecond > 0 {
		return c.opt.JobsPerSecond / float64(len(c.users))
	}
	each, share := load(u.maker.width, u.maker.longest), shares[u.site.index%len(shares)]
	if c.opt.Demotions {
		each, share = countLoad(each), countShares[u.site.index%len(countShares)]
	}
	return 0.8 * share * float64(u.site.processors) / each
}

// run lets users submit and faults happen, heals, waits and checks.
func (c *campaign) run(ctx context.Context) (*Result, error) {
	working, rest := context.WithCancel(ctx)
	defer rest()
	all, done := context.WithCancel(ctx)
	defer done()
	var submitting, following sync.WaitGroup
	for _, u := range c.users {
		submitting.Go(func() { u.submit(working, all, c.pace(u)) })
		following.Go(func() { u.follow(all) })
	}
	for _, u := range c.bags {
		submitting.Go(func() { u.submit(working, all) })
	}
	stop := func() {
		rest()
		submitting.Wait()
		done()
		following.Wait()
		for _, u := range c.users {
			u.asking.Wait()
		}
		for _, u := range c.bags {
			u.seeing.Wait()
		}
	}
	defer stop()
	c.rounds(ctx)
	rest()
	submitting.Wait()
	c.drain(ctx)
	stop()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return c.check(ctx)
}

// roundLength is how long faults begin in a round.
const roundLength = 30 * time.Second

// rounds injects faults, and after each round takes the time until the sites agree.
func (c *campaign) rounds(ctx context.Context) {
	c.in.began = time.Now()
	for n := 0; ; n++ {
		left := c.opt.Duration - time.Since(c.in.began)
		if left <= 0 || ctx.Err() != nil {
			break
		}
		length := min(left, roundLength)
		faults := c.in.planner.round(length)
		if n == 0 && c.opt.UpgradeFrom != "" {
			faults = merge(faults, c.in.planner.upgrades(length))
		}
		over := time.Now().Add(length)
		c.in.round(ctx, faults)
		pause.For(ctx, time.Until(over))
		c.in.healEverything(ctx)
		if ctx.Err() != nil {
			break
		}
		took, left2 := c.settle(ctx)
		c.heals = append(c.heals, took)
		c.strays = append(c.strays, left2...)
		_ = c.promises.lookAtAll(ctx, c.sites) // one that does not answer is asked again
		c.opt.note("%6.1f s  healed; the sites agree after %.1f s", time.Since(c.in.began).Seconds(), took.Seconds())
	}
	c.minutes = time.Since(c.in.began).Minutes()
}

// drain waits until all jobs have ended.
func (c *campaign) drain(ctx context.Context) {
	c.opt.note("no more jobs; waiting for those under way")
	looking, enough := context.WithCancel(ctx)
	var looks sync.WaitGroup
	if !c.opt.Demotions { // what waits may not run everywhere then
		looks.Go(func() { (&idleWatch{campaign: c}).watch(looking) })
	}
	defer looks.Wait()
	defer enough()
	stop := time.Now().Add(c.opt.Patience)
	for time.Now().Before(stop) {
		waiting := 0
		for _, u := range c.users {
			waiting += u.unsettled()
		}
		for _, u := range c.bags {
			waiting += u.unsettled()
		}
		if waiting == 0 || !pause.For(ctx, lookPause) {
			return
		}
	}
}

// check looks at everything that is known of the run.
func (c *campaign) check(ctx context.Context) (*Result, error) {
	r := &Result{
		Seed: c.opt.Seed, Minutes: c.minutes, Sites: c.opt.Sites, Faults: make(map[string]int), Heals: sumUp(c.heals),
	}
	k := &checker{result: r, secret: sum([]byte(secretText)), killed: c.in.shims, lost: c.logs.lost, full: c.in.full, unguarded: c.in.unguarded(), severed: c.in.severed}
	k.signed = func(id string) (io.ReadCloser, error) { return os.Open(c.folders.countsOf(id)) }
	for _, s := range c.sites {
		if s.disk != nil {
			k.diskSite = s.Name
		}
	}
	for _, f := range c.in.done {
		if f.Missed == "" {
			r.Faults[string(f.Kind)]++
			r.FaultCount++
		}
	}
	r.Injected = c.in.done
	r.Skipped = c.skipped(r)
	// What hosts still have to be told takes a moment.
	_, left := c.settle(ctx)
	for _, text := range append(c.strays, left...) {
		k.problem(&r.StrayCopies, "%s", text)
	}
	file, err := os.Open(c.folders.ledger)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	if k.ledger, err = readLedger(file); err != nil {
		return nil, err
	}
	for _, u := range c.users {
		c.checkUser(ctx, k, u)
	}
	if err := c.checkBags(ctx, k); err != nil {
		return nil, err
	}
	k.leftOver(ctx, c.bed)
	if err := c.promises.lookAtAll(ctx, c.sites); err != nil {
		k.problem(&r.OtherProblems, "%v", err)
	}
	k.promisesKept(&c.promises)
	r.AuditLines = c.verifyAudits()
	r.Missed = r.Misses(1)
	return r, ctx.Err()
}

// checkUser checks the jobs of one origin.
func (c *campaign) checkUser(ctx context.Context, k *checker, u *user) {
	k.submissions(ctx, u)
	for _, j := range u.all() {
		var now *kithv1.Job
		if j.id != "" {
			var err error
			if now, err = getJob(ctx, u.site, j.id); err != nil {
				k.problem(&k.result.OtherProblems, "job %s: %v", j.id, err)
				now = nil
			}
		}
		k.check(j, now, func(path string) (string, error) { return output(ctx, u.site, j.id, path) })
	}
}

// end stops the sites and counts what they left behind.
func (c *campaign) end(r *Result) error {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	if r == nil || !r.Sound() {
		c.in.healEverything(ctx)
		c.fed.Cancel(ctx)
	}
	if r != nil && len(c.bags) > 0 {
		c.stopped = func(s *site) { c.checkHeld(r, s) }
	}
	err := c.close()
	left := c.sweep(5 * time.Second)
	if r == nil {
		return err
	}
	r.LeftProcesses = left
	c.logs.mu.Lock()
	defer c.logs.mu.Unlock()
	r.Crashes = c.logs.crashes
	r.OtherProblems += len(c.logs.problems) - c.logs.crashes
	r.Problems = append(r.Problems, c.logs.problems...)
	return err
}

// merge puts two lists of faults in the order of their beginnings.
func merge(a, b []Fault) []Fault {
	all := append(append([]Fault(nil), a...), b...)
	sortFaults(all)
	return all
}
