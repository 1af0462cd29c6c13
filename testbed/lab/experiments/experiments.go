// Package experiments is the table of all experiments of the lab.
package experiments

import (
	"kith/testbed/lab"
	"kith/testbed/lab/choice"
	"kith/testbed/lab/conserve"
	"kith/testbed/lab/forecasts"
	"kith/testbed/lab/ghs"
	"kith/testbed/lab/gridbot"
	"kith/testbed/lab/harm"
	"kith/testbed/lab/hierarchy"
	"kith/testbed/lab/kdistributed"
	"kith/testbed/lab/levels"
	"kith/testbed/lab/localpriority"
)

// All returns every experiment, in the order in which they are listed and run.
func All() []lab.Experiment {
	return []lab.Experiment{
		hierarchy.Experiment(),
		levels.Experiment(),
		levels.Sharing(),
		kdistributed.Experiment(),
		gridbot.Experiment(),
		ghs.Experiment(),
		localpriority.Experiment(),
		choice.Experiment(),
		conserve.Experiment(),
		forecasts.Experiment(),
		harm.Experiment(),
	}
}
