package sim

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"strconv"

	"kith/internal/job"
	"kith/meta"
)

// eventLog writes a line for each submission, each process that starts or ends, each message
// that arrives, and whatever happens to sites and streams:
//
//	seconds.nanoseconds verb site [site] [detail]
//
// Two runs of one configuration write the same bytes.
type eventLog struct {
	w    *World
	on   bool
	line []byte
	to   io.Writer
	sum  hash.Hash
	err  error
}

const logBuffer = 1 << 16

func (l *eventLog) init(w *World) {
	l.w, l.to = w, w.cfg.Log
	if w.cfg.Hash {
		l.sum = sha256.New()
	}
	if l.on = l.to != nil || l.sum != nil; l.on {
		l.line = make([]byte, 0, logBuffer)
	}
}

// begin begins a line; false if there is no log.
func (l *eventLog) begin(verb string, site job.SiteID) bool {
	if !l.on {
		return false
	}
	if len(l.line) > logBuffer-1024 {
		l.flush()
	}
	at := int64(l.w.now.Sub(Start))
	l.line = strconv.AppendInt(l.line, at/1e9, 10)
	if fraction := at % 1e9; fraction != 0 {
		l.line = append(l.line, '.')
		for scale := int64(1e8); scale > 0; scale /= 10 {
			l.line = append(l.line, byte('0'+fraction/scale%10))
		}
	}
	l.word(verb)
	l.word(string(site))
	return true
}

func (l *eventLog) word(s string) { l.line = append(append(l.line, ' '), s...) }

func (l *eventLog) attempt(a job.AttemptID) {
	l.line = a.Job.Append(append(l.line, ' '))
	l.line = strconv.AppendUint(append(l.line, '#'), uint64(a.Number), 10)
}

func (l *eventLog) end() { l.line = append(l.line, '\n') }

func (l *eventLog) flush() {
	if l.sum != nil {
		l.sum.Write(l.line)
	}
	if l.to != nil && l.err == nil {
		_, l.err = l.to.Write(l.line)
	}
	l.line = l.line[:0]
}

func (l *eventLog) submitted(s *Site, id job.ID) {
	if l.begin("submit", s.cfg.ID) {
		l.line = id.Append(append(l.line, ' '))
		l.end()
	}
}

func (l *eventLog) started(s *Site, a job.AttemptID) {
	if l.begin("start", s.cfg.ID) {
		l.attempt(a)
		l.end()
	}
}

func (l *eventLog) ended(s *Site, a job.AttemptID, kind job.OutcomeKind) {
	if l.begin("end", s.cfg.ID) {
		l.attempt(a)
		l.line = strconv.AppendUint(append(l.line, ' '), uint64(kind), 10)
		l.end()
	}
}

func (l *eventLog) site(verb string, s *Site) {
	if l.begin(verb, s.cfg.ID) {
		l.end()
	}
}

func (l *eventLog) stream(p *pair) {
	if l.begin("stream", p.ends[0].cfg.ID) {
		l.word(string(p.ends[1].cfg.ID))
		l.end()
	}
}

func (l *eventLog) cut(from, to job.SiteID) {
	if l.begin("cut", from) {
		l.word(string(to))
		l.end()
	}
}

func (l *eventLog) heal(a, b job.SiteID) {
	if l.begin("heal", a) {
		l.word(string(b))
		l.end()
	}
}

func (l *eventLog) arrived(from, to *Site, m meta.Message) {
	if !l.on || !l.begin(m.Word(), from.cfg.ID) {
		return
	}
	l.word(string(to.cfg.ID))
	switch m := m.(type) {
	case meta.PlaceCopy:
		l.attempt(m.Attempt)
	case meta.CopyAnswer:
		l.attempt(m.Attempt)
		l.word(m.Reason.String())
	case meta.Claim:
		l.attempt(m.Attempt)
	case meta.Verdict:
		l.attempt(m.Attempt)
		l.word(m.Reason.String())
	case meta.Withdraw:
		l.attempt(m.Attempt)
	case meta.Started:
		l.attempt(m.Attempt)
	case meta.Result:
		l.attempt(m.Attempt)
	case meta.GiveBack:
		l.attempt(m.Attempt)
	case meta.StartAnswer:
		l.word(m.Wait.String())
	case meta.CopySummary:
		l.line = strconv.AppendUint(append(l.line, ' '), m.Hash, 16)
	case meta.LoadDigest:
		l.line = strconv.AppendFloat(append(l.line, ' '), m.Digest.Load.Work, 'g', -1, 64)
	}
	l.end()
}

// CloseLog writes what is left of the event log and returns the first error
// of its writer.
func (w *World) CloseLog() error {
	w.log.flush()
	return w.log.err
}

// Hash returns the SHA-256 of the event log so far, as text; empty if
// [Config.Hash] was not set.
func (w *World) Hash() string {
	w.log.flush()
	if w.log.sum == nil {
		return ""
	}
	return hex.EncodeToString(w.log.sum.Sum(nil))
}
