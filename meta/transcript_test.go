package meta_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"kith/cluster"
	"kith/internal/job"
	"kith/meta"
	"kith/meta/commit"
	"kith/sitesched"
	"kith/sitesched/batch"
	"kith/store"
)

var rewrite = flag.Bool("rewrite", false, "write the answers of the transcripts anew; then read the diff")

// TestTranscripts replays the stories in testdata: one site, "alpha", driven
// by hand. A line is a command; what the engine answers stands below it,
// indented. Time passes only by "wait".
//
//	site processors=4 scheme=k-dual rank=work copies=2 ...   begin anew
//	submit name=x processors=1 walltime=60s copies=2 id=r1 hold  a client submits
//	cancel|hold|release JOB            a client asks
//	drain|resume                       the operator asks
//	up SITE [generation=N] | down SITE a stream comes or goes
//	load SITE processors=N work=S procs=R free=N queued=N [draining] [notstarting] [at=up]
//	recv SITE MESSAGE ...              a message comes
//	started|ended|missing|home ATTEMPT [outcome]
//	startfails ATTEMPT                 the host could not start it
//	disk [low=TEXT]                    the disk is low on room, or is not
//	turn ATTEMPT                       the batch system has started it ("site batch")
//	wait D                             time passes, with ticks and passes
//	restart [lease=D] [processors=N] [memory=N] [allow=DIR]  the daemon dies and a new one begins
//	address SITE HOST:PORT...                              the operator says where a site is
//	admit|bundle SITE keys=1,2 sequence=N [invitation=ID]  the operator trusts a site; a later bundle
//	revoke SITE [let-run] | forget-trust SITE | leave
//	invite ID SITE | try ID | come ID SITE keys=1 | refuse ID | token ID [unlisted]
//	trust | dealings                   what the trust table holds; what sites hold of each other
//	show JOB | copies | counters       what the engine knows
//
// Those about bags are in transcript_bags_test.go, those about levels in transcript_levels_test.go.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got := replay(t, string(want))
			if *rewrite {
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(want) {
				t.Errorf("%s: the engine answers differently\n%s", path, firstDifference(string(want), got))
			}
		})
	}
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		a, b := "(end)", "(end)"
		if i < len(w) {
			a = w[i]
		}
		if i < len(g) {
			b = g[i]
		}
		if a != b {
			return fmt.Sprintf("line %d\nwant %s\ngot  %s", i+1, a, b)
		}
	}
	return ""
}

func replay(t *testing.T, script string) string {
	var out strings.Builder
	s := &stage{t: t}
	for line := range strings.Lines(script) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "    ") {
			continue // an old answer
		}
		out.WriteString(line + "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		for _, answer := range s.do(line) {
			out.WriteString("    " + answer + "\n")
		}
	}
	return out.String()
}

// stage is one site driven by hand.
type stage struct {
	t      *testing.T
	now    job.Time
	cfg    meta.Config
	sched  sitesched.Config
	state  *store.State
	site   meta.Site
	batch  bool // behind which there is a batch system
	engine *meta.Engine
	token  uint64
	loads  map[string]uint64
	lines  []string
	past   int // how many jobs have ended before, each as in each
	each   store.Past
	// decisions are the stored ones.
	decisions map[job.ID]*store.Decision
}

// arguments are the words of a command, and those with '=' by name.
type arguments struct {
	words []string
	named map[string]string
}

func parse(line string) arguments {
	a := arguments{named: map[string]string{}}
	for _, w := range strings.Fields(line) {
		if k, v, ok := strings.Cut(w, "="); ok {
			a.named[k] = v
		} else {
			a.words = append(a.words, w)
		}
	}
	return a
}

func (a arguments) has(word string) bool {
	for _, w := range a.words {
		if w == word {
			return true
		}
	}
	return false
}

func (s *stage) number(a arguments, name string, standard float64) float64 {
	text, ok := a.named[name]
	if !ok {
		return standard
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		s.t.Fatalf("%s=%s: %v", name, text, err)
	}
	return v
}

