package chaos

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	kithv1 "kith/proto/gen/kith/v1"
)

var began = time.Unix(1_800_000_000, 0)

// good is a job that went well, as all sites tell it.
type good struct {
	ledger string
	job    *submitted
	now    *kithv1.Job
	stdout string
	err    error // of reading outputs
	killed map[int]bool
	lost   map[string]int
	full   []window
	disk   string
	idle   map[string][]window
	frozen map[string][]spell
	cut    []severed
}

// cutAt is that the two sites of the job did not trust each other for a second.
func cutAt(after time.Duration) []severed {
	return []severed{{window{began.Add(after), began.Add(after + time.Second)}, "b", "a", false}}
}

// gaveUpAt is that a site gave the other one up for a second.
func gaveUpAt(after time.Duration, by, other string) []severed {
	return []severed{{window{began.Add(after), began.Add(after + time.Second)}, by, other, true}}
}

func goodJob() *good {
	now := &kithv1.Job{Id: "a.1.7", Status: &kithv1.JobStatus{
		State: kithv1.JobStatus_STATE_COMPLETED, HostSiteId: "b", Attempt: 1, Outcome: &kithv1.Outcome{},
		SubmitTime: timestamppb.New(began), StartTime: timestamppb.New(began.Add(time.Second)), EndTime: timestamppb.New(began.Add(2 * time.Second)),
		ClaimEvents: []*kithv1.ClaimEvent{{Kind: kithv1.ClaimEvent_KIND_GRANTED, Attempt: 1, SiteId: "b"}},
	}}
	return &good{
		ledger: "start a.1.7#1 b\nend a.1.7#1 b\n", now: now, stdout: "done a.1.7\n",
		job:    &submitted{id: "a.1.7", ended: proto.CloneOf(now), task: &task{request: "r", policy: kithv1.Job_ON_SITE_LOST_WAIT}},
		killed: map[int]bool{}, lost: map[string]int{},
	}
}

// check lets the checker look.
func (g *good) check(t *testing.T) *Result {
	t.Helper()
	l, err := readLedger(strings.NewReader(g.ledger))
	if err != nil {
		t.Fatal(err)
	}
	in := &injector{idle: g.idle, frozen: g.frozen}
	c := &checker{
		secret: sum([]byte("secret")), result: &Result{}, ledger: l, killed: g.killed, lost: g.lost, full: g.full, diskSite: g.disk, unguarded: in.unguarded(), severed: g.cut,
	}
	c.check(g.job, g.now, func(string) (string, error) { return sum([]byte(g.stdout)), g.err })
	return c.result
}

