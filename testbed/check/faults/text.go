package faults

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/sitesched"
)

// Bounds of a schedule in text form.
const (
	maxSites = 64
	maxItems = 10_000
	// maxMembers bounds how many members keep a site's facts.
	maxMembers = 9
	// maxSpan bounds all times: virtual, but playing them takes real time.
	maxSpan = 2 * 366 * 24 * time.Hour
)

// ErrSchedule is wrapped by all errors of [Parse].
var ErrSchedule = errors.New("not a schedule")

// String returns the schedule as [Parse] reads it: a line for each thing, the
// name of the thing first.
//
//	run seed=7 end=30m0s scheme=k-dual rank=work latency=10ms jitter=100ms sync=2ms sync-jitter=20ms
//	site s0 processors=4 backfill=easy queues=dual-backfill scope=all drift=-300 members=3 clocks=24h0m0s
//	job 1 at=10s from=s0 processors=2 copies=2 run=1m0s walltime=2m0s on-site-lost=wait staging=5s output=30s collecting=10s
//	job 3 at=10s from=s0 level=1 pieces=1 estimate=5s:120,x;1m0s:90
//	bag 1 at=10s from=s0 tasks=20 processors=1 copies=0 run=5s walltime=20s on-site-lost=rerun retries=1 max-running=5 fails=7
//	job 2 at=10s from=s0 name=x after=afterok:1,afterany:bag1,singleton
//	act cancel 1 at=40s
//	act cancel-bag 1 at=40s tasks=3-7
//	act drain s0 at=50s
//	fault crash s0 at=12s for=1m0s
//	fault freeze s1 before=launch nth=2 for=10m0s
//	fault split s0 at=12s for=10s member=2
//	fault delay s0 s1 at=20s for=1h0m0s by=30m0s
//
// A trigger of a fault between sites or at all names the site: before=verdict@s0.
// Lines that begin with # are for people, those that begin with "expect" for
// package scenarios.
func (s *Schedule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "run seed=%d end=%v scheme=%s rank=%v latency=%v jitter=%v sync=%v sync-jitter=%v",
		s.Seed, s.End, s.Scheme, s.Rank, s.Latency, s.Jitter, s.Sync, s.SyncJitter)
	if s.Watch != 0 {
		fmt.Fprintf(&b, " watch=%v", s.Watch)
	}
	b.WriteString(s.turns())
	b.WriteByte('\n')
	for i := range s.Sites {
		x := &s.Sites[i]
		fmt.Fprintf(&b, "site %s processors=%d backfill=%v queues=%v scope=%v", x.Name, x.Processors, x.Backfill, x.Queues, x.Scope)
		if x.Bound != 0 {
			fmt.Fprintf(&b, " bound=%v", x.Bound)
		}
		if x.Rank != 0 {
			fmt.Fprintf(&b, " level=%d use=%v stay=%v", x.Rank, x.Use, x.Stay)
		}
		if x.Alpha != 0 {
			fmt.Fprintf(&b, " alpha=%v", x.Alpha)
		}
		if x.Share != 0 {
			fmt.Fprintf(&b, " share=%v", x.Share)
		}
		if x.Drift != 0 {
			fmt.Fprintf(&b, " drift=%d", x.Drift)
		}
		if x.Members != 0 {
			fmt.Fprintf(&b, " members=%d", x.Members)
		}
		if x.Clocks != 0 {
			fmt.Fprintf(&b, " clocks=%v", x.Clocks)
		}
		b.WriteString(x.String() + "\n")
	}
	for i := range s.Jobs {
		x := &s.Jobs[i]
		fmt.Fprintf(&b, "job %d at=%v from=%s processors=%d copies=%d run=%v walltime=%v", x.Number, x.At, x.From, x.Processors, x.Copies, x.Run, x.Walltime)
		if x.OnSiteLost != job.Wait {
			fmt.Fprintf(&b, " on-site-lost=%s", lostWords[x.OnSiteLost])
		}
		if x.Staging != 0 {
			fmt.Fprintf(&b, " staging=%v", x.Staging)
		}
		if x.Output != 0 {
			fmt.Fprintf(&b, " output=%v", x.Output)
		}
		if x.Collecting != 0 {
			fmt.Fprintf(&b, " collecting=%v", x.Collecting)
		}
		if x.Pieces != 0 {
			fmt.Fprintf(&b, " pieces=%d", x.Pieces)
		}
		if x.Every != 0 {
			fmt.Fprintf(&b, " every=%v", x.Every)
		}
		if x.Level != 0 {
			fmt.Fprintf(&b, " level=%d", x.Level)
		}
		if len(x.Estimators) > 0 {
			b.WriteString(" estimate=" + estimatorWords(x.Estimators))
		}
		if x.Memory != 0 {
			fmt.Fprintf(&b, " memory=%d", x.Memory)
		}
		if x.Fills {
			b.WriteString(" fills=yes")
		}
		b.WriteString(x.words() + "\n")
	}
	for i := range s.Bags {
		b.WriteString(s.Bags[i].String() + "\n")
	}
	for i := range s.Streams {
		b.WriteString(s.Streams[i].String() + "\n")
	}
	for i := range s.Acts {
		x := &s.Acts[i]
		if x.Bag > 0 {
			b.WriteString(x.ofBag() + "\n")
		} else if x.Job > 0 {
			fmt.Fprintf(&b, "act %s %d at=%v\n", x.Kind, x.Job, x.At)
		} else {
			fmt.Fprintf(&b, "act %s %s at=%v\n", x.Kind, x.Site, x.At)
		}
	}
	for i := range s.Faults {
		b.WriteString(s.Faults[i].String() + "\n")
	}
	return b.String()
}

