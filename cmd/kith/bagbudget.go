package main

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
)

const (
	// noBudget is written for a bag without one.
	noBudget = "none"
	// mostBudget bounds a budget, in processor-hours.
	mostBudget = 1e12
)

// parseBudget reads processor-hours, and returns processor-seconds, 0 for none.
func parseBudget(text string) (int64, error) {
	if text == noBudget {
		return 0, nil
	}
	hours, err := strconv.ParseFloat(text, 64)
	if err != nil || !(hours > 0 && hours <= mostBudget) {
		return 0, fmt.Errorf("write processor-hours above 0, for example 100 or 0.5, at most %g, or %q", mostBudget, noBudget)
	}
	return int64(math.Ceil(hours * 3600)), nil
}

// budgetText says what of the budget of a bag is used, "" if it has none.
func budgetText(b *kithv1.Bag) string {
	if b.GetBudgetProcessorSeconds() == 0 {
		return ""
	}
	return fmt.Sprintf("%.4g of %.4g processor-hours used", b.GetStatus().GetUsedProcessorSeconds()/3600, float64(b.GetBudgetProcessorSeconds())/3600)
}

// bagBudgetVerb is "kith bag budget".
func bagBudgetVerb(c *client) *cobra.Command {
	return &cobra.Command{
		Use:               "budget BAG HOURS|" + noBudget,
		Short:             "Replace the budget of a bag: the processor-hours that its tasks may use since its submission",
		ValidArgsFunction: c.completeBags(false),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return cli.Usagef("budget: give the bag and its processor-hours, or %q", noBudget)
			}
			return oneBag(cmd, args[:1])
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			seconds, err := parseBudget(args[1])
			if err != nil {
				return cli.Usagef("budget: %q: %v", args[1], err)
			}
			return c.ask(cmd.Context(), func(ctx context.Context, s *site) error {
				r, err := s.bags.SetBagBudget(ctx, &kithv1.SetBagBudgetRequest{BagId: args[0], BudgetProcessorSeconds: seconds})
				if err != nil {
					return err
				}
				return c.printMessage(r, func() string {
					return fmt.Sprintf("%s %s: %s\n", args[0], bagStateWord(r.GetBag().GetStatus().GetState()), orDefault(budgetText(r.GetBag()), "no budget"))
				})
			})
		},
	}
}
