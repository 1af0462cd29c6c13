package daemon

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	kithv1 "kith/proto/gen/kith/v1"
)

func (s *testSite) submitBag(b *kithv1.Bag) string {
	s.t.Helper()
	r, err := s.bags.SubmitBag(s.ctx(), &kithv1.SubmitBagRequest{Bag: b})
	if err != nil {
		s.t.Fatalf("submit: %v", err)
	}
	return r.GetBagId()
}

func (s *testSite) bag(id string) *kithv1.BagStatus {
	s.t.Helper()
	r, err := s.bags.GetBag(s.ctx(), &kithv1.GetBagRequest{BagId: id})
	if err != nil {
		s.t.Fatalf("get %s: %v", id, err)
	}
	return r.GetBag().GetStatus()
}

// endsBag waits until a bag has ended as completed.
func (s *testSite) endsBag(id string) {
	s.t.Helper()
	s.eventually("the bag ends", func() bool {
		st := s.bag(id)
		switch st.GetState() {
		case kithv1.BagStatus_STATE_COMPLETED:
			return true
		case kithv1.BagStatus_STATE_FAILED, kithv1.BagStatus_STATE_CANCELLED:
			s.t.Fatalf("%v", st)
		}
		return false
	})
}

// taskOutput returns what each task of a bag left in a file, by the tasks' indices.
func (s *testSite) taskOutput(id, path string) map[int32]string {
	s.t.Helper()
	stream, err := s.bags.GetTaskOutput(s.ctx(), &kithv1.GetTaskOutputRequest{BagId: id, Path: path})
	if err != nil {
		s.t.Fatal(err)
	}
	all := make(map[int32]string)
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			s.t.Fatal(err)
		}
		if r.GetMissing() != "" {
			s.t.Errorf("task %d: %s", r.GetIndex(), r.GetMissing())
		}
		all[r.GetIndex()] += string(r.GetData())
	}
}

// tasksAt returns how many tasks of a bag each site has run.
func (s *testSite) tasksAt(id string) map[string]int {
	s.t.Helper()
	r, err := s.bags.ListTasks(s.ctx(), &kithv1.ListTasksRequest{BagId: id})
	if err != nil {
		s.t.Fatal(err)
	}
	at := make(map[string]int)
	for _, task := range r.GetTasks() {
		at[task.GetSiteId()]++
	}
	return at
}

// onceEach fails if not each of n indices stands once in a file to which tasks wrote them.
func onceEach(t *testing.T, path string, n int) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range n {
		want = append(want, fmt.Sprintf("%03d", i))
	}
	ran := strings.Fields(string(raw))
	slices.Sort(ran)
	if !slices.Equal(ran, want) {
		t.Errorf("these ran: %v", ran)
	}
}

// noting is a bag of n tasks of which each notes its index in a file and then runs a text.
func noting(ran, text string, n int) *kithv1.Bag {
	return &kithv1.Bag{
		Job: &kithv1.Job{
			Command:    []string{"/bin/sh", "-c", `printf "%03d\n" $KITH_TASK_INDEX >> ` + ran + "; " + text, "sh", "{{x}}"},
			Processors: 1, Walltime: durationpb.New(time.Minute),
		},
		Parameters: &kithv1.Bag_Matrix{Matrix: fmt.Sprintf("x=1000..%d", 1000+n-1)},
	}
}

// runFolders are the folders of runs of tasks.
const runFolders = "*.0.*"

// A bag runs at one site and at two: each task once, and what it left is at its origin.
func TestBagsRun(t *testing.T) {
	t.Parallel()
	for _, names := range [][]string{{"alpha"}, {"alpha", "beta"}} {
		t.Run(strings.Join(names, " "), func(t *testing.T) {
			t.Parallel()
			sites := federation(t, nil, names...)
			ran := filepath.Join(t.TempDir(), "ran")
			b := noting(ran, `echo "$1"; head -c 5000 /dev/zero > big; echo "of $1" > out-$1; echo $KITH_SITE >&2; sleep 0.2`, 20)
			b.Job.Outputs = []*kithv1.OutputFile{{Path: "out-{{x}}"}, {Path: "big"}}
			b.Job.Inputs = []*kithv1.InputFile{{Path: "in", Content: &kithv1.InputFile_Data{Data: make([]byte, 10_000)}}}
			b.Job.Command[2] += "; test $(wc -c < in) = 10000"
			s := sites[0]
			id := s.submitBag(b)
			s.endsBag(id)
			onceEach(t, ran, 20)
			out, at := s.taskOutput(id, ""), s.tasksAt(id)
			for i := range int32(20) {
				if out[i] != fmt.Sprintf("%d\n", 1000+i) {
					t.Errorf("task %d wrote %q", i, out[i])
				}
			}
			for i, text := range s.taskOutput(id, "big") {
				if len(text) != 5000 {
					t.Errorf("task %d left %d bytes", i, len(text))
				}
			}
			if got := slices.Sorted(maps.Keys(at)); !slices.Equal(got, names) {
				t.Errorf("tasks ran at %v", at)
			}
			st := s.bag(id)
			if st.GetRunCount() != 20 || st.GetTasks().GetCompleted() != 20 {
				t.Errorf("%v", st)
			}
			for _, s := range sites {
				s.eventually("nothing is left of the runs", func() bool {
					left, err := filepath.Glob(filepath.Join(s.cfg.Data, "attempts", runFolders))
					return err == nil && len(left) == 0
				})
			}
		})
	}
}

