package whatif

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"kith/internal/job"
	"kith/testbed/metrics"
	"kith/testbed/replay"
	"kith/testbed/workload"
)

// What guests cost is against the site's own jobs alone, wherever they ran: as it is, and as it
// would be.
func TestHarm(t *testing.T) {
	t.Parallel()
	cfg := site(64)
	past := month(t, 1500, cfg, 20)
	away := 0
	for i := range past {
		if past[i].Origin == "home" && i%10 == 0 {
			past[i].Host, past[i].Start = "beyond", past[i].Submit.Add(time.Minute)
			past[i].End = past[i].Start.Add(past[i].Run)
			away++
		}
	}
	a := answered(t, ask(cfg, Changes{GuestWalltime: time.Hour}), past)
	was, then := &a.WasHarm, &a.ThenHarm
	// The schedule without guests, by another way.
	home := &workload.Workload{Name: "home", Processors: 64}
	for i := range past {
		if x := &past[i]; x.Origin == "home" {
			home.Jobs = append(home.Jobs, workload.Job{ID: int64(i), Submit: job.Time(x.Submit.Sub(past[0].Submit)), Run: x.Run, Estimate: x.Limit, Procs: x.Processors})
		}
	}
	s, err := replay.Run(t.Context(), home, cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	alone := metrics.Summarise(s.Records("home"), metrics.Options{}).Wait.Mean
	for _, h := range []float64{was.Alone, then.Alone} {
		if math.Abs(h-alone) > 1e-3 {
			t.Errorf("mean wait without guests %v, want %v", h, alone)
		}
	}
	if was.Jobs != len(home.Jobs) || was.Compared != was.Jobs || then.Jobs != was.Jobs || away == 0 || was.Gains == 0 {
		t.Errorf("%d and %d jobs, %d compared, %d away, of %d", was.Jobs, then.Jobs, was.Compared, away, len(home.Jobs))
	}
	if was.Guests != a.Was.Jobs-was.Jobs+away || then.Guests != a.Then.Jobs-then.Jobs+away {
		t.Errorf("%d and %d guests of %d and %d jobs here", was.Guests, then.Guests, a.Was.Jobs, a.Then.Jobs)
	}
	if was.Blocked10m == 0 || then.Blocked10m >= was.Blocked10m || then.BlockedSeconds >= was.BlockedSeconds || was.PromisesMoved+then.PromisesMoved > 0 {
		t.Errorf("guests cost %+v, and with a bound on them %+v", was.HarmFigures, then.HarmFigures)
	}
	var page bytes.Buffer
	if err := a.Page().WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"What guests cost", "home, as it is", "home, as asked", "Lost ÷ gained"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if all := strings.Join(a.Sentences, "\n"); !strings.Contains(all, "What guests cost its users: they alone keep ") {
		t.Errorf("sentences: %s", all)
	}
}

// More load: the jobs that are made up are jobs of the site, or guests, like those they are made of.
func TestHarmOfMoreLoad(t *testing.T) {
	t.Parallel()
	cfg := site(64)
	a := answered(t, ask(cfg, Changes{AddLoad: 0.2}), month(t, 1500, cfg, 20))
	if n := a.ThenHarm.Jobs + a.ThenHarm.Guests; n != a.Then.Jobs || a.ThenHarm.Jobs <= a.WasHarm.Jobs || a.ThenHarm.Guests <= a.WasHarm.Guests {
		t.Errorf("%d jobs and %d guests of %d; as it is %d and %d", a.ThenHarm.Jobs, a.ThenHarm.Guests, a.Then.Jobs, a.WasHarm.Jobs, a.WasHarm.Guests)
	}
}

// Without guests, and with nothing elsewhere, there is nothing to tell.
func TestNoHarmWithoutGuests(t *testing.T) {
	t.Parallel()
	cfg := site(64)
	a := answered(t, ask(cfg, Changes{Processors: 65}), of(month(t, 500, cfg, 20), "home"))
	if a.Harms() != nil || strings.Contains(strings.Join(a.Sentences, "\n"), "guests cost") {
		t.Errorf("%+v, %v", a.Harms(), a.Sentences)
	}
	var page bytes.Buffer
	if err := a.Page().WriteHTML(&page); err != nil || !strings.Contains(page.String(), "No job of another site is in this past") {
		t.Errorf("the page does not say that nothing was there: %v", err)
	}
}
