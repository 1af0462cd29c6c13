package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	"kith/internal/harvest"
	"kith/meta/bags"
	kithv1 "kith/proto/gen/kith/v1"
)

// whatIfBagOptions are the flags of "kith what-if bag".
type whatIfBagOptions struct {
	tasks      int
	run        cli.Parsed[time.Duration]
	processors cli.Parsed[int32]
	fixed      cli.Parsed[[]int32]
}

// whatIfBagVerb is "kith what-if bag".
func whatIfBagVerb(c *client) *cobra.Command {
	o := whatIfBagOptions{
		run:        cli.Parsed[time.Duration]{Kind: "TIME", Parse: parseWalltime},
		processors: cli.Parsed[int32]{Kind: "N", Parse: parseCount},
		fixed:      cli.Parsed[[]int32]{Kind: "N[,N...]", Parse: listOf(parseCount)},
	}
	cmd := &cobra.Command{
		Use: `bag --tasks N --run TIME [--processors N] [--sites LIST]
  kith what-if bag BAG [--run TIME] [--sites LIST]`,
		Short: "Ask among which sites many equal tasks would best be divided",
		Long: `Ask when the last of many equal tasks would end if they were divided among some
of the sites that this one knows, and which of these are best: one slot alone, a
fixed number of sites, and what bisection and a scan of all such numbers choose.
Sites are taken in the order in which they would end a single task. Nothing is
submitted.

It reckons with speeds, with what the owners of machines take, who come first, and
with what waits at a site, unless processors are free there. That others come
meanwhile it does not know, nor how run times differ from task to task. With BAG
it is about what is left of a bag: its tasks that have not ended, and their mean
run time, of which no more than 10 minutes is taken as long as none has ended.

A site with the policy sites = "site.split" chooses so, by bisection, again and
again as tasks end, among those that its bag is offered to; see docs/policies.md.`,
		Example: `  kith what-if bag --tasks 200 --run 20m
  kith what-if bag uni-a.k3f9.17 --sites 1,2`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return c.whatIfBag(cmd, args, &o) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&o.tasks, "tasks", 0, "how many tasks, as a number `N`")
	flags.Var(&o.run, "run", "how long one runs on processors of speed 1")
	flags.Var(&o.processors, "processors", "processors of one task (default 1)")
	flags.Var(&o.fixed, "sites", "look at so many sites, too")
	return cmd
}

// whatIfBag carries out "kith what-if bag".
func (c *client) whatIfBag(cmd *cobra.Command, args []string, o *whatIfBagOptions) error {
	changed := cmd.Flags().Changed
	q := bagQuestion{Tasks: o.tasks, Run: o.run.Value, processors: max(1, o.processors.Value), fixed: o.fixed.Value, JSONRun: o.run.Value.Seconds()}
	id := ""
	switch {
	case len(args) > 1:
		return cli.Usagef("what-if bag: unexpected argument %q", args[1])
	case len(args) == 1:
		id = args[0]
		if err := bagName(id); err != nil {
			return err
		}
		if changed("tasks") || changed("processors") {
			return cli.Usagef("what-if bag %s: has its tasks and processors; leave --tasks and --processors out", id)
		}
	case !changed("tasks") || !changed("run"):
		return cli.Usagef("what-if bag: give --tasks and --run, or a bag; %q lists them", "kith bag list")
	case o.tasks < 1 || o.tasks > harvest.MostTasks:
		return cli.Usagef("--tasks %d: write a number from 1 to %d", o.tasks, harvest.MostTasks)
	}
	return c.ask(cmd.Context(), func(ctx context.Context, s *site) error {
		if id != "" {
			r, err := s.bags.GetBag(ctx, &kithv1.GetBagRequest{BagId: id})
			if err != nil {
				return err
			}
			if err := q.of(r.GetBag()); err != nil {
				return err
			}
		}
		list, err := s.sites.ListSites(ctx, &kithv1.ListSitesRequest{})
		if err != nil {
			return err
		}
		a, err := q.answer(list.GetSites())
		if err != nil {
			return cli.Refusedf("%v", err)
		}
		if c.JSON() {
			b, err := json.Marshal(a)
			if err != nil {
				return err
			}
			return c.WriteJSON(b)
		}
		return c.Write(c.bagSplitText(&q, a))
	})
}

