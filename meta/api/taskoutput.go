package api

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"google.golang.org/grpc"

	"kith/meta"
	"kith/meta/transfer"
	kithv1 "kith/proto/gen/kith/v1"
)

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
	name := fmt.Sprintf("task %v_%d", o.l.query.Bag, t.GetIndex())
	switch {
	case !meta.TaskState(t.GetState()).Ended():
		return o.missing(t, o.path, fmt.Errorf("%s has not ended, its output comes then: %w", name, ErrNoOutput))
	case t.GetEnding() == kithv1.Task_ENDING_UNSPECIFIED || t.GetEnding() == kithv1.Task_ENDING_LOSS:
		return o.missing(t, o.path, fmt.Errorf("%s never ran, or was lost: %w", name, ErrNoOutput))
	}
	ordinal, _ := o.l.indices.Ordinal(uint32(t.GetIndex()))
	encoded, err := o.l.s.Node.TaskFiles(o.l.query.Bag, ordinal)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	set, err := transfer.Decode(encoded)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	lost := fmt.Sprintf("some of its output is lost: the task removed it, or it could not be kept at site %s or brought home", t.GetSiteId())
	if o.all {
		if t.GetOutputLost() { // beside what there is
			if err := o.tell(t, "", fmt.Sprintf("%s: %s", name, lost)); err != nil {
				return err
			}
		}
		for _, f := range set.Files {
			if err := o.sendFile(t, f, name); err != nil {
				return err
			}
		}
		return nil
	}
	f, ok := set.Find(path.Clean(o.path))
	stream := o.path == transfer.Stdout || o.path == transfer.Stderr
	switch {
	case ok:
	case stream && t.GetOutputLost(): // perhaps it was silent: that is no error
		return o.tell(t, o.path, fmt.Sprintf("%s left no %s, and %s", name, o.path, lost))
	case !stream && t.GetOutputLost():
		return o.missing(t, o.path, fmt.Errorf("%s, %.64q: %w; %s", name, o.path, ErrNoOutput, lost))
	case !stream:
		return o.missing(t, o.path, fmt.Errorf("%s, %.64q: %w", name, o.path, ErrNoOutput))
	}
	f.Path = o.path // it wrote nothing, if there is none
	return o.sendFile(t, f, name)
}

// sendFile sends a file, an empty one too.
func (o *taskReader) sendFile(t *kithv1.Task, f transfer.File, name string) error {
	offset := int64(0)
	for end := false; !end; {
		data, last, err := o.l.s.Files.ReadFile(f, offset)
		if err != nil {
			err = fmt.Errorf("%s: %w", name, err)
			if offset > 0 {
				return err
			}
			return o.missing(t, f.Path, err)
		}
		parts := slices.Collect(slices.Chunk(data, outputPart))
		if len(parts) == 0 {
			parts = [][]byte{nil}
		}
		for _, part := range parts {
			if err := o.g.Send(&kithv1.GetTaskOutputResponse{Index: t.GetIndex(), Path: f.Path, Data: part, Offset: offset}); err != nil {
				return err
			}
			offset += int64(len(part))
		}
		end = last || len(data) == 0
	}
	return nil
}

// missing says that there is nothing of a file: as an error if it is all that was asked
// for, else in its place.
func (o *taskReader) missing(t *kithv1.Task, path string, err error) error {
	if o.one || !errors.Is(err, ErrNoOutput) {
		return err
	}
	return o.tell(t, path, err.Error())
}

// tell says why there is nothing of a file of a task, or of some for an empty path.
func (o *taskReader) tell(t *kithv1.Task, path, why string) error {
	return o.g.Send(&kithv1.GetTaskOutputResponse{Index: t.GetIndex(), Path: path, Missing: why})
}
