package api

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/grpc"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/transfer"
	kithv1 "kith/proto/gen/kith/v1"
)

// TaskOutput reads what tasks left that have ended.
type TaskOutput interface {
	// TaskFiles returns the files that a task left, by their paths; none if it left none.
	TaskFiles(task job.TaskID) (transfer.Set, error)
	// ReadTask returns the next bytes of a file of a task from offset on, at most
	// [transfer.MaxPieceBytes], and whether nothing follows. It returns an error wrapping
	// [ErrNoOutput] if the task left no such file.
	ReadTask(ctx context.Context, task job.TaskID, path string, offset int64) (data []byte, end bool, err error)
}

// tasksAtOnce is how many tasks a stream of output looks up at a time.
const tasksAtOnce = 256

// GetTaskOutput implements kithv1.BagServiceServer.
func (s *Server) GetTaskOutput(r *kithv1.GetTaskOutputRequest, g grpc.ServerStreamingServer[kithv1.GetTaskOutputResponse]) error {
	if r.GetAllFiles() && r.GetPath() != "" {
		return &FieldError{Field: "path", Reason: "is set and so is all_files: set one of them"}
	}
	l, err := s.taskLister(g.Context(), r.GetBagId(), r.GetIndices(), statesToRead(r))
	if err != nil {
		return err
	}
	host := callerHost(g.Context())
	if err := enter(&s.readers, "calls that read output", host); err != nil {
		return err
	}
	defer s.readers.Leave(host)
	o := &taskReader{l: l, g: g, path: r.GetPath(), all: r.GetAllFiles(), one: l.query.Among != nil && l.query.Among.Count() == 1}
	if o.path == "" {
		o.path = transfer.Stdout
	}
	for more := true; more; {
		var tasks []*kithv1.Task
		if tasks, more, err = l.next(g.Context(), tasksAtOnce); err != nil {
			return err
		}
		for _, t := range tasks {
			if err := o.send(t); err != nil {
				return err
			}
		}
	}
	return nil
}

// statesToRead are the states of the tasks that a request reads: without a selection those
// that have ended.
func statesToRead(r *kithv1.GetTaskOutputRequest) []kithv1.Task_State {
	if len(r.GetStates()) > 0 || r.GetIndices() != "" {
		return r.GetStates()
	}
	return []kithv1.Task_State{kithv1.Task_STATE_COMPLETED, kithv1.Task_STATE_FAILED, kithv1.Task_STATE_CANCELLED}
}

// taskReader sends files of tasks.
type taskReader struct {
	l    *taskLister
	g    grpc.ServerStreamingServer[kithv1.GetTaskOutputResponse]
	path string
	all  bool // files, instead of path
	one  bool // task was asked for: that it has nothing is an error
}

// send sends what is asked for of a task.
func (o *taskReader) send(t *kithv1.Task) error {
	ordinal, ok := o.l.indices.Ordinal(uint32(t.GetIndex()))
	if !ok {
		return fmt.Errorf("index %d of bag %v: %w", t.GetIndex(), o.l.query.Bag, ErrNoOutput)
	}
	id := job.TaskID{Bag: o.l.query.Bag, Ordinal: ordinal}
	if !meta.TaskState(t.GetState()).Ended() {
		return o.missing(t, o.path, fmt.Errorf("task %s has not ended, its output comes then: %w", id.Name(&o.l.indices), ErrNoOutput))
	}
	if o.l.s.TaskOutput == nil {
		return o.missing(t, o.path, ErrNoOutput)
	}
	if !o.all {
		return o.sendFile(t, id, o.path)
	}
	set, err := o.l.s.TaskOutput.TaskFiles(id)
	if err != nil {
		return o.missing(t, "", err)
	}
	for i := range set.Files {
		if err := o.sendFile(t, id, set.Files[i].Path); err != nil {
			return err
		}
	}
	return nil
}

// sendFile sends a file, an empty one too.
func (o *taskReader) sendFile(t *kithv1.Task, id job.TaskID, path string) error {
	offset, first := int64(0), true
	for {
		data, end, err := o.l.s.TaskOutput.ReadTask(o.g.Context(), id, path, offset)
		if err != nil {
			if first {
				return o.missing(t, path, fmt.Errorf("task %s: %w", id.Name(&o.l.indices), err))
			}
			return err
		}
		parts := slices.Collect(slices.Chunk(data, outputPart))
		if first && len(parts) == 0 {
			parts = [][]byte{nil}
		}
		for _, part := range parts {
			if err := o.g.Send(&kithv1.GetTaskOutputResponse{Index: t.GetIndex(), Path: path, Data: part, Offset: offset}); err != nil {
				return err
			}
			offset += int64(len(part))
		}
		if first = false; end || len(data) == 0 {
			return nil
		}
	}
}

// missing says that there is nothing of a file: as an error if it is all that was asked
// for, else in its place.
func (o *taskReader) missing(t *kithv1.Task, path string, err error) error {
	if o.one || !errors.Is(err, ErrNoOutput) {
		return err
	}
	return o.g.Send(&kithv1.GetTaskOutputResponse{Index: t.GetIndex(), Path: path, Missing: err.Error()})
}
