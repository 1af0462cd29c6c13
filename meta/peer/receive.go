package peer

import (
	"errors"
	"fmt"
	"time"

	"kith/cluster"
	"kith/cluster/wire"
	"kith/meta"

	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

// Bounds of what is heard of a peer. Who asks for starts more often is told to ask
// later, and places its jobs without the answer.
const (
	queriesPerSecond = 1000
	queriesAtOnce    = 2000
	// refusedEvery is how often a line about refused messages of a peer is logged.
	refusedEvery = time.Second
	// shownBytes is how much of a text from outside goes into a line of the log.
	shownBytes = 256
)

// received takes a frame apart. What makes no sense is logged and skipped: a
// broken peer must not take the stream of its good messages down.
func (l *Links) received(s *session, f *kithv1.Frame) {
	now := time.Now()
	if n := len(f.GetMessages()); n > mostInFrame {
		l.refuse(s, now, fmt.Errorf("frame of %d messages, at most %d: %w", n, mostInFrame, ErrMessage))
		return
	}
	var messages []meta.Message
	for _, p := range f.GetMessages() {
		m, err := l.take(s, now, p)
		switch {
		case err != nil:
			l.refuse(s, now, err)
		case m != nil:
			messages = append(messages, m)
		}
	}
	if len(messages) == 0 {
		return
	}
	s.gate.Lock()
	defer s.gate.Unlock()
	if !s.closed {
		l.handler.PeerMessages(s.site, messages)
	}
}

// mostInFrame is how many messages a frame may have; this site sends fewer.
const mostInFrame = 8 * maxFrameMessages

// take returns what a message is for the handler, nil if it is not for it.
func (l *Links) take(s *session, now time.Time, p *kithv1.PeerMessage) (meta.Message, error) {
	switch m := p.GetMessage().(type) {
	case *kithv1.PeerMessage_FileRequest:
		if broken := wire.Check(p); len(broken) > 0 {
			return nil, fmt.Errorf("%w: %w", ErrMessage, broken[0])
		}
		l.serveFile(s, m.FileRequest)
		return nil, nil
	case *kithv1.PeerMessage_FileReply:
		if broken := wire.Check(p); len(broken) > 0 {
			return nil, fmt.Errorf("%w: %w", ErrMessage, broken[0])
		}
		s.fileReplied(m.FileReply)
		return nil, nil
	case *kithv1.PeerMessage_StartQuery:
		if !s.queries.take(now) {
			s.enqueue(toProto(meta.StartAnswer{Query: m.StartQuery.GetQuery(), Reason: job.AskLater}))
			return nil, nil
		}
	case *kithv1.PeerMessage_LoadDigest:
		d, err := fromProto(p)
		if errors.Is(err, cluster.ErrImpossible) {
			l.troubles.impossible(s.site, err)
			return nil, nil
		}
		if err == nil {
			l.troubles.believed(s.site)
		}
		return d, err
	}
	return fromProto(p)
}

// refuse logs that messages are refused, once a second and with how many there were.
func (l *Links) refuse(s *session, now time.Time, err error) {
	if more, ok := s.refused.pass(now, refusedEvery); ok {
		l.log.Warn("peer message refused", "peer_id", string(s.site), "error", shown(err.Error()), "refused_since_last_line", more)
	}
}

// pacer lets one thing pass in a while, and counts those that it held back.
type pacer struct {
	next time.Time
	held int
}

func (p *pacer) pass(now time.Time, every time.Duration) (held int, ok bool) {
	if now.Before(p.next) {
		p.held++
		return 0, false
	}
	held, p.held, p.next = p.held, 0, now.Add(every)
	return held, true
}

// bucket lets start queries pass at a rate. The zero bucket is full.
type bucket struct {
	used float64
	at   time.Time
}

// take reports whether one more may pass.
func (b *bucket) take(now time.Time) bool {
	b.used = max(0, b.used-now.Sub(b.at).Seconds()*queriesPerSecond)
	b.at = now
	if b.used > queriesAtOnce-1 {
		return false
	}
	b.used++
	return true
}
