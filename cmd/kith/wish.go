package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
)

// A wish asks a site to do something with a job and returns the job's state
// after it.
type wish func(ctx context.Context, s *site, jobID, requestID string) (kithv1.JobStatus_State, error)

// wishVerb makes the command for a wish about one or more jobs. Each is asked
// for on its own: what is wrong with one does not keep the others from it.
func (c *client) wishVerb(name, short, long string, w wish, states []kithv1.JobStatus_State) *cobra.Command {
	return &cobra.Command{
		Use:               name + " JOB...",
		Short:             short,
		Long:              long,
		Args:              someJobs,
		ValidArgsFunction: c.completeJobs(true, states...),
		RunE: func(cmd *cobra.Command, jobs []string) error {
			return c.dial(cmd.Context(), func(ctx context.Context, s *site) error { return c.fulfilAll(ctx, s, jobs, w) })
		},
	}
}

// fulfilAll carries out a wish about each of several jobs.
func (c *client) fulfilAll(ctx context.Context, s *site, jobs []string, w wish) error {
	var failed []error
	for _, id := range jobs {
		err := c.fulfil(ctx, s, id, w)
		failed = append(failed, err)
		if f, ok := errors.AsType[*cli.Failure](err); ok && f.Code == exitUnreachable || ctx.Err() != nil {
			break // the others would fare no better
		}
	}
	return joinFailures(failed)
}

// fulfil carries out a wish about one job and prints what came of it.
func (c *client) fulfil(ctx context.Context, s *site, id string, w wish) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	state, err := w(ctx, s, id, newUUID())
	if err != nil {
		f, _ := errors.AsType[*cli.Failure](c.explain(err))
		for i, problem := range f.Problems {
			if !strings.Contains(problem, id) && f.Code != exitUnreachable {
				f.Problems[i] = "job " + id + ": " + problem
			}
		}
		return f
	}
	if !c.JSON() {
		return c.Write(id + " " + stateWord(state) + "\n")
	}
	line, err := json.Marshal(struct {
		JobID string `json:"jobId"`
		State string `json:"state"`
	}{id, state.String()})
	if err != nil {
		return err
	}
	return c.Write(string(line) + "\n")
}

// joinFailures makes one failure of several: all problems, and the exit code
// of the first.
func joinFailures(errs []error) error {
	var all *cli.Failure
	for _, err := range errs {
		f, ok := errors.AsType[*cli.Failure](err)
		switch {
		case err == nil:
			continue
		case !ok:
			f = cli.Refusedf("%v", err)
		}
		if all == nil {
			all = &cli.Failure{Code: f.Code, Keep: f.Keep}
		}
		all.Problems = append(all.Problems, f.Problems...)
	}
	if all == nil {
		return nil
	}
	return all
}
