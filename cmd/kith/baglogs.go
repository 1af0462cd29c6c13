package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

// bagLogsVerb is "kith bag logs".
func bagLogsVerb(c *client) *cobra.Command {
	var ofStderr bool
	var file string
	cmd := &cobra.Command{
		Use:   "logs BAG [flags]",
		Short: "Print what tasks of a bag wrote that have ended",
		Long: `Print what tasks of a bag wrote that have ended, one behind the other: their
stdout, their stderr, or a file that they declared as output. If it is more than
one task, a line says whose output follows. With --output json it prints a line for
each piece, with the bytes in base64.`,
		ValidArgsFunction: c.completeBags(true),
		Args:              oneBag,
		Example: `  kith bag logs uni-a.k3f9.17 --stderr --state failed
  kith bag logs uni-a.k3f9.17 --index 7`,
	}
	cmd.Flags().SortFlags = false
	indices := indexFlag(cmd, "only these tasks")
	states := stateFlag(cmd)
	cmd.Flags().BoolVar(&ofStderr, "stderr", false, "stderr instead of stdout")
	cmd.Flags().StringVar(&file, "file", "", "the declared output `NAME` instead of stdout")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r := &kithv1.GetTaskOutputRequest{BagId: args[0], Indices: indices.Value, States: states.Value, Path: file}
		switch {
		case ofStderr && file != "":
			return cli.Usagef("--stderr and --file: choose one of them")
		case ofStderr:
			r.Path = stderrName
		}
		return c.dial(cmd.Context(), func(ctx context.Context, s *site) error { return c.printTasks(ctx, s, r) })
	}
	return cmd
}

// printTasks prints output of tasks.
func (c *client) printTasks(ctx context.Context, s *site, r *kithv1.GetTaskOutputRequest) error {
	wanted, _, err := job.ParseIndices(r.GetIndices())
	one := err == nil && wanted.Count() == 1
	tasks := int64(0)
	err = c.receiveTasks(ctx, s, r, func(p *kithv1.GetTaskOutputResponse) error {
		switch {
		case c.JSON():
			return c.printLine(p)
		case p.GetMissing() != "":
			c.Note("%s", p.GetMissing())
			return nil
		}
		if p.GetOffset() == 0 && !one {
			header := fmt.Sprintf("==> %s_%d <==\n", r.GetBagId(), p.GetIndex())
			if tasks++; tasks > 1 {
				header = "\n" + header
			}
			if err := c.Write(header); err != nil {
				return err
			}
		}
		if _, err := c.Stdout.Write(p.GetData()); err != nil {
			return fmt.Errorf("write the output: %w", err)
		}
		return nil
	})
	return err
}

// receiveTasks hands pieces of output of tasks to sink.
func (c *client) receiveTasks(ctx context.Context, s *site, r *kithv1.GetTaskOutputRequest, sink func(*kithv1.GetTaskOutputResponse) error) error {
	allProcessors()
	ctx, heard, stop := c.deadline(ctx)
	defer stop()
	stream, err := s.bags.GetTaskOutput(ctx, r)
	for err == nil {
		var p *kithv1.GetTaskOutputResponse
		if p, err = stream.Recv(); err != nil {
			break
		}
		heard(c.timeout)
		if err := sink(p); err != nil {
			return err
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return silence(ctx, err)
}

// logsOfTasks is "kith logs" of tasks of a bag.
func (c *client) logsOfTasks(ctx context.Context, name tasksName, follow, ofStderr bool, file string) error {
	switch {
	case follow:
		return cli.Usagef("--follow: the output of a task comes when it has ended; \"kith bag watch %s\" shows how far the bag is", name.bag)
	case ofStderr && file != "":
		return cli.Usagef("--stderr and --file: choose one of them")
	case ofStderr:
		file = stderrName
	}
	return c.dial(ctx, func(ctx context.Context, s *site) error {
		return c.printTasks(ctx, s, &kithv1.GetTaskOutputRequest{BagId: name.bag, Indices: name.indices, Path: file})
	})
}
