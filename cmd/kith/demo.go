package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/testbed/demo"
)

// mostDemoLevels bounds the levels of a demonstration.
const mostDemoLevels = 8

// demoVerb is "kith demo".
func demoVerb(c *client) *cobra.Command {
	opt := demo.Options{Patience: 5 * time.Minute}
	var keep bool
	var tasks int
	cmd := &cobra.Command{
		Use:   "demo [--jobs N | --bag N] [--sites N] [--copies K] [--levels N] [--keep] [--dir D] [-- COMMAND [ARGS...]]",
		Short: "Start a small federation on this machine and watch it run jobs",
		Long: `Start a small federation of real sites on loopback, submit real jobs at two of
them, and show what happens. Each site makes its own keys, every two sites join by
an invitation, and all that they tell each other goes over mutual TLS. At the end the sites' logs and the jobs' own
signatures are counted: the exit code is 0 only if every job ran exactly once.
The sites are kithd and kith-shim from the folder of this program; in a checkout
of Kith they are built first if they are not there.

With --bag it submits one bag of N tasks instead, and counts from what the tasks
themselves wrote down that each ran exactly once.

With --levels N the last N sites are levels of a hierarchy: a job that
"kith submit --time unknown --checkpoint PATTERN" takes begins at the first of
them, and goes down after 5 s, then 15 s.

With --keep the sites stay until Ctrl-C; ask them as the first lines say.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if dash := cmd.ArgsLenAtDash(); len(args) > 0 && dash != 0 {
				return cli.Usagef("%q: write a command behind --", args[0])
			}
			if opt.Command = args; opt.Jobs < 1 || opt.Jobs > 100_000 || opt.Sites < 1 || opt.Sites > 50 || opt.Copies < 1 || opt.Copies > 50 {
				return cli.Usagef("--jobs %d --sites %d --copies %d: choose 1 to 100000 jobs, 1 to 50 sites and copies", opt.Jobs, opt.Sites, opt.Copies)
			}
			if tasks != 0 && (tasks < 1 || tasks > job.MaxTasks) {
				return cli.Usagef("--bag %d: choose 1 to %d tasks", tasks, job.MaxTasks)
			}
			if opt.Levels < 0 || opt.Levels > min(opt.Sites, mostDemoLevels) {
				return cli.Usagef("--levels %d: choose 1 to %d, at most as many as --sites", opt.Levels, mostDemoLevels)
			}
			return c.demo(cmd.Context(), opt, tasks, keep)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&opt.Jobs, "jobs", 40, "how many jobs to submit, as `N`")
	flags.IntVar(&tasks, "bag", 0, "submit one bag of `N` tasks instead of jobs")
	flags.IntVar(&opt.Sites, "sites", 4, "how many sites to start, as `N`")
	flags.IntVar(&opt.Copies, "copies", 3, "at how many sites each job queues, as `K`")
	flags.IntVar(&opt.Levels, "levels", 0, "have the last `N` sites be levels of a hierarchy, for jobs of unknown length")
	flags.BoolVar(&keep, "keep", false, "leave the sites running until Ctrl-C")
	flags.StringVar(&opt.Dir, "dir", "", "keep data and logs of the sites in folder `D` (default: a temporary one)")
	flags.BoolVar(&opt.Insecure, "insecure-loopback", false, "give the sites no keys: they speak plaintext on loopback")
	return cmd
}

// waysTo are lines that ask the first site of the demonstration, for people to copy.
func waysTo(d *demo.Demo, insecure bool) []string {
	const method = "kith.v1.SiteService/ListSites"
	n := d.Federation().Nodes()[0]
	ask := "ask " + n.Name + ":  kith --site " + n.Target() + " sites"
	if insecure {
		return []string{ask, "or:  grpcurl -plaintext " + n.Address + " " + method}
	}
	return []string{
		ask,
		"or:  grpcurl -plaintext -unix " + n.Config.SocketPath() + " " + method,
		fmt.Sprintf(`over TCP:  grpcurl -cacert %s -authority %s -H "authorization: Bearer $(cat %s)" %s %s`,
			filepath.Join(n.Config.KeysPath(), "ca.crt"), n.Name, d.TokenPath(), n.Address, method),
	}
}

// demo runs the demonstration.
func (c *client) demo(ctx context.Context, opt demo.Options, tasks int, keep bool) error {
	allProcessors()
	remove, err := cli.OwnFolder(&opt.Dir, "kith-demo-")
	if err != nil {
		return cli.Refusedf("%v", err)
	}
	defer remove()
	opt.Note = func(text string) { c.Note("%s", text) }
	show := c.demoStage(opt)
	show.live = show.live && tasks == 0
	opt.Observe = show.see
	d, err := demo.Start(ctx, opt)
	if err != nil {
		return cli.Refusedf("demo: %v", err)
	}
	show.begin(d)
	var problem error
	if tasks > 0 {
		problem, err = c.demoBag(ctx, d, tasks, show)
	} else {
		problem, err = c.demoJobs(ctx, d, show)
	}
	if err == nil && keep && ctx.Err() == nil {
		c.Note("the sites keep running; Ctrl-C ends them")
		<-ctx.Done()
	}
	if closeErr := d.Close(); err == nil && closeErr != nil {
		err = cli.Refusedf("demo: %v", closeErr)
	}
	switch {
	case errors.Is(err, context.Canceled):
		return cli.ExitWith(cli.ExitInterrupted)
	case err != nil:
		return err
	}
	return problem
}

// demoJobs runs jobs over the sites and prints what came of them. The problem is that not
// all was as it should be.
func (c *client) demoJobs(ctx context.Context, d *demo.Demo, show *stage) (problem, err error) {
	result, err := d.Run(ctx)
	show.end()
	if err != nil {
		return nil, err
	}
	if !result.Good() {
		problem = cli.Refusedf("not every job ran exactly once:\n  %s", strings.Join(result.Problems, "\n  "))
	}
	return problem, c.Print(result, func() string { return demoSummary(result, c.Width) })
}

// demoBag runs a bag over the sites and prints what came of it.
func (c *client) demoBag(ctx context.Context, d *demo.Demo, tasks int, show *stage) (problem, err error) {
	bar := c.Progress("tasks", tasks)
	result, err := d.RunBag(ctx, tasks, func(s *kithv1.BagStatus) {
		n := s.GetTasks()
		bar.Set(int(n.GetCompleted() + n.GetFailed() + n.GetCancelled()))
	})
	bar.Clear()
	show.end()
	if err != nil {
		return nil, err
	}
	if !result.Good() {
		problem = cli.Refusedf("not every task ran exactly once and well: bag %s is %s, %d tasks failed, %d ran twice, %d never", result.Bag, result.LastState, result.TasksFailed, result.RanTwice, result.NeverRan)
	}
	return problem, c.Print(result, func() string { return bagSummary(result, c.Width) })
}

// bagSummary is what people see at the end of a bag.
func bagSummary(r *demo.BagResult, width int) string {
	g := cli.Grid{Columns: []cli.Column{{Title: "SITE"}, {Title: "CPUS", Right: true}, {Title: "TASKS", Right: true}}}
	for _, s := range r.Sites {
		g.Add(s.Site, fmt.Sprint(s.Processors), fmt.Sprint(s.Tasks))
	}
	return fmt.Sprintf("\n%s\n%d tasks in %.1f s: %d completed, %d failed; %d runs, %d tasks ran twice, %d never.\n",
		g.Render(width), r.TasksSubmitted, r.Seconds, r.TasksCompleted, r.TasksFailed, r.Runs, r.RanTwice, r.NeverRan)
}

// demoSummary is what people see at the end.
func demoSummary(r *demo.Result, width int) string {
	g := cli.Grid{Columns: []cli.Column{
		{Title: "SITE"}, {Title: "ADDRESS"}, {Title: "CPUS", Right: true}, {Title: "POLICY", Elastic: true, Spare: 5}, {Title: "RAN", Right: true},
		{Title: "FOR OTHERS", Right: true}, {Title: "COPIES", Right: true, Spare: 4}, {Title: "GRANTED", Right: true, Spare: 3},
		{Title: "DENIED", Right: true, Spare: 2}, {Title: "WITHDRAWN", Right: true, Spare: 1}, {Title: "MEAN WAIT", Right: true},
	}}
	for _, s := range r.Sites {
		g.Add(s.Site, s.Address, fmt.Sprint(s.Processors), s.Policy, fmt.Sprint(s.JobsRun), fmt.Sprint(s.JobsRunForOther), fmt.Sprint(s.CopiesQueued),
			fmt.Sprint(s.ClaimsGranted), fmt.Sprint(s.ClaimsDenied), fmt.Sprint(s.Withdrawals), fmt.Sprintf("%.2f s", s.MeanWaitSeconds))
	}
	return fmt.Sprintf("\n%s\n%d jobs in %.1f s: %d succeeded, %d failed, %d lost; %d starts, %d of them double.\n"+
		"Claim messages per job: %.2f by the paper's count, %.2f of them between sites.\n",
		g.Render(width), r.JobsSubmitted, r.Seconds, r.JobsSucceeded, r.JobsFailed, r.LostJobs, r.AttemptsStarted, r.DoubleStarts,
		r.ClaimMessagesPerJob, r.WireMessagesPerJob)
}
