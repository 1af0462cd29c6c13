package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	kithv1 "kith/proto/gen/kith/v1"
)

// queueVerb is "kith queue".
func queueVerb(c *cli) *cobra.Command {
	var all, remote bool
	var labels pairs
	states := parsed[[]kithv1.JobStatus_State]{kind: "STATE[,STATE...]", parse: parseStates}
	cmd := &cobra.Command{
		Use:   "queue [flags]",
		Short: "List the jobs of this site that have not ended",
		Args:  noArgs,
		Example: `  kith queue
  kith queue --all --label project=alps
  kith queue --state running,queued --output json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if all && len(states.value) > 0 {
				return usagef("--all and --state: choose one of them")
			}
			request := &kithv1.ListJobsRequest{
				PageSize: 1000, AllStates: all, States: states.value, IncludeRemote: remote, Labels: labels.values,
			}
			return c.ask(cmd.Context(), func(ctx context.Context, s *site) error {
				list, err := listJobs(ctx, s, request)
				if err != nil {
					return err
				}
				return c.print(list, func() string { return c.queueText(list, remote) })
			})
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVarP(&all, "all", "a", false, "also jobs that have ended")
	flags.BoolVar(&remote, "remote", false, "also the copies that this site holds for other sites")
	flags.VarP(&states, "state", "t", "only jobs in one of these states")
	flags.Var(&labels, "label", "only jobs with this label; repeatable")
	complete(cmd, "state", stateNames()...)
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
		switch page.GetNextPageToken() {
		case "":
			return list, nil
		case request.PageToken:
			return nil, refusedf("the site's list of jobs does not go on after %q; its log may tell more", request.PageToken)
		}
		request.PageToken = page.GetNextPageToken()
	}
}

// queueText is the list for people.
func (c *cli) queueText(list *kithv1.ListJobsResponse, remote bool) string {
	jobs := grid{columns: []column{
		{title: "ID"}, {title: "NAME", elastic: true}, {title: "USER", elastic: true}, {title: "STATE"}, {title: "TIME", right: true},
		{title: "LIMIT", right: true}, {title: "CPUS", right: true}, {title: "SITE/REASON", elastic: true},
	}}
	for _, j := range list.GetJobs() {
		s := j.GetStatus()
		jobs.add(j.GetId(), j.GetName(), s.GetUser(), stateWord(s.GetState()), span(c.runTime(s)),
			spanOf(j.GetWalltime()), fmt.Sprint(j.GetProcessors()), whereOrWhy(s))
	}
	text := jobs.render(c.width)
	if !remote {
		return text
	}
	copies := grid{columns: []column{
		{title: "ID"}, {title: "ATTEMPT", right: true}, {title: "NAME", elastic: true}, {title: "USER", elastic: true}, {title: "STATE"},
		{title: "LIMIT", right: true}, {title: "CPUS", right: true},
	}}
	for _, h := range list.GetRemoteCopies() {
		copies.add(h.GetJobId(), fmt.Sprint(h.GetAttempt()), h.GetName(), h.GetUser(), strings.ToUpper(h.GetState()),
			spanOf(h.GetWalltime()), fmt.Sprint(h.GetProcessors()))
	}
	return text + "\nCopies held for other sites:\n" + copies.render(c.width)
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
