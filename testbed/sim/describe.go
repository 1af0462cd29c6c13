package sim

import (
	"fmt"
	"strings"

	"kith/meta"
)

// Describe tells people what a message says.
func Describe(m meta.Message) string {
	word := m.Word()
	switch m := m.(type) {
	case meta.PlaceCopy:
		return fmt.Sprintf("%s %v, %d processors for %v", word, m.Attempt, m.Request.Processors, m.Request.Walltime)
	case meta.CopyAnswer:
		if m.Accepted {
			return fmt.Sprintf("%s %v: accepted", word, m.Attempt)
		}
		return fmt.Sprintf("%s %v: refused, %v", word, m.Attempt, m.Reason)
	case meta.Claim:
		return fmt.Sprintf("%s %v", word, m.Attempt)
	case meta.Verdict:
		switch {
		case !m.Granted:
			return fmt.Sprintf("%s %v: denied, %v %s", word, m.Attempt, m.Reason, m.Winner)
		case m.Lease > 0:
			return fmt.Sprintf("%s %v: granted for %v", word, m.Attempt, m.Lease)
		}
		return fmt.Sprintf("%s %v: granted", word, m.Attempt)
	case meta.Withdraw:
		return fmt.Sprintf("%s %v", word, m.Attempt)
	case meta.WithdrawAck:
		return fmt.Sprintf("%s %v", word, m.Attempt)
	case meta.Started:
		return fmt.Sprintf("%s %v", word, m.Attempt)
	case meta.Result:
		return fmt.Sprintf("%s %v: outcome %d %s", word, m.Attempt, m.Outcome.Kind, m.Outcome.Reason)
	case meta.ResultAck:
		return fmt.Sprintf("%s %v: accepted %v", word, m.Attempt, m.Accepted)
	case meta.Stop:
		return fmt.Sprintf("%s %v", word, m.Attempt)
	case meta.Demote:
		return fmt.Sprintf("%s %v", word, m.Attempt)
	case meta.GiveBack:
		return fmt.Sprintf("%s %v: %v", word, m.Attempt, m.Reason)
	case meta.CopySummary:
		return fmt.Sprintf("%s of %d", word, m.Count)
	case meta.CopyDigest:
		var b strings.Builder
		b.WriteString(word)
		for _, e := range m.Entries {
			fmt.Fprintf(&b, " %v", e.Attempt)
			switch {
			case e.Ended:
				b.WriteString(" (ended)")
			case e.Started != 0:
				b.WriteString(" (runs)")
			case e.Begun:
				b.WriteString(" (begun)")
			}
		}
		return b.String()
	case meta.StartQuery:
		return fmt.Sprintf("%s %d", word, m.Query)
	case meta.StartAnswer:
		return fmt.Sprintf("%s %d: in %v %v", word, m.Query, m.Wait, m.Reason)
	case meta.LoadDigest:
		return fmt.Sprintf("%s: %d of %d processors free, %d wait", word, m.Digest.Load.Free, m.Digest.Processors, m.Digest.Load.Queued)
	case meta.DigestRequest:
		return word
	}
	return fmt.Sprintf("%s %+v", word, m)
}

// tell traces an effect that people want to read of.
func (s *Site) tell(f meta.Effect) {
	switch f := f.(type) {
	case meta.Launch:
		s.w.trace("%s: launches %v", s.cfg.ID, f.Attempt)
	case meta.Kill:
		s.w.trace("%s: kills %v", s.cfg.ID, f.Attempt)
	case meta.AskCheckpoint:
		s.w.trace("%s: asks %v to save and end within %v: %v", s.cfg.ID, f.Attempt, f.Grace, f.Cause)
	case meta.Adopt:
		s.w.trace("%s: looks for %v", s.cfg.ID, f.Attempt)
	case meta.Clear:
		s.w.trace("%s: forgets %v", s.cfg.ID, f.Attempt)
	case meta.Reply:
		if f.Err != nil {
			s.w.trace("%s: answers: %v", s.cfg.ID, f.Err)
		} else {
			s.w.trace("%s: answers: job %v is %v", s.cfg.ID, f.Job, f.State)
		}
	case meta.Changed:
		if j := s.state.Job(f.Job); j != nil {
			s.w.trace("%s: job %v is %v, attempt %d, holder %q, sites %v", s.cfg.ID, f.Job, j.State, j.Attempt, j.Holder, j.Sites)
		}
	}
}
