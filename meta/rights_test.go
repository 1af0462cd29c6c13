package meta

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/cluster"
	"kith/internal/job"
	"kith/meta/bags"
	"kith/sitesched"
	"kith/store"
	"kith/store/codec"
)

// scene is a site, alpha, in the midst of its dealings with others: beta holds a copy of
// one of its jobs and the claim of another, and is the origin of copies here. Gamma is
// known and has nothing, delta was revoked, echo was never admitted.
type scene struct {
	*Engine
	t   *testing.T
	now job.Time
}

// What the messages of the table are about.
var (
	waitsAtBeta = job.AttemptID{Job: job.ID{Origin: "alpha", Generation: 1, Seq: 2}, Number: 1}
	heldByBeta  = job.AttemptID{Job: job.ID{Origin: "alpha", Generation: 1, Seq: 3}, Number: 1}
	claimsHere  = job.AttemptID{Job: job.ID{Origin: "beta", Generation: 1, Seq: 1}, Number: 1}
	begunHere   = job.AttemptID{Job: job.ID{Origin: "beta", Generation: 1, Seq: 2}, Number: 1}
	endedHere   = job.AttemptID{Job: job.ID{Origin: "beta", Generation: 1, Seq: 3}, Number: 1}
	notHere     = job.AttemptID{Job: job.ID{Origin: "gamma", Generation: 1, Seq: 9}, Number: 1}
	subjects    = []job.AttemptID{waitsAtBeta, heldByBeta, claimsHere, begunHere, endedHere, notHere}
	senders     = []job.SiteID{"alpha", "beta", "gamma", "delta", "echo"}
)

const asked = 1 // the query that waits for gamma's answer, where there is one

func (s *scene) step(ev Event) []Effect {
	s.t.Helper()
	s.now = s.now.Add(time.Second)
	out := slices.Clone(s.Step(s.now, ev))
	out = append(out, s.Step(s.now, Pass{})...)
	if err := s.st.Check(); err != nil {
		s.t.Fatal(err)
	}
	return out
}

func (s *scene) hear(from job.SiteID, m Message) []Effect {
	s.t.Helper()
	return s.step(Receive{From: from, Message: m})
}

func newScene(t *testing.T, asks bool) *scene {
	t.Helper()
	cfg := Default()
	cfg.Admitted, cfg.Self = true, Self{Processors: 6, Speed: 1}
	cfg.Timing.Load, cfg.Timing.AntiEntropy = 1000*time.Hour, 1000*time.Hour
	cfg.Placement.Copies = 2
	if asks {
		cfg.Placement.Rank = RankStart
	}
	sched, err := sitesched.New(sitesched.Config{Processors: 6, Backfill: sitesched.EASY, Queues: sitesched.DualBackfill, Scope: sitesched.ScopeAll})
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(cfg, store.NewState("alpha", 1), sched)
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{Engine: e, t: t, now: job.Time(time.Hour)}
	e.Restore(s.now, nil)
	for n, site := range []job.SiteID{"beta", "gamma", "delta"} {
		s.step(AdmitSite{Site: site, Bundle: store.Bundle{Data: []byte(site), Keys: []store.KeyID{{byte(n)}}, Sequence: 1}})
		s.step(PeerUp{Site: site, Generation: 1})
		s.step(LoadSeen{Digest: cluster.Digest{Site: site, Incarnation: 1, Sequence: 1, Processors: 6, Speed: 1, Load: job.Load{Work: float64(n) * 1e6, Free: 6}}})
	}
	s.step(RevokeSite{Site: "delta"})
	s.step(Submit{Request: job.Request{Processors: 4, Copies: 1, Walltime: time.Hour}})
	if asks {
		return s
	}
	s.step(Submit{Request: job.Request{Processors: 4, Walltime: time.Hour}})
	s.hear("beta", CopyAnswer{Attempt: waitsAtBeta, Accepted: true})
	s.step(Submit{Request: job.Request{Processors: 4, Walltime: time.Hour, OnSiteLost: job.Rerun}})
	s.hear("beta", CopyAnswer{Attempt: heldByBeta, Accepted: true})
	s.hear("beta", Claim{Attempt: heldByBeta, Stamp: 1, Sent: s.now})
	for _, a := range []job.AttemptID{endedHere, begunHere, claimsHere} {
		s.hear("beta", PlaceCopy{Attempt: a, Request: job.Request{Processors: 1, Walltime: time.Minute, OnSiteLost: job.Rerun}})
		if a != claimsHere {
			s.hear("beta", Verdict{Attempt: a, Granted: true, Lease: time.Hour, Sent: s.now})
			s.step(AttemptStarted{Attempt: a, At: s.now})
		}
	}
	s.step(AttemptEnded{Attempt: endedHere, Outcome: job.Outcome{Kind: job.Success, Start: s.now, End: s.now}})
	want := map[job.AttemptID]store.Phase{claimsHere: store.CopyQueued, begunHere: store.CopyBegun, endedHere: store.CopyEnded}
	for a, phase := range want {
		if c := s.st.Copy(a); c == nil || c.Phase != phase {
			t.Fatalf("the scene has %v as %+v, want phase %d", a, c, phase)
		}
	}
	if j := s.st.Job(heldByBeta.Job); j.Holder != "beta" || j.State != job.Claimed {
		t.Fatalf("the scene has %v as %v of %q", heldByBeta, j.State, j.Holder)
	}
	if j := s.st.Job(waitsAtBeta.Job); j.State != job.Queued || !slices.Contains(j.Sites, "beta") {
		t.Fatalf("the scene has %v as %v at %v", waitsAtBeta, j.State, j.Sites)
	}
	return s
}

