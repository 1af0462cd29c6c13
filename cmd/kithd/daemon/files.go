package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/peer"
	"kith/meta/transfer"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
	"kith/store/blobstore"
	"kith/store/codec"
)

// files keeps and moves the files of jobs.
type files struct {
	loop    *loop
	site    job.SiteID
	backend store.Backend
	blobs   *blobstore.Store
	packer  *transfer.Packer
	fetcher *transfer.Fetcher
	server  *transfer.Server
	tail    *transfer.Tail
	runs    *attempts
	links   *peer.Links
	away    func(job.SiteID) bool // there is no stream to the site
	maxFile int64
	log     *slog.Logger

	sent, received atomic.Int64
}

// Pack implements api.Files.
func (f *files) Pack(ctx context.Context, inputs []transfer.Input) (transfer.Set, error) {
	return f.packer.Pack(ctx, inputs)
}

// Upload implements api.Files.
func (f *files) Upload(ctx context.Context, r io.Reader) (transfer.UploadID, error) {
	return transfer.Upload(ctx, f.blobs, r, f.maxFile)
}

// fetchHome carries out a [meta.Fetch]. A holder that is out of reach is asked
// again for as long as it takes: the job waits for its output.
func (f *files) fetchHome(ctx context.Context, ev meta.Fetch) {
	set, err := transfer.Decode(ev.Files)
	for err == nil {
		if f.away(ev.From) { // so that it keeps no buffers from others
			if !pause(ctx, time.Second) {
				return
			}
			continue
		}
		err = f.fetcher.Fetch(ctx, ev.Attempt, set, f.sourceAt(ev.From), nil)
		if err == nil {
			f.loop.post(meta.FilesHome{Attempt: ev.Attempt})
			return
		}
		if ctx.Err() != nil {
			return
		}
		f.log.Warn("output not brought home", "attempt_id", ev.Attempt.String(), "peer_id", string(ev.From), "error", err.Error())
		if !final(err) {
			err = nil
			if !pause(ctx, 5*time.Second) {
				return
			}
		}
	}
	f.loop.post(meta.FilesHome{Attempt: ev.Attempt, Error: fmt.Sprintf("output at site %s is lost: %v", ev.From, err)})
}

// final reports whether asking again is of no use.
func final(err error) bool {
	return errors.Is(err, transfer.ErrNotFound) || errors.Is(err, transfer.ErrDenied) || errors.Is(err, transfer.ErrBadReply) ||
		errors.Is(err, transfer.ErrBadSet)
}

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// sourceAt reads chunks from a site over its stream.
func (f *files) sourceAt(site job.SiteID) transfer.Source { return remoteSource{f, site} }

type remoteSource struct {
	files *files
	site  job.SiteID
}

