package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"

	"kith/cluster/wire"
	"kith/internal/job"
	"kith/internal/pause"
	"kith/meta"
	"kith/meta/transfer"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
	"kith/store/blobstore"
)

// FilesConfig is what [Files] are made of.
type FilesConfig struct {
	Site job.SiteID
	// Dir is the folder that holds everything the site keeps; the files are in
	// its folder "blobs". QuotaBytes bounds them, 0 for no bound; KeepFreeBytes
	// stay free on the disk; MaxFileBytes is the largest single file.
	Dir                                     string
	QuotaBytes, KeepFreeBytes, MaxFileBytes int64
	// InputRoots are folders that jobs submitted here may take inputs from by name.
	InputRoots []string
	// Backend has the payloads and outputs of the jobs submitted here.
	Backend interface {
		Payload(id job.ID) ([]byte, error)
		Outputs(id job.ID) ([]byte, error)
	}
	// Look shows the engine between two events, when what is seen is durable.
	Look func(ctx context.Context, see func(now job.Time, v meta.Views)) error
	Log  *slog.Logger
}

// Files are the files of jobs that this site keeps, and what it serves to
// other sites: those files, and the output of what runs here.
type Files struct {
	cfg    FilesConfig
	blobs  *blobstore.Store
	packer *transfer.Packer
	server *transfer.Server
	tail   *transfer.Tail
	runs   *runs

	sent, received atomic.Int64
}

// OpenFiles opens the files that are kept in a folder.
func OpenFiles(cfg FilesConfig) (*Files, error) {
	blobs, err := blobstore.Open(blobstore.Config{
		Dir: filepath.Join(cfg.Dir, "blobs"), QuotaBytes: cfg.QuotaBytes, LowWaterBytes: cfg.KeepFreeBytes, Log: cfg.Log,
	})
	if err != nil {
		return nil, err
	}
	f := &Files{
		cfg: cfg, blobs: blobs,
		packer: &transfer.Packer{Store: blobs, Roots: cfg.InputRoots, MaxFileBytes: cfg.MaxFileBytes},
		tail:   transfer.NewTail(transfer.TailConfig{}),
		runs:   &runs{byID: make(map[job.AttemptID]*run)},
	}
	f.server = transfer.NewServer(blobs, transfer.ServeConfig{Allowed: f.allowed})
	return f, nil
}

// Close ends serving.
func (f *Files) Close() error { return errors.Join(f.server.Close(), f.blobs.Close()) }

// Moved returns how many bytes of files went to other sites and came from them.
func (f *Files) Moved() (sent, received int64) { return f.sent.Load(), f.received.Load() }

// Pack implements api.Files.
func (f *Files) Pack(ctx context.Context, inputs []transfer.Input) (transfer.Set, error) {
	return f.packer.Pack(ctx, inputs)
}

// Upload implements api.Files.
func (f *Files) Upload(ctx context.Context, r io.Reader) (transfer.UploadID, error) {
	return transfer.Upload(ctx, f.blobs, r, f.cfg.MaxFileBytes)
}

// ServeFile implements peer.FileServer.
func (f *Files) ServeFile(ctx context.Context, from job.SiteID, r *kithv1.FileRequest) *kithv1.FileReply {
	reply, err := f.serve(ctx, from, r)
	if err != nil {
		f.cfg.Log.Debug("file request refused", "peer_id", string(from), "error", err.Error())
		return errorReply(err)
	}
	f.sent.Add(int64(len(reply.GetData())))
	return reply
}

func (f *Files) serve(ctx context.Context, from job.SiteID, r *kithv1.FileRequest) (*kithv1.FileReply, error) {
	a, err := wire.AttemptID(r.GetAttempt())
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
func (f *Files) allowed(ctx context.Context, from job.SiteID, a job.AttemptID) (transfer.Set, error) {
	var raw []byte
	var err error
	e := f.cfg.Look(ctx, func(_ job.Time, v meta.Views) {
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
	if raw, err = f.cfg.Backend.Payload(a.Job); err != nil {
		return transfer.Set{}, err
	}
	p, err := parsePayload(raw)
	if err != nil {
		return transfer.Set{}, err
	}
	return p.inputs, nil
}

// Sweeping of chunks that no job names any more.
const (
	sweepEvery = time.Hour
	sweepGrace = time.Hour
)

// KeepSweeping removes what no job needs any more, now and then, until ctx is done.
func (f *Files) KeepSweeping(ctx context.Context) {
	for pause.For(ctx, sweepEvery) {
		report, err := f.blobs.Sweep(ctx, f.liveChunks(ctx), sweepGrace)
		if err != nil {
			f.cfg.Log.Warn("sweep of files failed", "error", err.Error())
			continue
		}
		f.cfg.Log.Info("files swept", "kept", report.Kept, "removed", report.Removed, "freed_bytes", report.FreedBytes)
	}
}

// liveChunks yields every chunk that a job or attempt of this site names.
func (f *Files) liveChunks(ctx context.Context) iter.Seq2[blobstore.Sum, error] {
	return func(yield func(blobstore.Sum, error) bool) {
		var encoded [][]byte
		var open, closed []job.ID
		err := f.cfg.Look(ctx, func(_ job.Time, v meta.Views) {
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
		if yieldStored(open, f.cfg.Backend.Payload, inputs, yield) {
			yieldStored(closed, f.cfg.Backend.Outputs, transfer.Decode, yield)
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
