package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	"kith/meta"
	"kith/testbed/join"
	"kith/testbed/metrics"
)

// federationOptions are the flags of "kith replay --federation".
type federationOptions struct {
	file   string
	scheme string
	copies cli.Parsed[[]int32]
	asks   string
	report string
}

func (o *federationOptions) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.file, "federation", "", "replay the sites that `FILE` describes, each alone and all together")
	flags.StringVar(&o.scheme, "scheme", "", "with --federation: place copies by `WORD` instead of what the file says")
	var words []string
	for _, s := range meta.Schemes() {
		if s != meta.Independent {
			words = append(words, string(s))
		}
	}
	cli.Complete(cmd, "scheme", words...)
	o.copies = cli.Parsed[[]int32]{Kind: "K", Parse: parseCopies}
	flags.Var(&o.copies, "copies", "with --federation: how many copies of a job, such as 3, or several to compare: 2-4, or 2,4,8")
	flags.StringVar(&o.asks, "asks", "", "with --federation: the `SITE` whose users the answer is about (default all alike)")
	flags.StringVar(&o.report, "report", "", "with --federation: write a page with tables and plots to `FILE`.html")
}

// check refuses flags that do not go together.
func (o *federationOptions) check(cmd *cobra.Command) error {
	ours := []string{"federation", "scheme", "copies", "asks", "report"}
	theirs := []string{"trace", "generate", "seed", "jobs", "skip", "scale-runtime", "load", "overrun", "perfect-estimates", "processors", "policy", "schedule"}
	if !cmd.Flags().Changed("federation") {
		for _, name := range ours {
			if f := cmd.Flags().Lookup(name); f.Changed {
				return cli.Usagef("--%s %s: goes with --federation FILE", name, f.Value)
			}
		}
		return nil
	}
	for _, name := range theirs {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed {
			return cli.Usagef("--%s %s: does not go with --federation; the file says it for each site", name, f.Value)
		}
	}
	if o.file == "" {
		return cli.Usagef(`--federation "": which file?`)
	}
	return nil
}

// parseCopies reads numbers of copies: 3, or 2-4, or 2,4,8.
func parseCopies(text string) ([]int32, error) {
	wrong := errors.New("write a number, a range such as 2-4, or several such as 2,4,8")
	var list []int32
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
		a, err := strconv.ParseInt(from, 10, 16)
		if err != nil || a < 1 {
			return nil, wrong
		}
		b := a
		if isRange {
			if b, err = strconv.ParseInt(to, 10, 16); err != nil || b < a {
				return nil, wrong
			}
		}
		for k := a; k <= b; k++ {
			if len(list) == join.MaxPlans {
				return nil, fmt.Errorf("give at most %d numbers of copies", join.MaxPlans)
			}
			list = append(list, int32(k)) // 16 bits
		}
	}
	return list, nil
}

// replayFederation compares being alone with being joined.
func (c *client) replayFederation(ctx context.Context, o *federationOptions) error {
	allProcessors()
	study, err := o.open()
	if err != nil {
		return err
	}
	out, err := cli.CreateFile("--report", o.report)
	if err != nil {
		return err
	}
	defer out.Close() //nolint:errcheck // What is left of a file that is not there does no harm.
	defer cli.CollectLess()()
	bar := c.Progress("replay", study.Runs()*study.Jobs())
	began := c.Now()
	a, err := study.Run(ctx, func(done, _ int) { bar.Set(done) })
	bar.Clear()
	switch {
	case errors.Is(err, context.Canceled):
		return cli.ExitWith(cli.ExitInterrupted)
	case err != nil:
		return cli.Refusedf("%s: %v", o.file, err)
	}
	a.ElapsedSeconds = c.Now().Sub(began).Seconds()
	if out != nil {
		if err := out.Write(a.Page().WriteHTML); err != nil {
			return cli.Refusedf("--report %s: %v", o.report, cli.Bare(err))
		}
	}
	return c.Print(a, func() string { return joinText(a, c.Width) })
}