// Whatever is changed in the story of a job that went well, the checker says
// so, and in the right number.
func TestCheckerFinds(t *testing.T) {
	const (
		completed = kithv1.JobStatus_STATE_COMPLETED
		failed    = kithv1.JobStatus_STATE_FAILED
		lost      = kithv1.JobStatus_STATE_LOST
	)
	end := func(g *good, state kithv1.JobStatus_State, code int32) {
		for _, s := range []*kithv1.JobStatus{g.now.GetStatus(), g.job.ended.GetStatus()} {
			s.State, s.Outcome.ExitCode = state, code
		}
	}
	for name, c := range map[string]struct {
		change func(*good)
		want   Result
	}{
		"nothing": {func(*good) {}, Result{Jobs: Jobs{Acknowledged: 1, Completed: 1, Attempts: 1}}},
		"never answered": {
			func(g *good) { g.job.id = "" }, Result{OtherProblems: 1},
		},
		"refused by an earlier version": {
			func(g *good) { g.job.id, g.job.refused = "", true }, Result{Jobs: Jobs{Refused: 1}},
		},
		"unknown at its origin": {
			func(g *good) { g.now, g.job.lost = nil, "gone" }, Result{LostJobs: 1, Jobs: Jobs{Acknowledged: 1, Attempts: 1}},
		},
		"not ended": {
			func(g *good) { g.now.Status.State = kithv1.JobStatus_STATE_RUNNING }, Result{LostJobs: 1, Jobs: Jobs{Acknowledged: 1, Attempts: 1}},
		},
		"another outcome than before": {
			func(g *good) { g.job.ended.Status.State = failed }, Result{ChangedOutcomes: 1, Jobs: Jobs{Acknowledged: 1, Attempts: 1}},
		},
		"another host than before": {
			func(g *good) { g.job.ended.Status.HostSiteId = "c" }, Result{ChangedOutcomes: 1, Jobs: Jobs{Acknowledged: 1, Attempts: 1}},
		},
		"completed without a start": {
			func(g *good) { g.ledger = "" }, Result{LostJobs: 1, Jobs: Jobs{Acknowledged: 1}},
		},
		"completed without an end": {
			func(g *good) { g.ledger = "start a.1.7#1 b\n" }, Result{LostJobs: 1, Jobs: Jobs{Acknowledged: 1, Attempts: 1}},
		},
		"completed elsewhere": {
			func(g *good) { g.ledger = "start a.1.7#1 c\nend a.1.7#1 c\n" }, Result{LostJobs: 1, Jobs: Jobs{Acknowledged: 1, Attempts: 1}},
		},
		"started twice": {
			func(g *good) { g.ledger += "start a.1.7#1 c\n" }, Result{DoubleStarts: 1, LostJobs: 1, Jobs: Jobs{Acknowledged: 1, Attempts: 1}},
		},
		"granted twice": {
			func(g *good) {
				g.now.Status.ClaimEvents = append(g.now.Status.ClaimEvents, &kithv1.ClaimEvent{Kind: kithv1.ClaimEvent_KIND_GRANTED, Attempt: 1, SiteId: "c"})
			}, Result{DoubleStarts: 1, Jobs: Jobs{Acknowledged: 1, Completed: 1, Attempts: 1}},
		},
		"ran twice under wait": {
			func(g *good) {
				g.ledger = "start a.1.7#1 b\nstart a.1.7#2 b\nend a.1.7#2 b\n"
				g.now.Status.Attempt, g.job.ended.Status.Attempt = 2, 2
			}, Result{DoubleStarts: 1, Jobs: Jobs{Acknowledged: 1, Completed: 1, Attempts: 2, RanAgain: 1}},
		},
		"ran twice under rerun": {
			func(g *good) {
				g.job.policy = kithv1.Job_ON_SITE_LOST_RERUN
				g.ledger = "start a.1.7#1 b\nstart a.1.7#2 b\nend a.1.7#2 b\n"
				g.now.Status.Attempt, g.job.ended.Status.Attempt = 2, 2
			}, Result{Jobs: Jobs{Acknowledged: 1, Completed: 1, Attempts: 2, RanAgain: 1}},
		},
		"ran again after its end": {
			func(g *good) {
				g.job.policy = kithv1.Job_ON_SITE_LOST_RERUN
				g.ledger += "start a.1.7#2 c\n"
			}, Result{DoubleStarts: 1, Jobs: Jobs{Acknowledged: 1, Completed: 1, Attempts: 2, RanAgain: 1}},
		},
		"overlapped under rerun": {
			func(g *good) {
				g.job.policy = kithv1.Job_ON_SITE_LOST_RERUN
				g.ledger = "start a.1.7#1 c\nstart a.1.7#2 b\noverlap a.1.7#2 b\nend a.1.7#2 b\n"
				g.now.Status.Attempt, g.job.ended.Status.Attempt = 2, 2
			}, Result{Overlaps: 1, Jobs: Jobs{Acknowledged: 1, Completed: 1, Attempts: 2, RanAgain: 1}},
		},
		"overlapped with no daemon to guard it": {
			func(g *good) {
				g.job.policy = kithv1.Job_ON_SITE_LOST_RERUN
				g.ledger = "start a.1.7#1 c\nstart a.1.7#2 b\noverlap a.1.7#2 b\nend a.1.7#2 b\n"
				g.now.Status.Attempt, g.job.ended.Status.Attempt = 2, 2
				g.frozen = map[string][]spell{"a.1.7-1": {{window{began, began.Add(9 * time.Second)}, "c"}}}
				g.idle = map[string][]window{"c": {{began.Add(8 * time.Second), began.Add(9 * time.Second)}}}
			}, Result{Unguarded: 1, Jobs: Jobs{Acknowledged: 1, Completed: 1, Attempts: 2, RanAgain: 1}},
		},
		"overlapped, and was without a guard at another time": {
			func(g *good) {
				g.job.policy = kithv1.Job_ON_SITE_LOST_RERUN
				g.ledger = "start a.1.7#1 c\nstart a.1.7#2 b\noverlap a.1.7#2 b\nend a.1.7#2 b\n"
				g.now.Status.Attempt, g.job.ended.Status.Attempt = 2, 2
				g.frozen = map[string][]spell{"a.1.7-1": {{window{began, began.Add(7 * time.Second)}, "c"}}}
				g.idle = map[string][]window{"c": {{began.Add(8 * time.Second), began.Add(9 * time.Second)}}, "b": {{began, began.Add(time.Hour)}}}
			}, Result{Overlaps: 1, Jobs: Jobs{Acknowledged: 1, Completed: 1, Attempts: 2, RanAgain: 1}},
		},
		"overlapped under race": {
			func(g *good) {
				g.job.policy = kithv1.Job_ON_SITE_LOST_RACE
				g.ledger = "start a.1.7#1 b\nstart a.1.7#2 c\noverlap a.1.7#2 c\nend a.1.7#1 b\nend a.1.7#2 c\n"
			}, Result{Jobs: Jobs{Acknowledged: 1, Completed: 1, Attempts: 2, RanAgain: 1}},
		},
		"other output": {
			func(g *good) { g.stdout = "done a.1.8\n" }, Result{DamagedOutputs: 1, Jobs: Jobs{Acknowledged: 1, Completed: 1, Attempts: 1}},
		},
		"no output": {
			func(g *good) { g.err = errors.New("gone") }, Result{DamagedOutputs: 1, Jobs: Jobs{Acknowledged: 1, Completed: 1, Attempts: 1}},
		},
		"no output of a job that was cancelled while it was on its way": {
			func(g *good) {
				g.err, g.job.cancel, g.now.Status.Outcome.OutputLost = errors.New("gone"), time.Second, true
			},
			Result{Jobs: Jobs{Acknowledged: 1, Completed: 1, Attempts: 1, Cancelled: 1}},
		},
		"no output of a job that was cancelled, which says that it is there": {
			func(g *good) { g.err, g.job.cancel = errors.New("gone"), time.Second },
			Result{DamagedOutputs: 1, Jobs: Jobs{Acknowledged: 1, Completed: 1, Attempts: 1}},
		},
		"no output of a full disk": {
			func(g *good) {
				g.err, g.disk, g.full = errors.New("gone"), "b", []window{{began, began.Add(1500 * time.Millisecond)}}
			}, Result{Jobs: Jobs{Acknowledged: 1, Completed: 1, Attempts: 1, SpoiltByDisk: 1}},
		},
		"no output while the disk had room": {
			func(g *good) {
				g.err, g.disk, g.full = errors.New("gone"), "b", []window{{began, began.Add(500 * time.Millisecond)}}
			}, Result{DamagedOutputs: 1, Jobs: Jobs{Acknowledged: 1, Completed: 1, Attempts: 1}},
		},
		"another exit code": {
			func(g *good) { end(g, failed, 5) }, Result{OtherProblems: 1, Jobs: Jobs{Acknowledged: 1, Attempts: 1}},
		},
		"the exit code it should have": {
			func(g *good) { end(g, failed, 5); g.job.code = 5 }, Result{Jobs: Jobs{Acknowledged: 1, Failed: 1, Attempts: 1}},
		},
		"completed though it sleeps beyond its walltime": {
			func(g *good) { g.job.runsOut = true }, Result{OtherProblems: 1, Jobs: Jobs{Acknowledged: 1, Attempts: 1}},
		},
		"out of time": {
			func(g *good) { end(g, kithv1.JobStatus_STATE_TIMEOUT, 0) }, Result{OtherProblems: 1, Jobs: Jobs{Acknowledged: 1, TimedOut: 1, Attempts: 1}},
		},
		"cancelled by no user": {
			func(g *good) { end(g, kithv1.JobStatus_STATE_CANCELLED, 0) }, Result{OtherProblems: 1, Jobs: Jobs{Acknowledged: 1, Cancelled: 1, Attempts: 1}},
		},
		"lost for nothing": {
			func(g *good) { end(g, lost, 0) }, Result{LostJobs: 1, Jobs: Jobs{Acknowledged: 1, Attempts: 1}},
		},
		"lost, and its shim was killed by another process": {
			func(g *good) { end(g, lost, 0); g.lost["a.1.7#1"], g.killed[8] = 9, true }, Result{LostJobs: 1, Jobs: Jobs{Acknowledged: 1, Attempts: 1}},
		},
		"lost with its shim": {
			func(g *good) { end(g, lost, 0); g.lost["a.1.7#1"], g.killed[9] = 9, true }, Result{Jobs: Jobs{Acknowledged: 1, LostWithShim: 1, Attempts: 1}},
		},
		"lost with the trust between its sites": {
			func(g *good) { end(g, lost, 0); g.cut = cutAt(0) }, Result{Jobs: Jobs{Acknowledged: 1, LostWithTrust: 1, Attempts: 1}},
		},
		"lost long after the trust between its sites": {
			func(g *good) { end(g, lost, 0); g.cut = cutAt(-time.Hour) }, Result{LostJobs: 1, Jobs: Jobs{Acknowledged: 1, Attempts: 1}},
		},
		"lost with the trust though it may run again": {
			func(g *good) { end(g, lost, 0); g.cut, g.job.policy = cutAt(0), kithv1.Job_ON_SITE_LOST_RACE },
			Result{LostJobs: 1, Jobs: Jobs{Acknowledged: 1, Attempts: 1}},
		},
		"lost as its host was given up, though it may run again": {
			func(g *good) {
				end(g, lost, 0)
				g.cut, g.job.policy = gaveUpAt(0, "a", "b"), kithv1.Job_ON_SITE_LOST_RERUN
			},
			Result{Jobs: Jobs{Acknowledged: 1, LostWithTrust: 1, Attempts: 1}},
		},
		"lost as its host gave its origin up, though it may run again": {
			func(g *good) {
				end(g, lost, 0)
				g.cut, g.job.policy = gaveUpAt(0, "b", "a"), kithv1.Job_ON_SITE_LOST_RERUN
			},
			Result{LostJobs: 1, Jobs: Jobs{Acknowledged: 1, Attempts: 1}},
		},
		"output not to be had with the trust between its sites": {
			func(g *good) { g.cut, g.err = cutAt(0), errors.New("gone") }, Result{Jobs: Jobs{Acknowledged: 1, Completed: 1, LostWithTrust: 1, Attempts: 1}},
		},
		"output damaged with the trust between its sites": {
			func(g *good) { g.cut, g.stdout = cutAt(0), "other" }, Result{DamagedOutputs: 1, Jobs: Jobs{Acknowledged: 1, Completed: 1, Attempts: 1}},
		},
		"damaged its folder, and is lost": {
			func(g *good) { g.job.vandal = true; end(g, lost, 0) }, Result{Jobs: Jobs{Acknowledged: 1, Vandals: 1, Attempts: 1}},
		},
		"damaged its folder, and ran again": {
			func(g *good) {
				g.job.vandal = true
				g.ledger = "start a.1.7#1 b\nend a.1.7#1 b\nstart a.1.7#2 b\n"
			}, Result{DoubleStarts: 2, Jobs: Jobs{Acknowledged: 1, Vandals: 1, Attempts: 2, RanAgain: 1}},
		},
		"damaged its folder, and brought a file of its site's account home": {
			func(g *good) { g.job.vandal, g.stdout = true, "secret" }, Result{OtherProblems: 3, Jobs: Jobs{Acknowledged: 1, Vandals: 1, Attempts: 1}},
		},
		"lost with its shim though it may run again": {
			func(g *good) {
				end(g, lost, 0)
				g.lost["a.1.7#1"], g.killed[9], g.job.policy = 9, true, kithv1.Job_ON_SITE_LOST_RERUN
			}, Result{LostJobs: 1, Jobs: Jobs{Acknowledged: 1, Attempts: 1}},
		},
	} {
		g := goodJob()
		g.now.Status.State = completed
		c.change(g)
		got := g.check(t)
		problems := got.Problems
		got.Problems = nil
		if fmt.Sprintf("%+v", *got) != fmt.Sprintf("%+v", c.want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v\n%v", name, *got, c.want, problems)
		}
		if n := len(problems); (n == 0) != got.Good() {
			t.Errorf("%s: good is %v with %d problems", name, got.Good(), n)
		}
	}
}

