package transfer

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"kith/store/blobstore"
)

// putsAtOnce is how many files of one set are stored at a time. Small chunks
// cost an fsync each; a few at once share the disk's work.
const putsAtOnce = 4

// A builder makes a set of contents as they come: short ones inline while
// there is room, the others into the blob store. One goroutine adds files;
// the storing happens in the builder's own.
type builder struct {
	batch *blobstore.Batch
	// group stores files under ctx, which ends when it fails or parent does.
	group       *errgroup.Group
	ctx, parent context.Context
	// inlineLeft and encodedLeft are what the set's limits leave.
	inlineLeft  int
	encodedLeft int
	entries     int
	stored      bool
	// loose keeps contents in memory, which go into a container, and inline only those that
	// are no longer than the name of one.
	loose bool

	mu    sync.Mutex // guards files
	files []File
	held  []Loose
}

// newBuilder begins a set. The caller calls finish, and closes the batch or keeps its hold.
func newBuilder(ctx context.Context, store *blobstore.Store) *builder {
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(putsAtOnce)
	return &builder{
		batch:       store.NewBatch(),
		group:       group,
		ctx:         inner,
		parent:      ctx,
		inlineLeft:  MaxInlineBytes,
		encodedLeft: MaxEncodedBytes,
	}
}

// encodedCost is no less than what a file adds to the encoding of its set.
func encodedCost(path string, inline int, chunks int64) int64 {
	const fields = 40 // Tags, lengths, size and mode.
	return fields + int64(len(path)+inline) + chunks*(2+int64(len(blobstore.Sum{})))
}

// claim takes the room for a file of size bytes in the encoding, and reports
// whether its content goes inline. It reports !fits when the set is full.
func (b *builder) claim(path string, size int64) (inline, fits bool) {
	inline = size <= MaxInlineFileBytes && size <= int64(b.inlineLeft)
	if b.loose && size > looseInline {
		inline = false
	}
	cost := encodedCost(path, 0, (size+ChunkBytes-1)/ChunkBytes)
	if inline {
		cost = encodedCost(path, int(size), 0)
	}
	if b.entries == MaxFiles || cost > int64(b.encodedLeft) {
		return false, false
	}
	if inline {
		b.inlineLeft -= int(size)
	}
	b.encodedLeft -= int(cost)
	b.entries++
	return inline, true
}

// add puts a finished file into the set.
func (b *builder) add(f File) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.files = append(b.files, f)
}

// store puts the content of f, all that r has and at most limit bytes, into
// the blob store in a goroutine, then the file into the set, and closes r.
// check is called with the error of reading r, if any, and else the number of
// bytes read; what it returns fails the set. A read error that it forgives
// leaves the file out.
func (b *builder) store(f File, r io.ReadCloser, limit int64, check func(readErr error, n int64) error) {
	b.stored = true
	if b.ctx.Err() != nil {
		r.Close() //nolint:errcheck // Only read from.
		return
	}
	b.group.Go(func() error {
		defer r.Close() //nolint:errcheck // Only read from.
		input := &readerWithError{r: r}
		o, err := b.batch.PutReader(b.ctx, io.LimitReader(input, limit), limit)
		if err != nil && input.err == nil {
			return err
		}
		if err := check(input.err, o.Size); err != nil || input.err != nil {
			return err
		}
		f.Size, f.Chunks = o.Size, o.Chunks
		b.add(f)
		return nil
	})
}

// finish waits for what is being stored, makes it durable and returns the set.
func (b *builder) finish() (Set, error) {
	err := b.group.Wait()
	if err == nil {
		err = b.parent.Err()
	}
	if err == nil && b.stored {
		err = b.batch.Commit()
	}
	if err != nil {
		return Set{}, err
	}
	slices.SortFunc(b.files, func(x, y File) int { return strings.Compare(x.Path, y.Path) })
	return Set{Files: b.files}, nil
}

// readerWithError remembers the error of its reader, so that a bad source can
// be told from a full store.
type readerWithError struct {
	r   io.Reader
	err error
}

// Read reads from r.
func (r *readerWithError) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}