// String returns the fault's line.
func (f *Fault) String() string {
	words := []string{"fault", string(f.Kind)}
	for _, s := range []job.SiteID{f.Site, f.Other} {
		if s != "" {
			words = append(words, string(s))
		}
	}
	if p := f.Before; p != nil {
		words = append(words, fmt.Sprintf("before=%s@%s", p.Effect, p.Site), fmt.Sprintf("nth=%d", p.Nth))
	} else {
		words = append(words, fmt.Sprintf("at=%v", f.At))
	}
	words = append(words, fmt.Sprintf("for=%v", f.For))
	if f.Kind.measured() {
		words = append(words, fmt.Sprintf("by=%v", f.By))
	}
	if f.Member != 0 {
		words = append(words, fmt.Sprintf("member=%d", f.Member))
	}
	text := strings.Join(words, " ")
	switch f.Kind {
	case Change:
		text += f.To.changes()
	case Reload:
		text += f.To.String()
	}
	return text
}

var lostWords = map[job.OnSiteLost]string{job.Wait: "wait", job.Rerun: "rerun", job.Race: "race"}

// Parse reads the text form of a schedule. What a line leaves out has the
// values of an ordinary run. Its errors wrap [ErrSchedule] and name the line.
func Parse(text string) (*Schedule, error) {
	s := &Schedule{Scheme: meta.KDual, Latency: 10 * time.Millisecond, Sync: 2 * time.Millisecond, End: 30 * time.Minute}
	number := 0
	for line := range strings.Lines(text) {
		number++
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "expect ") {
			continue
		}
		l := newLine(line)
		l.read(s)
		if err := l.done(); err != nil {
			return nil, fmt.Errorf("line %d, %.80q: %w: %w", number, line, err, ErrSchedule)
		}
	}
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrSchedule)
	}
	return s, nil
}