// A host and then the origin stop in the middle of a bag and come back. Each task runs once.
func TestBagSurvivesRestarts(t *testing.T) {
	t.Parallel()
	sites := federation(t, nil, "alpha", "beta")
	alpha, beta := sites[0], sites[1]
	ran := filepath.Join(t.TempDir(), "ran")
	const n = 60
	id := alpha.submitBag(noting(ran, `head -c 5000 /dev/zero; sleep 0.2`, n))
	after := func(tasks int) {
		t.Helper()
		alpha.eventually("tasks have run", func() bool {
			raw, err := os.ReadFile(ran)
			return err == nil && strings.Count(string(raw), "\n") > tasks
		})
	}
	after(8)
	beta.restart()
	after(20)
	alpha.restart()
	alpha.endsBag(id)
	onceEach(t, ran, n)
	for i, text := range alpha.taskOutput(id, "") {
		if len(text) != 5000 {
			t.Errorf("task %d wrote %d bytes", i, len(text))
		}
	}
	if at := alpha.tasksAt(id); at["alpha"] == 0 || at["beta"] == 0 {
		t.Errorf("tasks ran at %v", at)
	}
}

// A daemon is killed again and again in the middle of a bag. Each task runs once: those that
// run outlive it, those that wait wait on.
func TestBagSurvivesKills(t *testing.T) {
	t.Parallel()
	k := newKilled(t)
	ran := filepath.Join(t.TempDir(), "ran")
	const n = 40
	id := k.submitBag(noting(ran, `sleep 0.2; echo "$1"`, n))
	for kill := range 3 {
		k.eventually("tasks have run", func() bool {
			raw, err := os.ReadFile(ran)
			return err == nil && strings.Count(string(raw), "\n") > 8*(kill+1)
		})
		if left, err := filepath.Glob(filepath.Join(k.cfg.Data, "attempts", runFolders)); err != nil || len(left) == 0 {
			t.Errorf("no run has a folder %s: %v, %v", runFolders, left, err)
		}
		k.kill()
		k.run()
	}
	k.endsBag(id)
	onceEach(t, ran, n)
	for i, text := range k.taskOutput(id, "") {
		if text != fmt.Sprintf("%d\n", 1000+i) {
			t.Errorf("task %d wrote %q", i, text)
		}
	}
	if st := k.bag(id); st.GetRunCount() != n {
		t.Errorf("%d runs: %v", st.GetRunCount(), st)
	}
}

// What could not be taken of a task is told with it, here and at another site.
func TestOutputOfATaskThatIsAPipe(t *testing.T) {
	t.Parallel()
	sites := federation(t, nil, "alpha", "beta")
	release := sites[0].busy()
	task := shell("mkfifo out; echo x")
	task.Outputs = []*kithv1.OutputFile{{Path: "out"}}
	for _, host := range []string{"beta", "alpha"} {
		id := sites[0].submitBag(&kithv1.Bag{Job: task, Indices: "0"})
		sites[0].endsBag(id)
		r, err := sites[0].bags.ListTasks(sites[0].ctx(), &kithv1.ListTasksRequest{BagId: id})
		if err != nil || len(r.GetTasks()) != 1 || !r.GetTasks()[0].GetOutputLost() || host == "beta" && r.GetTasks()[0].GetSiteId() != host {
			t.Errorf("%s: %v, %v", host, r, err)
		}
		stream, err := sites[0].bags.GetTaskOutput(sites[0].ctx(), &kithv1.GetTaskOutputRequest{BagId: id, AllFiles: true})
		if err != nil {
			t.Fatal(err)
		}
		told := ""
		for err == nil {
			var p *kithv1.GetTaskOutputResponse
			p, err = stream.Recv()
			told += p.GetMissing() + string(p.GetData())
		}
		if !strings.Contains(told, "some of its output is lost") || !strings.HasSuffix(told, "x\n") {
			t.Errorf("%s: told %q, %v", host, told, err)
		}
		if host == "beta" {
			release()
		}
	}
}
