package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	"kith/internal/job"
	"kith/testbed/lab"
	"kith/testbed/lab/experiments"
	"kith/testbed/workload"
)

// runOptions are the flags of "kith-lab run".
type runOptions struct {
	env      lab.Env
	traces   []string
	guests   string
	from     []string
	report   string
	markdown string
}

// madeUp is the word of --trace for jobs that are made up.
const madeUp = "generated"

// runVerb is "kith-lab run".
func runVerb(p *cli.Program) *cobra.Command {
	var opt runOptions
	cmd := &cobra.Command{
		Use:   "run [EXPERIMENT|STATEMENT...]",
		Short: "Carry out experiments and tell which statements hold",
		Long: `Carry out experiments, all without a name, and tell which statements hold. The
id of a statement alone runs only what it needs.

Jobs are made up from seeds, so that every run gets the same numbers; --trace
takes them from a log instead, where the experiment can do that. It may be given
several times, also as --trace generated: then such an experiment runs with each.

--from takes what an earlier run left in the report.json of its --report folder
instead of running anything, to put several runs on one page.

The exit code is 1 if a statement with an enforced band fails.`,
		Example: `  kith-lab run 001
  kith-lab run C6 C7 --seeds 10
  kith-lab run 001 --trace CTC-SP2-1996-3.1-cln.swf.gz --report lab`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := opt.check(cmd, args); err != nil {
				return err
			}
			selected, err := lab.Select(experiments.All(), args)
			if err != nil {
				return cli.Usagef("run: %v", err)
			}
			return runLab(cmd.Context(), p, &opt, selected)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var words []cobra.Completion
			for _, e := range experiments.All() {
				words = append(words, cobra.CompletionWithDesc(e.ID, e.Title))
			}
			return words, cobra.ShellCompDirectiveNoFileComp
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringArrayVar(&opt.traces, "trace", nil, "take jobs from the log in `FILE`; the word generated stands for made-up ones (default)")
	flags.StringVar(&opt.guests, "guests", "", "where jobs are taken from a log, take those of guests from the log in `FILE`, where an experiment has guests")
	flags.IntVar(&opt.env.Seeds, "seeds", 0, "average over `N` seeds, on a log over N windows of it (default: the experiment's own number)")
	flags.Uint64Var(&opt.env.FirstSeed, "first-seed", 0, "the first seed, as `S`; the others follow it")
	flags.IntVar(&opt.env.Jobs, "jobs", 0, "run `N` jobs a site instead of the source's number: quick, but the bands are then not meant for it")
	flags.Int32Var(&opt.env.Processors, "processors", 0, "give sites `P` processors where the source leaves it open (default: the experiment's choice)")
	flags.IntVar(&opt.env.Workers, "workers", 0, "how many runs go on at a time, as `N` (default: as many as processors)")
	flags.StringArrayVar(&opt.from, "from", nil, "take what an earlier run found from its report in `FILE` instead of running; repeatable")
	flags.StringVar(&opt.report, "report", "", "write a page with tables and plots, the plots and the numbers into the folder `DIR`")
	flags.StringVar(&opt.markdown, "markdown", "", "write the page for the documentation to `FILE`, its plots to images/lab beside it")
	return cmd
}

// check refuses values that make no sense.
func (o *runOptions) check(cmd *cobra.Command, args []string) error {
	changed := cmd.Flags().Changed
	if len(o.from) > 0 {
		for _, name := range []string{"trace", "guests", "seeds", "first-seed", "jobs", "processors", "workers"} {
			if changed(name) {
				return cli.Usagef("--from %s: does not go with --%s, as nothing is run", o.from[0], name)
			}
		}
		if len(args) > 0 {
			return cli.Usagef("--from %s: does not go with %s, as nothing is run", o.from[0], args[0])
		}
		return nil
	}
	switch {
	case changed("seeds") && (o.env.Seeds < 1 || o.env.Seeds > lab.MaxSeeds):
		return cli.Usagef("--seeds %d: write a number from 1 to %d", o.env.Seeds, lab.MaxSeeds)
	case changed("jobs") && (o.env.Jobs < 1 || o.env.Jobs > workload.MaxJobs):
		return cli.Usagef("--jobs %d: write a number from 1 to %d", o.env.Jobs, workload.MaxJobs)
	case changed("processors") && (o.env.Processors < 1 || o.env.Processors > job.MaxProcessors):
		return cli.Usagef("--processors %d: write a number from 1 to %d", o.env.Processors, job.MaxProcessors)
	case changed("workers") && (o.env.Workers < 1 || o.env.Workers > 1024):
		return cli.Usagef("--workers %d: write a number from 1 to 1024", o.env.Workers)
	}
	if len(o.traces) == 0 {
		o.traces = []string{madeUp}
	}
	for i, name := range o.traces {
		if slices.Contains(o.traces[:i], name) {
			return cli.Usagef("--trace %s: named twice", name)
		}
	}
	return nil
}

// runLab carries out what was selected, or reads what was found before, and
// tells.
func runLab(ctx context.Context, p *cli.Program, opt *runOptions, selected []lab.Selection) error {
	began := p.Now()
	var runs []lab.Run
	var err error
	if len(opt.from) > 0 {
		runs, err = readReports(opt.from)
	} else {
		runs, err = carryOut(ctx, p, opt, selected)
	}
	if err != nil {
		return err
	}
	if err := opt.write(runs); err != nil {
		return cli.Refusedf("run: %v", err)
	}
	elapsed := p.Now().Sub(began)
	if err := p.Print(runAnswer(runs, elapsed.Seconds(), false), func() string {
		return runText(runs, p.Width) + fmt.Sprintf("\nIt took %.1f s.\n", elapsed.Seconds())
	}); err != nil {
		return err
	}
	if failed := lab.Failed(runs); len(failed) > 0 {
		text := fmt.Sprintf("%s not hold: %s", cli.Plural(int64(len(failed)), "statement does", "statements do"), strings.Join(failed, ", "))
		for i := range runs {
			if caveat := runs[i].Report.Caveat; caveat != "" && runs[i].Report.Failed() {
				text += "; " + runs[i].Experiment.ID + ": " + caveat
			}
		}
		return cli.Refusedf("%s", strings.TrimSuffix(text, "."))
	}
	return nil
}

// carryOut carries out what was selected with the jobs of each source.
func carryOut(ctx context.Context, p *cli.Program, opt *runOptions, selected []lab.Selection) ([]lab.Run, error) {
	defer cli.CollectLess()()
	logs := make([]*workload.Workload, len(opt.traces))
	for i, name := range opt.traces {
		if name == madeUp {
			continue
		}
		w, err := workload.Open(name)
		if err != nil {
			return nil, cli.ReadFailure("--trace", name, err)
		}
		logs[i] = w
	}
	var guests *workload.Workload
	if opt.guests != "" {
		var err error
		if guests, err = workload.Open(opt.guests); err != nil {
			return nil, cli.ReadFailure("--guests", opt.guests, err)
		}
	}
	if err := opt.makeFolders(); err != nil {
		return nil, err
	}
	var runs []lab.Run
	for _, s := range selected {
		for i, w := range logs {
			if !s.Experiment.UsesTrace {
				if i > 0 {
					break // it would be the same again
				}
				w = nil
			}
			run := lab.Run{Experiment: s.Experiment}
			if w != nil {
				run.Trace = filepath.Base(opt.traces[i])
			}
			run.Command = opt.command(&s, run.Trace)
			env := opt.env
			env.Trace, env.Clock = w, threadTime
			if w != nil {
				env.Guests = guests
			}
			var bar *cli.Progress
			known := 0
			env.Progress = func(done, total int) {
				if total != known {
					bar.Clear()
					bar, known = p.Progress(s.Experiment.ID, total), total
				}
				bar.Set(done)
			}
			r, err := lab.Execute(ctx, s, env)
			bar.Clear()
			if err != nil {
				return nil, cli.Refusedf("run: %v", err)
			}
			run.Report = r
			runs = append(runs, run)
		}
	}
	return runs, nil
}

// command is the command line of one run, with its log by name.
func (o *runOptions) command(s *lab.Selection, trace string) string {
	words := []string{"kith-lab run"}
	if s.Statements == nil {
		words = append(words, s.Experiment.ID)
	}
	words = append(words, s.Statements...)
	if trace != "" {
		words = append(words, "--trace "+trace)
		if o.guests != "" {
			words = append(words, "--guests "+filepath.Base(o.guests))
		}
	}
	for _, f := range []struct {
		name  string
		value int64
	}{{"seeds", int64(o.env.Seeds)}, {"first-seed", int64(o.env.FirstSeed)}, {"jobs", int64(o.env.Jobs)}, {"processors", int64(o.env.Processors)}} { //nolint:gosec // Seeds of people are small.
		if f.value != 0 {
			words = append(words, fmt.Sprintf("--%s %d", f.name, f.value))
		}
	}
	return strings.Join(words, " ")
}
