package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
)

// bagTasksVerb is "kith bag tasks".
func bagTasksVerb(c *client) *cobra.Command {
	limit := cli.Parsed[int32]{Value: 1000, Text: "1000", Kind: "N", Parse: parseCount}
	cmd := &cobra.Command{
		Use:               "tasks BAG [flags]",
		Short:             "List tasks of a bag",
		ValidArgsFunction: c.completeBags(true),
		Args:              oneBag,
		Example: `  kith bag tasks uni-a.k3f9.17 --state failed
  kith bag tasks uni-a.k3f9.17 --index 0-99 --output json`,
	}
	cmd.Flags().SortFlags = false
	states := stateFlag(cmd)
	indices := indexFlag(cmd, "only these tasks")
	cmd.Flags().VarP(&limit, "limit", "n", "only the first so many")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.dial(cmd.Context(), func(ctx context.Context, s *site) error {
			list, err := c.listTasks(ctx, s, &kithv1.ListTasksRequest{BagId: args[0], States: states.Value, Indices: indices.Value}, int(limit.Value))
			if err != nil {
				return err
			}
			return c.printMessage(list, func() string {
				text := c.taskGrid(list.GetTasks()).Render(c.Width)
				if list.GetNextPageToken() != "" {
					text += fmt.Sprintf("There may be more behind the first %d: --limit shows more.\n", len(list.GetTasks()))
				}
				return text
			})
		})
	}
	return cmd
}

// listTasks returns pages of tasks as one, at most so many. Each page is waited for within
// --timeout.
func (c *client) listTasks(ctx context.Context, s *site, request *kithv1.ListTasksRequest, most int) (*kithv1.ListTasksResponse, error) {
	list := &kithv1.ListTasksResponse{}
	for {
		request.PageSize = int32(min(1000, most-len(list.Tasks)))
		page, err := func() (*kithv1.ListTasksResponse, error) {
			ctx, cancel := context.WithTimeout(ctx, c.timeout)
			defer cancel()
			return s.bags.ListTasks(ctx, request)
		}()
		if err != nil {
			return nil, err
		}
		list.Tasks = append(list.Tasks, page.GetTasks()...)
		list.NextPageToken = page.GetNextPageToken()
		if list.NextPageToken == "" || list.NextPageToken == request.PageToken || len(list.Tasks) >= most {
			return list, nil
		}
		request.PageToken = list.NextPageToken
	}
}

// taskGrid is a table of tasks.
func (c *client) taskGrid(tasks []*kithv1.Task) *cli.Grid {
	g := &cli.Grid{Columns: []cli.Column{
		{Title: "INDEX", Right: true}, {Title: "STATE"}, {Title: "HOW"}, {Title: "SITE", Elastic: true}, {Title: "STARTED"},
		{Title: "TIME", Right: true}, {Title: "CPU", Right: true}, {Title: "MEMORY", Right: true}, {Title: "RUNS", Right: true},
	}}
	for _, t := range tasks {
		how, memory, runs := cli.Nothing, cli.Nothing, cli.Nothing
		if t.GetEnding() != kithv1.Task_ENDING_UNSPECIFIED {
			how, runs = taskHow(t), fmt.Sprint(t.GetRunCount())
		}
		if t.GetMaxRssBytes() > 0 {
			memory = fmt.Sprintf("%dK", t.GetMaxRssBytes()>>10)
		}
		g.Add(fmt.Sprint(t.GetIndex()), taskStateWord(t.GetState()), how, orDefault(t.GetSiteId(), cli.Nothing), c.at(t.GetStartTime()),
			spanOf(t.GetRunTime()), spanOf(t.GetCpuTime()), memory, runs)
	}
	return g
}

// showTasks prints the tasks that were named.
func (c *client) showTasks(ctx context.Context, s *site, name tasksName) error {
	list, err := c.listTasks(ctx, s, &kithv1.ListTasksRequest{BagId: name.bag, Indices: name.indices}, 1000)
	if err != nil {
		return err
	}
	return c.printMessage(list, func() string { return c.taskGrid(list.GetTasks()).Render(c.Width) })
}

// taskHow says how a task ended, and whether its output is lost.
func taskHow(t *kithv1.Task) string {
	text := howText(t.GetEnding(), t.GetExitCode(), t.GetSignal())
	if t.GetOutputLost() {
		text += ", output lost"
	}
	return text
}
