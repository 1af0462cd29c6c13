package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
)

// An action asks a site to do something with a job, or a bag, and returns its state
// after it.
type action func(ctx context.Context, s *site, jobID, requestID string) (fmt.Stringer, error)

// orBag returns an action on a job that is done with the bag of the name if there is no
// such job.
func orBag(onJob, onBag action) action {
	return func(ctx context.Context, s *site, id, requestID string) (fmt.Stringer, error) {
		state, err := onJob(ctx, s, id, requestID)
		if err == nil || reason(err) != "JOB_NOT_FOUND" {
			return state, err
		}
		bag, none := onBag(ctx, s, id, requestID)
		if none == nil || reason(none) != "BAG_NOT_FOUND" && status.Code(none) != codes.Unimplemented {
			return bag, none
		}
		return state, err
	}
}

// actionVerb makes the command for an action on one or more jobs. Each is asked
// for on its own: what is wrong with one does not keep the others from it.
func (c *client) actionVerb(name, short, long string, do action, states []kithv1.JobStatus_State) *cobra.Command {
	return &cobra.Command{
		Use:               name + " JOB...",
		Short:             short,
		Long:              long,
		Args:              someJobs,
		ValidArgsFunction: c.completeJobs(true, states...),
		RunE: func(cmd *cobra.Command, jobs []string) error {
			return c.dial(cmd.Context(), func(ctx context.Context, s *site) error { return c.actAll(ctx, s, jobs, do) })
		},
	}
}

// actAll carries out an action on each of several jobs.
func (c *client) actAll(ctx context.Context, s *site, jobs []string, do action) error {
	var failed []error
	for _, id := range jobs {
		err := c.act(ctx, s, id, do)
		failed = append(failed, err)
		if f, ok := errors.AsType[*cli.Failure](err); ok && f.Code == exitUnreachable || ctx.Err() != nil {
			break // the others would fare no better
		}
	}
	return joinFailures(failed)
}

// act carries out an action on one job and prints what came of it.
func (c *client) act(ctx context.Context, s *site, id string, do action) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	state, err := do(ctx, s, id, newUUID())
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
		return c.Write(id + " " + strings.TrimPrefix(state.String(), "STATE_") + "\n")
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