// read takes up one line.
func (l *line) read(s *Schedule) {
	switch what := l.word("what"); what {
	case "run":
		l.readRun(s)
	case "site":
		x := Site{
			Name:     l.site(),
			Backfill: sitesched.EASY, Queues: sitesched.DualBackfill, Scope: sitesched.ScopeAll,
			Drift: l.int("drift", 0, -100_000, 100_000), Members: int(l.int("members", 0, 0, maxMembers)), Clocks: l.span("clocks", 0),
		}
		x.Bound = l.span("bound", 0)
		x.Rank, x.Use, x.Stay = int(l.int("level", 0, 0, job.MaxLevel)), l.span("use", 0), l.span("stay", 0)
		x.Alpha, x.Share = l.alpha(), l.span("share", 0)
		x.Settings = l.settings()
		x.Processors = int32(l.int("processors", 4, 1, 1<<20))
		word(l, "backfill", &x.Backfill, sitesched.ParseBackfill)
		word(l, "queues", &x.Queues, sitesched.ParseQueues)
		word(l, "scope", &x.Scope, sitesched.ParseScope)
		s.Sites = append(s.Sites, x)
	case "job":
		x := Job{
			Number: int(l.count()), At: l.span("at", 0), From: job.SiteID(l.named("from", "")), Processors: int32(l.int("processors", 1, 1, 1<<20)),
			Copies: int32(l.int("copies", 2, 0, job.MaxCopies)), Run: l.span("run", time.Minute),
		}
		x.Walltime = l.span("walltime", 2*x.Run)
		x.OnSiteLost, x.Staging, x.Output, x.Collecting = l.lost(), l.span("staging", 0), l.span("output", 0), l.span("collecting", 0)
		x.Pieces = int(l.int("pieces", 0, 0, job.MaxAttempts))
		x.Every = l.span("every", 0)
		x.Level = int(l.int("level", 0, 0, job.MaxLevel))
		x.Estimators = l.estimators()
		x.Memory, x.Fills = l.int("memory", 0, 0, 1<<50), l.named("fills", "") == "yes"
		x.Waits = l.waits()
		s.Jobs = append(s.Jobs, x)
	case "bag":
		s.Bags = append(s.Bags, l.bag())
	case "stream":
		s.Streams = append(s.Streams, l.stream())
	case "act":
		x := Act{Kind: ActKind(l.word("act"))}
		switch x.Kind {
		case Cancel, Hold, Release, Checkpoint:
			x.Job = int(l.count())
		case Drain, Resume, Forget:
			x.Site = l.site()
		case CancelBag, HoldBag, ReleaseBag, RetryBag:
			x.Bag, x.Tasks = int(l.count()), l.tasks()
		case BudgetBag:
			x.Bag, x.Budget = int(l.count()), uint32(l.int("budget", 0, 0, 1<<31))
		case PolicyBag:
			x.Bag, x.Stance, x.Stale = int(l.count()), int(l.int("policies", 0, 0, int64(len(stances)-1))), l.named("stale", "") == "yes"
		default:
			l.fail("act %q: choose cancel, hold, release, checkpoint, drain, resume, forget, cancel-bag, hold-bag, release-bag, retry-bag, budget-bag or policy-bag", x.Kind)
		}
		x.At = l.span("at", 0)
		s.Acts = append(s.Acts, x)
	case "fault":
		s.Faults = append(s.Faults, l.fault())
	default:
		l.fail("%q: choose run, site, job, bag, stream, act or fault", what)
	}
}

func (l *line) readRun(s *Schedule) {
	s.Seed = uint64(l.int("seed", 0, 0, 1<<62))
	s.End = l.span("end", s.End)
	s.Scheme = meta.Scheme(l.named("scheme", string(s.Scheme)))
	word(l, "rank", &s.Rank, func(text string) (meta.Rank, error) {
		r, ok := meta.ParseRank(text)
		if !ok {
			return 0, fmt.Errorf("rank %q: choose work, procs, start or completion", text)
		}
		return r, nil
	})
	s.Latency, s.Jitter = l.span("latency", s.Latency), l.span("jitter", 0)
	s.Sync, s.SyncJitter = l.span("sync", s.Sync), l.span("sync-jitter", 0)
	s.Watch = l.span("watch", 0)
	l.readTurns(s)
}