// message makes a message of a kind about an attempt that would have an effect, if it counted.
func (s *scene) message(k kind, a job.AttemptID) Message {
	r := job.Request{Processors: 1, Walltime: time.Minute}
	switch k {
	case placeCopyKind:
		return PlaceCopy{Attempt: a, Request: r}
	case copyAnswerKind:
		return CopyAnswer{Attempt: a, Reason: job.Full}
	case claimKind:
		return Claim{Attempt: a, Stamp: 9, Sent: s.now}
	case verdictKind:
		return Verdict{Attempt: a, Granted: true, Lease: time.Hour, Sent: s.now}
	case renewKind:
		return Renew{Attempt: a, Sent: s.now}
	case renewedKind:
		return Renewed{Attempt: a, Sent: s.now}
	case withdrawKind:
		return Withdraw{Attempt: a}
	case withdrawAckKind:
		return WithdrawAck{Attempt: a}
	case startedKind:
		return Started{Attempt: a, At: s.now}
	case resultKind:
		return Result{Attempt: a, Outcome: job.Outcome{Kind: job.Failure, ExitCode: 1, Start: s.now, End: s.now}}
	case resultAckKind:
		return ResultAck{Attempt: a, Accepted: true}
	case stopKind:
		return Stop{Attempt: a}
	case demoteKind:
		return Demote{Attempt: a}
	case savedKind:
		return Saved{Attempt: a, Sequence: 9, Files: []byte("f")}
	case savedAckKind:
		return SavedAck{Attempt: a, Sequence: 9}
	case giveBackKind:
		return GiveBack{Attempt: a, Reason: job.Full, Stamp: 9}
	case copySummaryKind:
		return CopySummary{Count: 77}
	case digestRequestKind:
		return DigestRequest{}
	case copyDigestKind:
		return CopyDigest{Stamp: 9, Entries: []DigestEntry{{Attempt: a}}}
	case loadDigestKind:
		return LoadDigest{Digest: cluster.Digest{Site: a.Job.Origin, Incarnation: 2, Sequence: 9, Processors: 3, Speed: 1}}
	case startQueryKind:
		return StartQuery{Query: 5, Request: r}
	case startAnswerKind:
		return StartAnswer{Query: asked, Wait: time.Second}
	case siteBundleKind:
		return SiteBundle{Site: a.Job.Origin, Bundle: store.Bundle{Data: []byte("later"), Keys: []store.KeyID{{9}}, Sequence: 7}}
	case bundleTakenKind:
		return BundleTaken{Sequence: 1}
	}
	return s.taskMessage(k, a)
}

