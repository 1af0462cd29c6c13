package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"kith/cluster/wire"
	"kith/internal/job"
	"kith/internal/pause"
	"kith/internal/scarce"
	"kith/meta"
	"kith/meta/transfer"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store/blobstore"
)

// Fetch carries out a [meta.Fetch].
func (s *Runner) Fetch(ef meta.Fetch) {
	ctx, end := s.fetches.begin(s.ctx, ef.Attempt)
	s.wg.Go(func() {
		defer end()
		defer s.setAway(ef.Attempt, "")
		s.fetchHome(ctx, ef)
	})
}

// Unfetch carries out a [meta.Unfetch].
func (s *Runner) Unfetch(a job.AttemptID) { s.fetches.stop(a) }

// fetches are the outputs on their way home, each with what stops that.
type fetches struct {
	mu    sync.Mutex
	stops map[job.AttemptID]*context.CancelFunc
}

// begin notes a fetch, which is to call end when it is over.
func (f *fetches) begin(parent context.Context, a job.AttemptID) (ctx context.Context, end func()) {
	ctx, stop := context.WithCancel(parent)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stops == nil {
		f.stops = make(map[job.AttemptID]*context.CancelFunc)
	}
	f.stops[a] = &stop
	return ctx, func() {
		stop()
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.stops[a] == &stop { // else it was stopped, and has begun again since
			delete(f.stops, a)
		}
	}
}

func (f *fetches) stop(a job.AttemptID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if stop := f.stops[a]; stop != nil {
		(*stop)()
		delete(f.stops, a)
	}
}

// setAway notes where the output of an attempt can be read that does not come home for
// want of room; "" if it does.
func (s *Runner) setAway(a job.AttemptID, at job.SiteID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at == "" {
		delete(s.away, a)
	} else {
		s.away[a] = at
	}
}

// awayAt returns where the output of an attempt is that does not come home, "" if it does.
func (s *Runner) awayAt(a job.AttemptID) job.SiteID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.away[a]
}

// comesBack reports whether an error says that there is no room for files now, or that
// the machine has run out of something else that it will have again.
func comesBack(err error) bool { return scarce.Passes(err) || errors.Is(err, blobstore.ErrQuota) }

// fetchHome brings an attempt's output to this site. A holder that is out of reach is asked
// again for as long as it takes: the job waits for its output. So it does while this site
// or its holder has run out of something.
func (s *Runner) fetchHome(ctx context.Context, ev meta.Fetch) {
	const longest = 30 * time.Second
	again := 2 * time.Second
	defer s.scarcity.over(ev.Attempt)
	set, err := transfer.Decode(ev.Files)
	if err == nil {
		err = s.everFits(set)
	}
	for err == nil {
		if s.cfg.Away(ev.From) { // so that it keeps no buffers from others
			if !pause.For(ctx, time.Second) {
				return
			}
			continue
		}
		err = s.fetcher.Fetch(ctx, ev.Attempt, set, s.sourceAt(ev.From), nil)
		if err == nil {
			s.cfg.Post(meta.FilesHome{Attempt: ev.Attempt})
			return
		}
		if ctx.Err() != nil {
			return
		}
		s.log.Warn("output not brought home", "attempt_id", ev.Attempt.String(), "peer_id", string(ev.From), "error", err.Error())
		s.scarcity.note(ev.Attempt, err)
		if comesBack(err) {
			s.setAway(ev.Attempt, ev.From)
			s.cfg.Post(meta.FilesWait{Attempt: ev.Attempt, Reason: waitText(err)})
		}
		if comesBack(err) || !final(err) {
			err = nil
			if !pause.For(ctx, again) {
				return
			}
			again = min(2*again, longest)
		}
	}
	s.cfg.Post(meta.FilesHome{Attempt: ev.Attempt, Error: fmt.Sprintf("output at site %s is lost: %v", ev.From, err)})
}

// waitText says what is full or scarce, without the figures that change at every try.
func waitText(err error) string {
	if errors.Is(err, blobstore.ErrQuota) {
		return blobstore.ErrQuota.Error()
	}
	if !scarce.Full(err) {
		return scarce.Errno(err)
	}
	return "the disk is full"
}