func (s *stage) duration(text string, standard time.Duration) time.Duration {
	if text == "" {
		return standard
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (s *stage) do(line string) []string {
	s.lines = nil
	a := parse(line)
	switch a.words[0] {
	case "site":
		s.begin(a)
	case "submit":
		s.submit(a)
	case "cancel", "hold", "release", "checkpoint":
		s.act(a)
	case "drain", "resume":
		s.token++
		s.feed(meta.SetDrain{Token: s.token, On: a.words[0] == "drain", Reason: "maintenance"})
	case "forget":
		s.token++
		s.feed(meta.ForgetSite{Token: s.token, Site: job.SiteID(a.words[1]), Requeue: a.has("requeue")})
	case "up":
		s.feed(meta.PeerUp{
			Site: job.SiteID(a.words[1]), Generation: uint32(s.number(a, "generation", 1)), Incarnation: uint64(s.number(a, "incarnation", 0)), Lacks: cluster.Lacks{NoSaves: a.has("older")},
		})
	case "down":
		s.feed(meta.PeerDown{Site: job.SiteID(a.words[1])})
	case "load":
		s.load(a)
	case "recv":
		s.feed(meta.Receive{From: job.SiteID(a.words[1]), Message: s.message(a)})
	case "started":
		s.feed(meta.AttemptStarted{Attempt: s.attempt(a.words[1]), At: s.now})
	case "ended":
		s.feed(meta.AttemptEnded{Attempt: s.attempt(a.words[1]), Outcome: s.outcome(a)})
	case "missing":
		s.feed(meta.AttemptMissing{Attempt: s.attempt(a.words[1]), Bringing: a.named["bringing"] != ""})
	case "startfails":
		s.feed(meta.StartFailed{Attempt: s.attempt(a.words[1]), Reason: "no more processes"})
	case "disk":
		s.feed(meta.DiskSeen{Low: a.named["low"]})
	case "machine":
		s.feed(meta.MachineSeen{Away: a.named["away"], BootID: a.named["boot"]})
	case "over":
		s.feed(meta.AttemptOver{Attempt: s.attempt(a.words[1])})
	case "here":
		s.feed(meta.FilesHere{Attempt: s.attempt(a.words[1])})
	case "turn":
		s.feed(meta.TurnCame{Attempt: s.attempt(a.words[1])})
	case "home":
		s.feed(meta.FilesHome{Attempt: s.attempt(a.words[1]), Error: a.named["error"]})
	case "copied":
		s.feed(meta.SavedCopied{Attempt: s.attempt(a.words[1]), Sequence: uint64(s.number(a, "saved", 0)), Reason: a.named["why"], Files: []byte("saved"), FilesRemain: a.has("remain")})
	case "saved-home":
		s.feed(meta.SavedHome{Attempt: s.attempt(a.words[1]), Sequence: uint64(s.number(a, "saved", 0)), Error: a.named["error"]})
	case "estimate":
		s.feed(meta.EstimateTold{Attempt: s.attempt(a.words[1]), Bound: s.number(a, "bound", 0)})
	case "wait":
		s.wait(s.duration(a.words[1], 0))
	case "restart":
		s.cfg.Timing.Lease = s.duration(a.named["lease"], s.cfg.Timing.Lease)
		s.resize(a)
		s.boot()
	case "reload":
		s.reload(a)
	case "show":
		s.show(a.words[1])
	case "copies":
		copies, _ := s.engine.Views().HostedCopies(job.AttemptID{}, 100)
		for _, c := range copies {
			s.say("%v %s %s", c.Attempt, c.Request.Name, c.State)
		}
	case "counters":
		s.say("%+v", s.engine.Views().Counters())
	default:
		s.doTrust(a)
	}
	return s.lines
}

func (s *stage) say(format string, args ...any) {
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

func (s *stage) begin(a arguments) {
	s.now, s.loads, s.token = job.Time(time.Hour), map[string]uint64{}, 0 // time 0 means none
	s.decisions = map[job.ID]*store.Decision{}
	s.cfg = meta.Default()
	s.cfg.Timing.Load = time.Hour // loads would drown the story
	s.cfg.Timing.AntiEntropy = s.duration(a.named["anti-entropy"], time.Hour)
	if v, ok := a.named["scheme"]; ok {
		s.cfg.Placement.Scheme = meta.Scheme(v)
	}
	if v, ok := a.named["rank"]; ok {
		s.cfg.Placement.Rank, _ = meta.ParseRank(v)
	}
	s.cfg.Placement.Conserve, s.cfg.Admitted = a.has("conserve"), a.has("admitted")
	s.cfg.Placement.Copies = int32(s.number(a, "copies", 2))
	s.cfg.Limits.CopiesPerOrigin = int(s.number(a, "copies-per-origin", 1000))
	s.cfg.Limits.Jobs = int(s.number(a, "jobs", 1000))
	s.cfg.BootID = "boot-1"
	s.sched = sitesched.Config{
		Processors: 4, Backfill: sitesched.EASY, Queues: sitesched.DualBackfill, Scope: sitesched.ScopeAll,
	}
	s.batch = a.has("batch")
	s.cfg.Self = meta.Self{Address: "alpha:1", Speed: 1}
	s.cfg.AllowDirectory = nil
	s.guesses(a)
	s.resize(a)
	s.state = store.NewState("alpha", 1)
	s.boot()
}

// resize configures what the site has to offer.
func (s *stage) resize(a arguments) {
	s.sched.Processors = int32(s.number(a, "processors", float64(s.sched.Processors)))
	s.sched.MemoryBytes = int64(s.number(a, "memory", float64(s.sched.MemoryBytes)))
	s.cfg.Self.Processors, s.cfg.Self.MemoryBytes = s.sched.Processors, s.sched.MemoryBytes
	if dir, ok := a.named["allow"]; ok {
		s.cfg.AllowDirectory = func(d string) bool { return d == dir }
	}
}

// boot begins a daemon on the facts at hand.
func (s *stage) boot() {
	err := commit.BeginLife(s.state, nil, store.BeginLife{})
	if err != nil {
		s.t.Fatal(err)
	}
	if s.site = batch.New(s.sched.Processors); !s.batch {
		if s.site, err = sitesched.New(s.sched); err != nil {
			s.t.Fatal(err)
		}
	}
	if s.engine, err = meta.New(s.cfg, s.state, s.site); err != nil {
		s.t.Fatal(err)
	}
	s.remember()
	s.carry(s.engine.Restore(s.now, []job.SiteID{"alpha", "beta", "gamma"}))
	s.carry(s.engine.Step(s.now, meta.Tick{}))
	s.carry(s.engine.Step(s.now, meta.Pass{}))
}

// feed gives the engine an event that makes an instant of its own.
func (s *stage) feed(ev meta.Event) {
	s.carry(s.engine.Step(s.now, ev))
	s.carry(s.engine.Step(s.now, meta.Pass{}))
}

func (s *stage) wait(d time.Duration) {
	end := s.now.Add(d)
	for {
		at := max(s.engine.NextWake(s.now), s.now+1)
		if at > end {
			break
		}
		s.now = at
		s.feed(meta.Tick{})
	}
	s.now = end
}

func (s *stage) carry(effects []meta.Effect) {
	for _, f := range effects {
		switch f := f.(type) {
		case meta.Changed, meta.Advertise:
		case meta.Reply:
			if s.sayTrust(&f) {
			} else if f.Err != nil {
				s.say("reply: %s", strings.ReplaceAll(f.Err.Error(), "\n", " | "))
			} else if f.Job.IsZero() && f.Forgotten != (meta.Forgotten{}) {
				s.say("reply: %+v", f.Forgotten)
			} else {
				s.say("reply: %v %v", f.Job, f.State)
			}
		case meta.Send:
			if _, load := f.Message.(meta.LoadDigest); !load {
				s.say("to %s: %s", f.To, describe(f.Message))
			}
		case meta.Grant:
			s.say("to %s: %s", f.To, describe(f.Message(nil)))
		case meta.Launch:
			s.say("launch %v payload=%q%s%s", f.Attempt, f.Payload, s.until(f.Lease), ofTask(f.Task))
		case meta.Extend:
			s.say("extend %v%s", f.Attempt, s.until(f.Until))
		case meta.Kill:
			s.say("kill %v%s", f.Attempt, because(f.Lease))
		case meta.AskCheckpoint:
			s.say("ask %v to save and end within %v: %v", f.Attempt, f.Grace, f.Cause)
		case meta.CopySaved:
			s.say("copy what %v has saved", f.Attempt)
		case meta.FetchSaved:
			s.say("fetch checkpoint %d of %v from %s", f.Sequence, f.Attempt, f.From)
		case meta.Unstage:
			s.say("unstage %v", f.Attempt)
		case meta.Adopt:
			s.say("adopt %v begun under %s%s%s", f.Attempt, f.BootID, because(f.Leased), ofTask(f.Task))
		case meta.Queue:
			s.say("queue %v processors=%d walltime=%v%s", f.Copy.ID, f.Copy.Request.Processors, f.Copy.Request.Walltime, s.notBefore(f.NotBefore))
		case meta.Dequeue:
			s.say("dequeue %v", f.Attempt)
		case meta.StartsPaused:
			if f.Until == 0 {
				s.say("starts again")
			} else {
				s.say("starts nothing for %v: %s", f.Until.Sub(s.now), f.Reason)
			}
		case meta.Restored:
			s.say("restored")
		case meta.Fetch:
			s.say("fetch %v from %s", f.Attempt, f.From)
		case meta.Unfetch:
			s.say("unfetch %v", f.Attempt)
		case meta.TrustChanged:
			s.say("trust %s: %s, bundle %d", f.Site.Site, f.Why, f.Site.Bundle.Sequence)
		case meta.InvitationChanged:
			s.say("invitation %s: %v, tries %d", f.Invitation.ID, f.Invitation.State, f.Invitation.Tries)
		case meta.TokenRevoked:
			s.say("token %s revoked", f.ID)
		case meta.Refused:
			s.say("refused: %s of %s, rule %s", f.Kind, f.Peer, f.Rule)
		default:
			s.sayOther(f)
		}
	}
	for _, d := range s.state.TakeChanges().Decision {
		s.decisions[d.Job] = d.Decision
	}
	if err := s.state.Check(); err != nil {
		s.t.Fatal(err)
	}
	if c, ok := s.site.(interface{ Check() error }); ok {
		if err := c.Check(); err != nil {
			s.t.Fatal(err)
		}
	}
}

// until tells the end of a lease as seen from now.
func (s *stage) until(at job.Time) string {
	if at == 0 {
		return ""
	}
	return fmt.Sprintf(" for %v", at.Sub(s.now))
}

func (s *stage) notBefore(at job.Time) string {
	if at == 0 {
		return ""
	}
	return fmt.Sprintf(" in %v", at.Sub(s.now))
}

func because(lease bool) string {
	if lease {
		return " (lease)"
	}
	return ""
}

func (s *stage) request(a arguments) job.Request {
	r := job.Request{
		Name: a.named["name"], User: "ada", Processors: int32(s.number(a, "processors", 1)), Copies: int32(s.number(a, "copies", 0)),
		MemoryBytes: int64(s.number(a, "memory", 0)), Walltime: s.duration(a.named["walltime"], time.Minute), Directory: a.named["directory"],
		OnSiteLost: map[string]job.OnSiteLost{"": job.Wait, "rerun": job.Rerun, "race": job.Race}[a.named["lost"]],
		Checkpoint: a.has("saves"), AskSeconds: uint16(s.duration(a.named["ask-before"], 0) / time.Second),
		SaveSeconds: uint32(s.duration(a.named["every"], 0) / time.Second),
	}
	s.unknown(&r, a)
	return r
}

func (s *stage) submit(a arguments) {
	s.token++
	ev := meta.Submit{Token: s.token, Request: s.request(a), RequestID: a.named["id"], Hold: a.has("hold"), Payload: []byte("p"), After: s.after(a)}
	copy(ev.BodyHash[:], a.named["name"])
	s.feed(ev)
}

func (s *stage) act(a arguments) {
	s.token++
	id := s.jobID(a.words[1])
	switch a.words[0] {
	case "cancel":
		s.feed(meta.Cancel{Token: s.token, Job: id})
	case "hold":
		s.feed(meta.Hold{Token: s.token, Job: id})
	case "release":
		s.feed(meta.Release{Token: s.token, Job: id})
	case "checkpoint":
		s.feed(meta.CheckpointJob{Token: s.token, Job: id})
	}
}

func (s *stage) load(a arguments) {
	name := a.words[1]
	s.loads[name]++
	s.feed(meta.LoadSeen{Digest: cluster.Digest{
		Site: job.SiteID(name), Incarnation: 1, Sequence: s.loads[name], Processors: int32(s.number(a, "processors", 4)),
		MemoryBytes: int64(s.number(a, "memory", 0)), Draining: a.has("draining"), NotStarting: a.has("notstarting"), Speed: s.number(a, "speed", 1), Level: s.levelOf(a),
		Settings: uint64(s.number(a, "settings", 0)), TimesFreed: uint64(s.number(a, "freed", 0)), GuestWalltime: s.duration(a.named["guest-walltime"], 0), KeptFree: int32(s.number(a, "kept-free", 0)),
		Load: job.Load{Work: s.number(a, "work", 0), Procs: s.number(a, "procs", 0), Free: int32(s.number(a, "free", 4)), Queued: int32(s.number(a, "queued", 0)), Blocked: a.has("blocked")},
	}})
}

// jobID reads "N" as job N of alpha, and else a whole id.
func (s *stage) jobID(text string) job.ID {
	if !strings.Contains(text, ".") {
		text = "alpha.1." + text
	}
	id, err := job.ParseID(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

func (s *stage) attempt(text string) job.AttemptID {
	idText, n, _ := strings.Cut(text, "#")
	number, err := strconv.ParseUint(n, 10, 32)
	if err != nil {
		s.t.Fatalf("attempt %q: %v", text, err)
	}
	return job.AttemptID{Job: s.jobID(idText), Number: uint32(number)}
}
