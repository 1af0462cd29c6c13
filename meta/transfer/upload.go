package transfer

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"kith/store/blobstore"
)

// An UploadID stands for a file that a submitter sent ahead of its job. It
// names the upload's manifest, a chunk of the blob store that lists the
// file's own chunks. The same content gets the same id.
type UploadID struct {
	// Size is the file's length in bytes.
	Size int64
	// Manifest is the chunk that lists its chunks.
	Manifest blobstore.Sum
}

// String returns the id as text: the size, '-' and the sum of the manifest.
func (id UploadID) String() string {
	return strconv.FormatInt(id.Size, 10) + "-" + id.Manifest.String()
}

// ParseUploadID reads what [UploadID.String] writes and nothing else. The
// error wraps [ErrBadUploadID].
func ParseUploadID(text string) (UploadID, error) {
	sizeText, sumText, _ := strings.Cut(text, "-")
	size, err := strconv.ParseInt(sizeText, 10, 64)
	if err == nil && (size < 0 || size > MaxUploadBytes) {
		err = ErrTooLarge
	}
	sum, sumErr := blobstore.ParseSum(sumText)
	id := UploadID{Size: size, Manifest: sum}
	if err != nil || sumErr != nil || id.String() != text {
		return UploadID{}, fmt.Errorf("upload id %q: %w", clip(text), ErrBadUploadID)
	}
	return id, nil
}

// A manifest is the magic, the size in eight bytes, and the sums of the chunks.
const manifestMagic = "kith upload 1\n"

// maxUploadChunks is how many chunks of one file fit an encoded set, which
// holds 34 bytes for each, and leaves the other files some room.
const maxUploadChunks = MaxEncodedBytes * 7 / 8 / 34

// MaxUploadBytes is the largest file that a set can describe: about 105 GiB.
const MaxUploadBytes = maxUploadChunks * ChunkBytes

// HeldFor is how long an upload waits for the job that is to name it, from its last
// byte on.
const HeldFor = time.Hour

// Upload stores what r has, up to limit bytes (0: [MaxUploadBytes]), and
// returns the id to name it by. When it returns nil the file is durable; it stays
// until the caller closes hold, after HeldFor, and longer if a job names it. Errors: [ErrTooLarge], those of r and of the store, ctx's.
func Upload(ctx context.Context, store *blobstore.Store, r io.Reader, limit int64) (_ UploadID, hold *blobstore.Hold, err error) {
	if limit <= 0 || limit > MaxUploadBytes {
		limit = MaxUploadBytes
	}
	batch := store.NewBatch()
	defer func() {
		if err != nil {
			batch.Close()
		}
	}()
	o, err := batch.PutReader(ctx, r, limit)
	if errors.Is(err, blobstore.ErrTooLong) {
		err = fmt.Errorf("upload: %w: at most %d bytes", ErrTooLarge, limit)
	}
	if err != nil {
		return UploadID{}, nil, err
	}
	manifest, err := batch.Put(encodeManifest(o))
	if err != nil {
		return UploadID{}, nil, fmt.Errorf("manifest of upload: %w", err)
	}
	if err := batch.Commit(); err != nil {
		return UploadID{}, nil, err
	}
	return UploadID{Size: o.Size, Manifest: manifest}, batch.Keep(), nil
}

// A Waiting is an upload that waits for its job.
type Waiting struct {
	Manifest blobstore.Sum
	// Hold keeps its chunks. The caller closes it, Left from now at the latest.
	Hold *blobstore.Hold
	Left time.Duration
}

// WaitingUploads finds, after a restart, the uploads that wait for their jobs: those
// whose manifest was put or last used less than HeldFor ago, and some contents that
// only look so.
func WaitingUploads(store *blobstore.Store) []Waiting {
	var waiting []Waiting
	for sum, info := range store.All() {
		rest := info.Size - int64(len(manifestMagic)) - 8
		if rest < 0 || rest%int64(len(sum)) != 0 || info.Age >= HeldFor {
			continue
		}
		b, err := store.Get(sum)
		if err != nil {
			continue // it is damaged, and gone
		}
		if o, err := decodeManifest(b); err == nil {
			waiting = append(waiting, Waiting{sum, store.Hold(append(o.Chunks, sum)...), HeldFor - max(0, info.Age)})
		}
	}
	return waiting
}

// openUpload returns the file that id stands for, without a path, whose chunks become part
// of a batch. It returns [ErrNotFound] if the upload is not there or not whole any more.
func openUpload(store *blobstore.Store, batch *blobstore.Batch, id UploadID) (File, error) {
	missing := func(err error) (File, error) {
		return File{}, fmt.Errorf("upload %s: %w: it has expired or was not made at this site; upload it again: %w", id, ErrNotFound, err)
	}
	b, err := store.Get(id.Manifest)
	if errors.Is(err, blobstore.ErrNotFound) {
		return missing(err)
	}
	if err != nil {
		return File{}, fmt.Errorf("upload %s: %w", id, err)
	}
	o, err := decodeManifest(b)
	if err != nil || o.Size != id.Size {
		return File{}, fmt.Errorf("upload %s: %w", id, ErrBadUploadID)
	}
	if lost := batch.Missing(append(o.Chunks, id.Manifest)); len(lost) > 0 {
		return missing(fmt.Errorf("%d of %d chunks: %w", len(lost), len(o.Chunks), blobstore.ErrNotFound))
	}
	return File{Size: o.Size, Chunks: o.Chunks}, nil
}

// encodeManifest returns the manifest of a stored file.
func encodeManifest(o blobstore.Object) []byte {
	b := append([]byte(manifestMagic), binary.BigEndian.AppendUint64(nil, uint64(o.Size))...)
	for i := range o.Chunks {
		b = append(b, o.Chunks[i][:]...)
	}
	return b
}

// decodeManifest reads a manifest. Any content can be uploaded, so this one
// may be from anyone.
func decodeManifest(b []byte) (blobstore.Object, error) {
	rest, ok := bytes.CutPrefix(b, []byte(manifestMagic))
	if !ok || len(rest) < 8 {
		return blobstore.Object{}, ErrBadUploadID
	}
	size := binary.BigEndian.Uint64(rest)
	rest = rest[8:]
	if size > MaxUploadBytes || uint64(len(rest)) != (size+ChunkBytes-1)/ChunkBytes*uint64(len(blobstore.Sum{})) {
		return blobstore.Object{}, ErrBadUploadID
	}
	o := blobstore.Object{Size: int64(size)}
	for ; len(rest) > 0; rest = rest[len(blobstore.Sum{}):] {
		o.Chunks = append(o.Chunks, blobstore.Sum(rest[:len(blobstore.Sum{})]))
	}
	return o, nil
}
