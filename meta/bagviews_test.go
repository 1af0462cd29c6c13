package meta

import (
	"errors"
	"slices"
	"testing"

	"kith/internal/identity"
	"kith/internal/job"
	"kith/sitesched/batch"
	"kith/store"
)

// bagEngine returns an engine over a state to which the commands were applied.
func bagEngine(t *testing.T, commands ...store.Command) *Engine {
	t.Helper()
	st := store.NewState("alpha", 1)
	for _, c := range commands {
		if err := st.Apply(c); err != nil {
			t.Fatalf("%T: %v", c, err)
		}
	}
	cfg := Default()
	cfg.Self = Self{Processors: 4, Speed: 1}
	e, err := New(cfg, st, batch.New(4))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func mustIndices(t *testing.T, text string) job.Indices {
	t.Helper()
	x, _, err := job.ParseIndices(text)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

var firstBag = job.ID{Origin: "alpha", Generation: 1, Seq: 1}

// someTasks makes a bag of which tasks are in every state there is: 0 waits again, 1 is
// done, 2 has failed, 3 is at beta and to be stopped, 4 at beta, 5 cancelled, the others wait.
func someTasks(t *testing.T, indices string) []store.Command {
	t.Helper()
	bundle := job.AttemptID{Job: firstBag, Number: 1}
	stop, again := job.TaskRange(3, 4), job.TaskRange(0, 1)
	five := job.TaskRange(5, 6)
	return []store.Command{
		store.SubmitBag{
			ID: firstBag, Request: job.Request{Name: "sweep", User: "ada", Processors: 1, Walltime: 1}, Indices: mustIndices(t, indices),
			RequestID: "r", MaxRunning: 50, Actor: identity.Actor("ada"), Time: 5,
		},
		store.GrantBundle{Bundle: bundle, Site: "beta", Stamp: 1, Generation: 9, Tasks: job.TaskRange(0, 5), Time: 6},
		store.RecordResults{Bundle: bundle, Site: "beta", Batch: 1, Returned: again, Time: 7, Results: []job.TaskResult{
			{Ordinal: 1, Kind: job.Success, Start: 6, Run: 1}, {Ordinal: 2, Kind: job.Failure, ExitCode: 3, Start: 6, Run: 1},
		}},
		store.CancelBag{Bag: firstBag, Tasks: &stop, Time: 8},
		store.CancelBag{Bag: firstBag, Tasks: &five, Time: 8},
	}
}

func TestBagView(t *testing.T) {
	e := bagEngine(t, someTasks(t, "10-19")...)
	v, err := e.Views().BagView(firstBag)
	if err != nil {
		t.Fatal(err)
	}
	got := [6]int{v.Waiting, v.AtSites, v.Done, v.Failed, v.Cancelled, v.Stopping}
	if want := [6]int{5, 2, 1, 1, 1, 1}; got != want || v.Record.MaxRunning != 50 || v.Record.Tasks() != 10 {
		t.Errorf("waiting, at sites, done, failed, cancelled, stopping: %v, want %v", got, want)
	}
	if want := []SiteTasks{{"beta", 2}}; !slices.Equal(v.Sites, want) {
		t.Errorf("sites %v, want %v", v.Sites, want)
	}
	// The view belongs to its caller.
	v.Record.Done.AddRange(0, 10)
	v.Record.Sums.Failures[0].Tasks[0] = 77
	if again, _ := e.Views().BagView(firstBag); again.Done != 1 || again.Record.Sums.Failures[0].Tasks[0] != 2 {
		t.Errorf("the bag was changed by who looked at it: %+v", again)
	}
	for id, want := range map[job.ID]error{
		{Origin: "alpha", Generation: 1, Seq: 2}: ErrUnknownBag, {Origin: "beta", Generation: 1, Seq: 1}: ErrForeignJob,
	} {
		_, err1 := e.Views().BagView(id)
		_, err2 := e.Views().FailedTasks(id)
		_, err3 := e.Views().ListTasks(TaskQuery{Bag: id, Limit: 1})
		for _, err := range []error{err1, err2, err3} {
			if !errors.Is(err, want) {
				t.Errorf("bag %v: %v, want %v", id, err, want)
			}
		}
	}
	if failed, err := e.Views().FailedTasks(firstBag); err != nil || failed.String() != "2" {
		t.Errorf("failed tasks: %s, %v", failed.String(), err)
	}
}

func TestListBags(t *testing.T) {
	var commands []store.Command
	for seq := uint64(1); seq <= 5; seq++ {
		id := job.ID{Origin: "alpha", Generation: 1, Seq: seq}
		commands = append(commands, store.SubmitBag{ID: id, Indices: job.FirstIndices(1), Time: 1})
	}
	e := bagEngine(t, append(commands, store.CancelBag{Bag: firstBag, Time: 2}, store.CloseBag{Bag: firstBag, Time: 3})...)
	open := func(b *store.Bag) bool { return !b.State.Terminal() }
	var seqs []uint64
	q := BagQuery{Limit: 2, Keep: open}
	for pages := 1; ; pages++ {
		list := e.Views().ListBags(q)
		for _, b := range list.Bags {
			seqs, q.After = append(seqs, b.Record.ID.Seq), b.Record.ID
		}
		if !list.More {
			if want := []uint64{2, 3, 4, 5}; !slices.Equal(seqs, want) || pages != 2 {
				t.Errorf("bags %v in %d pages, want %v in 2", seqs, pages, want)
			}
			return
		}
	}
}

func TestListTasks(t *testing.T) {
	e := bagEngine(t, someTasks(t, "0-1999999")...)
	all := [taskStateCount]bool{false, true, true, true, true, true, true}
	only := func(states ...TaskState) (w [taskStateCount]bool) {
		for _, s := range states {
			w[s] = true
		}
		return w
	}
	some := job.TaskRange(1, 3)
	late := job.TaskRange(tasksLookedAt-1, tasksLookedAt+1)
	late.Add(1_999_999)
	list := func(q TaskQuery) (tasks []TaskView, calls int) {
		q.Bag = firstBag
		for more := true; more; calls++ {
			l, err := e.Views().ListTasks(q)
			if err != nil || len(l.Tasks) > q.Limit || l.Next <= q.From {
				t.Fatalf("%+v, %v", l, err)
			}
			tasks, more, q.From = append(tasks, l.Tasks...), l.More, l.Next
		}
		return tasks, calls
	}
	for name, c := range map[string]struct {
		q    TaskQuery
		want []TaskView
	}{
		"no task in any state": {TaskQuery{Limit: 10}, nil},
		"done or failed":       {TaskQuery{Limit: 1, Wanted: only(TaskDone, TaskFailed)}, []TaskView{{1, TaskDone, ""}, {2, TaskFailed, ""}}},
		"at sites":             {TaskQuery{Limit: 9, Wanted: only(TaskAtSite)}, []TaskView{{4, TaskAtSite, "beta"}}},
		"to be stopped":        {TaskQuery{Limit: 9, Wanted: only(TaskStopping)}, []TaskView{{3, TaskStopping, "beta"}}},
		"cancelled":            {TaskQuery{Limit: 9, Wanted: only(TaskCancelled)}, []TaskView{{5, TaskCancelled, ""}}},
		"some":                 {TaskQuery{Limit: 1, Wanted: all, Among: &some}, []TaskView{{1, TaskDone, ""}, {2, TaskFailed, ""}}},
		"waiting among some":   {TaskQuery{Limit: 5, Wanted: only(TaskWaiting), Among: &some}, nil},
		"at the seam": {TaskQuery{Limit: 5, Wanted: all, Among: &late}, []TaskView{
			{tasksLookedAt - 1, TaskWaiting, ""}, {tasksLookedAt, TaskWaiting, ""}, {1_999_999, TaskWaiting, ""},
		}},
	} {
		if got, _ := list(c.q); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	first, err := e.Views().ListTasks(TaskQuery{Bag: firstBag, Limit: 8, Wanted: all})
	want := []TaskView{
		{0, TaskWaiting, ""}, {1, TaskDone, ""}, {2, TaskFailed, ""}, {3, TaskStopping, "beta"}, {4, TaskAtSite, "beta"}, {5, TaskCancelled, ""},
		{6, TaskWaiting, ""}, {7, TaskWaiting, ""},
	}
	if err != nil || !slices.Equal(first.Tasks, want) || first.Next != 8 || !first.More {
		t.Errorf("%+v, %v, want %v", first, err, want)
	}
	if got, calls := list(TaskQuery{Limit: 1 << 21, Wanted: only(TaskWaiting)}); len(got) != 2_000_000-5 || calls != 2 {
		t.Errorf("%d tasks wait, found in %d looks", len(got), calls)
	}
	if end, err := e.Views().ListTasks(TaskQuery{Bag: firstBag, From: 2_000_000, Limit: 1, Wanted: all}); err != nil || len(end.Tasks) > 0 || end.More {
		t.Errorf("behind the end: %+v, %v", end, err)
	}
}

// What was taken back from a site waits again, although the site may still report it.
func TestListTasksTakenBack(t *testing.T) {
	commands := someTasks(t, "0-9")
	e := bagEngine(t, append(commands, store.RevokeBundle{Bundle: job.AttemptID{Job: firstBag, Number: 1}, Site: "beta", MayRun: true, Time: 9})...)
	list, err := e.Views().ListTasks(TaskQuery{Bag: firstBag, Limit: 10, Wanted: [taskStateCount]bool{TaskWaiting: true, TaskAtSite: true, TaskStopping: true}})
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range list.Tasks {
		if task.State != TaskWaiting || task.Site != "" {
			t.Errorf("%+v", task)
		}
	}
	if v, _ := e.Views().BagView(firstBag); v.AtSites != 0 || len(v.Sites) != 0 || v.Waiting != len(list.Tasks) {
		t.Errorf("%d tasks wait, the view has %+v", len(list.Tasks), v)
	}
}
