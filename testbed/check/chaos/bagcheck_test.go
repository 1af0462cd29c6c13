package chaos

import (
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
	"kith/store/boltstore"
	"kith/testbed/local"
)

// goodBag is a bag of one task that went well, as all sites tell it.
type goodBag struct {
	ledger string
	bag    *bag
	now    *kithv1.Bag
	tasks  []*kithv1.Task
	stdout string
	err    error // of reading outputs
	lost   map[string]int
	idle   map[job.ID]bool
	full   []window
	cut    []severed
}

func newGoodBag() *goodBag {
	st := &kithv1.BagStatus{
		State: kithv1.BagStatus_STATE_COMPLETED, SubmitTime: timestamppb.New(began), EndTime: timestamppb.New(began.Add(2 * time.Second)),
		Tasks: &kithv1.TaskCounts{Total: 1, Completed: 1},
	}
	return &goodBag{
		ledger: "start a.1.7_5 a.0.3#1 b\nend a.1.7_5 a.0.3#1 b\n", stdout: "done a.1.7_5\n", now: &kithv1.Bag{Id: "a.1.7", Status: st},
		tasks: []*kithv1.Task{{Index: 5, State: kithv1.Task_STATE_COMPLETED, Ending: kithv1.Task_ENDING_SUCCESS, SiteId: "b", RunCount: 1}},
		bag:   &bag{id: "a.1.7", tasks: 1, ended: proto.CloneOf(st), bag: &kithv1.Bag{Job: &kithv1.Job{OnSiteLost: kithv1.Job_ON_SITE_LOST_RERUN}}},
	}
}

// fail makes it a bag whose task failed at so many runs.
func (g *goodBag) fail(ending kithv1.Task_Ending, code, runs int32) {
	g.tasks[0].State, g.tasks[0].Ending, g.tasks[0].ExitCode, g.tasks[0].RunCount = kithv1.Task_STATE_FAILED, ending, code, runs
}

func (g *goodBag) check(t *testing.T) *Result {
	t.Helper()
	stories, err := readTaskLedger(strings.NewReader(g.ledger))
	if err != nil {
		t.Fatal(err)
	}
	c := &bagChecker{stories: stories, checker: &checker{
		result: &Result{}, killed: map[int]bool{4: true}, lost: g.lost, full: g.full, diskSite: "b", unguarded: g.idle, severed: g.cut,
	}}
	c.check(g.bag, g.now, g.tasks, func(int32, string) (string, error) { return g.stdout, g.err })
	return c.result
}

