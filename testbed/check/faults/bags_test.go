package faults

import (
	"testing"

	"kith/internal/job"
)

// TestBaggedSchedules is a short form of "kith-lab faults --bags".
func TestBaggedSchedules(t *testing.T) {
	searchFor(t, Search{Seeds: short(20), FirstSeed: *firstSeed, Bags: true, Workers: 2}, []Kind{Crash, Reboot, Cut, Lie, FullDisk})
}

// Bags have draws of their own: what a schedule has beside them is that of the same seed
// without, but for jobs that are left out and moments that are those of tasks.
func TestBaggedTextForm(t *testing.T) {
	for seed := range uint64(200) {
		with, without := Bagged(seed, Size{}), Random(seed, Size{})
		if len(with.Bags) == 0 || len(with.Faults) != len(without.Faults) || with.End != without.End || with.Latency != without.Latency {
			t.Errorf("seed %d: with bags it is another schedule", seed)
		}
		readBack(t, seed, with.String())
	}
}

// A daemon that is killed while it is frozen has committed two things: what its effects
// waited for, and then what was on its way. The watch took them up in the other order.
func TestBaggedCrashOfAFrozenDaemon(t *testing.T) {
	plays(t, `run seed=18000779 end=10m0s scheme=k-distributed rank=work latency=10ms jitter=0s sync=2ms sync-jitter=0s
site s1 processors=4 backfill=easy queues=dual-backfill scope=all
bag 2 at=0s from=s1 tasks=3 processors=1 copies=0 run=10s walltime=1m0s
bag 3 at=0s from=s1 tasks=5 processors=1 copies=0 run=16.731s walltime=20.91375s retries=2
bag 4 at=3m0s from=s1 tasks=19 processors=1 copies=0 run=10s walltime=1m0s
fault crash s1 at=6m0s for=0s
fault freeze s1 before=launch@s1 nth=28 for=3m0s
`)
}

// Submissions of jobs and bags reach a daemon that was frozen in the order in which they were
// made, and it numbers them then: the job is not the one that waits.
func TestSubmittedToAFrozenDaemon(t *testing.T) {
	plays(t, `run seed=10060328 end=4m50s scheme=k-dual latency=10ms sync=2ms
site s0 processors=6
job 1 at=0s from=s0 copies=2 run=1m walltime=2m
job 6 at=4m from=s0 copies=2 run=1m walltime=2m
bag 1 at=1m from=s0 tasks=1 run=10s walltime=1m after=afternotok:1
fault suspend s0 at=1m for=4m
`)
}

// The end of a bag and the wish to have tasks of it run again reach the disk together: what
// waited for the end goes on.
func TestBagEndsAndRunsAgainInOneBatch(t *testing.T) {
	plays(t, `run seed=10028162 end=10m scheme=k-dual latency=10ms sync=2ms
site s2 processors=5
bag 1 at=0s from=s2 tasks=1 run=10s walltime=1m after=afterok:bag2
bag 2 at=4m10s from=s2 tasks=3 run=20.376s walltime=31.309s
act retry-bag 2 at=4m48.501s tasks=2
fault full-disk s2 at=4m30s for=1m
`)
}

// plays plays a schedule in which nothing may be broken.
func plays(t *testing.T, text string) {
	t.Helper()
	s, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if v := Run(s, nil).Violation; v != nil {
		t.Error(v)
	}
}

// Seeds with bags that have found something, and what it was.
func TestBaggedSeedsThatFoundSomething(t *testing.T) {
	for seed, what := range map[uint64]string{
		582:  "the product: what a liar had claimed in the name of a site kept that from tasks also after its restart",
		857:  "the product: the same",
		1880: "the product: a task that missed its deadline ran again at its own site, and the run that was not first went on for nobody",
		5681: "the product: a copy that was forged in the name of what is a bag was asked back as a bundle, and stayed for ever",
		// Claims of a new data folder are numbered as those of the one before.
		10016594: "the watch: a frozen origin answered a claim of the life of a host before the one that it took it for",
		10083166: "the watch: the same, of an answer that had waited for the disk",
		10064215: "the product: a site was held back for a bag that fails everywhere and has no other site, as it asked for tasks of another shape, too",
		10060328: "the watch: what a client asks of a frozen daemon got the number of what others asked it meanwhile, and was to wait for what those waited for",
		10005131: "the watch: the same, of a singleton",
		10028162: "the watch: a bag ended and was run again in one batch, and what waited for its end went on",
		10018137: "the watch: the same, where that was cancelled",
		10007619: "the watch: a site that came back without its data folder ran on with a task of a bag with replicas, and another site, which had it beside, gave it back unrun",
		10110646: "the product: what a host had got by the claim before one that had no answer was not taken back for a minute, when that host no longer had it",
		11025751: "the product: the same",
		11010086: "the product: tasks that failed everywhere and with each retry had all hosts held back, which then got one of them an hour",
		12009616: "the watch: a list of bundles of a data folder that was gone came back as if on a stream of the next, whose claims are numbered from the same number",
		10083939: "the watch: a task that takes longer than its deadline is run until it was lost too often, which takes its time",
	} {
		if v := Run(Bagged(seed, Size{}), nil).Violation; v != nil {
			t.Errorf("seed %d, which found %s: %v", seed, what, v)
		}
	}
}