// taskMessage makes one about tasks. The attempt is the bundle.
func (s *scene) taskMessage(k kind, a job.AttemptID) Message {
	shape := bags.ShapeOf(&job.Request{Processors: 1, Walltime: time.Minute})
	switch k {
	case offerKind:
		return Offer{Shape: shape, Tasks: 1}
	case taskClaimKind:
		return TaskClaim{Stamp: 9, Sent: s.now, Ask: bags.Ask{Shape: shape, Places: 1, Want: 1}}
	case taskVerdictKind:
		return TaskVerdict{Stamp: 9, Sent: s.now, Bundles: []GivenBundle{{
			Bundle: a, Request: job.Request{Processors: 1, Walltime: time.Minute}, Tasks: job.TaskRange(0, 1),
		}}}
	case taskResultsKind:
		return TaskResults{Bundle: a, Batch: 1, Results: []job.TaskResult{{Kind: job.Success}}}
	case taskResultsAckKind:
		return TaskResultsAck{Bundle: a, Batch: 1}
	case recallKind:
		return Recall{Bundle: a, Most: 1}
	case stopTasksKind:
		return StopTasks{Bundle: a}
	}
	s.t.Fatalf("no message of kind %d", k)
	return nil
}

// related says what a sender is to an attempt in a scene, from what the scene is made of.
func related(r Relation, from job.SiteID, a job.AttemptID, asks bool) bool {
	if from != "beta" && from != "gamma" {
		return false
	}
	switch r {
	case AnySite:
		return true
	case ItsOwn, Origin:
		return a.Job.Origin == from
	case OurHost:
		return a.Job.Origin == "alpha"
	case CopyHolder:
		return from == "beta" && !asks && (a == waitsAtBeta || a == heldByBeta)
	case ClaimHolder:
		return from == "beta" && !asks && a == heldByBeta
	}
	return asks
}

// all is all that the engine holds, in a text: facts, and what it keeps in mind.
func (s *scene) all() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%x", codec.Dump(s.st))
	for _, p := range s.peers.view.Peers() {
		fmt.Fprintf(&b, "\npeer %+v", *p)
	}
	for _, l := range s.peers.linked {
		fmt.Fprintf(&b, "\nlink %s %v", l.site, l.up)
		for _, k := range slices.SortedFunc(maps.Keys(l.waiting), func(a, b outKey) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }) {
			fmt.Fprintf(&b, " %v", k)
		}
	}
	for _, o := range s.origin.jobs {
		fmt.Fprintf(&b, "\njob %+v", *o)
		if o.query != nil {
			fmt.Fprintf(&b, " query %+v", *o.query)
		}
	}
	for _, a := range subjects {
		if c := s.host.copies.Get(a); c != nil {
			fmt.Fprintf(&b, "\ncopy %+v", *c)
		}
	}
	fmt.Fprintf(&b, "\nsilent %v aside %v ahead %v verdicts %v", s.host.silent, s.host.aside, s.host.ahead, s.host.verdicts)
	return b.String()
}

// jobs is what others may not change: who has which job, and what is here.
func (s *scene) jobs() string {
	var b strings.Builder
	for j := range s.st.Jobs(job.ID{}) {
		fmt.Fprintf(&b, "%v %v %d %v %q %v %v\n", j.ID, j.State, j.Attempt, j.Sites, j.Holder, j.Earlier, j.Outcome)
	}
	for _, a := range subjects {
		if c := s.st.Copy(a); c != nil {
			fmt.Fprintf(&b, "%v %d\n", a, c.Phase)
		}
	}
	return b.String()
}

