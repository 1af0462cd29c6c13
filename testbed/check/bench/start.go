package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"kith/cmd/kithd/config"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/testbed/local"
)

// start measures from a client's call to the instant that the job itself reads
// off the clock, on an otherwise idle site, one job after another; then what forecasts and the flight recorder add to it.
func (b *bench) start(ctx context.Context) error {
	f, stop, err := b.federation(ctx, []local.Site{{Name: "alpha"}})
	if err != nil {
		return err
	}
	defer stop() //nolint:errcheck // what was measured counts
	n := f.Nodes()[0]
	waits, answers, err := b.starts(ctx, n, 1, b.opt.Starts)
	if err != nil {
		return err
	}
	slices.Sort(waits)
	slices.Sort(answers)
	b.addTarget("submission to running process, median", milliseconds(median(waits)), "ms", 15, true)
	b.add("submission to running process, 99 of 100", milliseconds(quantile(waits, 0.99)), "ms")
	b.add("submission to durable answer, median", milliseconds(median(answers)), "ms")
	if err := stop(); err != nil {
		return err
	}
	if err := b.startForecasts(ctx); err != nil {
		return err
	}
	return b.startRecorder(ctx)
}

// startForecasts compares two idle sites that differ in nothing but forecasts, startRecorder two of which
// one has the flight recorder on.
func (b *bench) startForecasts(ctx context.Context) error {
	return b.startWith(ctx, "forecasts", func(c *config.Config, on bool) { c.Forecast.Enabled = on })
}

// startRecorder is told at [bench.startForecasts].
func (b *bench) startRecorder(ctx context.Context) error {
	return b.startWith(ctx, "the flight recorder", func(c *config.Config, on bool) { c.Flight.Enabled = on })
}

// startWith compares two idle sites that differ in one thing, in turns, so that whatever else the machine does is
// the same for both.
func (b *bench) startWith(ctx context.Context, what string, set func(c *config.Config, on bool)) error {
	alone := func(on bool) func(*config.Config) {
		return func(c *config.Config) {
			c.Placement.Scheme = meta.Independent
			set(c, on)
		}
	}
	f, stop, err := b.federation(ctx, []local.Site{{Name: "with", Tune: alone(true)}, {Name: "without", Tune: alone(false)}})
	if err != nil {
		return err
	}
	defer stop() //nolint:errcheck // what was measured counts
	const turns = 10
	var waits [2][]time.Duration
	for range turns {
		for i, n := range f.Nodes() {
			w, _, err := b.starts(ctx, n, 1, (b.opt.Starts+turns-1)/turns)
			if err != nil {
				return err
			}
			waits[i] = append(waits[i], w...)
		}
	}
	for i := range waits {
		slices.Sort(waits[i])
	}
	b.addTarget("submission to running process with "+what+" ÷ without, medians", float64(median(waits[0]))/float64(median(waits[1])), "times", 1.05, true)
	return stop()
}

// starts submits jobs of some processors at a site, one after the other, and returns how
// long each took to run and to be answered.
func (b *bench) starts(ctx context.Context, n *local.Node, processors int32, jobs int) (waits, answers []time.Duration, err error) {
	for i := range jobs + 5 {
		began := time.Now()
		r, err := n.Jobs.SubmitJob(ctx, &kithv1.SubmitJobRequest{Job: &kithv1.Job{
			Name: "when", Command: []string{"/bin/date", "+%s.%N"}, Processors: processors, Walltime: durationpb.New(time.Minute),
		}})
		answered := time.Since(began)
		if err != nil {
			return nil, nil, err
		}
		text, err := output(ctx, n, r.GetJobId())
		if err != nil {
			return nil, nil, err
		}
		at, err := parseDate(text)
		if err != nil {
			return nil, nil, fmt.Errorf("job %s: %w", r.GetJobId(), err)
		}
		if i >= 5 { // the first ones warm all caches
			waits = append(waits, at.Sub(began))
			answers = append(answers, answered)
		}
		// A user does not submit the very moment that the last job ends.
		time.Sleep(5 * time.Millisecond)
	}
	return waits, answers, nil
}

// output returns a job's standard output, waiting for its end.
func output(ctx context.Context, n *local.Node, id string) (string, error) {
	stream, err := n.Jobs.GetJobOutput(ctx, &kithv1.GetJobOutputRequest{JobId: id, Path: "stdout", Follow: true})
	if err != nil {
		return "", err
	}
	return gather(stream, (*kithv1.GetJobOutputResponse).GetData)
}

// gather returns all that a stream of pieces brings.
func gather[T any](stream interface{ Recv() (*T, error) }, data func(*T) []byte) (string, error) {
	var text bytes.Buffer
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return text.String(), nil
		}
		if err != nil {
			return "", err
		}
		text.Write(data(r))
	}
}

// parseDate reads seconds and nanoseconds since 1970.
func parseDate(text string) (time.Time, error) {
	s, ns, _ := strings.Cut(strings.TrimSpace(text), ".")
	sec, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("output %q is no time: %w", text, err)
	}
	nsec, err := strconv.ParseInt(ns, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("output %q is no time: %w", text, err)
	}
	return time.Unix(sec, nsec), nil
}
