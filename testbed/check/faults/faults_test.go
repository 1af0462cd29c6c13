package faults

import (
	"context"
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
)

var (
	firstSeed = flag.Uint64("first-seed", 0, "first seed of the random schedules")
	seeds     = flag.Int("seeds", 150, "how many random schedules")
)

// TestRandomSchedules is a short form of "kith-lab faults".
func TestRandomSchedules(t *testing.T) {
	searchFor(t, Search{Seeds: short(20), FirstSeed: *firstSeed, Workers: 2}, append(Kinds(), Drift))
}

func TestSameScheduleSameRun(t *testing.T) {
	for seed := range uint64(10) {
		var stories [2][]string
		for i := range stories {
			r := Run(Random(seed, Size{}), func(line string) { stories[i] = append(stories[i], line) })
			if r.Violation != nil {
				t.Error(r.Violation)
			}
		}
		if !slices.Equal(stories[0], stories[1]) {
			t.Errorf("seed %d: two runs differ", seed)
		}
	}
}

// beyondTheBound is a federation whose clocks differ by more than the bound
// that leases rest on: the one thing that breaks S2 without a bug.
func beyondTheBound() *Schedule {
	s := &Schedule{Seed: 3, Scheme: meta.KDual, Latency: 20 * time.Millisecond, Jitter: 30 * time.Millisecond, Sync: time.Millisecond, End: 20 * time.Minute}
	for i, x := range []Site{{Processors: 1, Drift: 100_000}, {Processors: 4, Drift: -100_000}, {Processors: 4}, {Processors: 2}} {
		x.Name = job.SiteID("s" + string(rune('0'+i)))
		x.Backfill, x.Queues, x.Scope = Random(1, Size{}).Sites[0].Backfill, 2, 1
		s.Sites = append(s.Sites, x)
	}
	for i := range 3 {
		s.Jobs = append(s.Jobs, Job{
			Number: i + 1, At: time.Duration(i*20) * time.Second, From: "s0", Processors: 2, Copies: 3,
			Run: 5 * time.Minute, Walltime: 8 * time.Minute, OnSiteLost: job.Rerun,
		})
	}
	s.Acts = []Act{{At: 10 * time.Minute, Kind: Cancel, Job: 3}, {At: time.Minute, Kind: Drain, Site: "s3"}}
	s.Faults = []Fault{
		{Kind: Crash, Site: "s2", At: 30 * time.Second, For: 10 * time.Second},
		{Kind: Isolate, Site: "s1", At: 2 * time.Minute, For: 8 * time.Minute},
		{Kind: Noise, At: time.Minute, For: time.Minute, By: 20 * time.Millisecond},
		{Kind: Flap, Site: "s2", Other: "s3", At: 3 * time.Minute, For: time.Minute, By: 5 * time.Second},
	}
	return s
}

func TestShrink(t *testing.T) {
	s := beyondTheBound()
	r := Run(s, nil)
	if r.Violation == nil || r.Violation.Invariant != "S2" {
		t.Fatalf("clocks beyond the bound break nothing: %v", r.Violation)
	}
	small := Shrink(s)
	if v := Run(small, nil).Violation; v == nil || v.Invariant != "S2" {
		t.Errorf("the smaller schedule breaks %v", v)
	}
	if len(small.Faults) != 1 || small.Faults[0].Kind != Isolate || len(small.Jobs) > 2 || len(small.Acts) > 0 || len(small.Sites) > 3 {
		t.Errorf("not small:\n%s", small)
	}
	story := Story(small)
	if len(story) == 0 || len(story) > storyHead+storyTail+1 || !strings.Contains(story[len(story)-1], "VIOLATION") {
		t.Errorf("story of %d lines: %q", len(story), story[max(0, len(story)-1):])
	}
}

func TestPanicsAreFound(t *testing.T) {
	s := Random(1, Size{})
	s.Sites[0].Backfill = 99 // no such discipline: the world cannot begin
	if r := Run(s, nil); r.Violation == nil {
		t.Error("nothing noticed")
	}
}

// readBack reads a schedule in text form, which must be written as it was.
func readBack(t *testing.T, seed uint64, text string) *Schedule {
	t.Helper()
	s, err := Parse(text)
	if err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, text)
	}
	if again := s.String(); again != text {
		t.Fatalf("seed %d: written\n%s\nread as\n%s", seed, text, again)
	}
	return s
}

func TestTextForm(t *testing.T) {
	for seed := range uint64(200) {
		readBack(t, seed, Random(seed, Size{}).String())
	}
}

