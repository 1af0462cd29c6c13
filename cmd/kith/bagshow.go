package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
)

// bagShowVerb is "kith bag show".
func bagShowVerb(c *client) *cobra.Command {
	return &cobra.Command{
		Use:               "show BAG",
		Short:             "Tell all that is known of a bag",
		ValidArgsFunction: c.completeBags(true),
		Args:              oneBag,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.dial(cmd.Context(), func(ctx context.Context, s *site) error {
				b, err := c.getBag(ctx, s, args[0])
				if err != nil {
					return err
				}
				return c.printBag(b)
			})
		},
	}
}

// printBag prints a bag, whole.
func (c *client) printBag(b *kithv1.Bag) error {
	return c.printMessage(&kithv1.GetBagResponse{Bag: b}, func() string { return c.bagText(b) })
}

// bagText is a bag in words.
func (c *client) bagText(b *kithv1.Bag) string {
	s, j := b.GetStatus(), b.GetJob()
	var f facts
	f.add("Bag", b.GetId())
	f.add("Name", j.GetName())
	f.add("User", s.GetUser())
	f.add("State", withReason(bagStateWord(s.GetState()), s.GetReason()))
	f.each("After", afterLines(b.GetAfter(), b.GetSingleton()))
	f.add("Tasks", fmt.Sprintf("%s %s", barOf(s.GetTasks()), countsText(s.GetTasks())))
	f.add("Indices", shortened(b.GetIndices()))
	f.add("Parameters", strings.Join(s.GetParameterNames(), ", "))
	f.add("Matrix", shortened(b.GetMatrix()))
	if n := b.GetMaxRunning(); n > 0 {
		f.add("At once", fmt.Sprint(n))
	}
	f.add("Budget", budgetText(b))
	if n := b.GetRetries(); n > 0 {
		f.add("Retries", fmt.Sprint(n))
	}
	if n := b.GetMaxReplicas(); n > 0 {
		f.add("Replicas", replicasText(b))
	}
	if n := b.GetPriority(); n != 0 {
		f.add("Priority", fmt.Sprint(n))
	}
	f.add("Submitted", c.at(s.GetSubmitTime()))
	if s.GetEndTime() != nil {
		f.add("Ended", c.at(s.GetEndTime()))
	}
	f.each("Level", c.bagLevelLines(b))
	f.add("Limit", fmt.Sprintf("%s a task, on %s", limitText(j), cli.Plural(int64(j.GetProcessors()), "processor", "processors")))
	f.each("Policies", statedPolicies(b.GetPolicies()))
	f.add("Command", strings.Join(j.GetCommand(), " "))
	if s.GetRunCount() > 0 {
		text := fmt.Sprintf("%s, %s in all, %s of processors", cli.Plural(s.GetRunCount(), "run", "runs"), spanOf(s.GetRunTime()), spanOf(s.GetCpuTime()))
		if n := s.GetWastedRunCount(); n > 0 {
			text += fmt.Sprintf("; %d more came too late", n)
		}
		if n := s.GetMissedDeadlineCount(); n > 0 {
			text += fmt.Sprintf("; %d missed their deadline", n)
		}
		f.add("Runs", text)
	}
	var acts []string
	for _, a := range s.GetActs() {
		text := fmt.Sprintf("%s %s by %s", c.at(a.GetTime()), actWord(a.GetKind()), orDefault(a.GetActor(), byRule))
		if n := a.GetTaskCount(); n > 0 {
			text += ": " + cli.Plural(n, "task", "tasks")
		}
		acts = append(acts, withReason(text, a.GetReason()))
	}
	f.each("Acts", acts)
	text := f.String()
	if n := s.GetMissedDeadlineCount(); n > 0 {
		text += cli.Plural(n, "run has", "runs have") + " missed the deadline that its policies state, and " + map[bool]string{true: "counts", false: "count"}[n == 1] + " as lost.\n"
	}
	if table := sitesTable(s); table != nil {
		text += "\n" + table.Render(c.Width)
	}
	if table := failureTable(b); table != nil {
		text += "\n" + table.Render(c.Width)
	}
	return text
}

// replicasText says what replicas a bag may have, and has had.
func replicasText(b *kithv1.Bag) string {
	s := b.GetStatus()
	text := fmt.Sprintf("a task may be at %d more sites", b.GetMaxReplicas())
	if s.GetTailTime() == nil {
		return text + " at the end, which has not begun"
	}
	text += "; " + cli.Plural(s.GetReplicaCount(), "replica", "replicas")
	if s.GetWastedTime().AsDuration() > 0 {
		text += fmt.Sprintf(", %s in vain", spanOf(s.GetWastedTime()))
	}
	return text
}

// withReason adds a reason in parentheses, if there is one.
func withReason(text, why string) string {
	if why == "" {
		return text
	}
	return text + " (" + why + ")"
}