// everFits returns an error if a set is larger than all files together may be here.
func (s *Runner) everFits(set transfer.Set) error {
	if quota := s.files.cfg.QuotaBytes; quota > 0 && chunkBytes(set) > quota {
		return fmt.Errorf("%w: %s, and all files together may have %s here", transfer.ErrTooLarge,
			blobstore.FormatBytes(chunkBytes(set)), blobstore.FormatBytes(quota))
	}
	return nil
}

// chunkBytes is what the chunks of a set have together, each counted once.
func chunkBytes(set transfer.Set) (n int64) {
	seen := make(map[blobstore.Sum]struct{})
	for sum, size := range set.Chunks() {
		if _, again := seen[sum]; !again {
			seen[sum] = struct{}{}
			n += size
		}
	}
	return n
}

// final reports whether asking again is of no use.
func final(err error) bool {
	return errors.Is(err, transfer.ErrNotFound) || errors.Is(err, transfer.ErrDenied) || errors.Is(err, transfer.ErrBadReply) ||
		errors.Is(err, transfer.ErrBadSet)
}

// sourceAt reads chunks from a site over its stream.
func (s *Runner) sourceAt(site job.SiteID) transfer.Source { return remoteSource{s, site} }

type remoteSource struct {
	runner *Runner
	site   job.SiteID
}

// ReadChunk implements transfer.Source.
func (s remoteSource) ReadChunk(ctx context.Context, a job.AttemptID, sum blobstore.Sum, offset int64, limit int) ([]byte, error) {
	reply, err := s.runner.cfg.Peers.ReadFile(ctx, s.site, &kithv1.FileRequest{
		Attempt: wire.AttemptName(a), Target: &kithv1.FileRequest_Chunk{Chunk: sum[:]}, Offset: offset, Limit: int32(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", transfer.ErrUnavailable, err)
	}
	if err := replyError(reply); err != nil {
		return nil, err
	}
	s.runner.files.received.Add(int64(len(reply.GetData())))
	return reply.GetData(), nil
}

// replyErrors is the table of what goes wrong with file requests.
var replyErrors = map[kithv1.FileReply_Error]error{
	kithv1.FileReply_ERROR_NOT_FOUND: transfer.ErrNotFound,
	kithv1.FileReply_ERROR_DENIED:    transfer.ErrDenied,
	kithv1.FileReply_ERROR_BUSY:      transfer.ErrBusy,
	kithv1.FileReply_ERROR_IO:        transfer.ErrUnavailable,
}

func replyError(r *kithv1.FileReply) error {
	if r.GetError() == kithv1.FileReply_ERROR_UNSPECIFIED {
		return nil
	}
	sentinel := replyErrors[r.GetError()]
	if sentinel == nil {
		sentinel = transfer.ErrUnavailable
	}
	return fmt.Errorf("peer answers %v %q: %w", r.GetError(), r.GetDetail(), sentinel)
}

func errorReply(err error) *kithv1.FileReply {
	for code, sentinel := range replyErrors {
		if errors.Is(err, sentinel) && code != kithv1.FileReply_ERROR_IO {
			return &kithv1.FileReply{Error: code}
		}
	}
	return &kithv1.FileReply{Error: kithv1.FileReply_ERROR_IO, Detail: "reading failed; the site's log tells more"}
}

// liveAt reads the output of an attempt that runs at another site.
func (s *Runner) liveAt(ctx context.Context, site job.SiteID, a job.AttemptID, name string, offset int64, wait time.Duration) (data []byte, end bool, err error) {
	reply, err := s.cfg.Peers.ReadFile(ctx, site, &kithv1.FileRequest{
		Attempt: wire.AttemptName(a), Target: &kithv1.FileRequest_Output{Output: name},
		Offset: offset, Limit: transfer.MaxPieceBytes, Wait: durationpb.New(wait),
	})
	if err != nil {
		return nil, false, fmt.Errorf("%w: %w", transfer.ErrUnavailable, err)
	}
	if err := replyError(reply); err != nil {
		return nil, false, err
	}
	return reply.GetData(), reply.GetEnd(), nil
}
