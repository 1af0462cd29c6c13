package peer

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

// ErrNoStream is returned when no stream to the site is up, or it ended before the answer.
var ErrNoStream = errors.New("no connection to the site")

// ErrTooManyRequests is returned when too many file requests to one site are under way.
var ErrTooManyRequests = errors.New("too many file requests under way")

// ReadFile asks a site for bytes of a file and waits for the answer. It fills
// in the request's number.
func (l *Links) ReadFile(ctx context.Context, site job.SiteID, r *kithv1.FileRequest) (*kithv1.FileReply, error) {
	s := l.session(site)
	if s == nil {
		return nil, fmt.Errorf("site %s: %w", site, ErrNoStream)
	}
	answer := make(chan *kithv1.FileReply, 1)
	s.fileMu.Lock()
	s.nextID++
	id := s.nextID
	s.pending[id] = answer
	s.fileMu.Unlock()
	defer func() {
		s.fileMu.Lock()
		delete(s.pending, id)
		s.fileMu.Unlock()
	}()
	r = proto.CloneOf(r)
	r.Request = id
	if !s.enqueuePiece(&kithv1.PeerMessage{Message: &kithv1.PeerMessage_FileRequest{FileRequest: r}}) {
		return nil, fmt.Errorf("site %s: %w", site, ErrTooManyRequests)
	}
	select {
	case reply := <-answer:
		return reply, nil
	case <-s.ctx.Done():
		return nil, fmt.Errorf("site %s: %w", site, ErrNoStream)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// fileReplied takes a reply, and reports whether it was asked for.
func (s *session) fileReplied(reply *kithv1.FileReply) (asked bool) {
	s.fileMu.Lock()
	answer := s.pending[reply.GetRequest()]
	delete(s.pending, reply.GetRequest())
	s.fileMu.Unlock()
	if answer != nil {
		answer <- reply // has room for one, and there is only one
	}
	return answer != nil
}

// sendPiece queues the reply to a request, however many wait, but for a peer that asks and
// does not read.
func (s *session) sendPiece(reply *kithv1.FileReply) {
	s.mu.Lock()
	s.pieces = append(s.pieces, &kithv1.PeerMessage{Message: &kithv1.PeerMessage_FileReply{FileReply: reply}})
	over := len(s.pieces) > maxQueuedPieces+4*servedAtOnce
	s.mu.Unlock()
	if over {
		s.cancel(ErrSlow)
	}
	s.poke()
}

// serveFile answers a request beside the stream, a bounded number at a time.
func (l *Links) serveFile(s *session, r *kithv1.FileRequest) {
	select {
	case s.serving <- struct{}{}:
	default:
		s.sendPiece(&kithv1.FileReply{Request: r.GetRequest(), Error: kithv1.FileReply_ERROR_BUSY})
		return
	}
	l.wg.Go(func() {
		defer func() { <-s.serving }()
		reply := l.files.ServeFile(s.ctx, s.site, r)
		reply.Request = r.GetRequest()
		s.sendPiece(reply)
	})
}
