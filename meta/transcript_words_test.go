package meta_test

import (
	"fmt"
	"strings"

	"kith/internal/job"
	"kith/meta"
	"kith/store"
)

// The words that transcripts have for messages.

func describe(m meta.Message) string {
	switch m := m.(type) {
	case meta.PlaceCopy:
		text := fmt.Sprintf("place %v processors=%d walltime=%v", m.Attempt, m.Request.Processors, m.Request.Walltime)
		if m.Request.Level > 0 {
			text += fmt.Sprintf(" level=%d bound=%v", m.Request.Level, m.Before.Bound)
		}
		return text
	case meta.Claim:
		return fmt.Sprintf("claim %v", m.Attempt)
	case meta.Verdict:
		if m.Granted && m.Lease != 0 {
			return fmt.Sprintf("grant %v for %v", m.Attempt, m.Lease)
		}
		if m.Granted {
			return fmt.Sprintf("grant %v", m.Attempt)
		}
		return fmt.Sprintf("deny %v %v %s", m.Attempt, m.Reason, m.Winner)
	case meta.Renew:
		return fmt.Sprintf("renew %v", m.Attempt)
	case meta.Renewed:
		return fmt.Sprintf("renewed %v for %v", m.Attempt, m.Lease)
	case meta.CopyAnswer:
		if m.Accepted {
			return fmt.Sprintf("accepted %v", m.Attempt)
		}
		return fmt.Sprintf("refused %v %v", m.Attempt, m.Reason)
	case meta.CopySummary:
		text := fmt.Sprintf("summary of %d", m.Count)
		if m.GivenUp > 0 {
			text += fmt.Sprintf(", given up to step %d", m.GivenUp)
		}
		return text
	case meta.CopyDigest:
		text := "digest"
		for _, e := range m.Entries {
			text += fmt.Sprintf(" %v begun=%v ended=%v started=%v", e.Attempt, e.Begun, e.Ended, e.Started != 0)
		}
		return text
	case meta.GiveBack:
		return fmt.Sprintf("giveback {attempt:%v reason:%v}", m.Attempt, m.Reason)
	case meta.StartAnswer:
		text := fmt.Sprintf("startanswer {query:%d wait:%v reason:%v}", m.Query, m.Wait, m.Reason)
		if m.Basis != 0 {
			text += fmt.Sprintf(" %v %v", m.Basis, m.Waits)
		}
		return text
	case meta.StartQuery:
		return fmt.Sprintf("start-query %d processors=%d walltime=%v predict=%v", m.Query, m.Request.Processors, m.Request.Walltime, m.Predict)
	case meta.Started:
		if m.Over {
			return fmt.Sprintf("over %v started=%v", m.Attempt, m.At != 0)
		}
		if m.Bound > 0 {
			return fmt.Sprintf("started %v bound=%v", m.Attempt, m.Bound)
		}
		return fmt.Sprintf("started %v", m.Attempt)
	case meta.Saved:
		return fmt.Sprintf("saved %v %d after %v %s", m.Attempt, m.Sequence, m.Ran, m.Reason)
	case meta.SavedAck:
		return fmt.Sprintf("saved-ack %v %d accepted=%v", m.Attempt, m.Sequence, m.Accepted)
	case meta.Result:
		return fmt.Sprintf("result %v kind=%d exit=%d %s", m.Attempt, m.Outcome.Kind, m.Outcome.ExitCode, m.Outcome.Reason)
	}
	if text, ok := describeTasks(m); ok {
		return text
	}
	return strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T %+v", m, m), "meta."))
}

func (s *stage) outcome(a arguments) job.Outcome {
	o := job.Outcome{Kind: job.Success, Start: s.now, End: s.now, ExitCode: int32(s.number(a, "exit", 0))}
	switch {
	case a.has("cancelled"):
		o.Kind, o.Reason = job.Cancel, "cancelled"
	case a.has("demoted"):
		o.Kind, o.Checkpoint, o.Cause = job.Demoted, uint64(s.number(a, "saved", 0)), job.DemotionCause(s.number(a, "cause", 0))
		if o.Checkpoint != 0 {
			o.Files = []byte("checkpoint")
		}
		o.Bound = s.number(a, "bound", 0)
	case a.has("lost"):
		o.Kind, o.Reason = job.Loss, "lost"
	case o.ExitCode != 0:
		o.Kind, o.Reason = job.Failure, "it failed"
	}
	if f, ok := a.named["files"]; ok {
		o.Files, o.FilesRemain = []byte(f), true
	}
	return o
}