// Small schedules with bags, and how many runs of tasks each must have.
func TestBagsAsTold(t *testing.T) {
	const sites = "run seed=1 end=10m scheme=k-dual latency=10ms sync=2ms\nsite s0 processors=1\nsite s1 processors=4\n"
	for name, c := range map[string]struct {
		text   string
		starts int
	}{
		"all of a bag runs once": {"bag 1 from=s0 tasks=50 run=5s", 50},
		"what a host has to tell is under its lease until its files are home":      {"bag 1 from=s0 tasks=10 run=10s walltime=1m on-site-lost=rerun output=3m", 10},
		"a task that fails runs again as often as it may":                          {"bag 1 from=s0 tasks=6 run=1s walltime=1m fails=3 retries=2", 4 + 2*3},
		"those that have failed run again when asked":                              {"bag 1 from=s0 tasks=6 run=1s walltime=1m fails=3\nact retry-bag 1 at=5m", 6 + 2},
		"tasks that wait are cancelled":                                            {"bag 1 from=s0 tasks=20 run=1m walltime=2m max-running=5\nact cancel-bag 1 at=10s tasks=5-19", 5},
		"of a bag that waits for lost sites nothing runs again":                    {"bag 1 from=s0 tasks=5 run=1m walltime=2m\nfault reboot s1 at=10s for=5s", 5},
		"what a budget does not pay for begins once there is none":                 {"bag 1 from=s0 tasks=20 run=10s walltime=20s budget=30", 20},
		"a budget that is replaced goes on":                                        {"bag 1 from=s0 tasks=20 run=10s walltime=20s budget=30\nact budget-bag 1 at=5m budget=1000", 20},
		"what may run nowhere does once its policies are replaced":                 {"bag 1 from=s0 tasks=20 run=5s policies=1\nact policy-bag 1 at=5m policies=0", 20},
		"policies of which another version was to be replaced stay":                {"bag 1 from=s0 tasks=5 run=5s policies=1\nact policy-bag 1 at=1m policies=0 stale=yes\nact cancel-bag 1 at=5m", 0},
		"what a budget never paid for does not begin":                              {"bag 1 from=s0 tasks=20 run=10s walltime=20s budget=1\nact cancel-bag 1 at=5m", 1},
		"of a bag that is run again what was lost with its site does, and no more": {"bag 1 from=s0 tasks=5 run=1m walltime=2m on-site-lost=rerun\nfault reboot s1 at=10s for=5s", 8},
	} {
		s, err := Parse(sites + c.text)
		if err != nil {
			t.Fatal(err)
		}
		if r := Run(s, nil); r.Violation != nil || r.Starts != c.starts {
			t.Errorf("%s: %d runs, want %d; %v", name, r.Starts, c.starts, r.Violation)
		}
	}
}

// Tasks take from half of what the bag says to one and a half, each always the same.
func TestRunTimesOfTasks(t *testing.T) {
	b := Bag{Run: 1000, Fails: 3}
	seen := map[int64]bool{}
	for task := range uint32(100) {
		d := b.runTime(task)
		if d < 500 || d >= 1500 || d != b.runTime(task) {
			t.Errorf("task %d takes %v", task, d)
		}
		seen[int64(d)] = true
		if b.fails(task) != (task%3 == 2) {
			t.Errorf("task %d fails: %v", task, b.fails(task))
		}
	}
	if len(seen) < 50 {
		t.Errorf("only %d different run times", len(seen))
	}
	if _, err := Parse("site a\nbag 1 from=a tasks=3-1"); err == nil {
		t.Error("a bag whose tasks are no number is one")
	}
	for _, text := range []string{"act cancel-bag 1", "bag 1 from=b", "bag 1 from=a\nbag 1 from=a", "bag 1 from=a\nact retry-bag 1 tasks=x", "run turn=1m yield=later", "run turn=1m share=2", "bag 1 from=a budget=-1", "bag 1 from=a\nact budget-bag 1 budget=x", "bag 1 from=a policies=99", "bag 1 from=a\nact policy-bag 1 policies=-1"} {
		if _, err := Parse("site a\n" + text); err == nil {
			t.Errorf("%q is a schedule", text)
		}
	}
	if s, err := Parse("site a\nbag 1 from=a\nact cancel-bag 1 tasks=3-5"); err != nil || s.Acts[0].Tasks.Count() != 3 || s.Bags[0].OnSiteLost != job.Wait {
		t.Errorf("%+v, %v", s, err)
	}
}
