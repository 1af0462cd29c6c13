package whatif

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"kith/internal/job"
	"kith/sitesched"
	"kith/testbed/join"
	"kith/testbed/replay"
	"kith/testbed/workload"
)

// now is when all questions are asked.
var now = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// site is a site of some processors.
func site(processors int32) sitesched.Config {
	return sitesched.Config{
		Processors: processors, Backfill: sitesched.EASY, Queues: sitesched.DualBackfill, Scope: sitesched.ScopeAll, GuaranteeDepth: 1000, Patience: 10 * time.Minute,
	}
}

// month is what a site did, as its scheduler does it: n jobs, of which every fifth is of a guest.
func month(t testing.TB, n int, cfg sitesched.Config, users int64) []Attempt {
	t.Helper()
	w, err := workload.CTCLike{Jobs: n, Processors: cfg.Processors, Load: 0.8}.Generate(workload.NewRand(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	if w, err = w.Fit(cfg.Processors, workload.Kill); err != nil {
		t.Fatal(err)
	}
	guest := make([]bool, len(w.Jobs))
	for i := range guest {
		guest[i] = i%5 == 4
	}
	s, err := replay.RunShared(context.Background(), w, guest, cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	last := job.Time(0)
	for _, end := range s.Ends {
		last = max(last, end)
	}
	begin := now.Add(-time.Duration(last))
	list := make([]Attempt, len(w.Jobs))
	for i := range list {
		j := &w.Jobs[i]
		list[i] = Attempt{
			Origin: "home", Host: "home", User: int64(i) % users, Submit: begin.Add(time.Duration(j.Submit)), Start: begin.Add(time.Duration(s.Starts[i])),
			End: begin.Add(time.Duration(s.Ends[i])), Run: j.Run, Limit: j.Estimate, Processors: j.Procs,
		}
		if guest[i] {
			list[i].Origin = []job.SiteID{"abroad", "beyond"}[i/5%2]
		}
	}
	return list
}

func ask(cfg sitesched.Config, c Changes) Question {
	return Question{Site: "home", Now: now, Days: MaxDays, Config: cfg, Changes: c}
}

func answered(t testing.TB, q Question, past []Attempt) *Answer {
	t.Helper()
	s, err := Open(q, past)
	if err != nil {
		t.Fatal(err)
	}
	a, err := s.Run(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// The replay of what was is what was, where there were no drains, claims and files; a site
// as it is changes nothing.
func TestWhatWasIsReplayed(t *testing.T) {
	cfg := site(64)
	queues := cfg.Queues
	a := answered(t, ask(cfg, Changes{Queues: &queues}), month(t, 1500, cfg, 20))
	for _, g := range append(a.Groups, a.All) {
		if g.Was.Wait == 0 || g.Was.Wait != g.Recorded.Wait || g.Was.Turnaround != g.Recorded.Turnaround {
			t.Errorf("%s: recorded %+v, replayed %+v", g.Name, g.Recorded, g.Was)
		}
		if g.Then.Turnaround != g.Was.Turnaround || g.Then.Effect != join.Even || g.Users.Win+g.Users.Lose > 0 {
			t.Errorf("%s: as it is %+v, as it is again %+v, %+v", g.Name, g.Was, g.Then, g.Users)
		}
	}
	if a.Was != a.Then || a.Effect != join.Even || len(a.Groups) != 3 || a.All.Users.Even != 20 {
		t.Errorf("%+v, %+v, %s, %d groups, %+v", a.Was, a.Then, a.Effect, len(a.Groups), a.All.Users)
	}
}

// More load: so much more work, jobs that are compared stay the same, and wait longer.
func TestAddLoad(t *testing.T) {
	cfg := site(64)
	past := month(t, 1500, cfg, 20)
	q := ask(cfg, Changes{AddLoad: 0.2})
	a := answered(t, q, past)
	if a.Added == nil || a.Added.Share < 0.19 || a.Added.Share > 0.21 || a.Added.Jobs < 100 || a.Then.Jobs != a.Was.Jobs+a.Added.Jobs {
		t.Errorf("added %+v, %d jobs and then %d", a.Added, a.Was.Jobs, a.Then.Jobs)
	}
	if a.All.Then.Jobs != 1500 || a.All.Then.Wait <= a.All.Was.Wait || a.Effect != join.Loses || a.Then.OfferedLoad < 1.15*a.Was.OfferedLoad {
		t.Errorf("%+v, %s, offered %v and then %v", a.All.Then, a.Effect, a.Was.OfferedLoad, a.Then.OfferedLoad)
	}
	if again := answered(t, q, past); !reflect.DeepEqual(again, a) {
		t.Error("the same seed gives another answer")
	}
	q.Seed = 1
	if other := answered(t, q, past); other.All.Then.Wait == a.All.Then.Wait {
		t.Error("another seed draws the same jobs")
	}
}

// Fewer processors: jobs that are wider cannot run and are told, the others wait longer.
func TestFewerProcessors(t *testing.T) {
	cfg := site(64)
	past := month(t, 1500, cfg, 20)
	wide := map[string]int{}
	for i := range past {
		if past[i].Processors > 40 {
			wide[string(past[i].Origin)]++
		}
	}
	a := answered(t, ask(cfg, Changes{Processors: 40}), past)
	sum := 0
	for i := range a.Groups {
		if g := &a.Groups[i]; g.TooWide.Jobs != wide[g.Name] {
			t.Errorf("%s: %d jobs are too wide, %d told", g.Name, wide[g.Name], g.TooWide.Jobs)
		}
		sum += a.Groups[i].TooWide.Jobs
	}
	if sum == 0 || a.All.TooWide.Jobs != sum || a.All.Then.Jobs != 1500-sum || a.All.Was.Jobs != a.All.Then.Jobs || a.All.TooWide.ProcessorHours <= 0 {
		t.Errorf("%d too wide, %+v, compared %d and %d", sum, a.All.TooWide, a.All.Was.Jobs, a.All.Then.Jobs)
	}
	if a.Effect != join.Loses || !strings.Contains(strings.Join(a.Sentences, " "), "need more than 40 processors and could not run here at all") {
		t.Errorf("%s: %q", a.Effect, a.Sentences)
	}
	if want := fmt.Sprintf("%d of its 1200 jobs could not run at all", wide["home"]); !strings.Contains(a.Sentences[0], want) {
		t.Errorf("the first sentence is %q and lacks %q", a.Sentences[0], want)
	}
	if b := answered(t, ask(cfg, Changes{Processors: 640}), past); b.Effect != join.Wins || b.All.Then.WaitP95 != 0 {
		t.Errorf("with ten times the processors: %s, %+v", b.Effect, b.All.Then)
	}
}

// What cannot run at all is no gain, however much better the others fare without it.
func TestJobsThatCannotRunAreNoGain(t *testing.T) {
	var past []Attempt
	for i := range 40 {
		at := now.Add(-48 * time.Hour).Add(time.Duration(i) * time.Hour)
		procs := int32(8)
		if i%2 == 1 {
			procs = 1
		}
		past = append(past, Attempt{Origin: "home", Host: "home", Submit: at, Start: at, End: at.Add(time.Hour), Run: 90 * time.Minute, Limit: 2 * time.Hour, Processors: procs})
	}
	a := answered(t, ask(site(8), Changes{Processors: 7}), past)
	if a.Groups[0].Then.Effect != join.Wins || a.Effect != join.Loses || !strings.HasPrefix(a.Sentences[0], "Worse for the users of home: ") {
		t.Errorf("%s, %s: %q", a.Groups[0].Then.Effect, a.Effect, a.Sentences[0])
	}
}

// One queue instead of two: guests gain what the site's own users lose.
func TestQueues(t *testing.T) {
	cfg, queues := site(64), sitesched.Single
	a := answered(t, ask(cfg, Changes{Queues: &queues}), month(t, 1500, cfg, 20))
	if a.Groups[0].Then.Effect != join.Loses || a.Groups[1].Then.Effect != join.Wins || a.Groups[2].Then.Effect != join.Wins {
		t.Errorf("%+v", a.Groups)
	}
	policy := sitesched.NoBackfill
	if a = answered(t, ask(cfg, Changes{Backfill: &policy}), month(t, 1500, cfg, 20)); a.Groups[0].Then.Effect != join.Loses || a.Then.Policy == a.Was.Policy {
		t.Errorf("without backfill %s, %s", a.Groups[0].Then.Effect, a.Then.Policy)
	}
}

// A site that is gone: its guests do not come, and what it ran for this site runs here.
func TestLose(t *testing.T) {
	cfg := site(64)
	past := month(t, 1500, cfg, 20)
	gone, returned := 0, 0
	for i := range past {
		switch {
		case past[i].Origin == "beyond":
			gone++
		case i%10 == 0:
			past[i].Host = "beyond"
			returned++
		}
	}
	a := answered(t, ask(cfg, Changes{Lose: []job.SiteID{"beyond"}}), past)
	if a.All.Gone.Jobs != gone || a.All.Returned.Jobs != returned || a.Groups[0].Returned.Jobs == 0 || a.Was.Jobs != 1500-returned || a.Then.Jobs != 1500-gone {
		t.Errorf("gone %+v of %d, returned %+v of %d, %d jobs and then %d", a.All.Gone, gone, a.All.Returned, returned, a.Was.Jobs, a.Then.Jobs)
	}
	// Those that ran there are compared with what was recorded.
	if a.Groups[0].Was.Jobs != a.Groups[0].Then.Jobs || a.LeftOut.Elsewhere > 0 {
		t.Errorf("%d and %d jobs, left out %+v", a.Groups[0].Was.Jobs, a.Groups[0].Then.Jobs, a.LeftOut)
	}
	// Without the question they are elsewhere.
	if a = answered(t, ask(cfg, Changes{Processors: 65}), past); a.LeftOut.Elsewhere != returned {
		t.Errorf("left out %+v, %d elsewhere", a.LeftOut, returned)
	}
}

// A bound on guests: those that ask for more time do not come, the site's own users gain.
func TestGuestWalltime(t *testing.T) {
	cfg := site(64)
	past := month(t, 1500, cfg, 20)
	long := 0
	for i := range past {
		if past[i].Origin != "home" && past[i].Limit > 2*time.Hour {
			long++
		}
	}
	a := answered(t, ask(cfg, Changes{GuestWalltime: 2 * time.Hour}), past)
	if long == 0 || a.All.TooLong.Jobs != long || a.Groups[0].TooLong.Jobs != 0 || a.Then.Jobs != 1500-long || a.Groups[0].Then.Jobs != 1200 || a.Groups[1].Then.Jobs >= a.Groups[1].TooLong.Jobs+150 {
		t.Errorf("%d too long, %+v, %d jobs, %s %+v", long, a.All.TooLong, a.Then.Jobs, a.Effect, a.Groups)
	}
	if a.Changes != "with guests of at most 2 h" {
		t.Errorf("changes: %s", a.Changes)
	}
}

// In a federation: all that ran here is the site's own, and the answer is about its users.
func TestJoin(t *testing.T) {
	cfg := site(64)
	s, err := Open(ask(cfg, Changes{}), month(t, 600, cfg, 20))
	if err != nil {
		t.Fatal(err)
	}
	log := logFile(t, "Partner-1.swf", 300, 64)
	study, err := s.Join([]string{log, log})
	if err != nil {
		t.Fatal(err)
	}
	a, err := study.Run(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Sites) != 3 || a.Sites[0].Name != "home" || a.Sites[1].Name != "partner-1" || a.Sites[2].Name != "partner-1-2" || a.Asks != "home" || len(a.Plans) != 2 {
		t.Errorf("%+v", a.Sites)
	}
	var page strings.Builder
	if err := a.Page().WriteHTML(&page); err != nil || !strings.Contains(page.String(), "guests included") || !strings.Contains(page.String(), "Made by kith what-if site from") {
		t.Errorf("%v, page of %d bytes", err, page.Len())
	}
	if _, err = s.Join([]string{log, "gone.swf"}); err == nil || !strings.Contains(err.Error(), "there is no such file") {
		t.Errorf("a log that is not there: %v", err)
	}
	if _, err = s.Join(make([]string, MaxJoined+1)); !errors.Is(err, ErrQuestion) {
		t.Errorf("too many logs: %v", err)
	}
}

func TestSiteNames(t *testing.T) {
	taken := map[string]bool{"home": true}
	for _, x := range [][2]string{
		{"a/Uni-B.swf.gz", "uni-b"}, {"uni-b.txt", "uni-b-2"}, {"2025 März.swf", "m-rz"}, {"home.swf", "home-2"}, {"42.swf", "partner"}, {".", "partner-2"},
		{strings.Repeat("x", 80), strings.Repeat("x", 28)},
	} {
		name := siteName(x[0], taken)
		if _, err := job.ParseSiteID(name); err != nil || name != x[1] {
			t.Errorf("%s: %s, %v, want %s", x[0], name, err, x[1])
		}
	}
}

// What nobody can answer is refused, with the value and the remedy.
func TestBadQuestions(t *testing.T) {
	cfg := site(64)
	past := month(t, 100, cfg, 20)
	for name, c := range map[string]struct {
		change func(*Question)
		past   []Attempt
		want   string
		kind   error
	}{
		"no past":           {nil, nil, "home remembers no attempt that has ended", ErrNoPast},
		"too old":           {func(q *Question) { q.Now = now.Add(90 * 24 * time.Hour); q.Days = 28 }, past, "no job that ran at home has ended in the last 28 days; 100 attempts ended earlier", ErrNoPast},
		"nothing ran here":  {func(q *Question) { q.Site = "nowhere" }, past, "100 ran elsewhere", ErrNoPast},
		"unknown site":      {func(q *Question) { q.Changes.Lose = []job.SiteID{"atlantis"} }, past, "lose atlantis: nothing that is past here came from there or ran there; name one of abroad, beyond", ErrQuestion},
		"itself":            {func(q *Question) { q.Changes.Lose = []job.SiteID{"home"} }, past, "lose home: is the site itself", ErrQuestion},
		"twice":             {func(q *Question) { q.Changes.Lose = []job.SiteID{"beyond", "beyond"} }, past, "lose beyond: is named twice", ErrQuestion},
		"no processors":     {func(q *Question) { q.Changes.Processors = -1 }, past, "processors -1: give 1 to 16777216", ErrQuestion},
		"many processors":   {func(q *Question) { q.Changes.Processors = job.MaxProcessors + 1 }, past, "processors 16777217: give 1 to 16777216", ErrQuestion},
		"negative load":     {func(q *Question) { q.Changes.AddLoad = -0.1 }, past, "add-load -10%: give a share above 0% and up to 1000%", ErrQuestion},
		"too much load":     {func(q *Question) { q.Changes.AddLoad = 11 }, past, "add-load 1100%", ErrQuestion},
		"negative limit":    {func(q *Question) { q.Changes.GuestWalltime = -1 }, past, "guest-walltime -1ns: give more than 0", ErrQuestion},
		"no days":           {func(q *Question) { q.Days = 0 }, past, "days 0: give 1 to 3660", ErrQuestion},
		"no site":           {func(q *Question) { q.Config.Processors = 0 }, past, "site home: processors 0", ErrQuestion},
		"everybody is gone": {func(q *Question) { q.Changes.Lose = []job.SiteID{"beyond"} }, of(past, "beyond"), "are of guests that would not come", ErrNoPast},
		"narrower than all": {func(q *Question) { q.Changes.Processors = 1 }, wider(past, 1), "processors 1: no job that ran at home is as narrow; the narrowest has 2", ErrNoPast},
		"all were wider":    {func(q *Question) { q.Config.Processors = 1 }, wider(past, 1), "is wider than it is now (1 processors)", ErrNoPast},
	} {
		q := ask(cfg, Changes{Processors: 32})
		if c.change != nil {
			c.change(&q)
		}
		if _, err := Open(q, c.past); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func of(past []Attempt, origin job.SiteID) (list []Attempt) {
	for _, a := range past {
		if a.Origin == origin {
			list = append(list, a)
		}
	}
	return list
}

func wider(past []Attempt, than int32) (list []Attempt) {
	for _, a := range past {
		if a.Processors > than {
			list = append(list, a)
		}
	}
	return list
}

// Attempts that cannot be, or never ran, are counted and left out.
func TestOddAttempts(t *testing.T) {
	cfg := site(64)
	past := month(t, 50, cfg, 20)
	odd := func(change func(*Attempt)) {
		a := past[0]
		change(&a)
		past = append(past, a)
	}
	odd(func(a *Attempt) { a.Start = time.Time{} })
	odd(func(a *Attempt) { a.Run = 0 })
	odd(func(a *Attempt) { a.Host = "" })
	odd(func(a *Attempt) { a.Run = -1 })
	odd(func(a *Attempt) { a.Submit = time.Time{} })
	odd(func(a *Attempt) { a.Processors = 0 })
	odd(func(a *Attempt) { a.Run = job.MaxWalltime + 1 })
	odd(func(a *Attempt) { a.End = a.End.AddDate(50, 0, 0) })
	odd(func(a *Attempt) { a.Host = "beyond" })
	odd(func(a *Attempt) { a.Processors = 65 })
	a := answered(t, ask(cfg, Changes{Processors: 128}), past)
	want := LeftOut{NeverRan: 4, Senseless: 4, Elsewhere: 1, TooWide: 1}
	if a.LeftOut != want || a.Was.Jobs != 50 {
		t.Errorf("%d jobs, left out %+v, want %+v", a.Was.Jobs, a.LeftOut, want)
	}
	// Clocks of two machines: a start before the submission, a run beyond its limit, no limit.
	past = past[:3]
	past[0].Start = past[0].Submit.Add(-time.Minute)
	past[1].Run = past[1].Limit + time.Hour
	past[2].Limit = 0
	if a = answered(t, ask(cfg, Changes{Processors: 128}), past); a.Was.Jobs != 3 || a.All.Recorded.Wait < 0 {
		t.Errorf("%d jobs, %+v", a.Was.Jobs, a.All.Recorded)
	}
}

// A past of one job, of a million, of one user with 100,000 jobs and of 100,000 users with one.
func TestSizesOfThePast(t *testing.T) {
	cfg := sitesched.Config{Processors: 64, Backfill: sitesched.EASY}
	short := testing.Short()
	for _, c := range []struct {
		name        string
		jobs        int
		users       int64
		long        bool
		wantedUsers int
	}{
		{"one job", 1, 1, false, 1},
		{"one user with 100,000 jobs", 100_000, 1, false, 1},
		{"100,000 users with one job", 100_000, 100_000, false, 100_000},
		{"a million jobs", 1_000_000, 1000, true, 1000},
	} {
		if c.long && short {
			continue
		}
		past := make([]Attempt, c.jobs)
		begin := now.Add(-time.Duration(c.jobs) * time.Second)
		for i := range past {
			at := begin.Add(time.Duration(i) * time.Second)
			past[i] = Attempt{
				Origin: "home", Host: "home", User: int64(i) % c.users, Submit: at, Start: at, End: at.Add(50 * time.Second), Run: 50 * time.Second, Limit: time.Minute,
				Processors: 1,
			}
		}
		a := answered(t, ask(cfg, Changes{Processors: 45}), past)
		u := a.Groups[0].Users
		if a.All.Then.Jobs != c.jobs || u.Win+u.Lose+u.Even != c.wantedUsers || c.jobs > 1 && a.Effect != join.Loses || c.jobs == 1 && a.Effect != join.Even {
			t.Errorf("%s: %d jobs, %+v, %s", c.name, a.All.Then.Jobs, u, a.Effect)
		}
	}
	if _, err := Open(ask(cfg, Changes{Processors: 45}), make([]Attempt, MaxJobs+1)); !errors.Is(err, ErrQuestion) {
		t.Errorf("too many: %v", err)
	}
	one := []Attempt{{Origin: "home", Host: "home", Submit: now.Add(-time.Hour), Start: now.Add(-time.Hour), End: now.Add(-time.Minute), Run: time.Minute, Limit: time.Hour, Processors: 4}}
	if a := answered(t, ask(cfg, Changes{AddLoad: 0.2}), one); a.Added.Jobs != 1 || a.Added.Share != 1 {
		t.Errorf("more load of one job: %+v", a.Added)
	}
}

// Many guests share a row, and the page shows what there is.
func TestManyGuests(t *testing.T) {
	cfg := site(64)
	past := month(t, 400, cfg, 20)
	for i := range past {
		if past[i].Origin != "home" {
			past[i].Origin = job.SiteID(fmt.Sprintf("guest-%d", i%40))
		}
	}
	a := answered(t, ask(cfg, Changes{AddLoad: 1}), past)
	jobs := 0
	for i := range a.Groups {
		jobs += a.Groups[i].Then.Jobs
	}
	if len(a.Groups) > maxGuests+1 || jobs != 400 {
		t.Errorf("%d groups with %d jobs", len(a.Groups), jobs)
	}
	var page strings.Builder
	if err := a.Page().WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"What if home had been with 100% more load?", "<svg", "long-wide", "Made by kith what-if site"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// A replay that is given up says why.
func TestRunIsGivenUp(t *testing.T) {
	cfg := site(64)
	s, err := Open(ask(cfg, Changes{AddLoad: 1}), month(t, 400, cfg, 20))
	if err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(enough)
	if _, err := s.Run(ctx, nil); !errors.Is(err, enough) {
		t.Errorf("error %v", err)
	}
}

// A handful of jobs is no ground for a decision, and the answer says so.
func TestFewJobsSayLittle(t *testing.T) {
	t.Parallel()
	cfg := site(64)
	for n, want := range map[int]bool{25: true, 200: false} {
		a := answered(t, ask(cfg, Changes{Processors: 65}), month(t, n, cfg, 2))
		if said := strings.Contains(strings.Join(a.Sentences, "\n"), "in which chance decides"); said != want {
			t.Errorf("%d jobs: %v", n, a.Sentences)
		}
	}
}