// Whatever is changed in the story of a bag that went well, the checker says so, and in
// the right number.
func TestBagCheckerFinds(t *testing.T) {
	again := "start a.1.7_5 c.0.1#1 c\nend a.1.7_5 c.0.1#1 c\n"
	wait := func(g *goodBag) { g.bag.bag.Job.OnSiteLost = kithv1.Job_ON_SITE_LOST_WAIT }
	all := Bags{Acknowledged: 1, Tasks: 1, Completed: 1, Runs: 1, OutputsRead: 1}
	twice, ran := all, Bags{Acknowledged: 1, Tasks: 1, Runs: 1}
	twice.Runs, twice.RanAgain = 2, 1
	with := func(b Bags, change func(*Bags)) Bags {
		change(&b)
		return b
	}
	for name, c := range map[string]struct {
		change func(*goodBag)
		want   Result
	}{
		"nothing":        {func(*goodBag) {}, Result{Bags: all}},
		"never answered": {func(g *goodBag) { g.bag.id = "" }, Result{OtherProblems: 1}},
		"unknown at its origin": {
			func(g *goodBag) { g.now, g.tasks = nil, nil }, Result{LostTasks: 2, Bags: ran},
		},
		"not ended":             {func(g *goodBag) { g.now.Status.State = kithv1.BagStatus_STATE_OPEN }, Result{LostTasks: 1, Bags: ran}},
		"a task is not listed":  {func(g *goodBag) { g.tasks = nil }, Result{LostTasks: 1, Bags: ran}},
		"a task has not ended":  {func(g *goodBag) { g.tasks[0].State = kithv1.Task_STATE_AT_SITE }, Result{LostTasks: 1, Bags: ran}},
		"another end than once": {func(g *goodBag) { g.bag.ended.Tasks.Completed = 0 }, Result{ChangedOutcomes: 1, Bags: all}},
		"a site still has some": {func(g *goodBag) { g.now.Status.Tasks.AtSite = 1 }, Result{StrayCopies: 1, Bags: all}},
		"completed without a start": {
			func(g *goodBag) { g.ledger = "" }, Result{LostTasks: 1, Bags: with(ran, func(b *Bags) { b.Runs = 0 })},
		},
		"completed without an end": {func(g *goodBag) { g.ledger = "start a.1.7_5 a.0.3#1 b\n" }, Result{LostTasks: 1, Bags: ran}},
		"completed elsewhere":      {func(g *goodBag) { g.tasks[0].SiteId = "c" }, Result{LostTasks: 1, Bags: ran}},
		"a run started twice":      {func(g *goodBag) { g.ledger += "start a.1.7_5 a.0.3#1 b\n" }, Result{DoubleStarts: 1, Bags: all}},
		"ran twice under wait": {
			func(g *goodBag) { wait(g); g.ledger += again }, Result{DoubleStarts: 1, Bags: twice},
		},
		"ran twice, and the origin knows of once": {func(g *goodBag) { g.ledger += again }, Result{DoubleStarts: 1, Bags: twice}},
		"ran twice, of which one was lost": {
			func(g *goodBag) { g.ledger += again; g.tasks[0].RunCount = 2 }, Result{Bags: twice},
		},
		"ran twice, of which one was in vain": {
			func(g *goodBag) { g.ledger += again; g.now.Status.WastedRunCount = 1 }, Result{Bags: twice},
		},
		"could not take the lock": {
			func(g *goodBag) { g.ledger += "overlap a.1.7_5 a.0.3#1 b\n" }, Result{Overlaps: 1, Bags: all},
		},
		"could not take the lock, with a frozen shim": {
			func(g *goodBag) {
				g.ledger += "overlap a.1.7_5 a.0.3#1 b\n"
				g.idle = map[job.ID]bool{{Origin: "a", Seq: 3}: true}
			}, Result{Unguarded: 1, Bags: all},
		},
		"ended after another began": {
			func(g *goodBag) {
				g.ledger = "start a.1.7_5 a.0.3#1 b\nstart a.1.7_5 a.0.3#1 c\nend a.1.7_5 a.0.3#1 b\n"
				g.tasks[0].RunCount = 2
			}, Result{Overlaps: 1, Bags: twice},
		},
		"failed, not as meant": {func(g *goodBag) { g.fail(kithv1.Task_ENDING_FAILURE, 1, 1) }, Result{OtherProblems: 1, Bags: ran}},
		"failed on a full disk": {
			func(g *goodBag) {
				g.fail(kithv1.Task_ENDING_FAILURE, 1, 1)
				g.full = []window{{began, began.Add(time.Second)}}
			}, Result{Bags: with(ran, func(b *Bags) { b.SpoiltByDisk = 1 })},
		},
		"completed, and was to fail": {func(g *goodBag) { g.bag.fails = 4 }, Result{OtherProblems: 1, Bags: ran}},
		"failed as meant": {
			func(g *goodBag) { g.bag.fails = 4; g.fail(kithv1.Task_ENDING_FAILURE, failingCode, 1) },
			Result{Bags: with(ran, func(b *Bags) { b.Failed = 1 })},
		},
		"ran out of time":                      {func(g *goodBag) { g.fail(kithv1.Task_ENDING_TIMEOUT, 0, 1) }, Result{OtherProblems: 1, Bags: ran}},
		"cancelled by nobody":                  {func(g *goodBag) { g.tasks[0].State = kithv1.Task_STATE_CANCELLED }, Result{OtherProblems: 1, Bags: with(ran, func(b *Bags) { b.Cancelled = 1 })}},
		"cancelled by its user":                {func(g *goodBag) { g.tasks[0].State, g.bag.act = kithv1.Task_STATE_CANCELLED, cancelTasks }, Result{Bags: with(ran, func(b *Bags) { b.Cancelled = 1 })}},
		"lost, and nothing explains it":        {func(g *goodBag) { wait(g); g.fail(kithv1.Task_ENDING_LOSS, 0, 1) }, Result{LostTasks: 1, Bags: ran}},
		"lost with its shim, but not to be so": {func(g *goodBag) { g.lost = map[string]int{"a.0.3#1": 4}; g.fail(kithv1.Task_ENDING_LOSS, 0, 1) }, Result{LostTasks: 1, Bags: ran}},
		"lost with another one's shim": {
			func(g *goodBag) {
				wait(g)
				g.lost = map[string]int{"a.0.3#2": 4}
				g.fail(kithv1.Task_ENDING_LOSS, 0, 1)
			},
			Result{LostTasks: 1, Bags: ran},
		},
		"lost with its shim under wait": {
			func(g *goodBag) {
				wait(g)
				g.lost = map[string]int{"a.0.3#1": 4}
				g.fail(kithv1.Task_ENDING_LOSS, 0, 1)
			},
			Result{Bags: with(ran, func(b *Bags) { b.LostWithShim = 1 })},
		},
		"other output": {func(g *goodBag) { g.stdout = "" }, Result{DamagedOutputs: 1, Bags: with(all, func(b *Bags) { b.OutputsRead = 0 })}},
		"no output":    {func(g *goodBag) { g.err = errors.New("gone") }, Result{DamagedOutputs: 1, Bags: with(all, func(b *Bags) { b.OutputsRead = 0 })}},
		"no output from a site that was not trusted": {
			func(g *goodBag) { g.err, g.cut = errors.New("gone"), cutAt(time.Second) },
			Result{Bags: with(all, func(b *Bags) { b.OutputsRead, b.LostWithTrust = 0, 1 })},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGoodBag()
			c.change(g)
			got := g.check(t)
			said := got.Problems
			if got.Problems = nil; !reflect.DeepEqual(*got, c.want) {
				t.Errorf("found %+v, expected %+v; it says %q", *got, c.want, said)
			}
			if (len(said) == 0) != got.Sound() {
				t.Errorf("sound: %v, and it says %q", got.Sound(), said)
			}
		})
	}
}

