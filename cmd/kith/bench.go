package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"kith/testbed/check/bench"
)

// benchVerb is "kith bench".
func benchVerb(c *cli) *cobra.Command {
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
			} {
				if v.value < 1 || v.value > v.max {
					return usagef("--%s %d: choose 1 to %d", v.flag, v.value, v.max)
				}
			}
			return c.bench(cmd.Context(), opt, args)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&opt.Dir, "dir", "", "keep the sites' data in a new folder below `D`, whose disk is measured (default: where temporary files go)")
	flags.IntVar(&opt.Starts, "starts", opt.Starts, "start: `N` jobs one after another")
	flags.IntVar(&opt.Jobs, "jobs", opt.Jobs, "throughput: `N` jobs")
	flags.IntVar(&opt.Sites, "sites", opt.Sites, "throughput: `N` sites")
	flags.IntVar(&opt.Copies, "copies", opt.Copies, "throughput: each job queues at `K` sites")
	flags.IntVar(&opt.Claims, "claims", opt.Claims, "claims: `N` claims")
	flags.IntVar(&opt.InFlight, "in-flight", opt.InFlight, "claims: `N` at a time, from two hosts")
	flags.IntVar(&opt.Queued, "queued", opt.Queued, "queue: `N` jobs; sim: the longest queue")
	flags.StringVar(&opt.Trace, "trace", "", "sim: replay log `F` instead of generated jobs")
	flags.BoolVar(&opt.Large, "large", false, "sim: also 200 sites with 10,000 jobs each, and kith lab run 001 and 004; takes minutes")
	return cmd
}

func (c *cli) bench(ctx context.Context, opt bench.Options, names []string) error {
	dir, err := os.MkdirTemp(opt.Dir, "kith-bench-")
	if err != nil {
		return refusedf("--dir %s: %v", opt.Dir, err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // what is left in a temporary folder harms nobody
	defer collectLess()()
	opt.Dir = dir
	opt.Observe = func(what string) { c.note("measuring %s", what) }
	r, err := bench.Run(ctx, opt, names)
	if err != nil {
		return refusedf("bench: %v", err)
	}
	return c.printValue(r, func() string { return benchTable(r, c.width) })
}

// benchTable is what people see.
func benchTable(r *bench.Report, width int) string {
	g := grid{columns: []column{{title: "MEASURE"}, {title: "WHAT", elastic: true}, {title: "VALUE", right: true}, {title: "UNIT"}, {title: "TARGET", right: true}, {title: ""}}}
	m := r.Machine
	g.add("machine", fmt.Sprintf("fork and exec of /bin/true, one after another (%d processors, %s)", m.Processors, m.System), number(m.ForkExecSerial), "/s", "", "")
	g.add("machine", "fork and exec of /bin/true, all processors", number(m.ForkExecParallel), "/s", "", "")
	g.add("machine", "4 KiB appended and synced, median", number(float64(m.SyncMedian.Microseconds())/1000), "ms", "", "")
	for _, f := range r.Figures {
		target, verdict := "", ""
		if f.Target != nil {
			target, verdict = "≥ "+number(*f.Target), "reached"
			if f.AtMost {
				target = "≤ " + number(*f.Target)
			}
			if !f.Reached() {
				verdict = "missed"
			}
		}
		g.add(f.Measure, f.Name, number(f.Value), f.Unit, target, verdict)
	}
	return g.render(width)
}

// number shows three digits or more.
func number(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0")
	}
	return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.2f", v), "0"), ".")
}
