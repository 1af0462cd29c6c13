package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"kith/cmd/kithd/config"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store/boltstore"
	"kith/testbed/local"
)

// bags measures what bags of tasks cost: to submit, to start, to run, to remember.
func (b *bench) bags(ctx context.Context) error {
	for _, part := range []struct {
		what string
		run  func(context.Context) error
	}{
		{"submissions and the first task", b.bagStart}, {"tasks of /bin/true", b.bagRate}, {"idle processors", b.bagIdle},
		{"an origin with hosts that only speak", b.bagOrigin}, {"the simulator", b.bagSim},
	} {
		b.observe("bags: " + part.what)
		if err := part.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", part.what, err)
		}
	}
	return nil
}

// submitBag submits so many tasks of a command, one processor each.
func submitBag(ctx context.Context, n *local.Node, tasks int, hold bool, command ...string) (string, error) {
	r, err := n.Bags.SubmitBag(ctx, &kithv1.SubmitBagRequest{Bag: &kithv1.Bag{
		Indices: fmt.Sprintf("0-%d", tasks-1),
		Job:     &kithv1.Job{Command: command, Processors: 1, Walltime: durationpb.New(time.Minute), Hold: hold},
	}})
	if err != nil {
		return "", fmt.Errorf("submit %d tasks at %s: %w", tasks, n.Name, err)
	}
	return r.GetBagId(), nil
}

// bagStart measures submissions of bags, and from one to the process of its only task.
func (b *bench) bagStart(ctx context.Context) error {
	f, stop, err := b.federation(ctx, []local.Site{{Name: "alpha"}})
	if err != nil {
		return err
	}
	defer stop() //nolint:errcheck // what was measured counts
	n := f.Nodes()[0]
	few := max(1, b.opt.BagTasks/1000)
	took := make(map[int][]time.Duration)
	for i := range b.opt.Starts + 2 {
		for _, tasks := range []int{few, b.opt.BagTasks} {
			began := time.Now()
			if _, err := submitBag(ctx, n, tasks, true, "/bin/true"); err != nil {
				return err
			}
			if i >= 2 {
				took[tasks] = append(took[tasks], time.Since(began))
			}
		}
	}
	for _, list := range took {
		slices.Sort(list)
	}
	small, large := median(took[few]), median(took[b.opt.BagTasks])
	b.addTarget(fmt.Sprintf("submission of %d tasks to durable answer, median", b.opt.BagTasks), milliseconds(large), "ms", 10, true)
	b.addTarget(fmt.Sprintf("the same as a multiple of that of %d tasks", few), float64(large)/float64(small), "times", 1.2, true)

	var waits []time.Duration
	for i := range b.opt.Starts + 5 {
		wait, err := firstTask(ctx, n)
		if err != nil {
			return err
		}
		if i >= 5 {
			waits = append(waits, wait)
		}
		time.Sleep(50 * time.Millisecond) // the site is idle again
	}
	slices.Sort(waits)
	b.addTarget("submission to the first task's process, idle site, median", milliseconds(median(waits)), "ms", 15, true)
	b.add("the same, 99 of 100", milliseconds(quantile(waits, 0.99)), "ms")
	return nil
}

// firstTask returns how long a bag of one task takes from its submission to the instant that
// the task reads off the clock.
func firstTask(ctx context.Context, n *local.Node) (time.Duration, error) {
	began := time.Now()
	id, err := submitBag(ctx, n, 1, false, "/bin/date", "+%s.%N")
	if err != nil {
		return 0, err
	}
	if _, err := bagEnd(ctx, n, id, nil); err != nil {
		return 0, err
	}
	stream, err := n.Bags.GetTaskOutput(ctx, &kithv1.GetTaskOutputRequest{BagId: id, Path: "stdout"})
	if err != nil {
		return 0, err
	}
	text, err := gather(stream, (*kithv1.GetTaskOutputResponse).GetData)
	if err != nil {
		return 0, err
	}
	at, err := parseDate(text)
	return at.Sub(began), err
}

// bagEnd waits until a bag has ended, every task well. see learns how far it is; nil for no
// one.
func bagEnd(ctx context.Context, n *local.Node, id string, see func(*kithv1.BagStatus)) (*kithv1.BagStatus, error) {
	stream, err := n.Bags.WatchBag(ctx, &kithv1.WatchBagRequest{BagId: id})
	for err == nil {
		var r *kithv1.WatchBagResponse
		if r, err = stream.Recv(); err != nil {
			break
		}
		s := r.GetBag().GetStatus()
		if see != nil {
			see(s)
		}
		switch state := s.GetState(); {
		case state == kithv1.BagStatus_STATE_COMPLETED:
			return s, nil
		case state > kithv1.BagStatus_STATE_COMPLETED || state == kithv1.BagStatus_STATE_HELD:
			return s, fmt.Errorf("bag %s: %v: %s", id, state, s.GetReason())
		}
	}
	return nil, fmt.Errorf("bag %s: %w", id, err)
}

