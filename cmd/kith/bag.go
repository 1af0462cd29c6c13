package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

// bagVerb is "kith bag", what users do about bags of tasks.
func bagVerb(c *client) *cobra.Command {
	cmd := &cobra.Command{
		Use: "bag", Short: "Deal with a bag of tasks",
		Long: `A bag is many tasks of one job, each with an index and, if that is wanted, with
parameters. Each runs once, at whichever site has room. "kith submit --array"
makes one, too. A task is named BAG_INDEX, as in Slurm.`,
	}
	cmd.AddCommand(bagSubmitVerb(c), bagListVerb(c), bagShowVerb(c), bagTasksVerb(c), bagWatchVerb(c), bagLogsVerb(c), bagFetchVerb(c),
		bagCancelVerb(c), bagRetryVerb(c), bagHoldVerb(c), bagReleaseVerb(c), bagBudgetVerb(c), bagWhyVerb(c), bagPolicyVerb(c))
	return cmd
}

// oneBag accepts exactly one bag.
func oneBag(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return cli.Usagef("%s: which bag? %q lists them", cmd.Name(), "kith bag list")
	case len(args) > 1:
		return cli.Usagef("%s: unexpected argument %q", cmd.Name(), args[1])
	}
	return bagName(args[0])
}

// bagName refuses what cannot name a bag.
func bagName(text string) error {
	if name, ok := parseTasksName(text); ok {
		return cli.Usagef("%s is a task; the bag is %s: write %s --index %s", text, name.bag, name.bag, name.indices)
	}
	if _, err := job.ParseID(text); err != nil {
		return cli.Usagef("%v", err)
	}
	return nil
}

// tasksName is some tasks of a bag.
type tasksName struct{ bag, indices string }

// parseTasksName reads BAG_INDEX or BAG_[INDICES], as Slurm's commands do.
func parseTasksName(text string) (tasksName, bool) {
	at := strings.LastIndexByte(text, '_')
	if at < 0 {
		return tasksName{}, false
	}
	name := tasksName{text[:at], text[at+1:]}
	if list, ok := strings.CutPrefix(name.indices, "["); ok {
		if name.indices, ok = strings.CutSuffix(list, "]"); !ok {
			return tasksName{}, false
		}
	}
	_, err1 := job.ParseID(name.bag)
	_, atMost, err2 := job.ParseIndices(name.indices)
	return name, err1 == nil && err2 == nil && atMost == 0
}

// getBag asks for a bag within --timeout.
func (c *client) getBag(ctx context.Context, s *site, id string) (*kithv1.Bag, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	r, err := s.bags.GetBag(ctx, &kithv1.GetBagRequest{BagId: id})
	c.noteAge(r.GetAsOfTime())
	return r.GetBag(), err
}

// bagOr handles an error about a job: if the site has none of the name but a bag, it calls
// instead with it, else it returns the error. A job costs nothing by that.
func (c *client) bagOr(ctx context.Context, s *site, id string, err error, instead func(*kithv1.Bag) error) error {
	if err == nil || reason(err) != "JOB_NOT_FOUND" {
		return err
	}
	b, none := c.getBag(ctx, s, id)
	if none != nil {
		return err
	}
	return instead(b)
}

// indexFlag adds --index, which chooses tasks.
func indexFlag(cmd *cobra.Command, what string) *cli.Parsed[string] {
	v := &cli.Parsed[string]{Kind: "INDICES", Parse: parseTaskIndices}
	cmd.Flags().Var(v, "index", what)
	return v
}

// parseTaskIndices reads indices that choose tasks.
func parseTaskIndices(text string) (string, error) {
	_, atMost, err := job.ParseIndices(text)
	if err == nil && atMost > 0 {
		err = fmt.Errorf("leave %%%d out", atMost)
	}
	return text, err
}

// stateFlag adds --state, which chooses tasks by their states.
func stateFlag(cmd *cobra.Command) *cli.Parsed[[]kithv1.Task_State] {
	v := &cli.Parsed[[]kithv1.Task_State]{Kind: "STATE[,STATE...]", Parse: parseTaskStates}
	cmd.Flags().VarP(v, "state", "t", "only tasks in one of these states: "+strings.Join(taskStateNames(), ", "))
	cli.Complete(cmd, "state", taskStateNames()...)
	return v
}

func taskStateNames() (names []string) {
	for n := kithv1.Task_STATE_WAITING; n <= kithv1.Task_STATE_CANCELLED; n++ {
		names = append(names, strings.ToLower(taskStateWord(n)))
	}
	return names
}

func taskStateWord(s kithv1.Task_State) string { return strings.TrimPrefix(s.String(), "STATE_") }
func bagStateWord(s kithv1.BagStatus_State) string {
	return strings.TrimPrefix(s.String(), "STATE_")
}

// parseTaskStates reads names of states.
func parseTaskStates(text string) (states []kithv1.Task_State, err error) {
	for name := range strings.SplitSeq(text, ",") {
		number := kithv1.Task_State_value["STATE_"+strings.ToUpper(strings.TrimSpace(name))]
		if number == 0 {
			return nil, fmt.Errorf("%q is no state; there are %s", name, strings.Join(taskStateNames(), ", "))
		}
		states = append(states, kithv1.Task_State(number))
	}
	return states, nil
}

// bagEnded reports whether a bag will not change by itself any more.
func bagEnded(s kithv1.BagStatus_State) bool {
	return s >= kithv1.BagStatus_STATE_COMPLETED && s <= kithv1.BagStatus_STATE_CANCELLED
}

// completeBags lets a shell complete the ids of bags.
func (c *client) completeBags(ended bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) (ids []cobra.Completion, _ cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault // a folder, if anything
		}
		_ = c.askForCompletion(cmd, func(ctx context.Context, s *site) error { // a shell has no place for an error
			list, err := s.bags.ListBags(ctx, &kithv1.ListBagsRequest{PageSize: 1000, AllStates: ended})
			for _, b := range list.GetBags() {
				ids = append(ids, cobra.CompletionWithDesc(b.GetId(), cli.Clean(b.GetJob().GetName()+", "+bagStateWord(b.GetStatus().GetState()))))
			}
			return err
		})
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
}