func TestWideTextForm(t *testing.T) {
	for seed := range uint64(200) {
		for _, text := range []string{Wide(seed, Size{}).String(), Attacked(seed, Size{}).String()} {
			readBack(t, seed, text)
		}
	}
}

// A schedule that was read again is the same run.
func TestWideReplay(t *testing.T) {
	for seed := range uint64(6) {
		var stories [2][]string
		s := Wide(seed, Size{})
		for i := range stories {
			Run(s, func(line string) { stories[i] = append(stories[i], line) })
			again, err := Parse(s.String())
			if err != nil {
				t.Fatal(err)
			}
			s = again
		}
		if !slices.Equal(stories[0], stories[1]) {
			t.Errorf("seed %d: two runs differ", seed)
		}
	}
}

// TestWideSchedules is a short form of "kith-lab faults --wide".
func TestWideSchedules(t *testing.T) {
	searchFor(t, Search{Seeds: short(15), FirstSeed: *firstSeed, Wide: true, Workers: 2}, WideKinds())
}

// TestHostileSchedules is a short form of "kith-lab faults --hostile", with and without
// --wide.
func TestHostileSchedules(t *testing.T) {
	searchFor(t, Search{Seeds: short(20), FirstSeed: *firstSeed, Hostile: true, Workers: 2}, []Kind{Hostile, Revoke})
	searchFor(t, Search{Seeds: short(20) / 4, FirstSeed: *firstSeed, Hostile: true, Wide: true, Workers: 2}, []Kind{Hostile, Revoke})
}

// short is how many seeds a test tries: few in a short run.
func short(few int) int {
	if testing.Short() {
		return min(*seeds, few)
	}
	return *seeds
}

// searchFor looks at schedules, none of which may break anything. If they are many, each
// kind of fault must have struck.
func searchFor(t *testing.T, x Search, kinds []Kind) {
	t.Helper()
	r := x.Run(context.Background())
	for _, f := range r.Failures {
		t.Errorf("seed %d: %s: %s\nsmaller:\n%s\n%s", f.Seed, f.Invariant, f.Text, f.Schedule, strings.Join(f.Story, "\n"))
	}
	if r.Schedules != x.Seeds || r.Starts == 0 {
		t.Errorf("%d of %d schedules, %d starts", r.Schedules, x.Seeds, r.Starts)
	}
	for _, k := range kinds {
		if x.Seeds >= 100 && r.Faults[k] == 0 {
			t.Errorf("fault %s never struck in %d schedules", k, x.Seeds)
		}
	}
}

