package main

import (
	"github.com/spf13/cobra"

	"kith/internal/cli"
)

// foreignCommands are words that users of other systems try, and what does here what they
// want. Help does not list them.
var foreignCommands = map[string]string{
	"sbatch": `"kith submit" takes the same scripts, with their #SBATCH lines`, "qsub": `"kith submit" takes scripts with #SBATCH lines`,
	"srun":   `"kith submit --wait -- COMMAND" runs a command and prints what it wrote; a job starts its processes itself`,
	"salloc": "jobs run by themselves; \"kith submit --wait\" waits for one",
	"squeue": `"kith queue" lists jobs and bags, "kith bag tasks BAG" the tasks of a bag`, "qstat": `"kith queue" lists jobs and bags`,
	"scancel": `"kith cancel" ends jobs, bags and tasks`, "qdel": `"kith cancel" ends jobs, bags and tasks`,
	"sinfo":    `"kith sites" lists sites and their load`,
	"sacct":    `"kith queue --all" lists what has ended, too, "kith show" and "kith bag tasks" tell all of it`,
	"scontrol": `"kith show", "kith hold" and "kith release" are commands of their own; "kith bag retry" runs tasks again`,
	"requeue":  `"kith bag retry BAG" runs the tasks again that failed, with --index those that it names; a job is submitted again`,
	"retry":    `"kith bag retry BAG" runs the tasks again that failed; a job is submitted again`,
	"tasks":    `"kith bag tasks BAG" lists the tasks of a bag`,
	"array":    `"kith submit --array INDICES" and "kith bag submit" make bags of tasks`,
	"dag":      `files of job graphs are not built yet: submit the jobs one after the other, each with --dependency afterok:ID of those that it needs`,
}

// foreignVerb refuses a command that there is not, and says what to do instead.
func foreignVerb(word, remedy string) func(*client) *cobra.Command {
	return func(*client) *cobra.Command {
		return &cobra.Command{
			Use: word, Hidden: true, DisableFlagParsing: true, ValidArgsFunction: cobra.NoFileCompletions,
			RunE: func(*cobra.Command, []string) error { return cli.Usagef("there is no command %q: %s", word, remedy) },
		}
	}
}
