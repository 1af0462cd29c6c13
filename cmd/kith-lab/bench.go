package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	"kith/internal/job"
	"kith/testbed/check/bench"
)

// benchVerb is "kith-lab bench".
func benchVerb(p *cli.Program) *cobra.Command {
	opt := bench.DefaultOptions()
	long := "Measure whole paths through real sites on this machine, together with the\nmachine's own limits. Without a name everything is measured:\n\n"
	for _, m := range bench.Measures() {
		long += fmt.Sprintf("  %-12s %s\n", m.Name, m.Summary)
	}
	cmd := &cobra.Command{
		Use:       "bench [MEASURE...]",
		Short:     "Measure Kith on this machine",
		Long:      long + "\nThe exit code is 0 also if a target is missed: a machine may be too small for it.",
		ValidArgs: bench.Names(),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, v := range []struct {
				flag       string
				value, max int
			}{
				{"starts", opt.Starts, 10_000}, {"jobs", opt.Jobs, 100_000}, {"sites", opt.Sites, 50}, {"copies", opt.Copies, 50},
				{"claims", opt.Claims, 150_000}, {"in-flight", opt.InFlight, 1000}, {"queued", opt.Queued, 1_000_000},
				{"clients", opt.Clients, 10_000}, {"tasks", opt.Tasks, 1_000_000}, {"bag-tasks", opt.BagTasks, job.MaxTasks / 10},
				{"moves", opt.Moves, 64},
			} {
				if v.value < 1 || v.value > v.max {
					return cli.Usagef("--%s %d: choose 1 to %d", v.flag, v.value, v.max)
				}
			}
			for _, kind := range opt.Floods {
				if !slices.Contains(bench.FloodKinds(), kind) {
					return cli.Usagef("--floods %q: there is none of that name; choose from %s", kind, strings.Join(bench.FloodKinds(), "; "))
				}
			}
			if opt.FloodTime < 10*time.Millisecond || opt.FloodTime > time.Minute {
				return cli.Usagef("--flood-time %v: choose 10ms to 1m", opt.FloodTime)
			}
			for _, name := range args {
				if !slices.Contains(bench.Names(), name) {
					return cli.Usagef("measure %q: there is none of that name; choose from %s", name, strings.Join(bench.Names(), ", "))
				}
			}
			return runBench(cmd.Context(), p, opt, args)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&opt.Dir, "dir", "", "keep the sites' data in a new folder below `D`, whose disk is measured (default: where temporary files go)")
	insecureFlag(cmd, &opt.Insecure)
	flags.IntVar(&opt.Starts, "starts", opt.Starts, "start: `N` jobs one after another")
	flags.IntVar(&opt.Clients, "clients", opt.Clients, "client: `N` processes of each kind")
	flags.StringVar(&opt.Earlier, "earlier", "", "client: measure the kith in `FILE` as well, in turn with this version's")
	flags.IntVar(&opt.Jobs, "jobs", opt.Jobs, "throughput: `N` jobs")
	flags.IntVar(&opt.Sites, "sites", opt.Sites, "throughput: `N` sites")
	flags.IntVar(&opt.Copies, "copies", opt.Copies, "throughput: each job queues at `K` sites")
	flags.IntVar(&opt.Claims, "claims", opt.Claims, "claims: `N` claims")
	flags.IntVar(&opt.InFlight, "in-flight", opt.InFlight, "claims: `N` at a time, from two hosts")
	flags.IntVar(&opt.Tasks, "tasks", opt.Tasks, "bags: `N` tasks at real sites")
	flags.IntVar(&opt.BagTasks, "bag-tasks", opt.BagTasks, "bags: `N` tasks of the large bag; the largest has ten times as many")
	flags.IntVar(&opt.Moves, "moves", opt.Moves, "checkpoint: a job is moved `N` times")
	flags.IntVar(&opt.GuestJobs, "guest-jobs", opt.GuestJobs, "guests: only the first `N` jobs of the log")
	flags.BoolVar(&opt.GuestChecks, "guest-checks", false, "guests: watch the guarantees of the jobs as well; slow")
	flags.StringSliceVar(&opt.Floods, "floods", nil, "flood: only these `KINDS`, with commas")
	flags.DurationVar(&opt.FloodTime, "flood-time", opt.FloodTime, "flood: each turn with a flood and without lasts `D`")
	flags.IntVar(&opt.Queued, "queued", opt.Queued, "queue: `N` jobs; sim: the longest queue")
	flags.StringVar(&opt.Trace, "trace", "", "sim, guests: replay log `F` instead of generated jobs")
	flags.BoolVar(&opt.Large, "large", false, "sim: also 200 sites with 10,000 jobs each, and kith-lab run 001 and 004; takes minutes")
	return cmd
}

func runBench(ctx context.Context, p *cli.Program, opt bench.Options, names []string) error {
	dir, err := os.MkdirTemp(opt.Dir, "kith-bench-")
	if err != nil {
		return cli.Refusedf("--dir %s: %v", opt.Dir, err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // what is left in a temporary folder does no harm
	defer cli.CollectLess()()
	opt.Dir = dir
	opt.Observe = func(what string) { p.Note("measuring %s", what) }
	r, err := bench.Run(ctx, opt, names)
	if err != nil {
		return cli.Refusedf("bench: %v", err)
	}
	return p.Print(r, func() string { return benchTable(r, p.Width) })
}

// benchTable is what people see.
func benchTable(r *bench.Report, width int) string {
	g := cli.Grid{Columns: []cli.Column{{Title: "MEASURE"}, {Title: "WHAT", Elastic: true}, {Title: "VALUE", Right: true}, {Title: "UNIT"}, {Title: "TARGET", Right: true}, {Title: ""}}}
	m := r.Machine
	g.Add("machine", fmt.Sprintf("fork and exec of /bin/true, one after another (%d processors, %s)", m.Processors, m.System), cli.Number(m.ForkExecSerial), "/s", "", "")
	g.Add("machine", "fork and exec of /bin/true, all processors", cli.Number(m.ForkExecParallel), "/s", "", "")
	g.Add("machine", "4 KiB appended and synced, median", cli.Number(float64(m.SyncMedian.Microseconds())/1000), "ms", "", "")
	for _, f := range r.Figures {
		target, verdict := "", ""
		if f.Target != nil {
			target, verdict = "≥ "+cli.Number(*f.Target), "reached"
			if f.AtMost {
				target = "≤ " + cli.Number(*f.Target)
			}
			if !f.Reached() {
				verdict = "missed"
			}
		}
		g.Add(f.Measure, f.Name, cli.Number(f.Value), f.Unit, target, verdict)
	}
	return g.Render(width)
}