// shortened cuts a list that may be long.
func shortened(text string) string {
	const most = 200
	if len(text) <= most {
		return text
	}
	return text[:most] + "…"
}

// barOf draws how much of a bag is over.
func barOf(t *kithv1.TaskCounts) string {
	const width = 20
	ended := t.GetCompleted() + t.GetFailed() + t.GetCancelled()
	full := 0
	if t.GetTotal() > 0 {
		full = int(width * ended / t.GetTotal())
	}
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", width-full) + "]"
}

// countsText says how many tasks are where; what there is none of is left out.
func countsText(t *kithv1.TaskCounts) string {
	text := fmt.Sprintf("%d of %d completed", t.GetCompleted(), t.GetTotal())
	for _, part := range []struct {
		n    int64
		what string
	}{{t.GetFailed(), "failed"}, {t.GetCancelled(), "cancelled"}, {t.GetAtSite(), "at sites"}, {t.GetWaiting(), "waiting"}} {
		if part.n > 0 {
			text += fmt.Sprintf(", %d %s", part.n, part.what)
		}
	}
	return text
}

// sitesTable says what sites have done for a bag; nil if none has done anything.
func sitesTable(s *kithv1.BagStatus) *cli.Grid {
	if len(s.GetSites()) == 0 {
		return nil
	}
	g := &cli.Grid{Columns: []cli.Column{
		{Title: "SITE"}, {Title: "TASKS NOW", Right: true}, {Title: "GOOD RUNS", Right: true}, {Title: "FAILED", Right: true},
		{Title: "LOST", Right: true}, {Title: "RUN TIME", Right: true},
	}}
	for _, site := range s.GetSites() {
		g.Add(site.GetSiteId(), fmt.Sprint(site.GetAtSite()), fmt.Sprint(site.GetCompleted()), fmt.Sprint(site.GetFailed()),
			fmt.Sprint(site.GetLost()), spanOf(site.GetRunTime()))
	}
	return g
}

// failureTable groups failed runs by how they failed and by the last line of their stderr,
// with the first tasks of each; nil if none has failed. Those whose line the site did not keep
// are said to have others, or none.
func failureTable(b *kithv1.Bag) *cli.Grid {
	if len(b.GetStatus().GetFailures()) == 0 {
		return nil
	}
	g := &cli.Grid{Columns: []cli.Column{{Title: "FAILED RUNS", Right: true}, {Title: "HOW"}, {Title: "LAST LINE OF STDERR", Elastic: true}, {Title: "FIRST TASKS"}}}
	lines := make(map[string]int)
	for _, k := range b.GetStatus().GetFailures() {
		if k.GetErrorLine() != "" {
			lines[howText(k.GetEnding(), k.GetExitCode(), k.GetSignal())]++
		}
	}
	for _, k := range b.GetStatus().GetFailures() {
		how := howText(k.GetEnding(), k.GetExitCode(), k.GetSignal())
		line := orDefault(k.GetErrorLine(), cli.Nothing)
		if k.GetErrorLine() == "" && lines[how] >= store.MaxFailureLines {
			line = "(others, or none)"
		}
		var tasks []string
		for _, index := range k.GetIndices() {
			tasks = append(tasks, fmt.Sprintf("%s_%d", b.GetId(), index))
		}
		g.Add(fmt.Sprint(k.GetCount()), how, line, strings.Join(tasks, " "))
	}
	return g
}

// howText says how a run ended.
func howText(e kithv1.Task_Ending, code, signal int32) string {
	switch {
	case e == kithv1.Task_ENDING_TIMEOUT:
		return "time limit"
	case e == kithv1.Task_ENDING_CANCEL:
		return "cancelled"
	case e == kithv1.Task_ENDING_LOSS:
		return "lost"
	case signal > 0:
		return fmt.Sprintf("signal %d", signal)
	case e == kithv1.Task_ENDING_FAILURE && code == 0:
		return "not started"
	}
	return fmt.Sprintf("exit code %d", code)
}

// bagWhyVerb is "kith bag why".
func bagWhyVerb(c *client) *cobra.Command {
	return &cobra.Command{
		Use:               "why BAG",
		Short:             "Tell why a bag is where it is",
		ValidArgsFunction: c.completeBags(true),
		Args:              oneBag,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.dial(cmd.Context(), func(ctx context.Context, s *site) error {
				b, err := c.getBag(ctx, s, args[0])
				if err != nil {
					return err
				}
				return c.printWhy(cmd.Context(), s, b)
			})
		},
	}
}