// open reads the federation and its logs.
func (o *federationOptions) open() (*join.Study, error) {
	cfg, err := join.Load(o.file)
	if err == nil {
		if o.scheme != "" {
			cfg.Placement.Scheme, cfg.Placement.Rank = o.scheme, ""
			cfg.Placement.Copies = nil
		}
		if o.copies.Value != nil {
			cfg.Placement.Copies = o.copies.Value
		}
		if o.asks != "" {
			cfg.Asks = o.asks
		}
		var study *join.Study
		if study, err = join.Open(cfg); err == nil {
			return study, nil
		}
	}
	if wrong, ok := errors.AsType[*join.Error](err); ok {
		f := &cli.Failure{Code: cli.ExitUsage}
		for _, p := range wrong.Problems {
			f.Problems = append(f.Problems, fmt.Sprintf("--federation %s: %v", o.file, p))
		}
		return nil, f
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, cli.Usagef("--federation %s: there is no such file", o.file)
	}
	return nil, cli.Usagef("--federation %s: %v", o.file, cli.Bare(err))
}

// joinText is the answer for people.
func joinText(a *join.Answer, width int) string {
	var b strings.Builder
	for i := range a.Sites {
		x := &a.Sites[i]
		fmt.Fprintf(&b, "%s: %s, %s, speed %.4g; %s (%s), offered load %.2f\n", cli.Clean(x.Name), cli.Plural(int64(x.Processors), "processor", "processors"),
			x.Policy, x.Speed, cli.Plural(int64(x.Jobs), "job", "jobs"), cli.Clean(x.Workload), x.OfferedLoad)
		for _, n := range x.Notes {
			what := "mended"
			if n.Skipped {
				what = "skipped"
			}
			fmt.Fprintf(&b, "  %s %d: %s (first: %s)\n", what, n.Count, n.Meaning, cli.Clean(n.First))
		}
		if x.LeftOut > 0 {
			fmt.Fprintf(&b, "  left out %d: outside of the time that all logs cover\n", x.LeftOut)
		}
	}
	best := &a.Plans[a.Best]
	fmt.Fprintf(&b, "\nUsers of each site, alone and joined with %s:\n\n%s", best.Name, joinSites(a, best).Render(width))
	fmt.Fprintf(&b, "\nChange of the mean turnaround by kind of job, %s:\n\n%s", best.Name, joinClasses(best).Render(width))
	if len(a.Plans) > 1 {
		fmt.Fprintf(&b, "\nChange of the mean turnaround by number of copies:\n\n%s", joinPlans(a).Render(width))
	}
	b.WriteString(harmReport(best.Harms(), ", "+best.Name, width))
	fmt.Fprintf(&b, "\nFairness between sites, by the mean bounded slowdown of each (index 1: all alike, %s: one bears it all):\n\n%s",
		cli.Number(1/float64(len(a.Sites))), joinFairness(a).Render(width))
	// What counts stands last, where the eye is.
	b.WriteString("\n" + strings.Join(a.Sentences[1:], "\n") + "\n\n" + a.Sentences[0] + "\n")
	return b.String()
}

// effectWord is a change and what it means.
func effectWord(f *join.Figures) string {
	if f.Jobs == 0 {
		return cli.Nothing
	}
	return fmt.Sprintf("%+.1f%%", f.Change)
}