// ReadChunk implements transfer.Source.
func (s remoteSource) ReadChunk(ctx context.Context, a job.AttemptID, sum blobstore.Sum, offset int64, limit int) ([]byte, error) {
	reply, err := s.files.links.ReadFile(ctx, s.site, &kithv1.FileRequest{
		Attempt: codec.AttemptName(a), Target: &kithv1.FileRequest_Chunk{Chunk: sum[:]}, Offset: offset, Limit: int32(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", transfer.ErrUnavailable, err)
	}
	if err := replyError(reply); err != nil {
		return nil, err
	}
	s.files.received.Add(int64(len(reply.GetData())))
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

// ServeFile implements peer.FileServer.
func (f *files) ServeFile(ctx context.Context, from job.SiteID, r *kithv1.FileRequest) *kithv1.FileReply {
	reply, err := f.serve(ctx, from, r)
	if err != nil {
		f.log.Debug("file request refused", "peer_id", string(from), "error", err.Error())
		return errorReply(err)
	}
	f.sent.Add(int64(len(reply.GetData())))
	return reply
}

func (f *files) serve(ctx context.Context, from job.SiteID, r *kithv1.FileRequest) (*kithv1.FileReply, error) {
	a, err := codec.AttemptID(r.GetAttempt())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", transfer.ErrNotFound, err)
	}
	switch target := r.GetTarget().(type) {
	case *kithv1.FileRequest_Chunk:
		if len(target.Chunk) != len(blobstore.Sum{}) {
			return nil, transfer.ErrNotFound
		}
		data, end, err := f.server.ReadChunk(ctx, from, a, blobstore.Sum(target.Chunk), r.GetOffset(), int(r.GetLimit()))
		if err != nil {
			return nil, err
		}
		return &kithv1.FileReply{Data: data, End: end}, nil
	case *kithv1.FileRequest_Output:
		if a.Job.Origin != from {
			return nil, transfer.ErrDenied
		}
		out, err := f.runs.live(a, target.Output)
		if err != nil {
			return nil, err
		}
		wait := min(max(0, r.GetWait().AsDuration()), 10*time.Second)
		data, end, err := f.tail.Read(ctx, out, r.GetOffset(), int(r.GetLimit()), wait)
		if err != nil {
			return nil, err
		}
		return &kithv1.FileReply{Data: data, End: end}, nil
	}
	return nil, transfer.ErrNotFound
}

// allowed says which files of an attempt a site may read: the inputs if it
// holds the claim, the outputs if it is the origin.
func (f *files) allowed(ctx context.Context, from job.SiteID, a job.AttemptID) (transfer.Set, error) {
	var raw []byte
	var err error
	e := f.loop.Look(ctx, func(_ job.Time, v meta.Views) {
		if a.Job.Origin == from {
			var ok bool
			if raw, ok = v.EndedFiles(a); !ok {
				err = transfer.ErrNotFound
			}
			return
		}
		if !v.HeldBy(a, from) {
			err = transfer.ErrDenied
		}
	})
	if err = errors.Join(e, err); err != nil {
		return transfer.Set{}, err
	}
	if a.Job.Origin == from {
		return transfer.Decode(raw)
	}
	if raw, err = f.backend.Payload(a.Job); err != nil {
		return transfer.Set{}, err
	}
	p, err := parsePayload(raw)
	if err != nil {
		return transfer.Set{}, err
	}
	return p.inputs, nil
}

// liveAt reads the output of an attempt that runs at another site.
func (f *files) liveAt(ctx context.Context, site job.SiteID, a job.AttemptID, name string, offset int64, wait time.Duration) (data []byte, end bool, err error) {
	reply, err := f.links.ReadFile(ctx, site, &kithv1.FileRequest{
		Attempt: codec.AttemptName(a), Target: &kithv1.FileRequest_Output{Output: name},
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

// Sweeping of chunks that no job names any more.
const (
	sweepEvery = time.Hour
	sweepGrace = time.Hour
)

// keepSweeping removes what no job needs any more, now and then.
func (f *files) keepSweeping(ctx context.Context) {
	for pause(ctx, sweepEvery) {
		report, err := f.blobs.Sweep(ctx, f.liveChunks(ctx), sweepGrace)
		if err != nil {
			f.log.Warn("sweep of files failed", "error", err.Error())
			continue
		}
		f.log.Info("files swept", "kept", report.Kept, "removed", report.Removed, "freed_bytes", report.FreedBytes)
	}
}

// liveChunks yields every chunk that a job or attempt of this site names.
func (f *files) liveChunks(ctx context.Context) iter.Seq2[blobstore.Sum, error] {
	return func(yield func(blobstore.Sum, error) bool) {
		var encoded [][]byte
		var open, closed []job.ID
		err := f.loop.Look(ctx, func(_ job.Time, v meta.Views) {
			open, closed, encoded = v.FileHolders()
		})
		if err != nil {
			yield(blobstore.Sum{}, err)
			return
		}
		for _, raw := range encoded {
			set, err := transfer.Decode(raw)
			if err == nil && !yieldSet(set, yield) {
				return
			}
		}
		inputs := func(raw []byte) (transfer.Set, error) {
			p, err := parsePayload(raw)
			if err != nil {
				return transfer.Set{}, err
			}
			return p.inputs, nil
		}
		if yieldStored(open, f.backend.Payload, inputs, yield) {
			yieldStored(closed, f.backend.Outputs, transfer.Decode, yield)
		}
	}
}

// yieldStored yields the chunks that side records of jobs name.
func yieldStored(ids []job.ID, read func(job.ID) ([]byte, error), parse func([]byte) (transfer.Set, error),
	yield func(blobstore.Sum, error) bool,
) bool {
	for _, id := range ids {
		raw, err := read(id)
		if errors.Is(err, store.ErrUnknown) {
			continue // purged meanwhile
		}
		if err != nil {
			return yield(blobstore.Sum{}, err)
		}
		set, err := parse(raw)
		if err == nil && !yieldSet(set, yield) {
			return false
		}
	}
	return true
}

func yieldSet(set transfer.Set, yield func(blobstore.Sum, error) bool) bool {
	for i := range set.Files {
		for _, sum := range set.Files[i].Chunks {
			if !yield(sum, nil) {
				return false
			}
		}
	}
	return true
}