func (l *line) fault() Fault {
	f := Fault{Kind: Kind(l.word("fault"))}
	known := false
	kinds := slices.Concat(Kinds(), WideKinds(), MemberKinds())
	for _, k := range kinds {
		known = known || k == f.Kind
	}
	if !known {
		l.fail("fault %q: choose one of %v", f.Kind, kinds)
		return f
	}
	if f.Kind.places() > 0 {
		f.Site = l.site()
	}
	if f.Kind.places() > 1 {
		f.Other = l.site()
	}
	if before := l.named("before", ""); before != "" {
		effect, at, named := strings.Cut(before, "@")
		f.Before = &Point{Site: f.Site, Effect: effect, Nth: int(l.int("nth", 1, 1, 1<<30))}
		if named {
			f.Before.Site = job.SiteID(at)
		}
	} else {
		f.At = l.span("at", 0)
	}
	f.For = l.span("for", time.Minute)
	if f.Kind.measured() {
		f.By = l.span("by", time.Second)
	}
	if f.Kind.ofOne() {
		f.Member = int(l.int("member", 0, 0, maxMembers))
	}
	switch f.Kind {
	case Change:
		f.To = l.changes()
	case Reload:
		if f.To = l.settings(); f.To.needsRestart() {
			l.fail("fault reload: what changes processors, memory, queues or peers is a fault change")
		}
	}
	return f
}

func (l *line) lost() job.OnSiteLost {
	text := l.named("on-site-lost", "wait")
	for lost, word := range lostWords {
		if word == text {
			return lost
		}
	}
	l.fail("on-site-lost %q: choose wait, rerun or race", text)
	return job.Wait
}

// check finds what no line shows by itself.
func (s *Schedule) check() error {
	if len(s.Sites) < 1 || len(s.Sites) > maxSites || len(s.Jobs)+len(s.Bags)+len(s.Streams)+len(s.Acts)+len(s.Faults) > maxItems {
		return fmt.Errorf("%d sites and %d other lines: choose 1 to %d sites and at most %d lines",
			len(s.Sites), len(s.Jobs)+len(s.Bags)+len(s.Acts)+len(s.Faults), maxSites, maxItems)
	}
	for i := range s.Sites {
		if s.site(s.Sites[i].Name) != &s.Sites[i] {
			return fmt.Errorf("site %s: named twice", s.Sites[i].Name)
		}
	}
	known := func(name job.SiteID, what string) error {
		if s.site(name) == nil {
			return fmt.Errorf("%s: there is no site %q", what, name)
		}
		return nil
	}
	for i := range s.Jobs {
		x := &s.Jobs[i]
		if s.job(x.Number) != x {
			return fmt.Errorf("job %d: named twice", x.Number)
		}
		if err := known(x.From, fmt.Sprintf("job %d", x.Number)); err != nil {
			return err
		}
	}
	for i := range s.Bags {
		x := &s.Bags[i]
		if s.bag(x.Number) != x {
			return fmt.Errorf("bag %d: named twice", x.Number)
		}
		if err := known(x.From, fmt.Sprintf("bag %d", x.Number)); err != nil {
			return err
		}
	}
	if err := s.checkWaits(); err != nil {
		return err
	}
	for i := range s.Streams {
		if err := known(s.Streams[i].From, "stream"); err != nil {
			return err
		}
	}
	for i := range s.Acts {
		x := &s.Acts[i]
		if x.Job > 0 && s.job(x.Job) == nil {
			return fmt.Errorf("act %s: there is no job %d", x.Kind, x.Job)
		}
		if x.Bag > 0 && s.bag(x.Bag) == nil {
			return fmt.Errorf("act %s: there is no bag %d", x.Kind, x.Bag)
		}
		if x.Site != "" {
			if err := known(x.Site, "act "+string(x.Kind)); err != nil {
				return err
			}
		}
	}
	for i := range s.Faults {
		if err := s.checkFault(&s.Faults[i], known); err != nil {
			return err
		}
	}
	return nil
}

func (s *Schedule) checkFault(f *Fault, known func(job.SiteID, string) error) error {
	names := []job.SiteID{f.Site, f.Other}[:f.Kind.places()]
	if f.To.Without != "" {
		names = append(names, f.To.Without)
	}
	if f.Before != nil {
		names = append(names, f.Before.Site)
	}
	for _, n := range names {
		if err := known(n, "fault "+string(f.Kind)); err != nil {
			return err
		}
	}
	if f.Kind.places() == 2 && f.Site == f.Other {
		return fmt.Errorf("fault %s: %s is named twice", f.Kind, f.Site)
	}
	return nil
}
