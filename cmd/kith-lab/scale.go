package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	"kith/testbed/check/chaos"
)

// scaleVerb is "kith-lab chaos scale".
func scaleVerb(p *cli.Program) *cobra.Command {
	opt := chaos.DefaultScaleOptions()
	processors := int(opt.Processors)
	var slack float64
	cmd := &cobra.Command{
		Use:   "scale [--sites S] [--jobs N]",
		Short: "Give a large federation much to do while four of its sites are ill",
		Long: `Start real sites on loopback and submit many short jobs, most of them at two sites.
Meanwhile one site is dead, the disk of one hangs, the disk of one is full, and one
is behind a slow line. Then the four are healed. The exit code is 0 only if every job
ran exactly once and completed, the processors of the healthy sites were not idle while
jobs waited, and the sites answered in time. A disk that hangs needs the right to
mount and mkfs.ext4; without it that site is stopped by a signal instead.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.NoArgs(cmd, args); err != nil {
				return err
			}
			if !(slack >= 1) {
				return cli.Usagef("--slack %v: choose 1 or more", slack)
			}
			opt.Processors = int32(min(max(processors, 0), 1<<20)) //nolint:gosec // bounded
			if err := opt.Validate(); err != nil {
				return cli.Usagef("%v", err)
			}
			return runScale(cmd.Context(), p, opt, slack)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&opt.Sites, "sites", opt.Sites, "how many sites to start, as `S`, the four included")
	flags.IntVar(&opt.Jobs, "jobs", opt.Jobs, "how many jobs to submit, as `N`")
	flags.IntVar(&processors, "processors", processors, "`N` processors at each site")
	flags.DurationVar(&opt.JobTime, "job-time", opt.JobTime, "how long a job runs, as `D`")
	insecureFlag(cmd, &opt.Insecure)
	flags.StringVar(&opt.Dir, "dir", "", "keep data and logs of the sites in folder `D` (default: a temporary one)")
	slackFlag(cmd, &slack)
	return cmd
}

func runScale(ctx context.Context, p *cli.Program, opt chaos.ScaleOptions, slack float64) error {
	remove, err := cli.OwnFolder(&opt.Dir, "kith-scale-")
	if err != nil {
		return cli.Refusedf("%v", err)
	}
	defer remove()
	began := time.Now()
	opt.Observe = func(line string) { p.Note("%6.1f s  %s", time.Since(began).Seconds(), line) }
	r, err := chaos.RunScale(ctx, opt)
	if r != nil {
		err = errors.Join(err, p.Print(r, func() string { return scaleTable(r, p.Width) }))
	}
	switch {
	case errors.Is(err, context.Canceled):
		return cli.ExitWith(cli.ExitInterrupted)
	case err != nil:
		return cli.Refusedf("scale: %v", err)
	case !r.Sound() || len(r.Misses(slack)) > 0:
		return cli.Refusedf("checks failed:\n  %s", strings.Join(append(r.Problems, r.Misses(slack)...), "\n  "))
	}
	return nil
}

// scaleTable is what people see at the end.
func scaleTable(r *chaos.Scale, width int) string {
	g := cli.Grid{Columns: []cli.Column{{Title: "WHAT", Elastic: true}, {Title: "VALUE", Right: true}, {Title: "UNIT"}, {Title: "TARGET", Right: true}, {Title: ""}}}
	row := func(what string, value float64, unit string) { g.Add(what, cli.Number(value), unit, "", "") }
	bound := func(what string, value float64, unit string, target float64) {
		verdict := "reached"
		if value > target {
			verdict = "missed"
		}
		g.Add(what, cli.Number(value), unit, "≤ "+cli.Number(target), verdict)
	}
	row(fmt.Sprintf("sites, of which %d are healthy", r.Healthy), float64(r.Sites), "")
	row("jobs", float64(r.Jobs), "")
	bound("processors of healthy sites idle while jobs waited", 100*r.Idle, "%", 100*chaos.IdleTarget)
	row("the same by what the jobs signed, the time between two jobs included", 100*r.IdleByLedger, "%")
	row("longest time in a row that a healthy site had one", r.LongestIdle, "s")
	row("time until the healthy sites' jobs had ended", r.Drained, "s")
	row("the same with no processor ever idle", r.Ideal, "s")
	bound("time to an answer of SubmitJob, 99 of 100", 1000*r.LateSubmit, "ms", 1000*chaos.LateAnswerTarget)
	bound("time to an answer of GetSite, 99 of 100", 1000*r.LateSite, "ms", 1000*chaos.LateAnswerTarget)
	row("how late the machine ended short sleeps, 99 of 100", 1000*r.LateMachine, "ms")
	row("largest resident memory of a healthy kithd", r.PeakMemory, "MiB")
	row("copies that sites took, for each job", r.CopiesPerJob, "")
	row("copies that were withdrawn, for each job", r.WithdrawnPerJob, "")
	row("claims and withdrawals between sites, for each job", r.MessagesPerJob, "")
	row("computing of the healthy sites' kithds, for each job", 1000*r.CPUPerJob, "ms")
	row("from the healing until every job had ended", r.Recovered, "s")
	bound("jobs lost", float64(r.Lost), "", 0)
	bound("jobs started twice", float64(r.DoubleStarts), "", 0)
	return g.Render(width) + "\n" + strings.Join(r.Ills, "; ") + "\n"
}
