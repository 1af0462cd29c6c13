package api

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"kith/internal/job"
	"kith/meta/transfer"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
	"kith/store/blobstore"
)

func TestListTasks(t *testing.T) {
	s, m := serveBags(t)
	id := submitBag(t, s, func(b *kithv1.Bag) { b.Indices = "1000-1999" })
	m.run(t, id, "beta", 600, tenth)
	list := func(r *kithv1.ListTasksRequest) (got []*kithv1.Task) {
		r.BagId = id.String()
		for {
			page, err := s.ListTasks(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, page.GetTasks()...)
			if r.PageToken = page.GetNextPageToken(); r.PageToken == "" {
				return got
			}
		}
	}
	failed := list(&kithv1.ListTasksRequest{PageSize: 7, States: []kithv1.Task_State{kithv1.Task_STATE_FAILED}})
	if len(failed) != 60 {
		t.Errorf("%d tasks failed", len(failed))
	}
	for i, f := range failed {
		if f.GetIndex() != int32(1007+10*i) || f.GetExitCode() != 1 || f.GetSiteId() != "beta" || f.GetEnding() != kithv1.Task_ENDING_FAILURE || f.GetRunCount() != 1 {
			t.Errorf("task %d that failed: %v", i, f)
		}
	}
	if got := list(&kithv1.ListTasksRequest{}); len(got) != 1000 || got[599].GetRunTime().AsDuration() != 2*time.Second || got[600].GetState() != kithv1.Task_STATE_WAITING || got[600].GetRunTime() != nil {
		t.Errorf("%d tasks, %v, %v", len(got), got[599], got[600])
	}
	if got := list(&kithv1.ListTasksRequest{Indices: "1002-1004"}); len(got) != 3 || got[0].GetOutputLost() || !got[1].GetOutputLost() || got[2].GetOutputLost() {
		t.Errorf("the output of 1003, and no other, is lost: %v", got)
	}
	if got := list(&kithv1.ListTasksRequest{Indices: "1598-1601", States: []kithv1.Task_State{kithv1.Task_STATE_WAITING, kithv1.Task_STATE_COMPLETED}}); len(got) != 4 || got[3].GetIndex() != 1601 {
		t.Errorf("by indices: %v", got)
	}
	// What an earlier run came to is not told of a task that runs again, or was cancelled then.
	again := job.TaskRange(7, 8)
	if err := m.fact(store.RetryTasks{Bag: id, Tasks: again, Time: m.now}); err != nil {
		t.Fatal(err)
	}
	if got := list(&kithv1.ListTasksRequest{Indices: "1007"}); len(got) != 1 || got[0].GetState() != kithv1.Task_STATE_WAITING || got[0].GetExitCode() != 0 {
		t.Errorf("a task that runs again: %v", got)
	}
	if err := m.fact(store.CancelBag{Bag: id, Tasks: &again, Time: m.now}); err != nil {
		t.Fatal(err)
	}
	if got := list(&kithv1.ListTasksRequest{Indices: "1007"}); got[0].GetState() != kithv1.Task_STATE_CANCELLED || got[0].GetEnding() != 0 {
		t.Errorf("a task that was cancelled before it ran again: %v", got)
	}
}

// taskOutputStream is a stream of GetTaskOutput.
type taskOutputStream struct {
	grpc.ServerStream
	ctx  context.Context
	text strings.Builder
}

func (o *taskOutputStream) Context() context.Context { return o.ctx }
func (o *taskOutputStream) Send(r *kithv1.GetTaskOutputResponse) error {
	fmt.Fprintf(&o.text, "[%d %s %d %d%s]", r.GetIndex(), r.GetPath(), r.GetOffset(), len(r.GetData()), r.GetMissing())
	return nil
}

// plainFiles are files whose content is in their description, or as many zeros.
type plainFiles struct{ Files }

func (plainFiles) ReadFile(f transfer.File, offset int64) ([]byte, bool, error) {
	rest := append(f.Inline, make([]byte, f.Size-int64(len(f.Inline)))...)[offset:]
	piece := rest[:min(len(rest), 50_000)]
	return piece, len(piece) == len(rest), nil
}

func TestGetTaskOutput(t *testing.T) {
	s, m := serveBags(t)
	id := submitBag(t, s, func(b *kithv1.Bag) { b.Indices = "100-119" })
	m.left = map[uint32][]transfer.File{
		0: {{Path: "stdout", Inline: []byte("zero")}},
		7: {{Path: "out/x"}, {Path: "stderr", Size: 60_000, Chunks: make([]blobstore.Sum, 1)}, {Path: "stdout", Inline: []byte("seven")}},
	}
	m.run(t, id, "beta", 18, tenth)
	s.Files = plainFiles{}
	lost := "some of its output is lost: the task removed it, or it could not be kept at site beta or brought home"
	for name, c := range map[string]struct {
		r    *kithv1.GetTaskOutputRequest
		want string
		err  string
	}{
		"one":            {&kithv1.GetTaskOutputRequest{Indices: "100"}, "[100 stdout 0 4]", ""},
		"one, empty":     {&kithv1.GetTaskOutputRequest{Indices: "117"}, "[117 stdout 0 0]", ""},
		"one, long":      {&kithv1.GetTaskOutputRequest{Indices: "107", Path: "stderr"}, "[107 stderr 0 32768][107 stderr 32768 17232][107 stderr 50000 10000]", ""},
		"one, all":       {&kithv1.GetTaskOutputRequest{Indices: "107", AllFiles: true}, "[107 out/x 0 0][107 stderr 0 32768][107 stderr 32768 17232][107 stderr 50000 10000][107 stdout 0 5]", ""},
		"one without it": {&kithv1.GetTaskOutputRequest{Indices: "101", Path: "out/x"}, "", "OUTPUT_NOT_FOUND"},
		"one that waits": {&kithv1.GetTaskOutputRequest{Indices: "119"}, "", "OUTPUT_NOT_FOUND"},
		"one, lost":      {&kithv1.GetTaskOutputRequest{Indices: "103"}, "[103 stdout 0 0task " + id.String() + "_103 left no stdout, and " + lost + "]", ""},
		"one, all, lost": {&kithv1.GetTaskOutputRequest{Indices: "103", AllFiles: true}, "[103  0 0task " + id.String() + "_103: " + lost + "]", ""},
		"one, path lost": {&kithv1.GetTaskOutputRequest{Indices: "103", Path: "out/x"}, "", "OUTPUT_NOT_FOUND"},
		"those that failed": {&kithv1.GetTaskOutputRequest{States: []kithv1.Task_State{kithv1.Task_STATE_FAILED}},
			"[107 stdout 0 5][117 stdout 0 0]", ""},
		"some, with gaps": {&kithv1.GetTaskOutputRequest{Indices: "107-108,118", Path: "out/x"},
			"[107 out/x 0 0][108 out/x 0 0task " + id.String() + `_108, "out/x": job has no such output]` +
				"[118 out/x 0 0task " + id.String() + "_118 has not ended, its output comes then: job has no such output]", ""},
	} {
		c.r.BagId = id.String()
		o := &taskOutputStream{ctx: t.Context()}
		err := s.GetTaskOutput(c.r, o)
		if c.err != "" {
			if w := onWire(t, err); w.reason != c.err {
				t.Errorf("%s: %+v, want %s", name, w, c.err)
			}
			continue
		}
		if err != nil || o.text.String() != c.want {
			t.Errorf("%s: %s, %v\nwant %s", name, o.text.String(), err, c.want)
		}
	}
}
