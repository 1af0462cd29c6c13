package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	"kith/sitesched"
	"kith/testbed/metrics"
	"kith/testbed/replay"
	"kith/testbed/workload"
)

// replayOptions are the flags of "kith replay".
type replayOptions struct {
	jobs       jobSource
	processors cli.Parsed[int32]
	policy     cli.Parsed[sitesched.Backfill]
	schedule   string
	federation federationOptions
}

// replayVerb is "kith replay".
func replayVerb(c *client) *cobra.Command {
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
		Args: cli.NoArgs,
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
	opt.processors = cli.Parsed[int32]{Kind: "P", Parse: parseCount}
	flags.Var(&opt.processors, "processors", "size of the site (default: what the log says, or the model)")
	opt.policy = cli.Parsed[sitesched.Backfill]{Value: sitesched.EASY, Text: "easy", Kind: "WORD", Parse: replay.ParsePolicy}
	flags.Var(&opt.policy, "policy", strings.Join(replay.Policies(), "|"))
	cli.Complete(cmd, "policy", replay.Policies()...)
	flags.StringVar(&opt.schedule, "schedule", "", "write the schedule to `FILE` as comma-separated values")
	opt.federation.flags(cmd)
	return cmd
}

// replaySite replays one workload at one site.
func (c *client) replaySite(ctx context.Context, opt *replayOptions) error {
	allProcessors()
	w, err := opt.jobs.workload(opt.processors.Value)
	if err != nil {
		return err
	}
	out, err := cli.CreateFile("--schedule", opt.schedule)
	if err != nil {
		return err
	}
	defer out.Close() //nolint:errcheck // What is left of a file that is not there does no harm.
	bar := c.Progress("replay", len(w.Jobs))
	began := c.Now()
	s, err := replay.Run(ctx, w, sitesched.Config{Processors: w.Processors, Backfill: opt.policy.Value}, bar.Set)
	bar.Clear()
	if err != nil {
		return cli.Refusedf("%s: %v", w.Name, err)
	}
	elapsed := c.Now().Sub(began)
	if out != nil {
		if err := out.Write(func(w io.Writer) error { _, err := s.WriteTo(w); return err }); err != nil {
			return cli.Refusedf("--schedule %s: %v", opt.schedule, cli.Bare(err))
		}
	}
	r := replayReport{
		Workload: w.Name, Jobs: len(w.Jobs), Processors: w.Processors, Policy: opt.policy.Text, OfferedLoad: w.OfferedLoad(w.Processors),
		ElapsedSeconds: elapsed.Seconds(), Notes: w.Report.Notes(),
		Summary: metrics.Summarise(s.Records("site"), metrics.Options{Processors: int64(w.Processors)}),
	}
	if opt.jobs.model != "" {
		r.Seed = &opt.jobs.seed
	}
	return c.Print(r, func() string { return r.text(c.Width) })
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
	fmt.Fprintf(&b, "%s%s: %s, %s, policy %s\n", cli.Clean(r.Workload), seed, cli.Plural(int64(r.Jobs), "job", "jobs"),
		cli.Plural(int64(r.Processors), "processor", "processors"), r.Policy)
	for _, n := range r.Notes {
		what := "mended"
		if n.Skipped {
			what = "skipped"
		}
		fmt.Fprintf(&b, "%s %d: %s (first: %s)\n", what, n.Count, n.Meaning, cli.Clean(n.First))
	}
	s := &r.Summary
	b.WriteString("\n" + summaryGrid(s).Render(width))
	fmt.Fprintf(&b, "\nOffered load %.3f, utilisation %.3f over %s from the first submission to the last end.\n",
		r.OfferedLoad, s.Utilisation, cli.Seconds(s.MakespanSeconds))
	fmt.Fprintf(&b, "Short is below %v, narrow below %d processors; bounded slowdowns count runs as %v or more.\n",
		cli.Span(metrics.ShortBelow), metrics.NarrowBelow, metrics.Floor)
	return b.String()
}

// summaryGrid shows a summary, all jobs first and then each class.
func summaryGrid(s *metrics.Summary) *cli.Grid {
	g := &cli.Grid{Columns: []cli.Column{
		{Title: "JOBS"}, {Title: "COUNT", Right: true}, {Title: "MEAN WAIT", Right: true}, {Title: "MEDIAN", Right: true}, {Title: "P95", Right: true},
		{Title: "P99", Right: true}, {Title: "TURNAROUND", Right: true}, {Title: "SLOWDOWN", Right: true}, {Title: "BOUNDED", Right: true}, {Title: "P95", Right: true},
	}}
	row := func(name string, n int, wait, turnaround, slowdown, bounded *metrics.Distribution) {
		if n == 0 {
			g.Add(name, "0", cli.Nothing, cli.Nothing, cli.Nothing, cli.Nothing, cli.Nothing, cli.Nothing, cli.Nothing, cli.Nothing)
			return
		}
		g.Add(name, fmt.Sprint(n), cli.Seconds(wait.Mean), cli.Seconds(wait.P50), cli.Seconds(wait.P95), cli.Seconds(wait.P99), cli.Seconds(turnaround.Mean),
			cli.Number(slowdown.Mean), cli.Number(bounded.Mean), cli.Number(bounded.P95))
	}
	row("all", s.Jobs, &s.Wait, &s.Turnaround, &s.Slowdown, &s.BoundedSlowdown)
	for i := range s.Classes {
		k := &s.Classes[i]
		row(k.Name, k.Jobs, &k.Wait, &k.Turnaround, &k.Slowdown, &k.BoundedSlowdown)
	}
	return g
}