// A ledger with a line that no task writes is not read.
func TestTaskLedgerRefuses(t *testing.T) {
	for _, text := range []string{"start a.1.7_5 a.0.3#1", "begin a.1.7_5 a.0.3#1 b", "start a.1.7 a.0.3#1 b", "start a.1.7_5 a.0.3 b"} {
		if _, err := readTaskLedger(strings.NewReader(text + "\n")); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

// A bundle that a site has on disk after its end is seen.
func TestHeldBundles(t *testing.T) {
	s := emptySite(t)
	b, err := boltstore.Open(filepath.Join(s.Config.Data, boltstore.FileName), job.SiteID(s.Name))
	if err != nil {
		t.Fatal(err)
	}
	state, err := b.Load()
	if err != nil {
		t.Fatal(err)
	}
	bundle := job.AttemptID{Job: job.ID{Origin: "b", Generation: 1, Seq: 2}, Number: 3}
	if err := state.Apply(store.AcceptBundle{Bundle: bundle, Tasks: job.TaskRange(1, 4)}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(b.Seal(state).Commit(), b.Close()); err != nil {
		t.Fatal(err)
	}
	left, err := heldBundles(s)
	if err != nil || len(left) != 1 || !strings.Contains(left[0], bundle.String()) {
		t.Errorf("left: %q, error %v", left, err)
	}
}

// emptySite is a site that is down and has an empty data folder.
func emptySite(t *testing.T) *site {
	s := &site{Node: &local.Node{Name: "a"}}
	s.Config.Data = t.TempDir()
	return s
}