// bagQuestion is what is asked about.
type bagQuestion struct {
	Tasks      int
	Run        time.Duration
	JSONRun    float64
	processors int32
	memory     int64
	fixed      []int32
	guessed    bool            // nothing is known of the run time
	has        map[string]bool // sites with tasks of the bag, which begin others as these end
}

// of takes what is left of a bag, and how long its tasks run.
func (q *bagQuestion) of(b *kithv1.Bag) error {
	t, s := b.GetStatus().GetTasks(), b.GetStatus()
	q.Tasks = int(t.GetTotal() - t.GetCompleted() - t.GetFailed() - t.GetCancelled())
	if q.Tasks < 1 {
		return cli.Refusedf("bag %s: has no task left; ask about one that goes on, or with --tasks and --run", cli.Clean(b.GetId()))
	}
	q.processors, q.memory = max(1, b.GetJob().GetProcessors()), b.GetJob().GetMemoryBytes()
	switch n := s.GetRunCount(); {
	case q.Run > 0: // as was said
	case n > 0:
		q.Run = max(s.GetRunTime().AsDuration()/time.Duration(n), time.Millisecond)
	default:
		q.Run, q.guessed = bags.FirstGuess, true
		if w := b.GetJob().GetWalltime().AsDuration(); w > 0 {
			q.Run = min(w, bags.FirstGuess)
		}
	}
	q.JSONRun, q.has = q.Run.Seconds(), map[string]bool{}
	for _, at := range s.GetSites() {
		q.has[at.GetSiteId()] = at.GetAtSite() > 0
	}
	return nil
}

// bagAnswer is the answer, and its form in JSON.
type bagAnswer struct {
	Tasks      int           `json:"tasks"`
	RunSeconds float64       `json:"runSeconds"`
	Processors int32         `json:"processors"`
	Choices    []splitChoice `json:"choices"`
	LeftOut    []leftOutSite `json:"leftOut"`
}

// splitChoice is a set of sites. Times are from now, in seconds.
type splitChoice struct {
	How    string      `json:"how"`
	Sites  []siteOfBag `json:"sites"`
	Low    float64     `json:"endLowSeconds"`
	Median float64     `json:"endMedianSeconds"`
	High   float64     `json:"endHighSeconds"`
	Mean   float64     `json:"meanSeconds"`
	SD     float64     `json:"sdSeconds"`
	Sets   int         `json:"evaluated"`
	split  harvest.Split
}

type siteOfBag struct {
	Site  string `json:"siteId"`
	Tasks int    `json:"tasks"`
}

type leftOutSite struct {
	Site string `json:"siteId"`
	Why  string `json:"reason"`
}

// answer looks at all ways to choose.
func (q *bagQuestion) answer(sites []*kithv1.Site) (*bagAnswer, error) {
	a := &bagAnswer{Tasks: q.Tasks, RunSeconds: q.JSONRun, Processors: q.processors, LeftOut: []leftOutSite{}}
	var places []harvest.Place
	var names []string
	for _, s := range sites {
		if why := q.unfit(s); why != "" {
			a.LeftOut = append(a.LeftOut, leftOutSite{s.GetId(), why})
			continue
		}
		places, names = append(places, q.place(s)), append(names, s.GetId())
	}
	if len(places) == 0 {
		why := make([]string, len(a.LeftOut))
		for i, x := range a.LeftOut {
			why[i] = cli.Clean(x.Site) + " " + x.Why
		}
		return nil, fmt.Errorf("no site could run a task on %s now: %s; ask for fewer, or when one can", cli.Plural(int64(q.processors), "processor", "processors"), strings.Join(why, ", "))
	}
	policy, b := harvest.DefaultPolicy(), harvest.Bag{Tasks: q.Tasks, Each: q.Run.Seconds()}
	add := func(how string, x harvest.Split, err error) error {
		if err != nil {
			return fmt.Errorf("%d of %d sites could run such a task: %w", len(places), len(sites), err)
		}
		choice := splitChoice{How: how, Low: x.Quantile(.1), Median: x.Quantile(.5), High: x.Quantile(.9), Mean: x.Mean, SD: x.SD, Sets: x.Evaluated, split: x}
		for i, at := range x.Places {
			choice.Sites = append(choice.Sites, siteOfBag{names[at], x.Tasks[i]})
		}
		a.Choices = append(a.Choices, choice)
		return nil
	}
	one, err := policy.SplitOne(places, b)
	if err := add("one slot", one, err); err != nil {
		return nil, err
	}
	fixed := slices.Clone(q.fixed)
	if len(fixed) == 0 {
		fixed = []int32{1, int32(len(places))} //nolint:gosec // As many sites as a site knows.
	}
	for i, n := range fixed { // of more than there are, all
		fixed[i] = min(n, int32(len(places))) //nolint:gosec // As many sites as a site knows.
	}
	for _, n := range slices.Compact(fixed) {
		x, err := policy.SplitFixed(places, b, int(n))
		if err := add(cli.Plural(int64(n), "site", "sites"), x, err); err != nil {
			return nil, err
		}
	}
	bisected, err := policy.SplitBisection(places, b)
	if err := add("bisection", bisected, err); err != nil {
		return nil, err
	}
	scanned, err := policy.SplitScan(places, b)
	return a, add("prefix scan", scanned, err)
}

