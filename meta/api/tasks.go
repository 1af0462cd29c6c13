package api

import (
	"context"
	"fmt"
	"strconv"

	"google.golang.org/protobuf/types/known/durationpb"

	"kith/internal/job"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
)

// ListTasks implements kithv1.BagServiceServer.
func (s *Server) ListTasks(ctx context.Context, r *kithv1.ListTasksRequest) (*kithv1.ListTasksResponse, error) {
	size, err := pageSize(r.GetPageSize())
	if err != nil {
		return nil, err
	}
	l, err := s.taskLister(ctx, r.GetBagId(), r.GetIndices(), r.GetStates())
	if err != nil {
		return nil, err
	}
	if text := r.GetPageToken(); text != "" {
		from, err := strconv.ParseUint(text, 10, 32)
		if err != nil || from > job.MaxTasks {
			return nil, &FieldError{Field: "page_token", Reason: "is not one that ListTasks returned", Err: err}
		}
		l.query.From = uint32(from)
	}
	resp := &kithv1.ListTasksResponse{}
	for more := true; more && len(resp.Tasks) < size; {
		var tasks []*kithv1.Task
		if tasks, more, err = l.next(ctx, size-len(resp.Tasks)); err != nil {
			return nil, err
		}
		resp.Tasks = append(resp.Tasks, tasks...)
		resp.NextPageToken = ""
		if more {
			resp.NextPageToken = strconv.FormatUint(uint64(l.query.From), 10)
		}
	}
	return resp, nil
}

// taskLister goes through tasks of a bag, by their ordinals.
type taskLister struct {
	s       *Server
	query   meta.TaskQuery
	indices job.Indices
	// results is the latest block of results that was read.
	results []store.TaskRecord
	block   int64
}

// taskLister returns a lister of the tasks with some indices, all for an empty text, that
// are in some states, any if there is none.
func (s *Server) taskLister(ctx context.Context, bag, indices string, states []kithv1.Task_State) (*taskLister, error) {
	id, err := bagID(bag)
	if err != nil {
		return nil, err
	}
	l := &taskLister{s: s, query: meta.TaskQuery{Bag: id}, block: -1}
	for i, state := range states {
		if state <= 0 || int(state) >= len(l.query.Wanted) {
			return nil, &FieldError{Field: fmt.Sprintf("states[%d]", i), Reason: fmt.Sprintf("%d is not one of its values", state)}
		}
		l.query.Wanted[state] = true
	}
	for state := 1; len(states) == 0 && state < len(l.query.Wanted); state++ {
		l.query.Wanted[state] = true
	}
	view, err := s.bagView(ctx, id)
	if err != nil {
		return nil, err
	}
	l.indices = view.Record.Indices
	l.query.Among, err = s.tasksOf(ctx, id, indices)
	return l, err
}

// next returns tasks, at most that many, and whether there may be more. It looks at a
// bounded number of them.
func (l *taskLister) next(ctx context.Context, most int) ([]*kithv1.Task, bool, error) {
	l.query.Limit = most
	var list meta.TaskList
	var err error
	if e := l.s.Node.Look(ctx, func(_ job.Time, v meta.Views) { list, err = v.ListTasks(l.query) }); e != nil {
		return nil, false, e
	}
	if err != nil {
		return nil, false, err
	}
	l.query.From = list.Next
	tasks := make([]*kithv1.Task, len(list.Tasks))
	for i, t := range list.Tasks {
		tasks[i] = &kithv1.Task{Index: int32(l.indices.Index(t.Ordinal)), State: kithv1.Task_State(t.State), SiteId: string(t.Site)}
		if !t.State.Ended() {
			continue
		}
		if err := l.addResult(tasks[i], t); err != nil {
			return nil, false, err
		}
	}
	return tasks, list.More, nil
}

// addResult adds what is kept on disk of a task that has ended. The disk may have more:
// what an earlier run of a task came to that was cancelled before it ran again.
func (l *taskLister) addResult(m *kithv1.Task, t meta.TaskView) error {
	if block := int64(t.Ordinal / store.ResultBlock); block != l.block {
		records, err := l.s.Node.TaskResults(l.query.Bag, uint32(block))
		if err != nil {
			return fmt.Errorf("results of bag %v, block %d: %w", l.query.Bag, block, err)
		}
		l.results, l.block = records, block
	}
	for i := range l.results {
		if rec := &l.results[i]; rec.Result.Ordinal == t.Ordinal && stateAfter(rec.Result.Kind) == t.State {
			fillResult(m, rec)
		}
	}
	return nil
}

// stateAfter is the state of a task that ended so.
func stateAfter(k job.OutcomeKind) meta.TaskState {
	switch k {
	case job.Success:
		return meta.TaskDone
	case job.Cancel:
		return meta.TaskCancelled
	}
	return meta.TaskFailed
}

func fillResult(m *kithv1.Task, rec *store.TaskRecord) {
	r := &rec.Result
	m.SiteId, m.Ending, m.ExitCode, m.Signal = string(rec.Site), kithv1.Task_Ending(r.Kind), r.ExitCode, r.Signal
	m.StartTime, m.RunTime, m.CpuTime = stamp(r.Start), durationpb.New(r.Run), durationpb.New(r.CPUTime)
	m.MaxRssBytes, m.RunCount, m.OutputLost = r.MaxRSSBytes, int32(rec.Tries)+1, r.FilesLost
}