// bagRate runs tasks of /bin/true over some sites.
func (b *bench) bagRate(ctx context.Context) error {
	var sites []local.Site
	for i := range b.opt.Sites {
		sites = append(sites, local.Site{Name: fmt.Sprintf("site%02d", i), Tune: func(c *config.Config) { c.Scheduler.Processors = 4 }})
	}
	f, stop, err := b.federation(ctx, sites)
	if err != nil {
		return err
	}
	defer stop() //nolint:errcheck // what was measured counts
	// The machine's rate is measured before and behind: it may do other work meanwhile.
	before, err := forkExec(b.report.Machine.Processors)
	if err != nil {
		return err
	}
	began := time.Now()
	id, err := submitBag(ctx, f.Nodes()[0], b.opt.Tasks, false, "/bin/true")
	if err != nil {
		return err
	}
	last, err := bagEnd(ctx, f.Nodes()[0], id, nil)
	if err != nil {
		return err
	}
	rate := float64(b.opt.Tasks) / time.Since(began).Seconds()
	if runs := last.GetRunCount(); runs != int64(b.opt.Tasks) {
		return fmt.Errorf("%d runs of %d tasks", runs, b.opt.Tasks)
	}
	after, err := forkExec(b.report.Machine.Processors)
	if err != nil {
		return err
	}
	b.add(fmt.Sprintf("%d tasks of /bin/true over %d sites", b.opt.Tasks, b.opt.Sites), rate, "tasks/s")
	b.add("fork and exec of /bin/true, all processors, right before", before, "/s")
	b.add("the same right behind", after, "/s")
	b.addTarget("tasks as a share of their mean", 100*rate/((before+after)/2), "%", 60, false)
	return nil
}

// idleTask is how long a task runs of the bag by which idle processors are measured.
const idleTask = time.Second

// bagIdle measures how much of two sites' processors is idle while a bag has tasks that no
// site has begun.
func (b *bench) bagIdle(ctx context.Context) error {
	const processors = 8
	several := func(c *config.Config) { c.Scheduler.Processors = processors }
	f, stop, err := b.federation(ctx, []local.Site{{Name: "alpha", Tune: several}, {Name: "beta", Tune: several}})
	if err != nil {
		return err
	}
	defer stop() //nolint:errcheck // what was measured counts
	n := f.Nodes()[0]
	tasks := max(4, b.opt.Tasks/200) * 2 * processors
	if b.opt.Tasks < 1000 {
		tasks = 3 * processors
	}
	began := time.Now()
	until := began
	id, err := submitBag(ctx, n, tasks, false, "/bin/sleep", fmt.Sprint(idleTask.Seconds()))
	if err != nil {
		return err
	}
	if _, err := bagEnd(ctx, n, id, func(s *kithv1.BagStatus) {
		if s.GetTasks().GetWaiting() > 0 {
			until = time.Now()
		}
	}); err != nil {
		return err
	}
	runs, err := runsOf(ctx, n, id)
	if err != nil {
		return err
	}
	for i, site := range f.Nodes() {
		name := "idle processors of the origin while tasks wait"
		if i > 0 {
			name = "idle processors of another site while tasks wait"
		}
		b.addTarget(fmt.Sprintf("%s, tasks of %v", name, idleTask), 100*idle(runs, site.Name, began, until, processors), "%", 1, true)
	}
	return nil
}

// runsOf returns all tasks of a bag.
func runsOf(ctx context.Context, n *local.Node, id string) (all []*kithv1.Task, err error) {
	for page := ""; ; {
		r, err := n.Bags.ListTasks(ctx, &kithv1.ListTasksRequest{BagId: id, PageToken: page})
		if err != nil {
			return nil, err
		}
		all = append(all, r.GetTasks()...)
		if page = r.GetNextPageToken(); page == "" {
			return all, nil
		}
	}
}

// idle returns which part of a site's processors ran no task between two instants.
func idle(runs []*kithv1.Task, site string, from, until time.Time, processors int) float64 {
	if !from.Before(until) {
		return 0
	}
	busy := time.Duration(0)
	for _, t := range runs {
		if t.GetSiteId() != site {
			continue
		}
		at := t.GetStartTime().AsTime()
		if end := at.Add(t.GetRunTime().AsDuration()); end.Before(until) {
			busy += end.Sub(at)
		} else {
			busy += max(0, until.Sub(at))
		}
	}
	return 1 - float64(busy)/float64(until.Sub(from))/float64(processors)
}