// bagWhy says why a bag is where it is.
func (c *client) bagWhy(b *kithv1.Bag) string {
	s := b.GetStatus()
	t := s.GetTasks()
	text := cli.Clean(fmt.Sprintf("%s is %s: %s.", b.GetId(), withReason(bagStateWord(s.GetState()), s.GetReason()), countsText(t))) + "\n"
	switch {
	case s.GetState() == kithv1.BagStatus_STATE_BLOCKED:
		text += "Its tasks are given to sites when that has ended as it must:\n" + strings.Join(afterLines(b.GetAfter(), b.GetSingleton()), "\n") + "\n"
	case s.GetState() == kithv1.BagStatus_STATE_HELD:
		text += "Its tasks are not given to sites before \"kith bag release " + b.GetId() + "\".\n"
	case b.GetBudgetProcessorSeconds() > 0 && s.GetUsedProcessorSeconds() >= float64(b.GetBudgetProcessorSeconds()) && t.GetWaiting() > 0:
		text += fmt.Sprintf("%s. \"kith bag budget %s HOURS\" raises it, and the bag goes on.\n", budgetText(b), b.GetId())
	case b.GetMaxRunning() > 0 && t.GetAtSite() >= int64(b.GetMaxRunning()) && t.GetWaiting() > 0:
		text += fmt.Sprintf("%d tasks may be with sites at once, and so many are.\n", b.GetMaxRunning())
	case s.GetState() == kithv1.BagStatus_STATE_OPEN && t.GetWaiting() > 0 && t.GetAtSite() == 0:
		text += "Sites that have room ask for its tasks; \"kith sites\" shows which have room.\n"
	case t.GetFailed() > 0:
		text += "\"kith bag logs " + b.GetId() + " --stderr --state failed\" prints what failed tasks complained of, \"kith bag retry " + b.GetId() + "\" runs them again.\n"
	}
	text += c.bagLevelText(b)
	if table := sitesTable(s); table != nil {
		text += "\n" + table.Render(c.Width)
	}
	if table := failureTable(b); table != nil {
		text += "\n" + table.Render(c.Width)
	}
	return text
}

// bagListVerb is "kith bag list".
func bagListVerb(c *client) *cobra.Command {
	var all bool
	var filter jobFilter
	cmd := &cobra.Command{
		Use:   "list [flags]",
		Short: "List the bags of this site that have not ended",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.ask(cmd.Context(), func(ctx context.Context, s *site) error {
				list, err := listBags(ctx, s, &kithv1.ListBagsRequest{
					PageSize: 1000, AllStates: all, Users: words(filter.users), Names: words(filter.names),
				})
				if err != nil {
					return err
				}
				c.noteAge(list.GetAsOfTime())
				return c.printMessage(list, func() string {
					return c.bagGrid(&cli.Grid{}, list.GetBags(), []string{"id", "name", "user", "state", "submit", "limit", "cpus", "site"}).Render(c.Width)
				})
			})
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVarP(&all, "all", "a", false, "also bags that have ended")
	filter.register(cmd.Flags())
	return cmd
}

// listBags returns all pages of a list as one.
func listBags(ctx context.Context, s *site, request *kithv1.ListBagsRequest) (*kithv1.ListBagsResponse, error) {
	list := &kithv1.ListBagsResponse{}
	for {
		page, err := s.bags.ListBags(ctx, request)
		if err != nil {
			return nil, err
		}
		list.Bags, list.AsOfTime = append(list.Bags, page.GetBags()...), page.GetAsOfTime()
		if page.GetNextPageToken() == "" || page.GetNextPageToken() == request.PageToken {
			return list, nil
		}
		request.PageToken = page.GetNextPageToken()
	}
}

// bagGrid adds bags to a table of jobs with the named columns, a row each; to an empty one
// the columns, too.
func (c *client) bagGrid(g *cli.Grid, bags []*kithv1.Bag, columns []string) *cli.Grid {
	if len(g.Columns) == 0 {
		g = c.jobGrid(nil, columns)
		g.Columns[slices.Index(columns, "site")].Title = "TASKS"
	}
	for _, b := range bags {
		s := b.GetStatus()
		j := &kithv1.Job{Id: b.GetId(), Name: b.GetJob().GetName(), Processors: b.GetJob().GetProcessors(), Walltime: b.GetJob().GetWalltime(), WalltimeUnknown: b.GetJob().GetWalltimeUnknown(), Status: &kithv1.JobStatus{
			User: s.GetUser(), SubmitTime: s.GetSubmitTime(), EndTime: s.GetEndTime(),
		}}
		cells := make([]string, 0, len(columns))
		for _, word := range columns {
			switch word {
			case "state":
				cells = append(cells, bagStateWord(s.GetState()))
			case "site":
				cells = append(cells, barOf(s.GetTasks())+" "+countsText(s.GetTasks()))
			case "estimate", "start", "exit", "time":
				cells = append(cells, cli.Nothing)
			default:
				all := queueColumns()
				cells = append(cells, all[slices.IndexFunc(all, func(col queueColumn) bool { return col.word == word })].cell(c, j))
			}
		}
		g.Add(cells...)
	}
	return g
}
