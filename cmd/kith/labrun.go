package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kith/internal/job"
	"kith/testbed/lab"
	"kith/testbed/workload"
)

// labOptions are the flags of "kith lab run".
type labOptions struct {
	env      lab.Env
	traces   []string
	report   string
	markdown string
}

// madeUp is the word of --trace for jobs that are made up.
const madeUp = "generated"

// labRunVerb is "kith lab run".
func labRunVerb(c *cli) *cobra.Command {
	var opt labOptions
	cmd := &cobra.Command{
		Use:   "run [EXPERIMENT|CLAIM...]",
		Short: "Carry out experiments and tell which claims hold",
		Long: `Carry out experiments, all without a name, and tell which claims hold. The name
of a claim alone runs only what it needs.

Jobs are made up from seeds, so that everybody gets the same numbers; --trace
takes them from a log instead, where the experiment can do that. It may be given
several times, also as --trace generated: then such an experiment runs with each.

The exit code is 1 if a claim with an enforced band fails.`,
		Example: `  kith lab run 001
  kith lab run C6 C7 --seeds 10
  kith lab run 001 --trace CTC-SP2-1996-3.1-cln.swf.gz --report lab`,
		RunE: func(cmd *cobra.Command, args []string) error {
			selected, err := lab.Select(args)
			if err != nil {
				return usagef("lab run: %v", err)
			}
			if err := opt.check(cmd); err != nil {
				return err
			}
			return c.runLab(cmd.Context(), &opt, selected)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var words []cobra.Completion
			for _, e := range lab.Experiments() {
				words = append(words, cobra.CompletionWithDesc(e.ID, e.Title))
			}
			return words, cobra.ShellCompDirectiveNoFileComp
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringArrayVar(&opt.traces, "trace", nil, "take jobs from the log in `FILE`; the word generated stands for made-up ones (default)")
	flags.IntVar(&opt.env.Seeds, "seeds", 0, "average over `N` seeds, on a log over N windows of it (default: the experiment's own number)")
	flags.Uint64Var(&opt.env.FirstSeed, "first-seed", 0, "the first seed, as `S`; the others follow it")
	flags.IntVar(&opt.env.Jobs, "jobs", 0, "run `N` jobs a site instead of the source's number: quick, but the bands are then not meant for it")
	flags.Int32Var(&opt.env.Processors, "processors", 0, "give sites `P` processors where the source leaves it open (default: the experiment's choice)")
	flags.IntVar(&opt.env.Workers, "workers", 0, "how many runs go on at a time, as `N` (default: as many as processors)")
	flags.StringVar(&opt.report, "report", "", "write a page with tables and plots, the plots and the numbers into the folder `DIR`")
	flags.StringVar(&opt.markdown, "markdown", "", "write the page for the documentation to `FILE`, its plots to images/lab beside it")
	return cmd
}

// check refuses values that make no sense.
func (o *labOptions) check(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	switch {
	case changed("seeds") && (o.env.Seeds < 1 || o.env.Seeds > lab.MaxSeeds):
		return usagef("--seeds %d: write a number from 1 to %d", o.env.Seeds, lab.MaxSeeds)
	case changed("jobs") && (o.env.Jobs < 1 || o.env.Jobs > workload.MaxJobs):
		return usagef("--jobs %d: write a number from 1 to %d", o.env.Jobs, workload.MaxJobs)
	case changed("processors") && (o.env.Processors < 1 || o.env.Processors > job.MaxProcessors):
		return usagef("--processors %d: write a number from 1 to %d", o.env.Processors, job.MaxProcessors)
	case changed("workers") && (o.env.Workers < 1 || o.env.Workers > 1024):
		return usagef("--workers %d: write a number from 1 to 1024", o.env.Workers)
	}
	if len(o.traces) == 0 {
		o.traces = []string{madeUp}
	}
	for i, name := range o.traces {
		if slices.Contains(o.traces[:i], name) {
			return usagef("--trace %s: named twice", name)
		}
	}
	return nil
}

// runLab carries out what was selected with the jobs of each source.
func (c *cli) runLab(ctx context.Context, opt *labOptions, selected []lab.Selection) error {
	defer collectLess()()
	logs := make([]*workload.Workload, len(opt.traces))
	for i, name := range opt.traces {
		if name == madeUp {
			continue
		}
		w, err := openLog(name)
		if err != nil {
			return err
		}
		logs[i] = w
	}
	for _, dir := range opt.folders() {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return usagef("%s: %v", dir, bare(err))
		}
	}
	began := c.now()
	var runs []lab.Run
	for _, s := range selected {
		for i, w := range logs {
			if !s.Experiment.UsesTrace {
				if i > 0 {
					break // it would be the same again
				}
				w = nil
			}
			env := opt.env
			env.Trace = w
			var bar *progress
			known := 0
			env.Progress = func(done, total int) {
				if total != known {
					bar.clear()
					bar, known = c.progress(s.Experiment.ID, total), total
				}
				bar.set(done)
			}
			r, err := lab.Execute(ctx, s, env)
			bar.clear()
			if err != nil {
				return refusedf("lab: %v", err)
			}
			run := lab.Run{Experiment: s.Experiment, Report: r}
			if w != nil {
				run.Trace = filepath.Base(opt.traces[i])
			}
			runs = append(runs, run)
		}
	}
	elapsed := c.now().Sub(began)
	if err := opt.write(runs); err != nil {
		return refusedf("lab: %v", err)
	}
	if err := c.printValue(labAnswer(runs, elapsed.Seconds(), false), func() string {
		return labText(runs, c.width) + fmt.Sprintf("\nIt took %.1f s.\n", elapsed.Seconds())
	}); err != nil {
		return err
	}
	if failed := lab.Failed(runs); len(failed) > 0 {
		return refusedf("%s not hold: %s", plural(int64(len(failed)), "claim does", "claims do"), strings.Join(failed, ", "))
	}
	return nil
}

// folders are those that files will be written to.
func (o *labOptions) folders() []string {
	var list []string
	if o.report != "" {
		list = append(list, o.report)
	}
	if o.markdown != "" {
		list = append(list, filepath.Dir(o.markdown), o.images())
	}
	return list
}

// labImages is the folder of the documentation's plots, seen from its page.
const labImages = "images/lab"

func (o *labOptions) images() string {
	return filepath.Join(filepath.Dir(o.markdown), filepath.FromSlash(labImages))
}

// command is the command line that makes the same again, with logs by their names.
func (o *labOptions) command(runs []lab.Run) string {
	words := []string{"kith lab run"}
	for i := range runs {
		if !slices.Contains(words, runs[i].Experiment.ID) {
			words = append(words, runs[i].Experiment.ID)
		}
	}
	for _, name := range o.traces {
		if name != madeUp || len(o.traces) > 1 {
			words = append(words, "--trace "+filepath.Base(name))
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

// write writes the files that the user asked for.
func (o *labOptions) write(runs []lab.Run) error {
	if o.report != "" {
		page := lab.Page(runs, "Made by: "+o.command(runs))
		if err := createAndWrite(filepath.Join(o.report, "index.html"), page.WriteHTML); err != nil {
			return err
		}
		if err := createAndWrite(filepath.Join(o.report, "report.json"), func(w io.Writer) error {
			e := json.NewEncoder(w)
			e.SetIndent("", "  ")
			return e.Encode(labAnswer(runs, 0, true).Runs)
		}); err != nil {
			return err
		}
		if err := writePlots(o.report, runs); err != nil {
			return err
		}
	}
	if o.markdown == "" {
		return nil
	}
	if err := writePlots(o.images(), runs); err != nil {
		return err
	}
	how := o.command(runs) + " --markdown " + filepath.ToSlash(o.markdown)
	return createAndWrite(o.markdown, func(w io.Writer) error { return lab.Markdown(w, runs, labImages, how) })
}

func writePlots(dir string, runs []lab.Run) error {
	for i := range runs {
		for k := range runs[i].Report.Plots {
			p := &runs[i].Report.Plots[k]
			if err := createAndWrite(filepath.Join(dir, runs[i].PlotFile(p)), p.WriteSVG); err != nil {
				return err
			}
		}
	}
	return nil
}

func createAndWrite(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // writePage closes it where that matters.
	if err := writePage(f, write); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
