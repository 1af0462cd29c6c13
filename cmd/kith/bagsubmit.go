package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kith/internal/cli"
	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

// arraySpec is what --array asks for.
type arraySpec struct {
	indices string
	running int32 // at once, 0 for no limit
}

// parseArray reads INDICES[%N].
func parseArray(text string) (arraySpec, error) {
	_, atMost, err := job.ParseIndices(text)
	indices, _, _ := strings.Cut(text, "%")
	return arraySpec{indices, int32(min(atMost, math.MaxInt32))}, err
}

// bagOptions is what makes a bag of a job.
type bagOptions struct {
	// wanted: the verb makes bags only.
	wanted   bool
	array    cli.Parsed[arraySpec]
	params   string
	format   cli.Parsed[kithv1.TaskTable_Format]
	values   []string
	matrix   string
	retries  cli.Parsed[int32]
	replicas cli.Parsed[int32]
	tailAt   cli.Parsed[int32]
	budget   cli.Parsed[int64]
	priority int32
	policy   string
}

func newBagOptions() bagOptions {
	return bagOptions{
		array:    cli.Parsed[arraySpec]{Kind: "INDICES[%N]", Parse: parseArray},
		format:   cli.Parsed[kithv1.TaskTable_Format]{Kind: "lines|csv|tsv|jsonl", Parse: parseTableFormat},
		retries:  cli.Parsed[int32]{Kind: "N", Parse: parseRetries},
		replicas: cli.Parsed[int32]{Kind: "N", Parse: parseReplicas}, tailAt: cli.Parsed[int32]{Kind: "N", Parse: parseTailAt},
		budget: cli.Parsed[int64]{Kind: "HOURS", Parse: parseBudget},
	}
}

// is reports whether a bag is asked for.
func (o *bagOptions) is() bool { return o.wanted || o.array.Text != "" }

// registerArray adds the flags that "kith submit" has, too.
func (o *bagOptions) registerArray(flags *pflag.FlagSet) {
	flags.VarP(&o.array, "array", "a", "submit a bag with a task for each index: 0-15:4,17,100-200; with %N, at most N of them at once")
	flags.StringVar(&o.policy, "policy", "", "where tasks of a bag run, in which order and how many at once: policies in `FILE`, see \"kith bag policy\"")
}

// register adds the flags of "kith bag submit".
func (o *bagOptions) register(flags *pflag.FlagSet) {
	o.registerArray(flags)
	flags.StringVar(&o.params, "params", "", "a task for each row of `FILE`, whose columns are parameters, or - for stdin; at most 512 MiB")
	flags.Var(&o.format, "params-format", "how it is written (default by its name: .csv, .tsv, .jsonl, else lines, with the parameter \"line\")")
	flags.StringArrayVar(&o.values, "values", nil, "a task for each value, as `NAME=VALUE[,VALUE...]`; repeatable, with as many values each")
	flags.StringVar(&o.matrix, "matrix", "", "a task for each combination, as `NAME=LIST[,NAME=LIST...]`, for example a=1..9,b=x,y")
	flags.Var(&o.retries, "retries", "how often a task that fails runs again, at most 100")
	flags.Var(&o.replicas, "replicas", "tasks may run twice: at the end, those that take long are given to up to `N` more sites, too; at most 5")
	flags.Var(&o.tailAt, "tail-at", "the end is when fewer than `N` tasks wait (default as many as places serve the bag); goes with --replicas")
	flags.Var(&o.budget, "budget", "processor-hours that its tasks may use together (default no bound); \"kith bag budget\" changes it")
	flags.Int32Var(&o.priority, "priority", 0, "`N` of the bag among those of this site: -1000 to 0; operators: to 1000")
	// What is otherwise than with a job.
	flags.Lookup("on-site-lost").DefValue = "rerun"
	for name, usage := range map[string]string{
		"stdout":    "`FILE` under which \"kith bag fetch\" writes stdout; %A is the bag's id, %a the task's index, %x the job's name (default " + defaultTaskStdout + ")",
		"stderr":    "`FILE` for stderr, likewise; also --error (default " + defaultTaskStderr + ")",
		"copies":    "sites that tasks are offered to (default all)",
		"mem":       "memory of a task; without a letter, megabytes (default no limit of its own)",
		"hold":      "give no task to a site before \"kith bag release\"",
		"parsable":  "print the bag's id and nothing else",
		"wait":      "wait for the end, print what came of it, and exit with 0 only if all tasks did",
		"test-only": "check the bag, and submit nothing",
	} {
		flags.Lookup(name).Usage = usage
	}
}

func parseReplicas(text string) (int32, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 || n > 5 {
		return 0, errors.New("write a number from 0 to 5")
	}
	return int32(n), nil
}

func parseTailAt(text string) (int32, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 {
		return 0, errors.New("write a number of tasks, at least 1")
	}
	return int32(n), nil
}

func parseRetries(text string) (int32, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 || n > 100 {
		return 0, errors.New("write a number from 0 to 100")
	}
	return int32(n), nil
}

// checkTaskInputs refuses inputs that would differ from task to task, before they are looked
// for: no file has such a name.
func (o *submission) checkTaskInputs() error {
	for _, spec := range o.inputs {
		if strings.Contains(spec, "{{") {
			return cli.Usagef("--input %s: inputs that differ from task to task are not built yet; let all tasks have all files, with --input for their folder, and name the one in the command", spec)
		}
	}
	return nil
}