// tryRow tries one row from each sender about each attempt, and returns what is wrong.
// served counts the messages that were served.
func tryRow(t *testing.T, k kind, heard, served Relation) (wrong []string, times int) {
	for _, asks := range []bool{false, true} {
		for _, from := range senders {
			for _, a := range subjects {
				s := newScene(t, asks)
				if asks {
					s.step(Submit{Request: job.Request{Processors: 4, Walltime: time.Hour}})
				}
				m := s.message(k, a)
				all, jobs := s.all(), s.jobs()
				out := slices.Clone(s.Step(s.now, Receive{From: from, Message: m}))
				say := func(format string, args ...any) {
					wrong = append(wrong, fmt.Sprintf("%s of %s about %v: ", m.Word(), from, a)+fmt.Sprintf(format, args...))
				}
				refusals := 0
				for _, f := range out {
					if r, ok := f.(Refused); ok && r.Peer == from && r.Kind == m.Word() && r.Rule != "" {
						refusals++
					}
				}
				changed := s.all() != all
				switch {
				case !related(heard, from, a, asks):
					if refusals != 1 || len(out) != 1 || changed {
						say("not refused: %d effects, %d refusals, changed %v", len(out), refusals, changed)
					}
				case refusals > 0:
					say("refused by %v", out)
				case related(served, from, a, asks):
					if changed || len(out) > 0 {
						times++
					}
				default:
					if s.jobs() != jobs {
						say("it is heard only, and a job or copy changed:\n%s%s", jobs, s.jobs())
					}
					for _, f := range out {
						if to, ok := f.(Send); !ok || to.To != from {
							if _, ok := f.(Changed); !ok {
								say("it is heard only, and more leaves than an answer: %T", f)
							}
						}
					}
				}
			}
		}
	}
	return wrong, times
}

// withoutEffect are kinds of which no message has an effect in the scene: a withdrawal that
// none waits for is acknowledged without one, as is a copy, and the scene has no bags.
var withoutEffect = map[kind]bool{
	withdrawAckKind: true, savedAckKind: true, offerKind: true, taskClaimKind: true, taskVerdictKind: true, taskResultsKind: true, taskResultsAckKind: true,
	recallKind: true, stopTasksKind: true,
}

// Each row of the table: a wrong sender changes nothing, and nothing leaves but the
// refusal; who is heard only is answered and changes no job; a right one is served. That
// this test would find a row that lets anybody in is tested with it.
func TestRights(t *testing.T) {
	for k := range kinds {
		t.Run(rights[k].Kind, func(t *testing.T) {
			row := rights[k]
			wrong, times := tryRow(t, k, row.Heard, row.Served)
			for _, w := range wrong {
				t.Error(w)
			}
			if times == 0 && !withoutEffect[k] {
				t.Error("none was served")
			}
			if row.Heard == AnySite {
				return
			}
			rights[k].Heard = AnySite
			defer func() { rights[k] = row }()
			if wrong, _ := tryRow(t, k, row.Heard, row.Served); len(wrong) == 0 {
				t.Error("without its guard the row is not found out")
			}
		})
	}
}

// A site that may say nothing is told so whatever it says, and a stream or a load of it
// counts for nothing.
func TestStrangersHaveNoSay(t *testing.T) {
	for site, rule := range map[job.SiteID]string{"delta": ruleRevoked, "echo": ruleUnknown} {
		s := newScene(t, false)
		before := s.all()
		for _, ev := range []Event{PeerUp{Site: site, Generation: 1}, LoadSeen{Digest: cluster.Digest{Site: site, Incarnation: 9, Sequence: 9, Processors: 9, Speed: 1}}, PeerDown{Site: site}} {
			for _, f := range s.Step(s.now, ev) {
				switch f := f.(type) {
				case Refused:
					if f.Rule != rule {
						t.Errorf("%T of %s is refused by %q, want %q", ev, site, f.Rule, rule)
					}
				case TrustChanged: // has the driver end the stream
				default:
					t.Errorf("%T of %s: %T leaves", ev, site, f)
				}
			}
		}
		if s.all() != before {
			t.Errorf("%s changed something", site)
		}
	}
}

// The look-up costs a message no allocation.
func TestRightsAllocateNothing(t *testing.T) {
	s := newScene(t, false)
	for k := range kinds {
		m := s.message(k, heldByBeta)
		if n := testing.AllocsPerRun(100, func() { s.refuse("beta", m) }); n != 0 {
			t.Errorf("%s: %v allocations", m.Word(), n)
		}
	}
}
