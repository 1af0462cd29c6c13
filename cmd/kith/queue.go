package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
)

// queueVerb is "kith queue".
func queueVerb(c *client) *cobra.Command {
	var all, remote, start bool
	var labels pairs
	var filter jobFilter
	since, until := c.timeFlag(), c.timeFlag()
	format := cli.Parsed[[]string]{Kind: "COLUMN[,COLUMN...]", Parse: parseColumns}
	states := cli.Parsed[[]kithv1.JobStatus_State]{Kind: "STATE[,STATE...]", Parse: parseStates}
	cmd := &cobra.Command{
		Use:   "queue [flags]",
		Short: "List the jobs of this site that have not ended",
		Args:  cli.NoArgs,
		Example: `  kith queue
  kith queue --all --label project=alps
  kith queue --all --user ada --since 24h --format id,name,submit,end,exit
  kith queue --start
  kith queue --state running,queued --output json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if all && len(states.Value) > 0 {
				return cli.Usagef("--all and --state: choose one of them")
			}
			if start && len(format.Value) > 0 {
				return cli.Usagef("--start and --format: choose one of them; --format has the column estimate")
			}
			request := &kithv1.ListJobsRequest{
				PageSize: 1000, AllStates: all, States: states.Value, IncludeRemote: remote, Labels: labels.values,
			}
			filter.ask(request)
			if !since.Value.IsZero() {
				request.SubmittedSince = timestamppb.New(since.Value)
			}
			if !until.Value.IsZero() {
				request.SubmittedUntil = timestamppb.New(until.Value)
			}
			columns := format.Value
			switch {
			case len(columns) > 0:
			case start:
				columns = startColumns
			case all:
				columns = endedColumns
			default:
				columns = liveColumns
			}
			return c.ask(cmd.Context(), func(ctx context.Context, s *site) error {
				list, err := listJobs(ctx, s, request)
				if err != nil {
					return err
				}
				c.noteAge(list.GetAsOfTime())
				list.Jobs = between(filter.keep(list.Jobs), since.Value, until.Value)
				var bags []*kithv1.Bag
				if !start && len(labels.values) == 0 {
					request.AllStates = all || slices.ContainsFunc(states.Value, ended)
					if bags, err = queuedBags(ctx, s, request, since.Value, until.Value); err != nil {
						return err
					}
					bags = slices.DeleteFunc(filter.keepBags(bags), func(b *kithv1.Bag) bool { return !inStates(b, states.Value) })
				}
				if c.JSON() {
					return c.printTogether(list, &kithv1.ListBagsResponse{Bags: bags})
				}
				return c.Write(c.queueText(list, bags, remote, columns, len(format.Value) > 0))
			})
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVarP(&all, "all", "a", false, "also jobs that have ended")
	flags.BoolVar(&remote, "remote", false, "also the copies that this site holds for other sites")
	flags.BoolVar(&start, "start", false, "when each job that waits here would start, by the limits of those ahead")
	flags.VarP(&states, "state", "t", "only jobs in one of these states")
	flags.Var(&labels, "label", "only jobs with this label; repeatable")
	filter.register(flags)
	refuse(flags, option{long: "array", short: 'r', remedy: "a bag is one row; \"kith bag tasks BAG\" lists its tasks"})
	flags.Var(&since, "since", "only jobs submitted since then: 2026-11-22, 2026-11-22T15:04, or 24h for a day ago")
	flags.Var(&until, "until", "only jobs submitted until then")
	flags.Var(&format, "format", "the columns of the table: "+strings.Join(columnWords(), ", "))
	cli.Complete(cmd, "state", stateNames()...)
	cli.Complete(cmd, "format", columnWords()...)
	return cmd
}

// listJobs returns all pages of a list as one.
func listJobs(ctx context.Context, s *site, request *kithv1.ListJobsRequest) (*kithv1.ListJobsResponse, error) {
	list := &kithv1.ListJobsResponse{}
	for {
		page, err := s.jobs.ListJobs(ctx, request)
		if err != nil {
			return nil, err
		}
		list.Jobs = append(list.Jobs, page.GetJobs()...)
		list.RemoteCopies = append(list.RemoteCopies, page.GetRemoteCopies()...)
		list.AsOfTime = page.GetAsOfTime()
		switch page.GetNextPageToken() {
		case "":
			return list, nil
		case request.PageToken:
			return nil, cli.Refusedf("the site's list of jobs does not go on after %q; its log may tell more", request.PageToken)
		}
		request.PageToken = page.GetNextPageToken()
	}
}

// queueText is the list for people. Where they chose the columns, names are whole.
func (c *client) queueText(list *kithv1.ListJobsResponse, bags []*kithv1.Bag, remote bool, columns []string, chosen bool) string {
	g := c.bagGrid(c.jobGrid(list.GetJobs(), columns), bags, columns)
	if i := slices.Index(columns, "name"); i >= 0 && !chosen {
		g.Columns[i].Most = longestName
	}
	text := g.Render(c.Width)
	if !remote {
		return text
	}
	copies := cli.Grid{Columns: []cli.Column{
		{Title: "ID"}, {Title: "ATTEMPT", Right: true}, {Title: "NAME", Elastic: true, Most: longestName}, {Title: "USER", Elastic: true}, {Title: "STATE"},
		{Title: "LIMIT", Right: true}, {Title: "CPUS", Right: true},
	}}
	for _, h := range list.GetRemoteCopies() {
		copies.Add(h.GetJobId(), fmt.Sprint(h.GetAttempt()), h.GetName(), h.GetUser(), strings.ToUpper(h.GetState()),
			spanOf(h.GetWalltime()), fmt.Sprint(h.GetProcessors()))
	}
	return text + "\nCopies held for other sites:\n" + copies.Render(c.Width)
}

// queuedBags returns the bags that a list of jobs selects, none from a site that knows none.
func queuedBags(ctx context.Context, s *site, r *kithv1.ListJobsRequest, since, until time.Time) ([]*kithv1.Bag, error) {
	list, err := listBags(ctx, s, &kithv1.ListBagsRequest{PageSize: 1000, AllStates: r.GetAllStates(), Users: r.GetUsers(), Names: r.GetNames()})
	if status.Code(err) == codes.Unimplemented {
		return nil, nil
	}
	return slices.DeleteFunc(list.GetBags(), func(b *kithv1.Bag) bool {
		at := b.GetStatus().GetSubmitTime().AsTime()
		return at.Before(since) || !until.IsZero() && at.After(until)
	}), err
}

// inStates reports whether a bag is in one of some states of jobs, if any are given. An open one
// is in those in which its tasks are.
func inStates(b *kithv1.Bag, states []kithv1.JobStatus_State) bool {
	st := b.GetStatus()
	return len(states) == 0 || slices.ContainsFunc(states, func(state kithv1.JobStatus_State) bool {
		switch state {
		case kithv1.JobStatus_STATE_PENDING, kithv1.JobStatus_STATE_QUEUED:
			return st.GetState() == kithv1.BagStatus_STATE_OPEN && st.GetTasks().GetWaiting() > 0
		case kithv1.JobStatus_STATE_CLAIMED, kithv1.JobStatus_STATE_RUNNING:
			return st.GetTasks().GetAtSite() > 0
		}
		return bagStateWord(st.GetState()) == stateWord(state)
	})
}

// stateNames lists the states of a job as users write them.
func stateNames() []string {
	names := make([]string, 0, len(kithv1.JobStatus_State_name))
	for number := range kithv1.JobStatus_State_name {
		if number != 0 {
			names = append(names, strings.ToLower(stateWord(kithv1.JobStatus_State(number))))
		}
	}
	slices.Sort(names)
	return names
}

// parseStates reads names of states.
func parseStates(text string) ([]kithv1.JobStatus_State, error) {
	var states []kithv1.JobStatus_State
	for name := range strings.SplitSeq(text, ",") {
		number, ok := kithv1.JobStatus_State_value["STATE_"+strings.ToUpper(strings.TrimSpace(name))]
		if !ok || number == 0 {
			return nil, fmt.Errorf("%q is no state; there are %s", name, strings.Join(stateNames(), ", "))
		}
		states = append(states, kithv1.JobStatus_State(number))
	}
	return states, nil
}
