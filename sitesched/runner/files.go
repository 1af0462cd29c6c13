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
	"kith/meta"
	"kith/meta/tasks"
	"kith/meta/transfer"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
	"kith/store/blobstore"
)

// BlobsFolder is the folder with the contents of files in that of a site.
const BlobsFolder = "blobs"

// FilesConfig is what [Files] are made of.
type FilesConfig struct {
	Site job.SiteID
	// Dir is the folder that holds everything the site keeps; the files are in
	// its folder [BlobsFolder]. QuotaBytes bounds them, 0 for no bound; KeepFreeBytes
	// stay free on the disk; MaxFileBytes is the largest single file.
	Dir                                     string
	QuotaBytes, KeepFreeBytes, MaxFileBytes int64
	// MaxCheckpointBytes bounds the files of a checkpoint together, 0 for no bound.
	MaxCheckpointBytes int64
	// InputRoots are folders that jobs submitted here may take inputs from by name.
	InputRoots []string
	// Copies are those of chunks on other machines of the site; nil where there are none.
	Copies blobstore.Copies
	// Apart says that the facts of the site are at another machine: there are no records here that
	// name files, what is wanted is what attempts have, and what an attempt of this site runs comes
	// with it. Look is nil then.
	Apart bool
	// Live reads the output of an attempt that runs at another machine of the site; nil where they run
	// here. It is as [Runner.ReadLive].
	Live func(ctx context.Context, a job.AttemptID, name string, offset int64, limit int, wait time.Duration) (data []byte, end bool, err error)
	// Backend has the payloads and outputs of the jobs submitted here.
	Backend interface {
		Payload(id job.ID) ([]byte, error)
		Outputs(id job.ID) ([]byte, error)
		AttemptFiles(a job.AttemptID) ([]byte, error)
		TaskFilesFrom(bag job.ID, task uint32) ([]store.TaskFiles, error)
		HeldPayload(bundle job.AttemptID) ([]byte, error)
	}
	// Look shows the engine between two events, when what is seen is durable.
	Look func(ctx context.Context, see func(now job.Time, v meta.Views)) error
	Log  *slog.Logger
	// Refused learns of what was refused of other sites; nil for nobody. It must not wait.
	Refused func(Refusal)

	// Tests have a clock, and records, of their own.
	now  func() time.Time
	live func(yield func(blobstore.Sum, error) bool)
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

	garbage garbage
	uploads uploads
	bags    tasks.Cache // what tasks run, here and elsewhere

	sent, received atomic.Int64
}

// OpenFiles opens the files that are kept in a folder.
func OpenFiles(cfg FilesConfig) (*Files, error) {
	f := &Files{
		cfg: cfg, tail: transfer.NewTail(transfer.TailConfig{}), runs: newRuns(), garbage: newGarbage(),
	}
	var err error
	f.blobs, err = blobstore.Open(blobstore.Config{
		Dir: filepath.Join(cfg.Dir, BlobsFolder), QuotaBytes: cfg.QuotaBytes, LowWaterBytes: cfg.KeepFreeBytes, Log: cfg.Log, Reclaim: f.reclaim, Copies: cfg.Copies,
		Now: cfg.now,
	})
	if err != nil {
		return nil, err
	}
	f.uploads.store = f.blobs
	for _, w := range transfer.WaitingUploads(f.blobs) {
		f.uploads.add(w.Manifest, w.Hold, w.Left)
	}
	// What a job's folder could never hold is refused when it is submitted.
	f.packer = &transfer.Packer{Store: f.blobs, Roots: cfg.InputRoots, MaxFileBytes: cfg.MaxFileBytes, MaxTotalBytes: cfg.QuotaBytes}
	f.server = transfer.NewServer(f.blobs, transfer.ServeConfig{Allowed: f.allowed})
	return f, nil
}

// Close ends serving and sweeping.
func (f *Files) Close() error {
	f.garbage.stop()
	return errors.Join(f.server.Close(), f.blobs.Close())
}

// KeepCopies has repair see to copies of the chunks that are kept here, on other machines of
// the site. live are those that records name.
func (f *Files) KeepCopies(ctx context.Context, repair func(ctx context.Context, from *blobstore.Store, live iter.Seq2[blobstore.Sum, error])) {
	repair(ctx, f.blobs, f.liveChunks(ctx))
}

// Moved returns how many bytes of files went to other sites and came from them.
func (f *Files) Moved() (sent, received int64) { return f.sent.Load(), f.received.Load() }

// Pack implements api.Files.
func (f *Files) Pack(ctx context.Context, inputs []transfer.Input) (transfer.Set, error) {
	set, answered, err := f.pack(ctx, inputs)
	if err == nil {
		// The context of a call ends with it: by then the job is recorded or refused, or,
		// if its client has gone away, will be in a moment.
		context.AfterFunc(ctx, answered)
	}
	return set, err
}

// pack is Pack; the caller calls answered when the submission is.
func (f *Files) pack(ctx context.Context, inputs []transfer.Input) (_ transfer.Set, answered func(), err error) {
	set, hold, err := f.packer.Pack(ctx, inputs)
	return set, func() {
		hold.CloseAfter(recordedWithin)
		for i := range inputs {
			f.uploads.used(inputs[i].UploadID)
		}
	}, err
}

// Uploaded implements api.Files.
func (f *Files) Uploaded(ctx context.Context, id string, most int64) (transfer.File, io.ReaderAt, error) {
	file, hold, err := f.packer.Uploaded(id, most)
	if err != nil {
		return transfer.File{}, nil, err
	}
	context.AfterFunc(ctx, hold.Close)
	return file, f.server.FileAt(file), nil
}

// Upload implements api.Files.
func (f *Files) Upload(ctx context.Context, r io.Reader) (transfer.UploadID, error) {
	id, hold, err := transfer.Upload(ctx, f.blobs, r, f.cfg.MaxFileBytes)
	if err == nil {
		f.uploads.add(id.Manifest, hold, transfer.HeldFor)
	}
	return id, err
}

// ServeFile implements peer.FileServer.
func (f *Files) ServeFile(ctx context.Context, from job.SiteID, r *kithv1.FileRequest) *kithv1.FileReply {
	reply, err := f.serve(ctx, from, r)
	if err != nil {
		f.cfg.Log.Debug("file request refused", "peer_id", string(from), "error", err.Error())
		if errors.Is(err, transfer.ErrDenied) {
			f.refuse(from, WhatFile, err)
		}
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
		wait := min(max(0, r.GetWait().AsDuration()), 10*time.Second)
		data, end, err := f.readLive(ctx, a, target.Output, r.GetOffset(), int(r.GetLimit()), wait)
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
	var resume store.Resume
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
		resume = v.ResumeOf(a.Job)
	})
	if err = errors.Join(e, err); err != nil {
		return transfer.Set{}, err
	}
	if a.Job.Origin == from {
		return transfer.Decode(raw)
	}
	if raw, err = f.cfg.Backend.Payload(a.Job); err == nil {
		raw, err = f.Resumed(a.Job, raw, resume)
	}
	if err != nil {
		return transfer.Set{}, err
	}
	p, err := parsePayload(raw)
	if err != nil {
		return transfer.Set{}, err
	}
	return p.allFiles(), nil
}
