package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"google.golang.org/protobuf/proto"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/tasks"
	"kith/meta/transfer"
	kithv1 "kith/proto/gen/kith/v1"
)

// A run of a task goes the way of an attempt, under a name of its host's
// ([store.HeldBundle.RunID]). What differs is here: what it runs is made of the payload of
// its bag or bundle, which is in this site's store, so that nothing of it needs a mark; its
// inputs are asked for as those of the bundle; and that it was begun is no fact.

// bagOf returns what the tasks of a bundle run, from this site's store.
func (f *Files) bagOf(bundle job.AttemptID) (*tasks.Bag, error) {
	name, read := bundle, func() ([]byte, error) { return f.cfg.Backend.HeldPayload(bundle) }
	if bundle.Job.Origin == f.cfg.Site {
		name.Number = 0
		read = func() ([]byte, error) { return f.cfg.Backend.Payload(bundle.Job) }
	}
	return f.bags.Get(name, read, f.openTable)
}

// openTable opens the file of a table of a bag of this site.
func (f *Files) openTable(file *kithv1.File) (io.ReaderAt, error) {
	set, err := transfer.FromProto(&kithv1.FileSet{Files: []*kithv1.File{file}})
	if err != nil {
		return nil, err
	}
	return f.server.FileAt(set.Files[0]), nil
}

// BundlePayload makes what tasks of a bag of this site run, for their host.
func (f *Files) BundlePayload(bundle job.AttemptID, set *job.TaskSet) ([]byte, error) {
	b, err := f.bagOf(bundle)
	if err != nil {
		return nil, err
	}
	return b.Bundle(set)
}

// filesOfBag returns all files that a bag of this site needs, in no order: its tasks may run
// again until it is purged.
func filesOfBag(raw []byte) (transfer.Set, error) {
	var p kithv1.BagPayload
	if err := proto.Unmarshal(raw, &p); err != nil {
		return transfer.Set{}, fmt.Errorf("%w: %w", errPayload, err)
	}
	set, err := transfer.FromProto(p.GetInputs())
	if err != nil || p.GetTable().GetFile() == nil {
		return set, err
	}
	table, err := transfer.FromProto(&kithv1.FileSet{Files: []*kithv1.File{p.GetTable().GetFile()}})
	return transfer.Set{Files: append(set.Files, table.Files...)}, err
}

// taskPayload returns what a task runs. An error that wraps errPayload says that this will
// not change.
func (f *Files) taskPayload(t meta.TaskRun) (*payload, error) {
	b, err := f.bagOf(t.Bundle)
	if err != nil {
		if errors.Is(err, tasks.ErrPayload) {
			err = fmt.Errorf("%w: %w", errPayload, err)
		}
		return nil, err
	}
	task, err := b.Task(t.Bundle.Job, t.Ordinal)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errPayload, err)
	}
	p := &payload{
		raw: []byte{}, parsed: &kithv1.Payload{Job: task.Job, Inputs: b.Inputs()}, job: task.Job,
		task: fmt.Sprintf("%v_%d", t.Bundle.Job, task.Index), environment: task.Environment,
	}
	if b.Inputs() != nil {
		if p.inputs, err = transfer.FromProto(b.Inputs()); err != nil {
			return nil, fmt.Errorf("%w: inputs: %w", errPayload, err)
		}
	}
	return p, nil
}

// inputsOf is the name by which the inputs of an attempt are asked for at its origin.
func (r *run) inputsOf() job.AttemptID {
	if r.task != nil {
		return r.task.Bundle
	}
	return r.attempt
}

// findTask looks for what an earlier daemon left of a task. That it was begun, the system
// knows alone: one of which it knows nothing has run nothing.
func (s *Runner) findTask(r *run) (found, error) {
	begun := true
	if x, ok := s.system.(interface{ Begun(job.AttemptID) bool }); ok {
		begun = x.Begun(r.attempt)
	}
	p, err := s.files.stored(r)
	if mayPass(err) {
		return found{}, err
	}
	return found{p, begun}, nil
}

// names are what lines of the log have about an attempt.
func (r *run) names() []any {
	names := []any{"attempt_id", r.attempt.String()}
	if r.task == nil {
		return append(names, "job_id", r.attempt.Job.String())
	}
	return append(names, "bag_id", r.task.Bundle.Job.String(), "bundle_id", r.task.Bundle.String(), "task", r.task.Ordinal)
}

// names are those of an attempt, whether or not it is known here any more.
func (s *Runner) names(a job.AttemptID) []any {
	if r := s.get(a); r != nil {
		return r.names()
	}
	return (&run{attempt: a}).names()
}

// note logs how far an attempt is. What goes well with a task is for those who debug: there
// may be thousands of tasks a second.
func (s *Runner) note(what string, a job.AttemptID, failed bool, about ...any) {
	r, level := s.get(a), slog.LevelInfo
	if r != nil && r.task != nil && !failed {
		level = slog.LevelDebug
	}
	if s.log.Enabled(context.Background(), level) {
		s.log.Log(context.Background(), level, what, append(s.names(a), about...)...)
	}
}
