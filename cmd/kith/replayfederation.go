package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"kith/meta"
	"kith/testbed/join"
	"kith/testbed/metrics"
)

// federationOptions are the flags of "kith replay --federation".
type federationOptions struct {
	file   string
	scheme string
	copies parsed[[]int32]
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
	complete(cmd, "scheme", words...)
	o.copies = parsed[[]int32]{kind: "K", parse: parseCopies}
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
				return usagef("--%s %s: goes with --federation FILE", name, f.Value)
			}
		}
		return nil
	}
	for _, name := range theirs {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed {
			return usagef("--%s %s: does not go with --federation; the file says it for each site", name, f.Value)
		}
	}
	if o.file == "" {
		return usagef(`--federation "": which file?`)
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
func (c *cli) replayFederation(ctx context.Context, o *federationOptions) error {
	study, err := o.open()
	if err != nil {
		return err
	}
	out, err := createFile("--report", o.report)
	if err != nil {
		return err
	}
	defer out.Close() //nolint:errcheck // What is left of a file that is not there harms nobody.
	defer collectLess()()
	bar := c.progress("replay", study.Runs()*study.Jobs())
	began := c.now()
	a, err := study.Run(ctx, func(done, _ int) { bar.set(done) })
	bar.clear()
	switch {
	case errors.Is(err, context.Canceled):
		return exitWith(exitInterrupted)
	case err != nil:
		return refusedf("%s: %v", o.file, err)
	}
	a.ElapsedSeconds = c.now().Sub(began).Seconds()
	if out != nil {
		if err := out.write(a.Page().WriteHTML); err != nil {
			return refusedf("--report %s: %v", o.report, bare(err))
		}
	}
	return c.printValue(a, func() string { return joinText(a, c.width) })
}

// open reads the federation and its logs.
func (o *federationOptions) open() (*join.Study, error) {
	cfg, err := join.Load(o.file)
	if err == nil {
		if o.scheme != "" {
			cfg.Placement.Scheme, cfg.Placement.Rank = o.scheme, ""
			cfg.Placement.Copies = nil
		}
		if o.copies.value != nil {
			cfg.Placement.Copies = o.copies.value
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
		f := &failure{code: exitUsage}
		for _, p := range wrong.Problems {
			f.problems = append(f.problems, fmt.Sprintf("--federation %s: %v", o.file, p))
		}
		return nil, f
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usagef("--federation %s: there is no such file", o.file)
	}
	return nil, usagef("--federation %s: %v", o.file, bare(err))
}

func writePage(f *os.File, write func(io.Writer) error) error {
	b := bufio.NewWriterSize(f, 1<<16)
	if err := write(b); err != nil {
		return err
	}
	if err := b.Flush(); err != nil {
		return err
	}
	return f.Close()
}

// joinText is the answer for people.
func joinText(a *join.Answer, width int) string {
	var b strings.Builder
	for i := range a.Sites {
		x := &a.Sites[i]
		fmt.Fprintf(&b, "%s: %s, %s, speed %.4g; %s (%s), offered load %.2f\n", clean(x.Name), plural(int64(x.Processors), "processor", "processors"),
			x.Policy, x.Speed, plural(int64(x.Jobs), "job", "jobs"), clean(x.Workload), x.OfferedLoad)
		for _, n := range x.Notes {
			what := "mended"
			if n.Skipped {
				what = "skipped"
			}
			fmt.Fprintf(&b, "  %s %d: %s (first: %s)\n", what, n.Count, n.Meaning, clean(n.First))
		}
		if x.LeftOut > 0 {
			fmt.Fprintf(&b, "  left out %d: outside of the time that all logs cover\n", x.LeftOut)
		}
	}
	best := &a.Plans[a.Best]
	fmt.Fprintf(&b, "\nUsers of each site, alone and joined with %s:\n\n%s", best.Name, joinSites(a, best).render(width))
	fmt.Fprintf(&b, "\nChange of the mean turnaround by kind of job, %s:\n\n%s", best.Name, joinClasses(best).render(width))
	if len(a.Plans) > 1 {
		fmt.Fprintf(&b, "\nChange of the mean turnaround by number of copies:\n\n%s", joinPlans(a).render(width))
	}
	fmt.Fprintf(&b, "\nFairness between sites, by the mean bounded slowdown of each (index 1: all alike, %s: one bears it all):\n\n%s",
		number(1/float64(len(a.Sites))), joinFairness(a).render(width))
	// What counts stands last, where the eye is.
	b.WriteString("\n" + strings.Join(a.Sentences[1:], "\n") + "\n\n" + a.Sentences[0] + "\n")
	return b.String()
}

// effectWord is a change and what it means.
func effectWord(f *join.Figures) string {
	if f.Jobs == 0 {
		return nothing
	}
	return fmt.Sprintf("%+.1f%%", f.Change)
}

func joinSites(a *join.Answer, best *join.Outcome) *grid {
	g := &grid{columns: []column{
		{title: "SITE"}, {title: "JOBS", right: true}, {title: "WAIT ALONE", right: true}, {title: "JOINED", right: true},
		{title: "TURNAROUND ALONE", right: true}, {title: "JOINED", right: true}, {title: "CHANGE", right: true}, {title: ""},
		{title: "SLOWDOWN ALONE", right: true}, {title: "JOINED", right: true}, {title: "ELSEWHERE", right: true}, {title: "GUESTS", right: true}, {title: "BUSY ALONE", right: true}, {title: "JOINED", right: true},
	}}
	row := func(name string, alone, joined *join.Figures, more ...string) {
		g.add(append([]string{
			name, strconv.Itoa(joined.Jobs), seconds(alone.Wait), seconds(joined.Wait), seconds(alone.Turnaround), seconds(joined.Turnaround),
			effectWord(joined), string(joined.Effect), number(alone.BoundedSlowdown), number(joined.BoundedSlowdown),
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

func joinClasses(best *join.Outcome) *grid {
	g := &grid{columns: []column{{title: "SITE"}}}
	for c := range metrics.Class(metrics.Classes) {
		g.columns = append(g.columns, column{title: strings.ToUpper(c.String()), right: true}, column{title: "JOBS", right: true})
	}
	row := func(name string, list *[metrics.Classes]join.Figures) {
		cells := []string{name}
		for c := range list {
			cells = append(cells, effectWord(&list[c]), strconv.Itoa(list[c].Jobs))
		}
		g.add(cells...)
	}
	for i := range best.Sites {
		row(best.Sites[i].Site, &best.Sites[i].Classes)
	}
	row("all", &best.Classes)
	return g
}

func joinPlans(a *join.Answer) *grid {
	g := &grid{columns: []column{{title: "COPIES", right: true}}}
	for i := range a.Sites {
		g.columns = append(g.columns, column{title: a.Sites[i].Name, right: true})
	}
	g.columns = append(g.columns, column{title: "ALL", right: true}, column{title: "MEAN WAIT", right: true}, column{title: "MESSAGES/JOB", right: true}, column{title: ""})
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
		g.add(append(cells, effectWord(&p.All), seconds(p.All.Wait), number(p.MessagesPerJob), chosen)...)
	}
	return g
}

// joinFairness compares how alike sites fare alone and under each plan: the
// users of each, and those whose jobs each ran.
func joinFairness(a *join.Answer) *grid {
	g := &grid{columns: []column{
		{title: "PLAN"}, {title: "USERS", right: true}, {title: "LEAST", right: true}, {title: "MOST", right: true},
		{title: "MACHINES", right: true}, {title: "LEAST", right: true}, {title: "MOST", right: true},
	}}
	row := func(o *join.Outcome) {
		u, m := &o.Fairness.Users, &o.Fairness.Machines
		g.add(o.Name, fmt.Sprintf("%.3f", u.Jain), number(u.Min), number(u.Max), fmt.Sprintf("%.3f", m.Jain), number(m.Min), number(m.Max))
	}
	row(&a.Alone)
	for i := range a.Plans {
		row(&a.Plans[i])
	}
	return g
}
