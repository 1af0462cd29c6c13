package faults

import (
	"context"
	"errors"
	"flag"
	"slices"
	"strings"
	"sync"
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
	n := *seeds
	if testing.Short() {
		n = min(n, 20)
	}
	r := Search{Seeds: n, FirstSeed: *firstSeed, Workers: 2}.Run(context.Background())
	for _, f := range r.Failures {
		t.Errorf("seed %d: %s: %s\nsmaller:\n%s\n%s", f.Seed, f.Invariant, f.Text, f.Schedule, strings.Join(f.Story, "\n"))
	}
	if r.Schedules != n || r.Starts == 0 {
		t.Errorf("%d of %d schedules, %d starts", r.Schedules, n, r.Starts)
	}
	if n < 100 {
		return
	}
	for _, k := range append(Kinds(), Drift) {
		if r.Faults[k] == 0 {
			t.Errorf("fault %s never struck in %d schedules", k, n)
		}
	}
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

func TestTextForm(t *testing.T) {
	for seed := range uint64(200) {
		text := Random(seed, Size{}).String()
		s, err := Parse(text)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		if again := s.String(); again != text {
			t.Fatalf("seed %d: written\n%s\nread as\n%s", seed, text, again)
		}
	}
}

func TestWideTextForm(t *testing.T) {
	for seed := range uint64(200) {
		text := Wide(seed, Size{}).String()
		s, err := Parse(text)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		if again := s.String(); again != text {
			t.Fatalf("seed %d: written\n%s\nread as\n%s", seed, text, again)
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

// TestWideSafety is a short form of "kith-lab faults --wide" for S1 to S6: it
// says nothing about what becomes of jobs in the end.
func TestWideSafety(t *testing.T) {
	n := *seeds
	if testing.Short() {
		n = min(n, 15)
	}
	struck := make(map[Kind]int)
	var mu sync.Mutex
	var workers sync.WaitGroup
	for w := range 2 {
		workers.Go(func() {
			for seed := *firstSeed + uint64(w); seed < *firstSeed+uint64(n); seed += 2 {
				r := Run(Wide(seed, Size{}), nil)
				mu.Lock()
				if v := r.Violation; v != nil && !strings.HasPrefix(v.Invariant, "L") {
					t.Errorf("seed %d: %v", seed, v)
				}
				for k, n := range r.Injected {
					struck[k] += n
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	for _, k := range WideKinds() {
		if n >= 100 && struck[k] == 0 {
			t.Errorf("fault %s never struck in %d schedules", k, n)
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
