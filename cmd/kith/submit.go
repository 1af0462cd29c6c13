package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
)

// submitVerb is "kith submit".
func submitVerb(c *client) *cobra.Command {
	o := newSubmission()
	cmd := &cobra.Command{
		Use: `submit [flags] SCRIPT [ARGS...]
  kith submit [flags] -- COMMAND [ARGS...]
  kith submit [flags] --wrap TEXT`,
		Short: "Submit a script or a command as a job",
		Long:  submitHelp,
		Example: `  kith submit -n 4 -t 30 --input solve --input data -- ./solve data/grid
  kith submit --copies 3 --output-file 'result*' job.sh first second
  id=$(kith submit --parsable job.sh) && kith wait $id && kith fetch $id results`,
		RunE: func(cmd *cobra.Command, args []string) error { return c.runSubmit(cmd, args, o) },
	}
	o.register(cmd.Flags())
	cmd.SetFlagErrorFunc(submitFlagFailure)
	cli.Complete(cmd, "on-site-lost", "wait", "rerun", "race")
	return cmd
}

// runSubmit carries out "kith submit" and "kith bag submit".
func (c *client) runSubmit(cmd *cobra.Command, args []string, o *submission) error {
	if o.bag.params == "-" && (len(args) == 0 || args[0] == "-") && cmd.ArgsLenAtDash() < 0 && o.wrap == "" {
		return cli.Usagef("--params -: the script comes from stdin, too; name one of them by a file")
	}
	p, err := c.readProgram(cmd, args, o.wrap)
	if err != nil {
		return err
	}
	if p.source != "" {
		if err := o.follow(cmd.Flags(), p); err != nil {
			return err
		}
	}
	j, err := o.job(p, c.Environ)
	if err != nil {
		return err
	}
	var b *kithv1.Bag
	if o.bag.is() {
		if b, err = o.bag.bag(j); err != nil {
			return err
		}
	} else if o.bag.policy != "" {
		return cli.Usagef("--policy %s: goes with --array: policies are of bags", o.bag.policy)
	}
	var table *tableFile
	if o.bag.params != "" {
		if table, err = c.openTable(o.bag.params, o.bag.format.Value); err != nil {
			return err
		}
		defer table.Close()
	}
	if b != nil {
		if err := o.checkTaskInputs(); err != nil {
			return err
		}
	}
	inputs := newInputFiles()
	defer inputs.Close()
	if err := inputs.collect(o.withEstimator(o.inputs)); err != nil {
		return err
	}
	if o.testOnly && b == nil {
		return c.dial(cmd.Context(), func(ctx context.Context, s *site) error { return c.preview(ctx, s, j) })
	}
	return c.dial(cmd.Context(), func(ctx context.Context, s *site) error {
		if o.testOnly {
			return c.submitBag(ctx, s, b, table, o)
		}
		if j.Inputs, err = c.send(ctx, s, inputs); err != nil {
			return err
		}
		if b != nil {
			return c.submitBag(ctx, s, b, table, o)
		}
		r, err := c.submit(ctx, s, &kithv1.SubmitJobRequest{RequestId: orDefault(o.requestID, newUUID()), Job: j})
		if err != nil {
			return err
		}
		return c.submitted(ctx, s, r, o)
	})
}

// submitFlagFailure knows that --output is another thing with sbatch.
func submitFlagFailure(cmd *cobra.Command, err error) error {
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok && bad.GetFlag().Name == "output" {
		return cli.Usagef("--output %s: it chooses table or json; the file for the job's stdout is -o FILE or --stdout FILE", bad.GetValue())
	}
	return cli.FlagFailure(cmd, err)
}

const submitHelp = `Submit a script or a command as a job.

SCRIPT is a text file that begins with #!, or - for stdin. #SBATCH lines in it
count as options, up to the first line that is neither blank nor a comment; the
command line wins over them. Slurm's options that Kith does not have are errors,
never ignored. What follows SCRIPT are its arguments.

Where Kith differs from sbatch:

  --output   on the command line chooses table or JSON, as with every verb; the
             file for stdout is -o FILE or --stdout FILE there. In an #SBATCH
             line, --output=FILE is the file for stdout.
  --time     is 1h unless given: there are no jobs without a limit.
  --export   is NONE unless given: a job gets the small clean environment of the
             site that runs it, because yours means little there. ALL takes all
             variables of your environment, VAR that one, VAR=VALUE sets one,
             and ALL,VAR=VALUE does both.
  -o, -e     are names for "kith fetch", which writes the files where you are.
             Nothing is written at the site's own paths.
  --input    takes a file along; Slurm's --input would connect stdin. A relative
             LOCAL inside the current folder keeps its path in the job's private
             folder, any other gets its last name, unless :PATH says where.
  --mem=0    is not available; leave --mem out for no limit of the job's own.
  --dependency  names jobs and bags of this site that must have ended first, in
             afterok, afterany, afternotok or singleton. A job whose dependency
             can never be met is cancelled, not left waiting.
  --array    makes a bag of tasks; "kith help bag" tells more. In -o and -e, %A is
             the bag's id and %a the task's index.

If the site cannot be reached or has too much to do, kith submit tries again for
as long as --timeout says, without submitting anything twice. If --timeout is given, --wait does not
wait for longer either.`