// A target that is missed makes a run no good one, and says which.
func TestTargets(t *testing.T) {
	for name, c := range map[string]struct {
		good   bool
		missed []string
		want   int
	}{
		"healed in time": {(&Result{Heals: sumUp([]time.Duration{settleTarget})}).Good(), (&Result{Heals: sumUp([]time.Duration{settleTarget})}).Misses(1), 0},
		"healed late": {
			(&Result{Heals: sumUp([]time.Duration{1, settleTarget + time.Second})}).Good(),
			(&Result{Heals: sumUp([]time.Duration{1, settleTarget + time.Second})}).Misses(1), 1,
		},
		"as good as it must be":  overloaded(Overload{LateAnswer: 1, Recovery: 10, IdleMemory: 30, PeakMemory: 286}, 0),
		"answers late":           overloaded(Overload{LateAnswer: 1.1, WorstAnswer: 9}, 1),
		"one answer in a while":  overloaded(Overload{LateAnswer: 0.5, WorstAnswer: 9}, 0),
		"recovers late":          overloaded(Overload{Recovery: 10.5}, 1),
		"takes too much":         overloaded(Overload{IdleMemory: 30, PeakMemory: 287}, 1),
		"nothing as it ought be": overloaded(Overload{Recovery: 11, LateAnswer: 2, PeakMemory: 300}, 3),
	} {
		if c.good != (c.want == 0) || len(c.missed) != c.want {
			t.Errorf("%s: good is %v, missed %q", name, c.good, c.missed)
		}
	}
}