func joinSites(a *join.Answer, best *join.Outcome) *cli.Grid {
	g := &cli.Grid{Columns: []cli.Column{
		{Title: "SITE"}, {Title: "JOBS", Right: true}, {Title: "WAIT ALONE", Right: true}, {Title: "JOINED", Right: true},
		{Title: "TURNAROUND ALONE", Right: true}, {Title: "JOINED", Right: true}, {Title: "CHANGE", Right: true}, {Title: ""},
		{Title: "SLOWDOWN ALONE", Right: true}, {Title: "JOINED", Right: true}, {Title: "ELSEWHERE", Right: true}, {Title: "GUESTS", Right: true}, {Title: "BUSY ALONE", Right: true}, {Title: "JOINED", Right: true},
	}}
	row := func(name string, alone, joined *join.Figures, more ...string) {
		g.Add(append([]string{
			name, strconv.Itoa(joined.Jobs), cli.Seconds(alone.Wait), cli.Seconds(joined.Wait), cli.Seconds(alone.Turnaround), cli.Seconds(joined.Turnaround),
			effectWord(joined), string(joined.Effect), cli.Number(alone.BoundedSlowdown), cli.Number(joined.BoundedSlowdown),
		}, more...)...)
	}
	for i := range best.Sites {
		x, alone := &best.Sites[i], &a.Alone.Sites[i]
		row(x.Site, &alone.Figures, &x.Figures, fmt.Sprintf("%.0f%%", 100*x.Elsewhere), strconv.Itoa(x.Guests),
			fmt.Sprintf("%.0f%%", 100*alone.Utilisation), fmt.Sprintf("%.0f%%", 100*x.Utilisation))
	}
	row("all", &a.Alone.All, &best.All, "", "", "", "")
	return g
}

func joinClasses(best *join.Outcome) *cli.Grid {
	g := &cli.Grid{Columns: []cli.Column{{Title: "SITE"}}}
	for c := range metrics.Class(metrics.Classes) {
		g.Columns = append(g.Columns, cli.Column{Title: strings.ToUpper(c.String()), Right: true}, cli.Column{Title: "JOBS", Right: true})
	}
	row := func(name string, list *[metrics.Classes]join.Figures) {
		cells := []string{name}
		for c := range list {
			cells = append(cells, effectWord(&list[c]), strconv.Itoa(list[c].Jobs))
		}
		g.Add(cells...)
	}
	for i := range best.Sites {
		row(best.Sites[i].Site, &best.Sites[i].Classes)
	}
	row("all", &best.Classes)
	return g
}

func joinPlans(a *join.Answer) *cli.Grid {
	g := &cli.Grid{Columns: []cli.Column{{Title: "COPIES", Right: true}}}
	for i := range a.Sites {
		g.Columns = append(g.Columns, cli.Column{Title: a.Sites[i].Name, Right: true})
	}
	g.Columns = append(g.Columns, cli.Column{Title: "ALL", Right: true}, cli.Column{Title: "MEAN WAIT", Right: true}, cli.Column{Title: "MESSAGES/JOB", Right: true}, cli.Column{Title: ""})
	for i := range a.Plans {
		p := &a.Plans[i]
		cells := []string{strconv.Itoa(int(p.Copies))}
		for k := range p.Sites {
			cells = append(cells, effectWord(&p.Sites[k].Figures))
		}
		chosen := ""
		if i == a.Best {
			chosen = "chosen"
		}
		g.Add(append(cells, effectWord(&p.All), cli.Seconds(p.All.Wait), cli.Number(p.MessagesPerJob), chosen)...)
	}
	return g
}

// joinFairness compares how alike sites fare alone and under each plan: the
// users of each, and those whose jobs each ran.
func joinFairness(a *join.Answer) *cli.Grid {
	g := &cli.Grid{Columns: []cli.Column{
		{Title: "PLAN"}, {Title: "USERS", Right: true}, {Title: "LEAST", Right: true}, {Title: "MOST", Right: true},
		{Title: "MACHINES", Right: true}, {Title: "LEAST", Right: true}, {Title: "MOST", Right: true},
	}}
	row := func(o *join.Outcome) {
		u, m := &o.Fairness.Users, &o.Fairness.Machines
		g.Add(o.Name, fmt.Sprintf("%.3f", u.Jain), cli.Number(u.Min), cli.Number(u.Max), fmt.Sprintf("%.3f", m.Jain), cli.Number(m.Min), cli.Number(m.Max))
	}
	row(&a.Alone)
	for i := range a.Plans {
		row(&a.Plans[i])
	}
	return g
}