// Wide schedules that have found something, and what it was.
func TestWideSeedsThatFoundSomething(t *testing.T) {
	for seed, what := range map[uint64]string{
		50001807: "the product: a site from which a copy had been moved got none again for minutes, though processors had come free there, as jobs waited that needed more",
		50013527: "the product: the same",
		51008152: "the product: the same",
		50007912: "the product: a host that refused a copy, and took it when it was sent again, kept it, and its origin did not know",
		51003227: "the product: a job lost its place again and again for an idle site that had refused it for what it is",
		50019060: "the product: the same",
		52001366: "the product: a copy that a late withdrawal had taken away was not sent again, though the host had said so",
		56001931: "the product: a copy that did not leave, as its job had started at home, counted as what a full site was offered",
		58508205: "the product: a full site refused what had been offered before a copy left it, and was offered nothing for the pause",
		62010123: "the product: a site told of processors that came free once a second, and one of six stood idle beside jobs of 5 s",
		401:      "the product: a site that took longer guests, or more copies, after a reload was not asked again by jobs that wait elsewhere",
		2563853:  "the product: a site that bounds guests was offered tasks, and no other, and did not take them",
		71012353: "the watch: a revocation was on the disk though its daemon was killed before it could say so",
		71028975: "the watch: a site stood idle whose claims came too late, at 150 ms from an origin where each job died at once",
		71002795: "the product: a job that its own site refused as too wide, and another as full, was offered to that one less and less often",
		70033647: "the product: a job of one copy was not moved back to a site where processors had come free, as others had them before the site said so",
		70058840: "the product: an attempt whose input had come late waited for its turn beside its origin, which could start it before what waited there",
		80021220: "the product: a job whose input was on its way made way for the host's own jobs and went there again, each second, beside an idle site",
		80026752: "the product: the copy that was to see whether its origin answers waited for room for minutes, beside one that had it",
		83013700: "the product: a job that a site could not start lost its place in its own queue again and again, as it was offered first each time",
		83029026: "the product: jobs were offered to two sites with full disks first, one after the other, beside an idle one",
		83057007: "the product: a guest was to end soon by the clock of another machine than that on which it had begun, and stayed",
		83087726: "the product: the same, after the clock was set",
		82000760: "the watch: a guest of a site that has left for good stays to its end",
		82027346: "the watch: a job keeps away for a while from a site where it made way",
		83007227: "the watch: that an origin is gone its hosts learn a while later",
		82097433: "the watch: a copy of a job was to be gone, as an earlier attempt ran on at a site that was revoked",
		87031877: "the model: a reload that reached a stopped leader, after another machine led, counted as one of the site",
		87032231: "the watch: a cancellation was to be heard by a host whose full disk had not taken that it revoked the origin, and admitted it again",
		82097648: "the watch: what was sent while a stream was slow delayed what came after, and the stream counted as at peace",
		83089028: "the product: two sites with full disks were offered jobs first, as in 83029026",
		81005417: "the watch: the next leader forgot a job that had ended before the daemon was stopped that was about to say so",
		80038812: "the watch: what a stopped daemon had on disk was noted from facts that had come less far, and the later batch before the earlier one",
		51011781: "the product: a job had two of three copies beside a site that had been drained and full; several of these mend it",
		50010527: "the watch: results of tasks were read at a member that had not taken up the batch yet, as its leader had been killed",
		51001917: "the watch: what a stopped daemon had said of a bag counted as later than what the next leader said",
		50011152: "the watch: the same",
		51007267: "the watch: the same",
		55006787: "the watch: a daemon that had been stopped said what came before the end of a job, after that",
		61501738: "the watch: a job that had run, though a full disk could not say so, was to run while its output was collected",
		58000367: "the watch: an operator was told of a revocation by a daemon that had been stopped, when the site was admitted again",
		40005339: "the product: what reminded a host of a claim that was granted counted as the answer to the claim of another copy of that attempt, which ran beside the next one",
		40003626: "the product: a site that had refused a copy of a queued job for what that is got none after a restart with another configuration",
		40008375: "the product: the same, of a site that had fewer processors meanwhile",
		40008620: "the product: a job that other sites had refused waited for the end of its pause after its own site was resumed",
		42000367: "the product: a guest that should have ended by the clock of another machine, which leads the site now, was left to end",
		43003320: "the product: a site that had been full once, and refused copies for what their jobs are, was offered one in five seconds",
		43007960: "the product: the same, at a site that has guests leave at once",
		43003115: "the product: an attempt whose input had come late kept its claim beside its own idle origin, as copies of others waited there",
		43003329: "the model: a site whose machine was gone counted as connected for hours, as what it had said would have taken so long",
		44013356: "the model: the same",
		46002107: "the model: what an enemy forged for the daemon of one member came to that of the next one, which had no stream yet",
		46002942: "the watch: a task whose failure had gone with its site, as an operator said, was not to run again",
		42002627: "the watch: results of tasks were read before the member had taken up the batch that had just become durable",
		43015747: "the model: an operator who got no answer, as another leader was elected, did not say again whom to trust",
		42002072: "the model: the same",
		40006227: "the model: a site with a bound for guests was to keep it with queues that kithd does not start with then",
		15013471: "the product: an attempt that others kept from starting when its input had come kept its claim for any time beside an idle site",
		16001589: "the product: a site that starts in order only drew copies to processors on which they could not start, from where they could",
		15006197: "the watch: a job was to start beside a wide copy that its site had set aside with its origin, and would have delayed what is first without it",
		10011344: "the product: a site that came back with fewer processors went on from task to task in all the runs that it had",
		10090071: "the product: the same, with tasks of its own",
		10046115: "the product: an origin that was to tell its offers again as the last task was given out never told that there were none left",
		10005925: "the watch: a pilot at the head of a queue, for tasks that waited, was no reason for those behind it to wait",
		10121101: "the watch: the same, under k-distributed",
		10055711: "the watch: it looked between what a site was told and the pass of that instant",
		10120137: "the product: a host whose claim was not answered, and that claimed nothing else of that origin, never learned that it had been granted",
		10106682: "the product: the same, one comparison later than was promised",
		10081953: "the product: the same, where the job lacked copies meanwhile",
		10076087: "the product: while a job ran longer than its limit, an origin did not take a job back that would start beside those that wait",
		10040503: "the product: a refusal that came again, late, counted as if the site were full now",
		10081979: "the watch: an origin that froze and went on between two looks counted as at peace",
		10050419: "the product: a site that came back with fewer processors launched what was on its way to the disk beside what runs",
		10076130: "the product: there, a run of a task that takes more than all of them went on to the next task",
		10121606: "the product: the same, with two runs",
		10085019: "the product: a host that had revoked an origin and admitted it again was believed that nothing had begun of the tasks that it had given up",
		10090151: "the product: the same",
		10015983: "the watch: what had ended unheard at a site that has left was to run again, as an operator had said",
		10105035: "the watch: the same of what was lost with it",
		10086833: "the watch: a job was taken for known that a site had forgotten, as its wall clock went ahead, when its daemon was killed before it said so",
		10005458: "the watch: the only site with the processors that a bag takes had left for good",
		2065:     "the product: a site of which only bundles were held could not be forgotten once it was out of the configuration",
		1260:     "the model: copies of an origin in reach but not yet settled were no reason to keep processors free",
		1482:     "the model: the same, after the last fault, when all streams begin anew",
		394:      "the model: what an enemy's copies claim counted as idle",
		2107:     "the model: processors in turn counted as one that is idle, as it looked once a second",
		2120:     "the model: copies of an origin whose disk hangs were no reason to keep processors free",
		2562:     "the model: what filled a disk stayed there after a restart of the machine",
		2486:     "the model: a forged load that is no number came past the border of the site",
		2636:     "the product: a site that is never dry was offered one copy a load, which had started elsewhere",
		2700:     "the model: a message was lost between two looks, and the stream counted as at peace",
		73:       "the product: the copy that was to claim stayed in the queue when its origin went out of reach",
		1022:     "the product: a site that was full was offered one copy with each of its loads, whatever left it and whatever it took",
		369:      "the product: a job that a full site had refused waited for the end of a growing pause, though copies had left that site",
		6:        "the product: a site that was revoked and admitted again got no copy of what had waited meanwhile",
		1004:     "the product: what came over the stream on which a site was revoked counted once it was admitted again",
		333:      "the product: a job that a site had lost got no copy there again until another site changed",
		811:      "the product: a job whose withdrawal from a site was unanswered when it lacked a copy got none there again",
		2164:     "the product: a job whose copy was moved, and not kept, got none where it had been for minutes",
		1806:     "the product: a job that sites had refused for a state of theirs waited longer each time",
		381:      "the model: copies set aside did not count among those that were there before one that may be overtaken",
		516:      "the product: the same as 12838, at another site",
		642:      "the model: the same, under k-distributed",
		12838:    "the product: a copy that was moved to and fro was kept for minutes from a site that would start it, its origin's own",
		17374:    "the model: a job that was held back, as attempts of it were lost, was to start at once",
		19555:    "the product: a site that had told of its free processors while a claim held some told of those no more when the claim was denied",
		25451:    "the product: a job that held a disk full was not stopped when its origin was revoked, as that could not be written",
		27964:    "the product: a host that was busy when its claim ran out never learned that the claim had been granted",
		34315:    "the product: a site that is never dry told of processors that came free with its next load only, just before the next ones did",
		47726:    "the product: the same",
		42501:    "the product: an origin did not take a job back that would have started beside those that wait there, as one behind the first would be later",
		29835:    "the product: what a site with a processor free had room for were copies that could not start on it",
		51181:    "the product: what a drain took back that was over by then waited as if its input could not be had",
		53085:    "the product: an attempt that went back into the queue counted as load, as its origin had been revoked and admitted again and was away",
		52448:    "the product: a site that holds as many copies as it takes, and yet runs dry, was offered 64 each time, and jobs went there and back",
		42023:    "the model: time in which local jobs that came later run was to count for a copy that they overtake, unless they waited first",
		43970:    "the model: the same",
		49431:    "the model: the same",
		778:      "the model: a stream that came and went between two looks was none, and a copy counted as lost too soon",
		58344:    "the model: processors in turn between two jobs counted as one that is idle, where limits let no copy wait",
		6477:     "the model: a job was to start beside copies that were out of the question, behind which a wide one would have waited longer",
		1458:     "the product: the output of a stale attempt was collected to the end, which its origin waited for in vain",
	} {
		if v := Run(wideAlone(seed, Size{}), nil).Violation; v != nil {
			t.Errorf("seed %d, which found %s: %v", seed, what, v)
		}
	}
	for seed, what := range map[uint64]string{
		3445:  "the model: what a freeze held back of the batch that closes a job counted as said after its end",
		4868:  "the product: an answer to the claim of a copy that was withdrawn meanwhile was no answer, and its origin stayed set aside",
		9440:  "the model: attempts that were lost were forgotten when an enemy had filled the job's history",
		10026: "the model: an attempt whose input had come was no reason for those behind it to wait",
		10646: "the product: a full site that took the one copy it was offered was offered no more of jobs without any, but after their pause",
		45:    "the product: an origin did not take a job back, as in 42501",
		11665: "the product: a site from which a copy was moved, as it could start it, got none again for the growing pause after a move",
	} {
		if v := Run(WideAttacked(seed, Size{}), nil).Violation; v != nil {
			t.Errorf("wide seed %d with an enemy, which found %s: %v", seed, what, v)
		}
	}
	for seed, what := range map[uint64]string{
		108846:   "the model: a site that was revoked after the grant may start the job, which its origin gives up as LOST",
		110801:   "the model: the same",
		10066430: "the product: the same as wide 10085019",
		40006876: "the watch: a checkpoint that was on its way to the disk counted as kept",
		40000330: "the watch: a guest that an operator let run, as its origin was revoked, was to leave",
		42055444: "the watch: a task of a revoked site that its user had run again counted as ended, or as running beside itself",
		42055859: "the model: a site that had lost its disk took part for minutes before it was told whom it trusts",
		42078079: "the model: the same",
		42570179: "the watch: a checkpoint that a crash took back before it was on the disk counted as kept",
		42627877: "the model: a daemon was killed while it was told whom it trusts",
		42638929: "the watch: what runs of a data folder that is gone was to be stopped when its origin was revoked",
		40030875: "the watch: a claim that was sent again after its site was revoked and admitted counted as repeated",
	} {
		if v := Run(Attacked(seed, Size{}), nil).Violation; v != nil {
			t.Errorf("seed %d with an enemy, which found %s: %v", seed, what, v)
		}
	}
}

