package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"kith/cluster/wire"
	"kith/internal/job"
	"kith/meta"
	"kith/meta/tasks"
	"kith/meta/transfer"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
	"kith/store/blobstore"
)

var (
	foreignBundle = job.AttemptID{Job: job.ID{Origin: "alpha", Generation: 7, Seq: 3}, Number: 5}
	ownBundle     = job.AttemptID{Job: job.ID{Origin: "beta", Generation: 7, Seq: 3}, Number: 5}
)

// runOf is the name of the run of a task.
func runOf(bundle job.AttemptID, task uint32) job.AttemptID {
	h := store.HeldBundle{ID: bundle, Run: 1 << 40}
	return h.RunID(task)
}

func launchOf(bundle job.AttemptID, task uint32) meta.Launch {
	return meta.Launch{Attempt: runOf(bundle, task), Request: request, Task: &meta.TaskRun{Bundle: bundle, Ordinal: task}}
}

// bagPayload is a bag of the tasks 10, 12, … 20, which run a script.
func bagPayload(t *testing.T, script string, inputs transfer.Set) []byte {
	t.Helper()
	p := &kithv1.BagPayload{
		Template: &kithv1.Job{
			Command: []string{"/bin/sh", "-c", script, "sh", "{{x}}"}, Processors: 1, Walltime: durationpb.New(time.Minute),
			Environment: map[string]string{"MINE": "<{{y}}>"}, Outputs: []*kithv1.OutputFile{{Path: "out-{{index}}"}},
		},
		Inputs: inputs.Proto(), Indices: "10-20:2", Parameters: &kithv1.BagPayload_Matrix{Matrix: "x=1..3,y=p,q"},
	}
	raw, err := proto.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// heldPayload is what a host is given of that bag with the tasks 2 to 4.
func heldPayload(t *testing.T, raw []byte) []byte {
	t.Helper()
	bag, err := tasks.Parse(raw, nil)
	if err != nil {
		t.Fatal(err)
	}
	set := job.TaskRange(2, 5)
	held, err := bag.Bundle(&set)
	if err != nil {
		t.Fatal(err)
	}
	return held
}

// bagStore is a store with the payload of a bag of this site, and of a bundle of another.
type bagStore struct {
	payloads
	held []byte
}

func (b bagStore) HeldPayload(bundle job.AttemptID) ([]byte, error) {
	if bundle != foreignBundle {
		return nil, store.ErrUnknown
	}
	return b.held, nil
}

// taskStaging is beta with a bag of its own and a bundle of alpha that run the same.
func taskStaging(t *testing.T, script string, inputs transfer.Set) *staging {
	t.Helper()
	s := newStaging(t)
	raw := bagPayload(t, script, inputs)
	s.files.cfg.Backend = bagStore{payloads{raw: raw}, heldPayload(t, raw)}
	return s
}

func fileOf(t *testing.T, o job.Outcome, path string) string {
	t.Helper()
	set, err := transfer.Decode(o.Files)
	if err != nil {
		t.Fatal(err)
	}
	f, _ := set.Find(path)
	return string(f.Inline)
}

// A task runs as an attempt does, with its values in its texts and its environment, be it
// of this site's bag or of a bundle of another.
func TestTasksRun(t *testing.T) {
	t.Parallel()
	const script = `echo "$1 $MINE $KITH_TASK_INDEX $KITH_PARAM_X $KITH_PARAM_Y $KITH_BAG_ID $KITH_JOB_ID $SLURM_JOB_ID $SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_ID` +
		` $SLURM_ARRAY_TASK_COUNT $SLURM_ARRAY_TASK_MIN $SLURM_ARRAY_TASK_MAX $SLURM_ARRAY_TASK_STEP"; echo left > out-16; echo x > out-18`
	for _, bundle := range []job.AttemptID{ownBundle, foreignBundle} {
		s := taskStaging(t, script, transfer.Set{})
		s.Launch(launchOf(bundle, 3))
		o := s.outcome()
		bag := bundle.Job.String()
		want := fmt.Sprintf("2 <q> 16 2 q %s %s_16 %s_16 %s 16 6 10 20 2\n", bag, bag, bag, bag)
		if got := fileOf(t, o, "stdout"); o.Kind != job.Success || got != want {
			t.Errorf("%v: %+v\n%q, want\n%q", bundle, o, got, want)
		}
		set, err := transfer.Decode(o.Files)
		if err != nil || len(set.Files) != 2 || fileOf(t, o, "out-16") != "left\n" {
			t.Errorf("%v left %+v, %v", bundle, set, err)
		}
		s.Clear(runOf(bundle, 3))
	}
}

// A task that writes nothing leaves nothing, and one that cannot be run says why.
func TestTasksThatLeaveNothing(t *testing.T) {
	t.Parallel()
	s := taskStaging(t, "exit 3", transfer.Set{})
	raw := bagPayload(t, "exit $1", transfer.Set{})
	var p kithv1.BagPayload
	if err := proto.Unmarshal(raw, &p); err != nil {
		t.Fatal(err)
	}
	p.Template.Outputs = nil
	raw, err := proto.Marshal(&p)
	if err != nil {
		t.Fatal(err)
	}
	s.files.cfg.Backend = bagStore{payloads{raw: raw}, heldPayload(t, raw)}
	s.Launch(launchOf(foreignBundle, 4))
	if o := s.outcome(); o.Kind != job.Failure || o.ExitCode != 3 || o.Files != nil {
		t.Errorf("%+v", o)
	}
	for name, launch := range map[string]meta.Launch{
		"of another bundle": launchOf(foreignBundle, 1),
		"without a payload": launchOf(job.AttemptID{Job: foreignBundle.Job, Number: 9}, 1),
		"of another width": {
			Attempt: runOf(foreignBundle, 2), Request: job.Request{Processors: 2, Walltime: time.Minute}, Task: &meta.TaskRun{Bundle: foreignBundle, Ordinal: 2},
		},
	} {
		s.Launch(launch)
		if o := s.outcome(); o.Kind != job.Failure || o.Start != 0 || !strings.Contains(o.Reason, "not started") {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

// The last line that a failed task wrote to stderr comes with its end, whatever it put in the
// place of the file; of one that succeeded nothing is read.
func TestLastLineOfStderr(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		`printf 'first\n\033[31mno such file\033[0m\n\n' >&2; exit 3`: "no such file",
		// What a shell says of a script is the same for each task.
		`echo "$KITH_WORK_DIR/run.sh: 2: $KITH_WORK_DIR/in: no such file" >&2; echo >&2; exit 3`: "run.sh: 2: in: no such file",
		`echo well >&2`:  "",
		`exit 3`:         "",
		`echo x; exit 3`: "",
		`f=$(readlink /proc/self/fd/2); rm "$f" && mkfifo "$f"; exit 3`:    "",
		`f=$(readlink /proc/self/fd/2); ln -sf /etc/passwd "$f" && exit 3`: "",
		`head -c 5000 /dev/zero | tr '\0' x >&2; exit 3`:                   strings.Repeat("x", job.MaxErrorLine-3) + "…",
	} {
		s := taskStaging(t, script, transfer.Set{})
		s.Launch(launchOf(foreignBundle, 3))
		if o := s.outcome(); o.ErrorLine != want {
			t.Errorf("%s: %q, want %q", script, o.ErrorLine, want)
		}
		s.Clear(runOf(foreignBundle, 3))
	}
}

// That an output of a task could not be taken comes with its end, as its notes do not; that it
// left none does not. With outputs that must be there it failed, and says why.
func TestOutputsOfTasksThatCannotBeTaken(t *testing.T) {
	t.Parallel()
	for script, c := range map[string]struct {
		lost bool
		line string
	}{
		"mkfifo out-16; echo x": {true, "a pipe"},
		"mkfifo out-16":         {true, "a pipe"},
		"mkfifo other; echo x":  {false, "not found"},
		"echo x > out-16":       {false, ""},
		`f=$(readlink /proc/self/fd/2); rm "$f" && mkfifo "$f"; echo x > out-16`: {true, ""},
	} {
		for _, require := range []bool{false, true} {
			s := taskStaging(t, script, transfer.Set{})
			var p kithv1.BagPayload
			if err := proto.Unmarshal(bagPayload(t, script, transfer.Set{}), &p); err != nil {
				t.Fatal(err)
			}
			p.Template.RequireOutputs = require
			raw, err := proto.Marshal(&p)
			if err != nil {
				t.Fatal(err)
			}
			s.files.cfg.Backend = bagStore{payloads{raw: raw}, heldPayload(t, raw)}
			s.Launch(launchOf(foreignBundle, 3))
			o := s.outcome()
			if fails := require && c.line != ""; o.FilesLost != c.lost || (o.Kind == job.Failure) != fails || (o.ErrorLine != "") != fails || fails && !strings.Contains(o.ErrorLine, c.line) {
				t.Errorf("%s, require %v: %+v", script, require, o)
			}
			s.Clear(runOf(foreignBundle, 3))
		}
	}
}

// askedAs notes by which names files are asked for.
type askedAs struct {
	*staging
	mu    sync.Mutex
	names []job.AttemptID
}

func (a *askedAs) ReadFile(ctx context.Context, site job.SiteID, r *kithv1.FileRequest) (*kithv1.FileReply, error) {
	name, err := wire.AttemptID(r.GetAttempt())
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	a.names = append(a.names, name)
	a.mu.Unlock()
	return a.staging.ReadFile(ctx, site, r)
}

// Inputs of a bag are brought once for all tasks, by the name of the bundle, and each task
// has them in its folder. Those that cannot be had give the task back.
func TestTasksHaveInputs(t *testing.T) {
	t.Parallel()
	chunk := make([]byte, 5000)
	inputs := transfer.Set{Files: []transfer.File{{Path: "in", Size: 5000, Chunks: []blobstore.Sum{blobstore.SumOf(chunk)}}}}
	s := taskStaging(t, "test $(wc -c <in) = 5000 && rm in", inputs)
	asked := &askedAs{staging: s}
	s.cfg.Peers = asked
	s.cut(true)
	s.Launch(launchOf(foreignBundle, 2))
	if ev := s.heard(); ev != (meta.AttemptMissing{Attempt: runOf(foreignBundle, 2)}) {
		t.Errorf("%+v while its inputs cannot be had", ev)
	}
	s.cut(false)
	for task := uint32(2); task < 5; task++ {
		s.Launch(launchOf(foreignBundle, task))
		if o := s.outcome(); o.Kind != job.Success {
			t.Errorf("task %d: %+v", task, o)
		}
		s.Clear(runOf(foreignBundle, task))
	}
	if len(asked.names) != 1 || asked.names[0] != foreignBundle {
		t.Errorf("asked as %v", asked.names)
	}
	s.Runner.mu.Lock()
	defer s.Runner.mu.Unlock()
	if len(s.brings) > 0 {
		t.Errorf("%d are still being brought", len(s.brings))
	}
}

// After a restart a task of which there is no sign has not begun; it may be launched again.
// One that runs is found by its name.
func TestTasksAreAdopted(t *testing.T) {
	t.Parallel()
	s := taskStaging(t, "sleep 1; echo once", transfer.Set{})
	adopt := func(bundle job.AttemptID, task uint32) meta.Adopt {
		return meta.Adopt{Attempt: runOf(bundle, task), Request: request, Task: &meta.TaskRun{Bundle: bundle, Ordinal: task}, BootID: s.BootID()}
	}
	for _, bundle := range []job.AttemptID{ownBundle, foreignBundle} {
		s.Adopt(adopt(bundle, 2))
		if ev := s.heard(); ev != (meta.AttemptMissing{Attempt: runOf(bundle, 2)}) {
			t.Errorf("%v: %+v of a task that never began", bundle, ev)
		}
		s.Launch(launchOf(bundle, 2))
		if o := s.outcome(); o.Kind != job.Success || fileOf(t, o, "stdout") != "once\n" {
			t.Errorf("%v: %+v", bundle, o)
		}
		// As the next daemon would, which knows nothing.
		s.Runner.mu.Lock()
		clear(s.byID)
		s.Runner.mu.Unlock()
		if left, err := s.find(&run{attempt: runOf(bundle, 2), files: s.system.Files(runOf(bundle, 2)), task: launchOf(bundle, 2).Task}); err != nil || !left.ready || left.payload == nil {
			t.Errorf("%v: found %+v, %v", bundle, left, err)
		}
		folders, err := s.system.Folders()
		if err != nil || !slices.Contains(folders, runOf(bundle, 2)) {
			t.Errorf("%v is not among the folders %v, %v", runOf(bundle, 2), folders, err)
		}
		s.system.Forget(runOf(bundle, 2))
	}
}

// What another site says that tasks left is taken as far as they declare it.
func TestCheckTaskResults(t *testing.T) {
	t.Parallel()
	raw := bagPayload(t, "true", transfer.Set{})
	backend := &payloads{raw: raw}
	refusals := 0
	f, err := OpenFiles(FilesConfig{
		Site: "alpha", Dir: t.TempDir(), MaxFileBytes: 1 << 20, Backend: backend, Log: slog.New(slog.DiscardHandler), Refused: func(Refusal) { refusals++ },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	set := func(paths ...string) []byte {
		var s transfer.Set
		for _, p := range paths {
			s.Files = append(s.Files, transfer.File{Path: p, Size: 1, Inline: []byte("x")})
		}
		b, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	future := job.Instant(time.Now()) + job.Time(48*time.Hour)
	results := func() meta.TaskResults {
		return meta.TaskResults{Bundle: foreignBundle, Batch: 1, Results: []job.TaskResult{{Ordinal: 0, Kind: job.Success, Start: future}, {Ordinal: 3, Kind: job.Success}}, Files: []store.TaskFiles{
			{Ordinal: 0, Set: set("out-10", "stderr", "stdout")},
			{Ordinal: 1, Set: set("out-12", "out-14", "stdout")},
			{Ordinal: 2, Set: set("etc/passwd")},
			{Ordinal: 3, Set: []byte{0xff}},
			{Ordinal: 77, Set: set("stdout")},
		}}
	}
	m, err := f.CheckTaskResults("beta", results())
	if err != nil || len(m.Files) != 2 || !bytes.Equal(m.Files[0].Set, set("out-10", "stderr", "stdout")) || !bytes.Equal(m.Files[1].Set, set("out-12", "stdout")) {
		t.Errorf("%+v, %v", m.Files, err)
	}
	if m.Results[0].FilesLost || !m.Results[1].FilesLost {
		t.Errorf("the output of the task whose list is not valid is lost, and no other: %+v", m.Results)
	}
	if m.Results[0].Start >= future || refusals != 4 {
		t.Errorf("a start in two days stays %v, %d refusals", m.Results[0].Start, refusals)
	}
	f.bags = tasks.Cache{}
	backend.err = store.ErrUnknown
	if m, err := f.CheckTaskResults("beta", results()); err != nil || len(m.Files) > 0 || len(m.Results) != 2 {
		t.Errorf("of a bag that is gone: %+v, %v", m, err)
	}
	backend.err = errors.New("the disk")
	if _, err := f.CheckTaskResults("beta", results()); err == nil {
		t.Error("they are taken although the bag cannot be read")
	}
}

// What tasks left comes home with one answer for the batch; what is nowhere is told of and
// keeps nothing else away.
func TestFetchTasks(t *testing.T) {
	t.Parallel()
	s := newStaging(t)
	asked := &askedAs{staging: s}
	s.cfg.Peers = asked
	posted := make(chan meta.Event, 8)
	s.cfg.Post = func(ev meta.Event) { posted <- ev }
	set, err := transfer.Set{Files: []transfer.File{{Path: "stdout", Size: 5000, Chunks: []blobstore.Sum{blobstore.SumOf(s.chunk)}}}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	inline, err := transfer.Set{Files: []transfer.File{{Path: "stdout", Size: 1, Inline: []byte("x")}}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	fetch := meta.FetchTasks{Bundle: ownBundle, Batch: 3, From: "alpha", Run: 1 << 40, Files: []store.TaskFiles{{Ordinal: 1, Set: inline}, {Ordinal: 2, Set: set}}}
	s.FetchTasks(fetch)
	home := meta.TasksHome{Bundle: ownBundle, Batch: 3}
	if ev := <-posted; !reflect.DeepEqual(ev, home) {
		t.Errorf("%+v", ev)
	}
	if len(asked.names) != 1 || asked.names[0] != runOf(ownBundle, 2) {
		t.Errorf("asked as %v", asked.names)
	}
	if _, err := s.files.blobs.Get(blobstore.SumOf(s.chunk)); err != nil {
		t.Errorf("it is not here: %v", err)
	}
	fetch.From = "beta"
	s.FetchTasks(fetch)
	if ev := s.heard(); !reflect.DeepEqual(ev, home) {
		t.Errorf("of this site: %+v", ev)
	}

	lost := newStaging(t)
	lost.cfg.Post = s.cfg.Post
	lost.fails(transfer.ErrNotFound)
	fetch.From = "alpha"
	fetch.Files = append(fetch.Files, store.TaskFiles{Ordinal: 4, Set: []byte{0xff}})
	lost.FetchTasks(fetch)
	ev := (<-posted).(meta.TasksHome)
	if slices.Sort(ev.Lost); ev.Batch != 3 || !slices.Equal(ev.Lost, []uint32{2, 4}) {
		t.Errorf("%+v", ev)
	}
	lost.cut(true)
	fetch.Files = fetch.Files[:2]
	lost.FetchTasks(fetch)
	lost.wg.Wait()
	if len(posted) > 0 || len(lost.batches.all) > 0 {
		t.Error("a site out of reach is an answer")
	}
}
