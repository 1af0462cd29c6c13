package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kithv1 "kith/proto/gen/kith/v1"
)

// The names of a job's own output for GetJobOutput.
const (
	stdoutName = "stdout"
	stderrName = "stderr"
)

// outputFile is a file of a job on its way here.
type outputFile struct {
	job, name string
	// attempt is the one that wrote it, 0 for the latest.
	attempt int32
	// follow goes on until the job has ended, or the attempt.
	follow bool
	// offset is how much has arrived.
	offset int64
}

// receive hands the pieces of a file to sink, from f.offset on.
func (c *client) receive(ctx context.Context, s *site, f *outputFile, sink func(*kithv1.GetJobOutputResponse) error) error {
	allProcessors()
	ctx, heard, stop := c.deadline(ctx)
	defer stop()
	if f.follow {
		heard(0) // a job may be silent
	}
	stream, err := s.jobs.GetJobOutput(ctx, &kithv1.GetJobOutputRequest{JobId: f.job, Path: f.name, Offset: f.offset, Follow: f.follow, Attempt: f.attempt})
	for err == nil {
		var r *kithv1.GetJobOutputResponse
		if r, err = stream.Recv(); err != nil {
			break
		}
		if !f.follow {
			heard(c.timeout)
		}
		if r.GetOffset() != f.offset {
			return fmt.Errorf("%s of job %s: the site sent byte %d where byte %d comes next; its log may tell more", f.name, f.job, r.GetOffset(), f.offset)
		}
		if err := sink(r); err != nil {
			return err
		}
		f.offset += int64(len(r.GetData()))
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return silence(ctx, err)
}

// copyTo returns a sink that writes to w.
func copyTo(w io.Writer) func(*kithv1.GetJobOutputResponse) error {
	return func(r *kithv1.GetJobOutputResponse) error {
		if _, err := w.Write(r.GetData()); err != nil {
			return fmt.Errorf("write the output: %w", err)
		}
		return nil
	}
}

// followOutput is receive for as long as the job runs; it may not even have
// started. It outlasts the absence of the site and of the host.
func (c *client) followOutput(ctx context.Context, s *site, f *outputFile, sink func(*kithv1.GetJobOutputResponse) error) error {
	if _, err := c.getJob(ctx, s, f.job); err != nil {
		return err // a site that was never reached is not waited for
	}
	p := pause{}
	for {
		before := f.offset
		err := c.receive(ctx, s, f, sink)
		if f.offset > before {
			p = pause{}
		}
		if err == nil || status.Code(err) != codes.Unavailable || ctx.Err() != nil || !c.again(ctx, &p, err) {
			return c.overtime(ctx, true, err, f.job)
		}
	}
}

// getJob asks for a job within --timeout.
func (c *client) getJob(ctx context.Context, s *site, id string) (*kithv1.GetJobResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return s.jobs.GetJob(ctx, &kithv1.GetJobRequest{JobId: id})
}