// submit hands the job over.
func (c *client) submit(ctx context.Context, s *site, request *kithv1.SubmitJobRequest) (*kithv1.SubmitJobResponse, error) {
	var r *kithv1.SubmitJobResponse
	err := c.handOver(ctx, "job", request.GetRequestId(), func(ctx context.Context) (err error) {
		r, err = s.jobs.SubmitJob(ctx, request)
		return err
	})
	return r, err
}

// handOver submits something. It is repeated while the site cannot be reached or has too much
// to do, which is safe because of the request's id.
func (c *client) handOver(ctx context.Context, what, requestID string, try func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	unsure, err := c.persist(limited, try)
	if err == nil || !unsure {
		return err
	}
	f, _ := errors.AsType[*cli.Failure](c.explain(err))
	if ctx.Err() != nil {
		f = &cli.Failure{Code: cli.ExitInterrupted, Problems: []string{"interrupted"}}
	}
	f.Keep = true
	f.Problems = append(f.Problems,
		fmt.Sprintf("whether the %s was accepted is not known; the same command with --request-id %s finds out, and submits nothing twice", what, requestID))
	return f
}

// submitted tells the user about the job, and waits for it if that is wanted.
func (c *client) submitted(ctx context.Context, s *site, r *kithv1.SubmitJobResponse, o *submission) error {
	id := r.GetJobId()
	switch {
	case o.parsable:
		if err := c.Write(id + "\n"); err != nil {
			return err
		}
	case o.wait:
		c.Note("submitted job %s", id)
	default:
		if err := c.printMessage(r, func() string { return "Submitted job " + id + "\n" }); err != nil || c.JSON() {
			return err
		}
		if line := c.forecastOf(ctx, s, id); line != "" {
			return c.Write("It " + line + ".\n")
		}
		return nil
	}
	if !o.wait {
		return nil
	}
	if c.limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	err := c.awaitEnd(ctx, s, id, o.parsable)
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return &cli.Failure{Code: cli.ExitInterrupted, Keep: true, Problems: []string{
			fmt.Sprintf("interrupted; job %s goes on: \"kith wait %s\" waits for it, \"kith cancel %s\" ends it", id, id, id)}}
	}
	return err
}

// awaitEnd waits for the end of a job, prints what it wrote unless quiet, and
// returns its exit code.
func (c *client) awaitEnd(ctx context.Context, s *site, id string, quiet bool) error {
	var last *kithv1.Job
	err := c.watch(ctx, s, []string{id}, func(r *kithv1.WatchJobsResponse) (bool, error) {
		last = r.GetJob()
		return ended(last.GetStatus().GetState()), nil
	})
	if err != nil {
		return err
	}
	if !quiet {
		if err := c.printEnd(ctx, s, id); err != nil {
			return err
		}
	}
	return cli.ExitWith(jobExitCode(last.GetStatus()))
}

// printEnd prints a job that has ended, as JSON, or what it wrote.
func (c *client) printEnd(ctx context.Context, s *site, id string) error {
	got, err := c.getJob(ctx, s, id)
	switch {
	case err != nil:
		return err
	case c.JSON():
		return c.printMessage(got, nil)
	}
	return c.printOutput(ctx, s, got.GetJob())
}

// printOutput prints the stdout of a job to ours, its stderr to ours, and how
// it ended if that was not well or something did not come back.
func (c *client) printOutput(ctx context.Context, s *site, j *kithv1.Job) error {
	for _, out := range j.GetStatus().GetOutcome().GetOutputs() {
		f := &outputFile{job: j.GetId(), name: out.GetPath()}
		w := c.Stdout
		switch f.name {
		case stdoutName:
		case stderrName:
			w = c.Stderr
		default:
			continue
		}
		if err := c.receive(ctx, s, f, copyTo(w)); err != nil {
			return err
		}
	}
	st := j.GetStatus()
	if why := howItEnded(st); why != "" || st.GetState() != kithv1.JobStatus_STATE_COMPLETED {
		text := fmt.Sprintf("job %s is %s", j.GetId(), stateWord(st.GetState()))
		if why != "" {
			text += ": " + why
		}
		c.Note("%s", text)
	}
	return nil
}