func TestParseErrors(t *testing.T) {
	const world = "site a\nsite b\njob 1 from=a\n"
	for text, want := range map[string]string{
		"":                                        "sites",
		"site a\nsite a":                          "twice",
		"site _":                                  "site",
		world + "job 1 from=b":                    "twice",
		world + "job 2 from=c":                    `no site "c"`,
		world + "job 2":                           `no site ""`,
		world + "job x from=a":                    "number",
		world + "job 2 from=a run=5":              "run=5",
		world + "job 2 from=a walltime=-5s":       "walltime",
		world + "job 2 from=a run=99999h":         "run=",
		world + "job 2 from=a copies=99":          "copies",
		world + "act cancel 7":                    "no job 7",
		world + "act destroy 1":                   "destroy",
		world + "fault crash c":                   `no site "c"`,
		world + "fault flood a":                   "flood",
		world + "fault cut a a":                   "twice",
		world + "fault cut a":                     "site",
		world + "fault crash a before=launch@c":   `no site "c"`,
		world + "fault crash a nth=2":             "nth",
		world + "fault crash a extra":             "too many",
		world + "fault crash a at=1s at=2s":       "twice",
		world + "site c backfill=never":           "backfill",
		world + "site c drift=1000000":            "drift",
		world + "run rank=best":                   "rank",
		world + "run on-site-lost=wait":           "unknown",
		world + "job 3 from=a on-site-lost=panic": "on-site-lost",
		world + "stream at=1s":                    `no site ""`,
		world + "stream from=a every=0s":          "every",
		world + "fault change a without=c":        `no site "c"`,
		world + "fault change a queues=many":      "queues",
		world + "nonsense":                        "nonsense",
	} {
		_, err := Parse(text)
		if !errors.Is(err, ErrSchedule) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, should name %q", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for seed := range uint64(5) {
		f.Add(Random(seed, Size{Sites: 2, Jobs: 2}).String())
	}
	for seed := range uint64(5) {
		f.Add(Wide(seed, Size{Sites: 2}).String())
	}
	f.Add(Bagged(3, Size{Sites: 2}).String())
	f.Add("site a drift=-5\njob 1 from=a\nfault lie a before=any nth=3 by=1s\nexpect 1 COMPLETED\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			if !errors.Is(err, ErrSchedule) {
				t.Fatalf("%v", err)
			}
			return
		}
		again, err := Parse(s.String())
		if err != nil {
			t.Fatalf("%v\n%s", err, s)
		}
		if again.String() != s.String() {
			t.Fatalf("written\n%s\nread as\n%s", s, again)
		}
	})
}
