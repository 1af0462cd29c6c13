package main

import (
	"context"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
)

// logsVerb is "kith logs".
func logsVerb(c *client) *cobra.Command {
	var follow, ofStderr bool
	var file string
	cmd := &cobra.Command{
		Use:   "logs [-f] [--stderr | --file NAME] JOB",
		Short: "Print what a job writes or wrote",
		Long: `Print what a job has written so far, wherever it runs or ran: its stdout, its
stderr, or a file that it declared as output. Of a job that went on from a
checkpoint it prints what each attempt wrote, in order. -f goes on until the job
ends. With --output json it prints a line for each piece, with the bytes in base64.`,
		ValidArgsFunction: c.completeJobs(false),
		Args:              oneJobOrTask,
		RunE: func(cmd *cobra.Command, args []string) error {
			if name, ok := parseTasksName(args[0]); ok {
				return c.logsOfTasks(cmd.Context(), name, follow, ofStderr, file)
			}
			f := &outputFile{job: args[0], name: stdoutName, follow: follow}
			switch {
			case ofStderr && file != "":
				return cli.Usagef("--stderr and --file: choose one of them")
			case follow && file != "":
				return cli.Usagef("--follow works with stdout and stderr only; declared outputs come when the job has ended")
			case ofStderr:
				f.name = stderrName
			case file != "":
				f.name = file
			}
			sink := copyTo(c.Stdout)
			if c.JSON() {
				sink = func(r *kithv1.GetJobOutputResponse) error { return c.printLine(r) }
			}
			if follow {
				return c.attend(cmd.Context(), func(ctx context.Context, s *site) error {
					if err := c.followAttempts(ctx, s, f, sink); err != nil {
						return err
					}
					// All that there is has been printed; that some is lost is said if the site answers.
					if got, err := c.getJob(ctx, s, f.job); err == nil {
						if text := lossText(got.GetJob()); text != "" {
							c.Note("%s", text)
						}
					}
					return nil
				})
			}
			return c.dial(cmd.Context(), func(ctx context.Context, s *site) error {
				earlier, err := c.earlierOutput(ctx, s, f, sink)
				if err == nil {
					err = c.receive(ctx, s, f, sink)
				}
				if err != nil {
					return c.bagOr(ctx, s, f.job, err, func(*kithv1.Bag) error {
						return cli.Usagef("%s is a bag: \"kith bag logs %s\" prints the output of its tasks, \"kith logs %s_INDEX\" that of one", f.job, f.job, f.job)
					})
				}
				if f.offset == 0 && file == "" && earlier == 0 {
					return c.noOutput(ctx, s, f.job)
				}
				return err
			})
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVarP(&follow, "follow", "f", false, "go on until the job has ended; it may not even have started")
	flags.BoolVar(&ofStderr, "stderr", false, "stderr instead of stdout")
	flags.StringVar(&file, "file", "", "the declared output `NAME` instead of stdout")
	return cmd
}

// earlierOutput hands what earlier attempts of a job wrote to sink, those that ended with it to
// go on, and returns their number. Of declared outputs there are only the latest.
func (c *client) earlierOutput(ctx context.Context, s *site, f *outputFile, sink func(*kithv1.GetJobOutputResponse) error) (int, error) {
	if f.name != stdoutName && f.name != stderrName {
		return 0, nil
	}
	got, err := c.getJob(ctx, s, f.job)
	if err != nil {
		return 0, err
	}
	list := got.GetJob().GetStatus().GetDemotions()
	for _, d := range list {
		if err := c.receive(ctx, s, &outputFile{job: f.job, name: f.name, attempt: d.GetAttempt()}, sink); err != nil {
			return 0, err
		}
	}
	return len(list), nil
}

// followAttempts hands what a job writes to sink until it has ended. Each attempt of a job that
// saves checkpoints has files of its own: they come in order.
func (c *client) followAttempts(ctx context.Context, s *site, f *outputFile, sink func(*kithv1.GetJobOutputResponse) error) error {
	p := pause{}
	for last := int32(0); ; {
		got, err := c.getJob(ctx, s, f.job)
		if err != nil {
			if last == 0 || status.Code(err) != codes.Unavailable || !c.again(ctx, &p, err) {
				return c.overtime(ctx, true, err, f.job)
			}
			continue
		}
		st := got.GetJob().GetStatus()
		if got.GetJob().GetCheckpoint() == nil {
			return c.followOutput(ctx, s, f, sink)
		}
		attempt := st.GetAttempt()
		for _, d := range st.GetDemotions() {
			if d.GetAttempt() > last {
				attempt = d.GetAttempt()
				break
			}
		}
		switch {
		case attempt > last:
			err := c.followOutput(ctx, s, &outputFile{job: f.job, name: f.name, attempt: attempt, follow: true}, sink)
			if err != nil && status.Code(err) != codes.NotFound { // it was lost with its host, or withdrawn
				return err
			}
			last, p = attempt, pause{}
		case ended(st.GetState()):
			return nil
		case !p.wait(ctx, 0): // its checkpoint is on its way home
			return c.overtime(ctx, true, ctx.Err(), f.job)
		}
	}
}

// noOutput is for a job that wrote nothing: it was silent, its output is lost, or it has
// not been started.
func (c *client) noOutput(ctx context.Context, s *site, id string) error {
	got, err := c.getJob(ctx, s, id)
	if err != nil {
		return err
	}
	st := got.GetJob().GetStatus()
	switch {
	case st.GetState() == kithv1.JobStatus_STATE_RETURNING:
		return cli.Refusedf("job %s has ended and its output is on its way to its origin; \"kith logs -f\" waits for it", id)
	case st.GetOutcome().GetOutputLost():
		c.Note("%s", lossText(got.GetJob()))
		return nil
	case began(st):
		return nil
	case ended(st.GetState()):
		return cli.Refusedf("job %s is %s: it never started and wrote nothing", id, stateWord(st.GetState()))
	}
	return cli.Refusedf("job %s is %s and has written nothing yet; \"kith logs -f\" waits for it", id, stateWord(st.GetState()))
}
