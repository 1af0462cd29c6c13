package meta_test

import (
	"fmt"
	"strings"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/bags"
	"kith/store"
)

// The words that transcripts have for bags:
//
//	bag tasks=N [walltime=D] [lost=rerun] [running=N] [retries=N] [replicas=N] [tail=N] [id=R] [hold]  a client submits
//	cancel-bag|hold-bag|release-bag|retry BAG [tasks=0-3]
//	tasks-home BUNDLE batch=N
//	show-bag BAG | held                                          what the engine knows
//	recv SITE offer tasks=N [walltime=D]
//	recv SITE task-claim stamp=N places=N want=N [running=N] [stock=N] [mean=D]
//	recv SITE task-verdict BUNDLE [stamp=N] [tasks=0-3] [lease=D] [ago=D]    "none" for no bundle
//	recv SITE results BUNDLE batch=N [done=0-3] [failed=4] [lost=5] [cancelled=6] [back=7] [files]
//	recv SITE results-ack BUNDLE batch=N [unknown]
//	recv SITE recall BUNDLE most=N
//	recv SITE stop-tasks BUNDLE [tasks=0-3] [waiting]
func (s *stage) doBag(a arguments) {
	switch a.words[0] {
	case "bag":
		x, _, err := job.ParseIndices(fmt.Sprintf("0-%d", int(s.number(a, "tasks", 1))-1))
		if err != nil {
			s.t.Fatal(err)
		}
		ev := meta.SubmitBag{
			Token: 1, Request: s.request(a), Indices: x, RequestID: a.named["id"], Hold: a.has("hold"), Payload: []byte("p"), Actor: "ada",
			MaxRunning: uint32(s.number(a, "running", 0)), Retries: uint8(s.number(a, "retries", 0)),
			MaxReplicas: uint8(s.number(a, "replicas", 0)), TailAt: uint32(s.number(a, "tail", 0)), After: s.after(a),
		}
		if ev.Request.Level = uint8(s.number(a, "level", 0)); ev.Request.Level > 0 { // of unknown length
			ev.Request.Unknown, ev.Request.Walltime = true, job.MaxWalltime
		}
		copy(ev.BodyHash[:], a.named["name"])
		s.feed(ev)
	case "cancel-bag":
		s.feed(meta.CancelBag{Token: 1, Bag: s.jobID(a.words[1]), Tasks: s.someTasks(a), Actor: "ada"})
	case "hold-bag":
		s.feed(meta.HoldBag{Token: 1, Bag: s.jobID(a.words[1]), Actor: "ada"})
	case "release-bag":
		s.feed(meta.ReleaseBag{Token: 1, Bag: s.jobID(a.words[1]), Actor: "ada"})
	case "retry":
		s.feed(meta.RetryTasks{Token: 1, Bag: s.jobID(a.words[1]), Tasks: *s.someTasks(a), Actor: "ada"})
	case "tasks-home":
		s.feed(meta.TasksHome{Bundle: s.attempt(a.words[1]), Batch: uint32(s.number(a, "batch", 1))})
	case "show-bag":
		b := s.state.Bag(s.jobID(a.words[1]))
		if b == nil {
			s.say("no such bag")
			return
		}
		s.say("%v %v next=%d again=%v done=%v failed=%v cancelled=%v stopping=%v", b.ID, b.State, b.Next, &b.Again, &b.Done, &b.Failed, &b.Cancelled, &b.Stopping)
		if b.Level > 0 {
			s.say("level %d since %v, begun %v", b.Level, time.Duration(b.Since), time.Duration(b.Begun))
		}
		for i := range b.Demotions {
			d := &b.Demotions[i]
			s.say("went from level %d to %d after %v: %v", d.From, d.To, d.Used, d.Reason)
		}
		for t := range b.Bundles {
			text := ""
			if t.Level > 0 {
				text = fmt.Sprintf(" level=%d limit=%v", t.Level, t.Limit)
			}
			if t.Replica {
				text += " replica"
			}
			s.say("bundle %d at %s: %v late=%v batch=%d%s", t.Number, t.Site, &t.Tasks, t.Late, t.Batch, text)
		}
		if b.MaxReplicas > 0 {
			s.say("tail since %v, %d replicas, %v s in vain", time.Duration(b.TailSince), b.Sums.Replicas, b.Sums.WastedTime)
		}
	case "held":
		for _, h := range s.state.HeldBundles() {
			s.say("%v run=%d tasks %v, %d batches", h.ID, h.Run, &h.Tasks, len(h.Unacked))
		}
	default:
		s.t.Fatalf("unknown command %q", strings.Join(a.words, " "))
	}
}