// unfit says why a site runs no such task now, empty if it could.
func (q *bagQuestion) unfit(s *kithv1.Site) string {
	loads := s.GetOwnerLoads()
	switch {
	case s.GetReachability() == kithv1.Site_REACHABILITY_UNREACHABLE:
		return "out of reach"
	case s.GetReachability() != kithv1.Site_REACHABILITY_SELF && s.GetLoadTime() == nil:
		return "has not said how large it is"
	case s.GetDraining():
		return "drains"
	case s.GetNotStarting():
		return "starts no jobs for now"
	case s.GetProcessors() < q.processors:
		return fmt.Sprintf("has %s", cli.Plural(int64(s.GetProcessors()), "processor", "processors"))
	case s.GetMemoryBytes() > 0 && q.memory > s.GetMemoryBytes():
		return "has too little memory"
	case len(loads) == harvest.Widths && loads[harvest.WidthOf(q.processors, s.GetProcessors())].GetRho() > harvest.DefaultPolicy().Busiest:
		return "its owner leaves too little"
	}
	return ""
}

// place is a site as tasks find it.
func (q *bagQuestion) place(s *kithv1.Site) harvest.Place {
	var loads []harvest.Load
	for _, l := range s.GetOwnerLoads() {
		loads = append(loads, harvest.Load{Lambda: l.GetLambda(), Rho: l.GetRho(), Sigma: l.GetSigma()})
	}
	speed, after := s.GetSpeed(), 0.0
	if speed <= 0 {
		speed = 1
	}
	if s.GetFreeProcessors() < q.processors && !q.has[s.GetId()] {
		after = max(0, s.GetLoadWorkSeconds())
	}
	return harvest.PlaceOf(loads, speed, s.GetProcessors(), q.processors, after)
}

// bagSplitText is the answer for people.
func (c *client) bagSplitText(q *bagQuestion, a *bagAnswer) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Nothing was submitted. %s of %s on %s of speed 1%s.\n\n", cli.Plural(int64(q.Tasks), "task", "tasks"),
		cli.Seconds(q.Run.Seconds()), cli.Plural(int64(q.processors), "processor", "processors"),
		map[bool]string{true: ", which is a guess: none has ended yet", false: ""}[q.guessed])
	g := &cli.Grid{Columns: []cli.Column{
		{Title: "CHOICE"}, {Title: "ENDS AFTER", Right: true}, {Title: "PROBABLY", Right: true}, {Title: "TASKS AT", Elastic: true},
	}}
	for _, x := range a.Choices {
		low, high := cli.Seconds(x.Low), cli.Seconds(x.High)
		span := low
		if high != low {
			span = low + " – " + high
		}
		var at []string
		for _, s := range x.Sites {
			at = append(at, fmt.Sprintf("%s %d", cli.Clean(s.Site), s.Tasks))
		}
		g.Add(x.How, span, cli.Seconds(x.Median), strings.Join(at, ", "))
	}
	b.WriteString(g.Render(c.Width))
	for _, s := range a.LeftOut {
		fmt.Fprintf(&b, "%s is left out: %s.\n", cli.Clean(s.Site), s.Why)
	}
	best := a.Choices[len(a.Choices)-1]
	names := make([]string, len(best.Sites))
	for i, s := range best.Sites {
		names[i] = cli.Clean(s.Site)
	}
	fmt.Fprintf(&b, "\nBest divided among %s: the last task ends probably after %s. A bag with the policy sites = \"site.split\" is offered to such sites only.\nRanges are of 80 %%, if nobody else comes and all tasks take as long.\n",
		strings.Join(names, ", "), cli.Seconds(best.Median))
	return b.String()
}
