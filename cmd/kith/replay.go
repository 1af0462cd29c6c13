package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"kith/sitesched"
	"kith/testbed/metrics"
	"kith/testbed/replay"
	"kith/testbed/workload"
)

// replayOptions are the flags of "kith replay".
type replayOptions struct {
	jobs       jobSource
	processors parsed[int32]
	policy     parsed[sitesched.Backfill]
	schedule   string
	federation federationOptions
}

// replayVerb is "kith replay".
func replayVerb(c *cli) *cobra.Command {
	var opt replayOptions
	cmd := &cobra.Command{
		Use:   "replay (--trace FILE | --generate MODEL | --federation FILE) [--processors P] [--policy WORD]",
		Short: "Replay a log of jobs through a site's scheduler in virtual time",
		Long: `Replay a log of jobs through the scheduler of a site, in virtual time, and tell
how long its users would have waited. No site is asked.

Logs are read in the Standard Workload Format, as "sacct -P" prints them with
its header line, and as PBS and Torque account for jobs; plain or gzip. For sacct:

  ` + workload.SacctCommand + `

Jobs that cannot be replayed are left out and counted. --schedule writes the
start and end of every job in seconds from the first submission.

--federation answers whether to join others, and with how many copies of a job:
it replays the sites that a file describes, each alone and all together, and
tells who wins and who loses. docs/examples/federation.toml is such a file.`,
		Example: `  kith replay --trace last-month.txt --processors 512 --policy easy
  kith replay --generate ctc --load 0.7 --policy cons-compress --schedule starts.csv
  kith replay --federation docs/examples/federation.toml --report join.html`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opt.federation.check(cmd); err != nil {
				return err
			}
			if opt.federation.file != "" {
				return c.replayFederation(cmd.Context(), &opt.federation)
			}
			if err := opt.jobs.check(cmd); err != nil {
				return err
			}
			return c.replaySite(cmd.Context(), &opt)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	opt.jobs.flags(cmd)
	opt.processors = parsed[int32]{kind: "P", parse: parseCount}
	flags.Var(&opt.processors, "processors", "size of the site (default: what the log says, or the model)")
	opt.policy = parsed[sitesched.Backfill]{value: sitesched.EASY, text: "easy", kind: "WORD", parse: replay.ParsePolicy}
	flags.Var(&opt.policy, "policy", strings.Join(replay.Policies(), "|"))
	complete(cmd, "policy", replay.Policies()...)
	flags.StringVar(&opt.schedule, "schedule", "", "write the schedule to `FILE` as comma-separated values")
	opt.federation.flags(cmd)
	return cmd
}

// replaySite replays one workload at one site.
func (c *cli) replaySite(ctx context.Context, opt *replayOptions) error {
	w, err := opt.jobs.workload(opt.processors.value)
	if err != nil {
		return err
	}
	out, err := createFile("--schedule", opt.schedule)
	if err != nil {
		return err
	}
	defer out.Close() //nolint:errcheck // What is left of a file that is not there harms nobody.
	bar := c.progress("replay", len(w.Jobs))
	began := c.now()
	s, err := replay.Run(ctx, w, sitesched.Config{Processors: w.Processors, Backfill: opt.policy.value}, bar.set)
	bar.clear()
	if err != nil {
		return refusedf("%s: %v", w.Name, err)
	}
	elapsed := c.now().Sub(began)
	if out != nil {
		if err := out.write(func(w io.Writer) error { _, err := s.WriteTo(w); return err }); err != nil {
			return refusedf("--schedule %s: %v", opt.schedule, bare(err))
		}
	}
	r := replayReport{
		Workload: w.Name, Jobs: len(w.Jobs), Processors: w.Processors, Policy: opt.policy.text, OfferedLoad: w.OfferedLoad(w.Processors),
		ElapsedSeconds: elapsed.Seconds(), Notes: w.Report.Notes(),
		Summary: metrics.Summarise(s.Records("site"), metrics.Options{Processors: int64(w.Processors)}),
	}
	if opt.jobs.model != "" {
		r.Seed = &opt.jobs.seed
	}
	return c.printValue(r, func() string { return r.text(c.width) })
}

// replayReport is the answer of "kith replay" for one site.
type replayReport struct {
	Workload string `json:"workload"`
	// Seed is only there for a generated workload.
	Seed           *uint64         `json:"seed,omitempty"`
	Jobs           int             `json:"jobs"`
	Processors     int32           `json:"processors"`
	Policy         string          `json:"policy"`
	OfferedLoad    float64         `json:"offered_load"`
	ElapsedSeconds float64         `json:"elapsed_seconds"`
	Notes          []workload.Note `json:"notes"`
	Summary        metrics.Summary `json:"summary"`
}

// text is the report for people.
func (r *replayReport) text(width int) string {
	var b strings.Builder
	seed := ""
	if r.Seed != nil {
		seed = fmt.Sprintf(", seed %d", *r.Seed)
	}
	fmt.Fprintf(&b, "%s%s: %s, %s, policy %s\n", clean(r.Workload), seed, plural(int64(r.Jobs), "job", "jobs"),
		plural(int64(r.Processors), "processor", "processors"), r.Policy)
	for _, n := range r.Notes {
		what := "mended"
		if n.Skipped {
			what = "skipped"
		}
		fmt.Fprintf(&b, "%s %d: %s (first: %s)\n", what, n.Count, n.Meaning, clean(n.First))
	}
	s := &r.Summary
	b.WriteString("\n" + summaryGrid(s).render(width))
	fmt.Fprintf(&b, "\nOffered load %.3f, utilisation %.3f over %s from the first submission to the last end.\n",
		r.OfferedLoad, s.Utilisation, seconds(s.MakespanSeconds))
	fmt.Fprintf(&b, "Short is below %v, narrow below %d processors; bounded slowdowns count runs as %v or more.\n",
		span(metrics.ShortBelow), metrics.NarrowBelow, metrics.Floor)
	return b.String()
}

// summaryGrid shows a summary, all jobs first and then each class.
func summaryGrid(s *metrics.Summary) *grid {
	g := &grid{columns: []column{
		{title: "JOBS"}, {title: "COUNT", right: true}, {title: "MEAN WAIT", right: true}, {title: "MEDIAN", right: true}, {title: "P95", right: true},
		{title: "P99", right: true}, {title: "TURNAROUND", right: true}, {title: "SLOWDOWN", right: true}, {title: "BOUNDED", right: true}, {title: "P95", right: true},
	}}
	row := func(name string, n int, wait, turnaround, slowdown, bounded *metrics.Distribution) {
		if n == 0 {
			g.add(name, "0", nothing, nothing, nothing, nothing, nothing, nothing, nothing, nothing)
			return
		}
		g.add(name, fmt.Sprint(n), seconds(wait.Mean), seconds(wait.P50), seconds(wait.P95), seconds(wait.P99), seconds(turnaround.Mean),
			number(slowdown.Mean), number(bounded.Mean), number(bounded.P95))
	}
	row("all", s.Jobs, &s.Wait, &s.Turnaround, &s.Slowdown, &s.BoundedSlowdown)
	for i := range s.Classes {
		k := &s.Classes[i]
		row(k.Name, k.Jobs, &k.Wait, &k.Turnaround, &k.Slowdown, &k.BoundedSlowdown)
	}
	return g
}
