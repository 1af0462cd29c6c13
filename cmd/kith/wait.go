package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
)

// waitVerb is "kith wait".
func waitVerb(c *client) *cobra.Command {
	return &cobra.Command{
		Use:   "wait JOB...",
		Short: "Wait until jobs have ended, and exit with their exit code",
		Long: `Wait until jobs have ended, print a line for each, and exit with the job's exit
code; with several jobs, with the highest. "kith help exit-codes" has the codes
for jobs that did not end by themselves. A JOB may be a bag, or tasks of one:
BAG_INDEX or BAG_[1-5,9].

Once the site has answered, kith wait outlasts its absence. It waits for as long
as it takes, unless --timeout is given. With --output json it prints a line for
each change of each job.`,
		ValidArgsFunction: c.completeJobs(true, liveStates...),
		Args: func(cmd *cobra.Command, args []string) error {
			const most = 1000
			if len(args) > most {
				return cli.Usagef("%s: %d jobs, at most %d at a time", cmd.Name(), len(args), most)
			}
			return someJobsOrTasks(cmd, args)
		},
		RunE: func(cmd *cobra.Command, jobs []string) error {
			return c.attend(cmd.Context(), func(ctx context.Context, s *site) error {
				slices.Sort(jobs)
				code, err := c.waitForAll(ctx, s, slices.Compact(jobs))
				if err != nil {
					return err
				}
				return cli.ExitWith(code)
			})
		},
	}
}

// waitForAll is waitFor of jobs, bags and tasks. What is a bag is found out when the site has no
// job of a name.
func (c *client) waitForAll(ctx context.Context, s *site, ids []string) (code int, err error) {
	var tasks []tasksName
	ids = slices.DeleteFunc(ids, func(id string) bool {
		name, ok := parseTasksName(id)
		if ok {
			tasks = append(tasks, name)
		}
		return ok
	})
	if len(ids) > 0 {
		if code, err = c.waitForJobsAndBags(ctx, s, ids); err != nil {
			return code, err
		}
	}
	for _, name := range tasks {
		ofTasks, err := c.waitForTasks(ctx, s, name)
		if err != nil {
			return code, err
		}
		code = max(code, ofTasks)
	}
	return code, nil
}

// waitForJobsAndBags is waitForAll without tasks.
func (c *client) waitForJobsAndBags(ctx context.Context, s *site, ids []string) (code int, err error) {
	code, err = c.waitFor(ctx, s, ids)
	if err == nil || reason(err) != "JOB_NOT_FOUND" {
		return code, err
	}
	var jobs, bags []string
	for _, id := range ids {
		if _, none := c.getBag(ctx, s, id); none == nil {
			bags = append(bags, id)
		} else {
			jobs = append(jobs, id)
		}
	}
	if len(bags) == 0 {
		return code, err
	}
	if len(jobs) > 0 {
		if code, err = c.waitFor(ctx, s, jobs); err != nil {
			return code, err
		}
	}
	for _, id := range bags {
		ofBag, err := c.waitForBag(ctx, s, id, false)
		if err != nil {
			return code, err
		}
		code = max(code, ofBag)
	}
	return code, nil
}

// waitFor waits for the end of jobs, tells about it, and returns the highest
// of their exit codes.
func (c *client) waitFor(ctx context.Context, s *site, jobs []string) (code int, err error) {
	err = c.watch(ctx, s, jobs, func(r *kithv1.WatchJobsResponse) (bool, error) {
		st := r.GetJob().GetStatus()
		if ended(st.GetState()) {
			code = max(code, jobExitCode(st))
		}
		if c.JSON() {
			return ended(st.GetState()), c.printLine(r)
		}
		if !ended(st.GetState()) {
			return false, nil
		}
		return true, c.Write(endLine(r.GetJob()))
	})
	return code, err
}

// endLine says how a job ended.
func endLine(j *kithv1.Job) string {
	text := j.GetId() + " " + stateWord(j.GetStatus().GetState())
	if why := howItEnded(j.GetStatus()); why != "" {
		text += " (" + why + ")"
	}
	if host := j.GetStatus().GetHostSiteId(); host != "" {
		text += " at " + host
	}
	return cli.Clean(text) + "\n"
}