func overloaded(o Overload, want int) (c struct {
	good   bool
	missed []string
	want   int
},
) {
	c.good, c.missed, c.want = o.Good(), o.Misses(1), want
	return c
}

// Every kind of fault that was wanted and did not come about is in the result,
// with the reason.
func TestSkipped(t *testing.T) {
	c := &campaign{bed: &bed{opt: &Options{}, noDisk: "nobody may mount one"}}
	c.in = newInjector(c.bed, nil)
	r := &Result{Faults: make(map[string]int)}
	for _, k := range Kinds() {
		r.Faults[string(k)] = 1
	}
	for _, k := range []Kind{FullDisk, KillShim, CutAll, Upgrade} {
		r.Faults[string(k)] = 0
	}
	c.in.done = []Injected{{Kind: KillShim, Missed: "nothing runs there"}}
	want := []Skipped{
		{KillShim, "whenever one was drawn: nothing runs there"}, {CutAll, "none was drawn in so short a time"},
		{FullDisk, "nobody may mount one"}, {Upgrade, "no earlier version is named"},
	}
	if got := c.skipped(r); !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
	c.opt.Kinds = []string{string(CutAll), string(KillDaemon)}
	if got := c.skipped(r); !reflect.DeepEqual(got, want[1:2]) {
		t.Errorf("of two kinds: %v", got)
	}
}