func (s *stage) message(a arguments) meta.Message {
	var id job.AttemptID
	if len(a.words) > 3 && a.words[2] != "digest" && a.words[3] != "none" {
		id = s.attempt(a.words[3])
	}
	reason := job.Reason(s.number(a, "reason", 0))
	switch a.words[2] {
	case "place":
		return meta.PlaceCopy{Attempt: id, Request: s.request(a)}
	case "accepted":
		return meta.CopyAnswer{Attempt: id, Accepted: true}
	case "refused":
		return meta.CopyAnswer{Attempt: id, Reason: reason}
	case "claim":
		c := meta.Claim{Attempt: id, Stamp: uint64(s.number(a, "stamp", float64(s.now))), Sent: s.now}
		if a.has("older") { // as versions before leases claim
			c.Sent = 0
		}
		return c
	case "renew":
		return meta.Renew{Attempt: id}
	case "renewed":
		return meta.Renewed{Attempt: id, Sent: s.now.Add(-s.duration(a.named["ago"], 0)), Lease: s.duration(a.named["lease"], 0)}
	case "grant":
		v := meta.Verdict{
			Attempt: id, Granted: true, Payload: []byte("from " + a.words[1]),
			Sent: s.now.Add(-s.duration(a.named["ago"], 0)), Lease: s.duration(a.named["lease"], 0),
		}
		if a.has("reminder") { // answers no claim
			v.Sent, v.Stamp = 0, uint64(s.number(a, "stamp", 0))
		}
		return v
	case "deny":
		v := meta.Verdict{Attempt: id, Reason: reason}
		if ago, ok := a.named["ago"]; ok {
			v.Sent = s.now.Add(-s.duration(ago, 0))
		}
		return v
	case "withdraw":
		return meta.Withdraw{Attempt: id}
	case "withdrawn":
		return meta.WithdrawAck{Attempt: id}
	case "started":
		return meta.Started{Attempt: id, At: s.now, Bound: s.number(a, "bound", 0)}
	case "over":
		return meta.Started{Attempt: id, At: s.now, Over: true}
	case "result":
		return meta.Result{Attempt: id, Outcome: s.outcome(a)}
	case "result-ack":
		return meta.ResultAck{Attempt: id, Accepted: true}
	case "stop":
		return meta.Stop{Attempt: id}
	case "demote":
		return meta.Demote{Attempt: id}
	case "saved":
		return meta.Saved{Attempt: id, Sequence: uint64(s.number(a, "saved", 0)), Reason: a.named["why"], Files: []byte("saved"), FilesRemain: a.has("remain"), Ran: s.duration(a.named["ran"], 0)}
	case "saved-ack":
		return meta.SavedAck{Attempt: id, Sequence: uint64(s.number(a, "saved", 0)), Accepted: true}
	case "give-back":
		return meta.GiveBack{Attempt: id, Reason: reason, Stamp: uint64(s.number(a, "stamp", float64(s.now)+1))}
	case "summary":
		return meta.CopySummary{Count: uint64(s.number(a, "count", 0)), Hash: uint64(s.number(a, "hash", 0)), GivenUp: uint64(s.number(a, "given-up", 0))}
	case "digest-request":
		return meta.DigestRequest{}
	case "digest":
		d := meta.CopyDigest{Stamp: uint64(s.number(a, "stamp", float64(s.now)+1))}
		for _, w := range a.words[3:] {
			name, phase, _ := strings.Cut(w, ":")
			e := meta.DigestEntry{Attempt: s.attempt(name), Begun: phase != "", Ended: phase == "ended"}
			if phase == "running" {
				e.Started = s.now
			}
			d.Entries = append(d.Entries, e)
		}
		return d
	case "start-query":
		return meta.StartQuery{Query: 7, Request: s.request(a)}
	case "start-answer":
		return meta.StartAnswer{Query: uint64(s.number(a, "query", 1)), Wait: s.duration(a.named["wait"], 0), Reason: reason}
	case "site-bundle":
		of := job.SiteID(a.words[1])
		if other := a.named["of"]; other != "" {
			of = job.SiteID(other)
		}
		m := meta.SiteBundle{Site: of, Bundle: s.bundle(a)}
		if text, ok := a.named["told"]; ok {
			m.Told = &store.Told{Addresses: strings.FieldsFunc(text, func(r rune) bool { return r == ',' }), Incarnation: uint64(s.number(a, "start", 1))}
		}
		return m
	case "bundle-taken":
		return meta.BundleTaken{Sequence: uint64(s.number(a, "sequence", 1))}
	}
	return s.bagMessage(a)
}

func (s *stage) show(text string) {
	v, err := s.engine.Views().JobView(s.jobID(text))
	if err != nil {
		s.say("%v", err)
		return
	}
	r := &v.Record
	for _, d := range r.Demotions {
		s.say("attempt %d ended at %s to go on: %v, checkpoint %d", d.Attempt, d.Site, d.Cause, d.Sequence)
	}
	s.say("%v %v attempt=%d sites=%v holder=%s", r.ID, r.State, r.Attempt, r.Sites, r.Holder)
	if x := r.Saved; x != nil {
		s.say("checkpoint %d of attempt %d came home at %s, after %v; the latest started from %d", x.Sequence, x.Attempt, x.Site, x.Ran, r.StartedFrom())
	}
	if v.SaveTrouble != "" {
		s.say("not copied: %s", v.SaveTrouble)
	}
	if v.Over {
		s.say("over: its output is being collected")
	}
	s.showLevel(&v)
	for _, c := range v.Copies {
		s.say("copy at %s: %s", c.Site, [...]string{"", "placing", "queued", "claimed", "withdrawing"}[c.State])
	}
	for _, e := range r.Events {
		s.say("event %s attempt=%d %s %s", [...]string{"", "opened", "granted", "denied", "returned", "replaced", "closed", "superseded", "revoked", "outraced", "demoted", "lowered"}[e.Kind], e.Attempt, e.Site, e.Reason)
	}
	if v.Decision == nil {
		v.Decision = s.decisions[r.ID]
	}
	if v.Decision != nil {
		s.say("ranked by %v", meta.Rank(v.Decision.Rank))
		for _, d := range v.Decision.Sites {
			s.say("verdict %s chosen=%v score=%g %s", d.Site, d.Chosen, d.Score, d.Reason)
		}
	}
	if r.Outcome != nil {
		s.say("outcome kind=%d exit=%d %s", r.Outcome.Kind, r.Outcome.ExitCode, r.Outcome.Reason)
	}
}