// bag makes a bag of a job.
func (o *bagOptions) bag(j *kithv1.Job) (*kithv1.Bag, error) {
	b := &kithv1.Bag{Job: j, After: j.GetAfter(), Singleton: j.GetSingleton(), Indices: o.array.Value.indices, MaxRunning: o.array.Value.running, Retries: o.retries.Value, Priority: o.priority, MaxReplicas: o.replicas.Value, TailAt: o.tailAt.Value, BudgetProcessorSeconds: o.budget.Value}
	if o.tailAt.Text != "" && o.replicas.Value == 0 {
		return nil, cli.Usagef("--tail-at %s: goes with --replicas", o.tailAt.Text)
	}
	j.After, j.Singleton = nil, false // the bag's
	given := 0
	for _, is := range []bool{o.params != "", len(o.values) > 0, o.matrix != ""} {
		if is {
			given++
		}
	}
	var err error
	switch {
	case given > 1:
		return nil, cli.Usagef("--params, --values and --matrix: choose one of them")
	case given == 0 && o.array.Text == "":
		return nil, cli.Usagef("bag submit: which tasks? Give --array, --params, --values or --matrix")
	case len(o.values) > 0:
		b.Parameters, err = o.rows()
	case o.matrix != "":
		b.Parameters = &kithv1.Bag_Matrix{Matrix: o.matrix}
	}
	if o.policy != "" && err == nil {
		b.Policies, err = readPolicies(o.policy)
	}
	if o.format.Text != "" && o.params == "" {
		return nil, cli.Usagef("--params-format %s: goes with --params", o.format.Text)
	}
	return b, err
}

// rows takes the values apart.
func (o *bagOptions) rows() (*kithv1.Bag_Values, error) {
	rows := &kithv1.ParameterRows{}
	for i, text := range o.values {
		name, list, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, cli.Usagef("--values %s: write NAME=VALUE[,VALUE...]", text)
		}
		rows.Names = append(rows.Names, name)
		values := strings.Split(list, ",")
		if i == 0 {
			rows.Rows = make([]*kithv1.ParameterRow, len(values))
		}
		if len(values) != len(rows.Rows) {
			return nil, cli.Usagef("--values %s: has %d values, %s has %d; each task gets one of each, --matrix makes all combinations", name, len(values), rows.Names[0], len(rows.Rows))
		}
		for n, v := range values {
			if i == 0 {
				rows.Rows[n] = &kithv1.ParameterRow{}
			}
			rows.Rows[n].Values = append(rows.Rows[n].Values, v)
		}
	}
	return &kithv1.Bag_Values{Values: rows}, nil
}

// bagSubmitVerb is "kith bag submit".
func bagSubmitVerb(c *client) *cobra.Command {
	o := newSubmission()
	o.bag.wanted = true
	cmd := &cobra.Command{
		Use: `submit [flags] SCRIPT [ARGS...]
  kith bag submit [flags] -- COMMAND [ARGS...]
  kith bag submit [flags] --wrap TEXT`,
		Short: "Submit a bag: many tasks of one script or command",
		Long: `Submit a bag of tasks. The flags of "kith submit" say what one task is; those
here say how many there are and what they differ by.

In the command, its arguments, the values of --export and the paths of
--output-file, {{NAME}} stands for the task's value of a parameter and {{index}}
for its index; {{{{ stands for two braces. Scripts find the index in
KITH_TASK_INDEX and SLURM_ARRAY_TASK_ID, and a parameter in KITH_PARAM_NAME, its
name in capital letters. In -o and -e, %A is the bag's id and %a the index
(default kith-%A_%a.out).`,
		Example: `  kith bag submit --array 0-9999%50 job.sh
  kith bag submit --matrix seed=1..100,method=fast,exact -- ./solve --seed {{seed}} --method {{method}}
  kith bag submit --params runs.csv --retries 2 -- ./run {{case}} {{load}}`,
		RunE: func(cmd *cobra.Command, args []string) error { return c.runSubmit(cmd, args, o) },
	}
	o.register(cmd.Flags())
	cmd.SetFlagErrorFunc(submitFlagFailure)
	cli.Complete(cmd, "on-site-lost", "wait", "rerun", "race")
	cli.Complete(cmd, "params-format", "lines", "csv", "tsv", "jsonl")
	return cmd
}

// submitBag hands a bag over, and waits for it if that is wanted.
func (c *client) submitBag(ctx context.Context, s *site, b *kithv1.Bag, table *tableFile, o *submission) error {
	if table != nil {
		var err error
		if b.Parameters, err = table.send(ctx, c, s); err != nil {
			return err
		}
	}
	request := &kithv1.SubmitBagRequest{RequestId: orDefault(o.requestID, newUUID()), Bag: b, ValidateOnly: o.testOnly}
	var r *kithv1.SubmitBagResponse
	err := c.handOver(ctx, "bag", request.GetRequestId(), func(ctx context.Context) (err error) {
		r, err = s.bags.SubmitBag(ctx, request)
		return err
	})
	if err != nil {
		return table.explain(c, err)
	}
	id, tasks := r.GetBagId(), cli.Plural(r.GetTaskCount(), "task", "tasks")
	switch {
	case o.testOnly:
		return c.printMessage(r, func() string { return fmt.Sprintf("The bag has %s. Nothing was submitted.\n", tasks) })
	case o.parsable:
		if err := c.Write(id + "\n"); err != nil {
			return err
		}
	case o.wait:
		c.Note("submitted bag %s of %s", id, tasks)
	default:
		return c.printMessage(r, func() string { return fmt.Sprintf("Submitted bag %s of %s\n", id, tasks) })
	}
	if !o.wait {
		return nil
	}
	if c.limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	code, err := c.waitForBag(ctx, s, id, o.parsable)
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return &cli.Failure{Code: cli.ExitInterrupted, Keep: true, Problems: []string{
			fmt.Sprintf("interrupted; bag %s goes on: \"kith wait %s\" waits for it, \"kith cancel %s\" ends it", id, id, id)}}
	}
	if err != nil {
		return err
	}
	return cli.ExitWith(code)
}
