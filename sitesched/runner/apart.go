package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kith/internal/job"
	"kith/meta/transfer"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
	"kith/store/blobstore"
)

// A site whose facts are kept by several machines has its processors at one of them. Its runner is
// there, with files of its own ([FilesConfig].Apart), and what follows is asked of it by the machine
// that leads; package apart carries it.

// Attempts returns the attempts that have folders here.
func (s *Runner) Attempts() ([]job.AttemptID, error) { return s.system.Folders() }

// readLive reads what an attempt that runs here has written, from offset on and at most limit bytes, 0
// for as many as fit an answer. If there is nothing more it waits for so long. end says that nothing
// follows.
func (f *Files) readLive(ctx context.Context, a job.AttemptID, name string, offset int64, limit int, wait time.Duration) (data []byte, end bool, err error) {
	if f.cfg.Live != nil {
		return f.cfg.Live(ctx, a, name, offset, limit, wait)
	}
	out, err := f.runs.live(a, name)
	if err != nil {
		return nil, false, err
	}
	return f.tail.Read(ctx, out, offset, limit, wait)
}

// ReadLive is what [FilesConfig].Live asks for, of what runs here.
func (f *Files) ReadLive(ctx context.Context, a job.AttemptID, name string, offset int64, limit int, wait time.Duration) (data []byte, end bool, err error) {
	return f.readLive(ctx, a, name, offset, limit, wait)
}

// Chunk returns a chunk that is here, or at another machine of the site.
func (f *Files) Chunk(sum blobstore.Sum) ([]byte, error) { return f.blobs.Get(sum) }

// Piece returns bytes of a chunk that is here.
func (f *Files) Piece(sum blobstore.Sum, offset int64, limit int) ([]byte, error) {
	data, err := f.blobs.Get(sum)
	if errors.Is(err, blobstore.ErrNotFound) { // which asking again does not change
		err = fmt.Errorf("%w: %w", transfer.ErrNotFound, err)
	}
	if err != nil {
		return nil, err
	}
	if offset < 0 || offset >= int64(len(data)) || limit < 1 {
		return nil, transfer.ErrNotFound
	}
	return data[offset:min(int64(len(data)), offset+int64(min(limit, transfer.MaxPieceBytes)))], nil
}

// Drop has the chunks of a set go soon, but for those that are needed.
func (f *Files) Drop(set transfer.Set) { f.drop(set) }

// Take brings what an attempt left at another machine of the site here, and holds it until the caller
// closes the hold.
func (s *Runner) Take(ctx context.Context, a job.AttemptID, set transfer.Set, from transfer.Source) (*blobstore.Hold, error) {
	hold := s.files.blobs.Hold(set.Sums()...)
	if err := s.fetcher.Fetch(ctx, a, set, from, nil); err != nil {
		hold.Close()
		return nil, err
	}
	return hold, nil
}

// PayloadOf returns what an attempt of a job of this site runs.
func (f *Files) PayloadOf(id job.ID, r store.Resume) ([]byte, error) {
	raw, err := f.cfg.Backend.Payload(id)
	if err != nil {
		return nil, err
	}
	return f.Resumed(id, raw, r)
}

// BagOf returns what the tasks of a bundle are made of, as it is in this site's store.
func (f *Files) BagOf(bundle job.AttemptID) ([]byte, error) {
	if bundle.Job.Origin == f.cfg.Site {
		return f.cfg.Backend.Payload(bundle.Job)
	}
	return f.cfg.Backend.HeldPayload(bundle)
}

// WaitText says why files wait, for an error that passes; empty for one that does not.
func WaitText(err error) string {
	if !comesBack(err) {
		return ""
	}
	return waitText(err)
}

// ErrorReply says in an answer what went wrong with a request for bytes, and ReplyError what an answer
// says went wrong; nil if nothing did.
func ErrorReply(err error) *kithv1.FileReply { return errorReply(err) }

// ReplyError is the reverse of [ErrorReply].
func ReplyError(r *kithv1.FileReply) error { return replyError(r) }
