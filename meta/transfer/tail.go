package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// TailConfig bounds the reading of live output.
type TailConfig struct {
	// Waiters is how many readers wait for more output at a time; further
	// ones get ErrBusy. Zero means 256.
	Waiters int
	// Poll is how often a waiting reader looks. Zero means 100 ms. It is a
	// look at the file's length: a notification service would cost a watch for
	// every reader and still miss some file systems.
	Poll time.Duration
}

// A Tail reads the output of running attempts. Its methods may be called from
// any goroutine.
type Tail struct {
	waiters chan struct{}
	poll    time.Duration
}

// NewTail returns a tail.
func NewTail(config TailConfig) *Tail {
	if config.Waiters <= 0 {
		config.Waiters = 256
	}
	if config.Poll <= 0 {
		config.Poll = 100 * time.Millisecond
	}
	return &Tail{waiters: make(chan struct{}, config.Waiters), poll: config.Poll}
}

// An Output is the stdout or stderr of an attempt as it is being written.
type Output struct {
	// Path is the file it goes to. It need not exist yet. A link in its last
	// element is not followed.
	Path string
	// Ended is closed when nothing is written to it any more.
	Ended <-chan struct{}
}

// Read returns bytes of an output from offset on, at most limit and at most
// [MaxPieceBytes] (also for a limit of 0 or less), and whether the output has
// ended with them. If there are none it waits for some: at most for wait, and
// no longer than the attempt runs. Empty data without end means: ask again.
// After a job has shortened its own output, an offset behind the new end sees
// nothing until the file is longer again.
//
// It returns [ErrBusy] if too many readers wait already, [ErrBadRange],
// [ErrNotRegular] if the job has put something else in the file's place,
// ctx's error, or one of the file system.
func (t *Tail) Read(ctx context.Context, o Output, offset int64, limit int, wait time.Duration) (data []byte, end bool, err error) {
	if offset < 0 {
		return nil, false, fmt.Errorf("offset %d: %w", offset, ErrBadRange)
	}
	if limit <= 0 || limit > MaxPieceBytes {
		limit = MaxPieceBytes
	}
	data, end, err = o.read(offset, limit)
	if err != nil || end || len(data) > 0 || wait <= 0 {
		return data, end, err
	}
	select {
	case t.waiters <- struct{}{}:
		defer func() { <-t.waiters }()
	default:
		return nil, false, ErrBusy
	}
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	return t.wait(ctx, o, offset, limit, deadline.C)
}

// End returns the last bytes of what an ended attempt wrote to stdout or stderr, at most
// n of them. Nothing is returned of what cannot be read, or is no file any more.
func End(path string, n int) []byte {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().IsRegular() && info.Size() == 0 {
		return nil
	}
	f, info, err := openStream(path, info)
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // Only read from.
	data := make([]byte, min(int64(n), info.Size()))
	read, err := f.ReadAt(data, info.Size()-int64(len(data)))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	return data[:read]
}

// wait reads again and again until there is something to say.
func (t *Tail) wait(ctx context.Context, o Output, offset int64, limit int, deadline <-chan time.Time) ([]byte, bool, error) {
	ticker := time.NewTicker(t.poll)
	defer ticker.Stop()
	for {
		late := false
		select {
		case <-ctx.Done():
			return nil, false, ctx.Err()
		case <-deadline:
			late = true
		case <-o.Ended:
		case <-ticker.C:
		}
		data, end, err := o.read(offset, limit)
		if err != nil || end || len(data) > 0 || late {
			return data, end, err
		}
	}
}

// read reads once. Whether the attempt has ended is looked at first: what it
// wrote before is then seen.
func (o Output) read(offset int64, limit int) (data []byte, end bool, err error) {
	ended := false
	select {
	case <-o.Ended:
		ended = true
	default:
	}
	info, err := os.Lstat(o.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ended, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("output: %w", err)
	}
	if info.Mode().IsRegular() && info.Size() <= offset {
		return nil, ended, nil
	}
	f, info, err := openStream(o.Path, info)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ended, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("output: %w", err)
	}
	defer f.Close() //nolint:errcheck // Only read from.
	data = make([]byte, max(0, min(int64(limit), info.Size()-offset)))
	n, err := f.ReadAt(data, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, fmt.Errorf("output: %w", err)
	}
	return data[:n], ended && offset+int64(n) >= info.Size(), nil
}
