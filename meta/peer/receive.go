package peer

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"kith/cluster"
	"kith/cluster/wire"
	"kith/meta"

	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

// Bounds of what is logged of a peer.
const (
	// refusedEvery is how often a line about refused messages of a peer is logged.
	refusedEvery = time.Second
	// shownBytes is how much of a text from outside goes into a line of the log.
	shownBytes = 256
)

// received takes a frame apart. What makes no sense is logged and skipped: a
// broken peer must not take the stream of its good messages down.
func (l *Links) received(s *session, f *kithv1.Frame) {
	var b bill
	rest := f.GetMessages()
	if n := len(rest); n > mostInFrame {
		l.refuse(s, time.Now(), fmt.Errorf("frame of %d messages, at most %d: %w", n, mostInFrame, ErrMessage))
		rest = nil
	}
	for len(rest) > 0 {
		n := l.pace(s, rest)
		l.deliver(s, rest[:n], &b)
		rest = rest[n:]
	}
	l.hold(s, s.limits.charge(b.cost(proto.Size(f)), time.Now()), Dealings)
}

// deliver gives the handler messages whose time has come.
func (l *Links) deliver(s *session, list []*kithv1.PeerMessage, b *bill) {
	now := time.Now()
	var messages []meta.Message
	for _, p := range list {
		if c, _ := ClassOf(p); c == Dealings || c == Comparisons {
			b.paid++
		}
		m, err := l.take(s, now, p, b)
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
func (l *Links) take(s *session, now time.Time, p *kithv1.PeerMessage, b *bill) (meta.Message, error) {
	switch m := p.GetMessage().(type) {
	case *kithv1.PeerMessage_FileRequest:
		if broken := wire.Check(p); len(broken) > 0 {
			return nil, fmt.Errorf("%w: %w", ErrMessage, broken[0])
		}
		if !s.limits.allows(Files, now) {
			l.overRate(s, Files, b)
			s.sendPiece(&kithv1.FileReply{Request: m.FileRequest.GetRequest(), Error: kithv1.FileReply_ERROR_BUSY})
			return nil, nil
		}
		l.serveFile(s, m.FileRequest)
		return nil, nil
	case *kithv1.PeerMessage_SiteBundle:
		return l.takeBundle(s, now, p, b)
	case *kithv1.PeerMessage_FileReply:
		if broken := wire.Check(p); len(broken) > 0 {
			return nil, fmt.Errorf("%w: %w", ErrMessage, broken[0])
		}
		if s.fileReplied(m.FileReply) {
			b.asked += len(m.FileReply.GetData())
		} else {
			b.refused++
		}
		return nil, nil
	case *kithv1.PeerMessage_StartQuery:
		if !s.limits.allows(Queries, now) {
			l.overRate(s, Queries, b)
			s.enqueue(toProto(meta.StartAnswer{Query: m.StartQuery.GetQuery(), Reason: job.AskLater}))
			return nil, nil
		}
	case *kithv1.PeerMessage_LoadDigest:
		if !s.limits.allows(Loads, now) {
			l.overRate(s, Loads, b)
			return nil, nil
		}
		d, err := fromProto(p)
		if errors.Is(err, cluster.ErrImpossible) {
			l.troubles.impossible(s.site, err)
			l.tellRefusal(Refusal{What: WhatLoad, Rule: "possible-load", Site: s.site, Err: err})
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
	l.tellRefusal(Refusal{What: WhatMessage, Site: s.site, Err: err})
	if more, ok := l.refused.Pass(s.site, now, refusedEvery); ok {
		l.log.Warn("peer message refused", "peer_id", string(s.site), "error", shown(err.Error()), "refused_since_last_line", more)
	}
}