func (s *stage) set(text string) job.TaskSet {
	if text == "" {
		return job.TaskSet{}
	}
	set, err := job.ParseTaskSet(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return set
}

func (s *stage) someTasks(a arguments) *job.TaskSet {
	if a.named["tasks"] == "" {
		return nil
	}
	set := s.set(a.named["tasks"])
	return &set
}

// bagMessage makes a message about tasks.
func (s *stage) bagMessage(a arguments) meta.Message {
	r := s.request(a)
	shape := bags.ShapeOf(&r)
	var id job.AttemptID
	if len(a.words) > 3 && a.words[3] != "none" {
		id = s.attempt(a.words[3])
	}
	batch := uint32(s.number(a, "batch", 1))
	switch a.words[2] {
	case "offer":
		return meta.Offer{Shape: shape, Tasks: int(s.number(a, "tasks", 0))}
	case "task-claim":
		return meta.TaskClaim{Stamp: uint64(s.number(a, "stamp", 1)), Sent: s.now, Ask: bags.Ask{
			Shape: shape, Places: int(s.number(a, "places", 1)), Running: int(s.number(a, "running", 0)), Stock: int(s.number(a, "stock", 0)),
			Mean: s.duration(a.named["mean"], 0), Want: int(s.number(a, "want", 1)),
		}}
	case "task-verdict":
		m := meta.TaskVerdict{Stamp: s.state.Site().Steps + uint64(s.number(a, "stamp", 1)), Sent: s.now.Add(-s.duration(a.named["ago"], 0))}
		if !id.Job.IsZero() {
			m.Bundles = append(m.Bundles, meta.GivenBundle{
				Bundle: id, Request: r, Tasks: s.set(a.named["tasks"]), Lease: s.duration(a.named["lease"], 0), Payload: []byte("p"),
			})
		}
		return m
	case "results":
		m := meta.TaskResults{Bundle: id, Batch: batch, Run: 7, Returned: s.set(a.named["back"])}
		for _, k := range []struct {
			word string
			kind job.OutcomeKind
		}{{"done", job.Success}, {"failed", job.Failure}, {"lost", job.Loss}, {"cancelled", job.Cancel}} {
			set := s.set(a.named[k.word])
			for task := range set.All {
				m.Results = append(m.Results, job.TaskResult{Ordinal: task, Kind: k.kind, Start: s.now, Run: time.Second})
				if a.has("files") {
					m.Files = append(m.Files, store.TaskFiles{Ordinal: task, Set: []byte("f")})
				}
			}
		}
		return m
	case "results-ack":
		return meta.TaskResultsAck{Bundle: id, Batch: batch, Unknown: a.has("unknown")}
	case "recall":
		return meta.Recall{Bundle: id, Most: int(s.number(a, "most", 1))}
	case "stop-tasks":
		return meta.StopTasks{Bundle: id, Tasks: s.someTasks(a), Waiting: a.has("waiting")}
	}
	s.t.Fatalf("unknown message %q", a.words[2])
	return nil
}

// describeTasks tells of a message about tasks.
func describeTasks(m meta.Message) (string, bool) {
	switch m := m.(type) {
	case meta.Offer:
		return fmt.Sprintf("offer of %d tasks, processors=%d walltime=%v", m.Tasks, m.Shape.Processors, m.Shape.Walltime), true
	case meta.TaskClaim:
		a := m.Ask
		return fmt.Sprintf("task-claim stamp=%d places=%d running=%d stock=%d want=%d", m.Stamp%store.LifeSteps, a.Places, a.Running, a.Stock, a.Want), true
	case meta.TaskVerdict:
		text := fmt.Sprintf("task-verdict stamp=%d", m.Stamp)
		for i := range m.Bundles {
			g := &m.Bundles[i]
			text += fmt.Sprintf(" %v tasks %v", g.Bundle, &g.Tasks)
			if g.Lease > 0 {
				text += fmt.Sprintf(" for %v", g.Lease)
			}
		}
		return text, true
	case meta.TaskResults:
		text := fmt.Sprintf("results %v batch %d:", m.Bundle, m.Batch)
		for i := range m.Results {
			text += fmt.Sprintf(" %d=%d", m.Results[i].Ordinal, m.Results[i].Kind)
		}
		if !m.Returned.Empty() {
			text += fmt.Sprintf(" back %v", &m.Returned)
		}
		return text, true
	case meta.StopTasks:
		tasks := "all"
		if m.Tasks != nil {
			tasks = m.Tasks.String()
		}
		return fmt.Sprintf("stop-tasks %v %s waiting=%v", m.Bundle, tasks, m.Waiting), true
	}
	return "", false
}

// ofTask tells which task is launched or adopted.
func ofTask(t *meta.TaskRun) string {
	if t == nil {
		return ""
	}
	return fmt.Sprintf(" task %d of %v", t.Ordinal, t.Bundle)
}

// sayOther tells of an effect that has no words of its own.
func (s *stage) sayOther(f meta.Effect) {
	switch f := f.(type) {
	case meta.BagChanged:
		if f.Purged {
			s.say("bag %v is gone", f.Bag)
		}
	case meta.GrantTasks:
		s.say("to %s: %s", f.To, describe(f.Verdict))
	case meta.FetchTasks:
		s.say("fetch %d files of %v batch %d, run %d, from %s", len(f.Files), f.Bundle, f.Batch, f.Run, f.From)
	default:
		s.say("%s", strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T %+v", f, f), "meta.")))
	}
}