// bagOrigin has two hosts that only speak work at bags of one origin, and looks at what
// these take of its memory and disk, and how long it takes to come back.
func (b *bench) bagOrigin(ctx context.Context) error {
	f, stop, err := b.federation(ctx, []local.Site{{Name: "origin"}, {Name: "hosta"}, {Name: "hostb"}})
	if err != nil {
		return err
	}
	defer stop() //nolint:errcheck // what was measured counts
	n := f.Nodes()[0]
	if _, err := n.Sites.DrainSite(ctx, &kithv1.DrainSiteRequest{Reason: "bench"}); err != nil {
		return err
	}
	for _, h := range f.Nodes()[1:] {
		h.Stop()
	}
	o := &originOfBags{b: b, nodes: f.Nodes()}
	if err := o.warm(ctx); err != nil {
		return err
	}
	if err := o.bag(ctx, b.opt.BagTasks, 4); err != nil {
		return err
	}
	return o.half(ctx, 10*b.opt.BagTasks, 16)
}

// originOfBags is the site whose bags they are, and what it was before.
type originOfBags struct {
	b     *bench
	nodes []*local.Node
	none  float64 // MiB
}

// above returns how many MiB of its own the origin has more than without bags. What it
// reads of its file lies in memory that it shares with the disk's cache.
func (o *originOfBags) above() (float64, error) {
	m, err := memoryOf(o.nodes[0].PID(), "RssAnon:")
	return m - o.none, err
}

// warm has the origin do once what it does later, and notes what it takes then.
func (o *originOfBags) warm(ctx context.Context) error {
	tasks := max(1, o.b.opt.BagTasks/10)
	if _, err := submitBag(ctx, o.nodes[0], tasks, false, "/bin/true"); err != nil {
		return err
	}
	if _, _, err := work(ctx, o.nodes, tasks); err != nil {
		return err
	}
	var err error
	o.none, err = o.above()
	return err
}

// bag runs all tasks of a bag.
func (o *originOfBags) bag(ctx context.Context, tasks int, most float64) error {
	if _, err := submitBag(ctx, o.nodes[0], tasks, false, "/bin/true"); err != nil {
		return err
	}
	waiting, err := o.above()
	if err != nil {
		return err
	}
	ran, took, err := work(ctx, o.nodes, tasks/2)
	if err != nil {
		return err
	}
	half, err := o.above()
	if err != nil {
		return err
	}
	rest := time.Duration(0)
	if ran < tasks {
		if _, rest, err = work(ctx, o.nodes, tasks-ran); err != nil {
			return err
		}
	}
	done, err := o.above()
	if err != nil {
		return err
	}
	rate := float64(tasks) / (took + rest).Seconds()
	o.b.addTarget("granted and recorded durably by one origin, two hosts that only speak", rate, "tasks/s", 50_000, false)
	o.b.addTarget(fmt.Sprintf("memory above none, bag of %d waiting", tasks), waiting, "MiB", most, true)
	o.b.addTarget("half done", half, "MiB", most, true)
	o.b.addTarget("done", done, "MiB", most, true)
	return nil
}

// size is that of the origin's data file.
func (o *originOfBags) size() (int64, error) {
	info, err := os.Stat(filepath.Join(o.nodes[0].Config.Data, boltstore.FileName))
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// half runs half of a bag, then kills the origin.
func (o *originOfBags) half(ctx context.Context, tasks int, most float64) error {
	n := o.nodes[0]
	id, err := submitBag(ctx, n, tasks, false, "/bin/true")
	if err != nil {
		return err
	}
	waiting, err := o.above()
	if err != nil {
		return err
	}
	before, err := o.size()
	if err != nil {
		return err
	}
	ran, _, err := work(ctx, o.nodes, tasks/2)
	if err != nil {
		return err
	}
	file, err := o.size()
	if err != nil {
		return err
	}
	half, err := o.above()
	if err != nil {
		return err
	}
	n.Kill()
	began := time.Now()
	if err := n.Start(ctx); err != nil {
		return err
	}
	r, err := n.Bags.GetBag(ctx, &kithv1.GetBagRequest{BagId: id})
	back := time.Since(began)
	if err != nil {
		return err
	}
	if done := r.GetBag().GetStatus().GetTasks().GetCompleted(); done < int64(tasks/2) {
		return fmt.Errorf("%d tasks are done after the restart, %d were", done, tasks/2)
	}
	after, err := o.above()
	if err != nil {
		return err
	}
	o.b.addTarget(fmt.Sprintf("memory above none, bag of %d waiting", tasks), waiting, "MiB", most, true)
	o.b.addTarget("half done", half, "MiB", most, true)
	o.b.addTarget("disk for each of its ended tasks, without output", float64(file-before)/float64(ran), "B", 32, true)
	o.b.add("half done, after a restart", after, "MiB")
	o.b.addTarget(fmt.Sprintf("kill -9 to first answer, bag of %d half done", tasks), back.Seconds(), "s", 1, true)
	return nil
}
