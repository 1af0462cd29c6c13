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

// bagKillsVerb is "kith-lab chaos bag".
func bagKillsVerb(p *cli.Program) *cobra.Command {
	opt := chaos.DefaultBagOptions()
	cmd := &cobra.Command{
		Use:   "bag [--tasks N] [--sites S] [--kills K]",
		Short: "Kill the daemons of real sites while they run one large bag of tasks",
		Long: `Start real sites on loopback and submit one bag of short tasks at the first, each
of which signs a ledger. Kill the daemons in turn with SIGKILL while it runs, the
origin's too, and once all at the same time, and start them again at once. The ledger
is read once the sites have ended and nothing runs any more. The exit code is 0 only
if every task signed exactly once, the origin counts each once, and no run failed.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.NoArgs(cmd, args); err != nil {
				return err
			}
			if err := opt.Validate(); err != nil {
				return cli.Usagef("%s", strings.ReplaceAll(err.Error(), "\n", "; "))
			}
			return runBagKills(cmd.Context(), p, opt)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&opt.Tasks, "tasks", opt.Tasks, "how many tasks the bag has, as `N`")
	flags.IntVar(&opt.Sites, "sites", opt.Sites, "how many sites to start, as `S`")
	flags.IntVar(&opt.Kills, "kills", opt.Kills, "kill `K` times, evenly over the bag")
	insecureFlag(cmd, &opt.Insecure)
	flags.StringVar(&opt.Dir, "dir", "", "keep data and logs of the sites in folder `D` (default: a temporary one)")
	return cmd
}

func runBagKills(ctx context.Context, p *cli.Program, opt chaos.BagOptions) error {
	remove, err := cli.OwnFolder(&opt.Dir, "kith-bag-")
	if err != nil {
		return cli.Refusedf("%v", err)
	}
	defer remove()
	began := time.Now()
	opt.Observe = func(line string) { p.Note("%6.1f s  %s", time.Since(began).Seconds(), line) }
	r, err := chaos.RunBagKills(ctx, opt)
	if r != nil { // what is known tells more than the error alone
		err = errors.Join(err, p.Print(r, func() string { return bagKillsTable(r, p.Width) }))
	}
	switch {
	case errors.Is(err, context.Canceled):
		return cli.ExitWith(cli.ExitInterrupted)
	case err != nil:
		return cli.Refusedf("bag: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	case !r.Sound():
		return cli.Refusedf("checks failed:\n  %s", strings.Join(append(r.Problems, "not every task ran, completed and was counted exactly once"), "\n  "))
	}
	return nil
}

// bagKillsTable is what people see at the end.
func bagKillsTable(r *chaos.BagKills, width int) string {
	g := cli.Grid{Columns: []cli.Column{{Title: "WHAT", Elastic: true}, {Title: "VALUE", Right: true}, {Title: "TARGET", Right: true}, {Title: ""}}}
	exactly := func(what string, value, target int64) {
		verdict := "reached"
		if value != target {
			verdict = "missed"
		}
		g.Add(what, fmt.Sprint(value), fmt.Sprint(target), verdict)
	}
	g.Add("sites", fmt.Sprint(r.Sites), "", "")
	g.Add("daemons killed", fmt.Sprint(r.Kills), "", "")
	if r.Seconds > 0 { // else they had not
		g.Add("seconds until all tasks had ended", fmt.Sprintf("%.1f", r.Seconds), "", "")
	}
	tasks := int64(r.Tasks)
	exactly("tasks that completed", r.Completed, tasks)
	exactly("runs that the origin counts", r.Runs, tasks)
	exactly("runs by the ledger", r.Signed, tasks)
	exactly("runs that failed or were lost", r.Failed, 0)
	exactly("tasks that started twice", int64(r.DoubleStarts), 0)
	exactly("tasks that never started", int64(r.Missing), 0)
	return g.Render(width)
}
