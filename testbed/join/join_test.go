package join_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"kith/sitesched"
	"kith/testbed/join"
	"kith/testbed/metrics"
	"kith/testbed/replay"
	"kith/testbed/workload"
)

// study opens a federation.
func study(t testing.TB, text string) *join.Study {
	t.Helper()
	cfg, err := join.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	s, err := join.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func answer(t testing.TB, text string) *join.Answer {
	t.Helper()
	a, err := study(t, text).Run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// crowded is a crowded site beside an idle one of the same size.
const crowded = `
seed = 5
[placement]
scheme = "SCHEME"
[[sites]]
name = "crowded"
processors = 64
queues = "QUEUES"
generate = "ctc"
jobs = 500
load = 0.95
[[sites]]
name = "idle"
processors = 64
queues = "QUEUES"
generate = "ctc"
jobs = 250
load = 0.3
`

func crowdedUnder(scheme, queues string) string {
	return strings.NewReplacer("SCHEME", scheme, "QUEUES", queues).Replace(crowded)
}

// The figures of being alone are those of each site replayed by itself, by a
// driver that knows nothing of federations.
func TestAloneIsEachSiteByItself(t *testing.T) {
	a := answer(t, "whole = true\n"+crowdedUnder("k-dual", "dual-backfill"))
	for i, load := range []float64{0.95, 0.3} {
		w, err := workload.CTCLike{Jobs: a.Sites[i].Jobs, Processors: 64}.Generate(workload.NewRand(5, uint64(i)))
		if err != nil {
			t.Fatal(err)
		}
		if w, err = w.Fit(64, workload.Kill); err != nil {
			t.Fatal(err)
		}
		if w, err = w.ScaleLoad(load / w.OfferedLoad(64)); err != nil {
			t.Fatal(err)
		}
		schedule, err := replay.Run(t.Context(), w, sitesched.Config{Processors: 64, Backfill: sitesched.EASY}, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := metrics.Summarise(schedule.Records("x"), metrics.Options{})
		got := a.Alone.Sites[i]
		if got.Jobs != want.Jobs || got.Wait != want.Wait.Mean || got.Turnaround != want.Turnaround.Mean || got.WaitP95 != want.Wait.P95 || got.Elsewhere != 0 || got.Guests != 0 {
			t.Errorf("%s alone: %+v, want wait %v, turnaround %v", a.Sites[i].Name, got, want.Wait, want.Turnaround)
		}
	}
}

// Every job runs once, and what is done elsewhere for a site is done by others.
func TestNothingIsLostBetweenSites(t *testing.T) {
	for _, scheme := range []string{"k-dual", "k-distributed", "distributed", "mct", "hierarchical"} {
		a := answer(t, crowdedUnder(scheme, "dual-backfill"))
		for i := range a.Plans {
			p := &a.Plans[i]
			var given, taken, elsewhere float64
			jobs, guests, classes := 0, 0, 0
			for k := range p.Sites {
				x := &p.Sites[k]
				given, taken = given+x.WorkElsewhere, taken+x.WorkForOthers
				elsewhere += x.Elsewhere * float64(x.Jobs)
				jobs, guests = jobs+x.Jobs, guests+x.Guests
				for _, c := range x.Classes {
					classes += c.Jobs
				}
				if x.Utilisation <= 0 || x.Utilisation > 1 {
					t.Errorf("%s: utilisation %v of %s", p.Name, x.Utilisation, x.Site)
				}
			}
			if math.Abs(given-taken) > 1e-6 || given == 0 || math.Round(elsewhere) != float64(guests) {
				t.Errorf("%s: %v processor-hours elsewhere, %v for others; %v jobs and %d guests", p.Name, given, taken, elsewhere, guests)
			}
			if jobs != a.Alone.All.Jobs || classes != jobs || p.All.Jobs != jobs {
				t.Errorf("%s: %d jobs, %d in classes, alone %d", p.Name, jobs, classes, a.Alone.All.Jobs)
			}
			if p.MessagesPerJob <= 0 {
				t.Errorf("%s: %v messages a job", p.Name, p.MessagesPerJob)
			}
		}
		if a.Alone.MessagesPerJob != 0 {
			t.Errorf("alone: %v messages a job", a.Alone.MessagesPerJob)
		}
	}
}

// A job is short or long by what it takes at home: where it runs under a plan, on
// slower or faster machines, makes no other kind of it, and a job that starts at
// once on a faster machine is not slowed down.
func TestKindsOfJobsAreThoseOfTheirOrigin(t *testing.T) {
	fast := strings.Replace(crowdedUnder("k-dual", "dual-backfill"), "name = \"idle\"", "name = \"idle\"\nspeed = 4.0", 1)
	for _, text := range []string{fast, strings.Replace(fast, "speed = 4.0", "speed = 0.3", 1), strings.ReplaceAll(fast, "k-dual", "mct")} {
		a := answer(t, text)
		for i := range a.Plans {
			p := &a.Plans[i]
			moved := 0.0
			for k := range p.Sites {
				moved += p.Sites[k].Elsewhere
				for c := range p.Sites[k].Classes {
					if was, is := a.Alone.Sites[k].Classes[c].Jobs, p.Sites[k].Classes[c].Jobs; was != is {
						t.Errorf("%s: %s has %d %v jobs alone and %d joined", p.Name, p.Sites[k].Site, was, metrics.Class(c), is)
					}
				}
			}
			if moved == 0 {
				t.Errorf("%s: no job moved, nothing was tested", p.Name)
			}
		}
	}
	// A job that is done sooner elsewhere is slowed down less, not more.
	a := answer(t, fast)
	for c, joined := range a.Plans[a.Best].Sites[0].Classes {
		if alone := &a.Alone.Sites[0].Classes[c]; joined.Turnaround < alone.Turnaround && joined.BoundedSlowdown > alone.BoundedSlowdown {
			t.Errorf("%v jobs of crowded: turnaround %v → %v, bounded slowdown %v → %v", metrics.Class(c), alone.Turnaround, joined.Turnaround, alone.BoundedSlowdown, joined.BoundedSlowdown)
		}
	}
}

// A crowded site beside an idle one is not fair; sharing makes it fairer.
func TestFairness(t *testing.T) {
	a := answer(t, crowdedUnder("distributed", "single"))
	alone, joined := &a.Alone.Fairness, &a.Plans[a.Best].Fairness
	lo, hi := a.Alone.Sites[1].BoundedSlowdown, a.Alone.Sites[0].BoundedSlowdown
	want := (lo + hi) * (lo + hi) / (2 * (lo*lo + hi*hi))
	if f := &alone.Users; math.Abs(f.Jain-want) > 1e-9 || math.Abs(f.Min-lo) > 1e-9*lo || math.Abs(f.Max-hi) > 1e-9*hi || alone.Users != alone.Machines {
		t.Errorf("alone: %+v, want index %v from %v to %v, for users and machines", alone, want, lo, hi)
	}
	if !(joined.Users.Jain > alone.Users.Jain) || joined.Users == joined.Machines {
		t.Errorf("joined: %+v, alone %+v", joined, alone)
	}
}

// Loads older than daemons go by are used only if the file asks for them, and
// the answer says so.
func TestOldLoadsAreTold(t *testing.T) {
	for age, told := range map[string]bool{"30s": false, "1m": false, "2h": true} {
		a := answer(t, strings.Replace(crowdedUnder("k-dual", "dual-backfill"), "[placement]\n", "[placement]\nload_age = \""+age+"\"\n", 1))
		if got := strings.Contains(strings.Join(a.Sentences, "\n"), "loads that were up to 2 h old, as load_age asks"); got != told {
			t.Errorf("load_age %s: told %v, want %v: %q", age, got, told, a.Sentences)
		}
	}
}

// A crowded site gains from an idle one. With a queue each for its own jobs the
// idle one keeps what it had; with one queue for all it pays.
func TestWhoWinsAndWhoLoses(t *testing.T) {
	for _, c := range []struct {
		scheme, queues string
		idle           join.Effect
		join           join.Advice
		says           string
	}{
		{"k-dual", "dual-backfill", join.Wins, join.Yes, "Yes, join: with k-dual, K = 2, every site gains"},
		{"distributed", "single", join.Loses, join.Depends, "It depends: with scheme distributed, crowded gains, idle loses"},
	} {
		a := answer(t, crowdedUnder(c.scheme, c.queues))
		best := &a.Plans[a.Best]
		if best.Sites[0].Effect != join.Wins || best.Sites[1].Effect != c.idle || a.Join != c.join {
			t.Errorf("%s: crowded %+v, idle %+v, join %s", c.scheme, best.Sites[0].Figures, best.Sites[1].Figures, a.Join)
		}
		if !strings.HasPrefix(a.Sentences[0], c.says) {
			t.Errorf("%s: says %q, want %q", c.scheme, a.Sentences[0], c.says)
		}
		for _, site := range []string{"crowded", "idle"} {
			if n := strings.Count(strings.Join(a.Sentences[1:], "\n"), "\n"+site+":") + strings.Count(a.Sentences[1], site+":"); n != 1 {
				t.Errorf("%s: %d sentences about %s in %q", c.scheme, n, site, a.Sentences)
			}
		}
	}
	// What the idle site is told if it asks.
	a := answer(t, "asks = \"idle\"\n"+crowdedUnder("distributed", "single"))
	if a.Join != join.No || !strings.HasPrefix(a.Sentences[0], "No, idle would lose") {
		t.Errorf("asked by idle: %s, %q", a.Join, a.Sentences[0])
	}
	a = answer(t, "asks = \"crowded\"\n"+crowdedUnder("distributed", "single"))
	if a.Join != join.Depends || !strings.HasPrefix(a.Sentences[0], "Good for crowded, but not for all") {
		t.Errorf("asked by crowded: %s, %q", a.Join, a.Sentences[0])
	}
}

// Two runs of one file say the same, whatever the time.
func TestSameFileSameAnswer(t *testing.T) {
	first, err := json.Marshal(answer(t, crowdedUnder("k-dual", "dual-backfill")))
	if err != nil {
		t.Fatal(err)
	}
	second, err := json.Marshal(answer(t, crowdedUnder("k-dual", "dual-backfill")))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Error("two runs differ")
	}
	other, err := json.Marshal(answer(t, strings.Replace(crowdedUnder("k-dual", "dual-backfill"), "seed = 5", "seed = 6", 1)))
	if err != nil || bytes.Equal(first, other) {
		t.Errorf("another seed, %v: the same answer", err)
	}
}

// Jobs outside of the time that all logs cover are left out, and zones move
// a site's day.
func TestTimeThatAllLogsCover(t *testing.T) {
	const text = `
[[sites]]
name = "a"
processors = 16
generate = "ctc"
jobs = 300
[[sites]]
name = "b"
processors = 16
zone = "-5h"
generate = "ctc"
jobs = 100
`
	a := answer(t, text)
	if a.Sites[0].LeftOut < 80 || a.Sites[0].Jobs+a.Sites[0].LeftOut != 300 || a.Sites[1].Jobs != 100 {
		t.Errorf("sites %+v", a.Sites)
	}
	whole := answer(t, "whole = true\n"+text)
	if whole.Sites[0].Jobs != 300 || whole.Sites[0].LeftOut != 0 {
		t.Errorf("whole: %+v", whole.Sites[0])
	}
	// Both calendars are made up and begin on one date.
	if c := answer(t, "align = \"calendar\"\n"+text); c.Sites[1].Jobs+c.Sites[1].LeftOut != 100 {
		t.Errorf("calendar: %+v", c.Sites[1])
	}
}

func TestProgressAndStop(t *testing.T) {
	s := study(t, crowdedUnder("k-dual", "dual-backfill"))
	last, total := 0, 0
	if _, err := s.Run(t.Context(), func(done, of int) { last, total = done, of }); err != nil {
		t.Fatal(err)
	}
	if total != s.Jobs()*s.Runs() || last != total {
		t.Errorf("progress ended with %d of %d; %d jobs, %d runs", last, total, s.Jobs(), s.Runs())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := study(t, "whole = true\n"+strings.ReplaceAll(crowdedUnder("k-dual", "dual-backfill"), "jobs = 500", "jobs = 20000")).Run(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}

// The page is one file with all its plots, and loads nothing from elsewhere.
func TestPage(t *testing.T) {
	for _, text := range []string{crowdedUnder("k-dual", "dual-backfill"), crowdedUnder("mct", "single"), "asks = \"idle\"\ntitle = \"A <b> & C\"\n" + crowdedUnder("k-dual", "dual-backfill")} {
		a := answer(t, text)
		a.ElapsedSeconds = time.Second.Seconds()
		var b bytes.Buffer
		if err := a.Page().WriteHTML(&b); err != nil {
			t.Fatal(err)
		}
		html := b.String()
		if n := strings.Count(html, "<svg"); n < 9 {
			t.Errorf("%d plots", n)
		}
		if m := regexp.MustCompile(`(src|href)\s*=\s*["']?(https?:)?//|url\(["']?http|@import`).FindString(html); m != "" {
			t.Errorf("the page loads something: %q", m)
		}
		if strings.Contains(html, "<b>") || strings.Contains(html, "NaN") || !strings.Contains(html, "processor-hours") {
			t.Error("the page has a title that was not escaped, a figure that is no number, or no figures at all")
		}
	}
}
