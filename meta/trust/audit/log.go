package audit

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Config configures [Open].
type Config struct {
	// Dir is the folder of the log; it is made with the first line.
	Dir string
	// Site is the name of the site, in heads.
	Site string
	// Signer signs heads; without one there are none.
	Signer Signer
	// Now is the time of lines; nil is time.Now.
	Now func() time.Time
	// MaxBytes is when a new file is begun, default 8 MiB; MaxAge when one is begun
	// although the last is smaller, default 30 days; MaxFiles how many are kept, default
	// 32, at least 2.
	MaxBytes int64
	MaxAge   time.Duration
	MaxFiles int
	// Logger hears of it when the log cannot be written; nil for nobody.
	Logger *slog.Logger
}

// Bounds and times of a log.
const (
	// mostWaiting is how many entries wait for the disk; more are lost and counted.
	mostWaiting = 1024
	syncEvery   = time.Second
	headEvery   = time.Hour
	// retryEvery is how long nothing is tried after the disk has refused a line.
	retryEvery = time.Second
)

// Errors of a log.
var (
	// ErrLost is returned by [Log.Sync] when the entry is not in the log and will not
	// be: its disk is full or does not keep up. That entries were lost is written later.
	ErrLost = errors.New("the audit log cannot be written; the entry is only counted")
	// ErrClosed is returned by [Log.Sync] after [Log.Close].
	ErrClosed = errors.New("the audit log is closed")
)

// Log is an open audit log. It is safe for use by several goroutines.
type Log struct {
	cfg   Config
	chain *chain // of the goroutine that writes
	head  atomic.Pointer[Head]

	heard heard
	// resign has the writer sign a head although the last one is not old.
	resign atomic.Bool

	mu       sync.Mutex
	waiting  []waiting
	lost     uint64
	refusals refusals
	closed   bool

	wake chan struct{}
	done chan struct{}
	err  error // of the last sync, once done is closed
}

// waiting is an entry that waits to be written.
type waiting struct {
	counted
	durable chan<- error // hears when it is durable; nil if its caller does not wait
}

// Open opens the log of a folder and says so in it. A full disk is no error: the log
// goes on when there is room.
func Open(cfg Config) (*Log, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = 8 << 20
	}
	if cfg.MaxAge <= 0 {
		cfg.MaxAge = 30 * 24 * time.Hour
	}
	if cfg.MaxFiles <= 0 {
		cfg.MaxFiles = 32
	}
	cfg.MaxFiles = max(2, cfg.MaxFiles)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	c, said, err := openChain(cfg.Dir, cfg.MaxBytes, cfg.MaxAge, cfg.MaxFiles)
	if err != nil {
		return nil, err
	}
	l := &Log{cfg: cfg, chain: c, wake: make(chan struct{}, 1), done: make(chan struct{})}
	if err := l.heard.restore(cfg.Dir); err != nil {
		return nil, err
	}
	for _, e := range append(said, Entry{Kind: KindOpened}) {
		l.put(waiting{counted: counted{Entry: e}}) //nolint:errcheck // what is lost is counted
	}
	go l.write()
	return l, nil
}

// Record writes an entry down soon, at most a second later durably. It does not wait.
func (l *Log) Record(e Entry) {
	l.put(waiting{counted: counted{Entry: e}}) //nolint:errcheck // what is lost is counted
}

// Sync writes an entry down and returns when it is durable. It returns [ErrLost] or
// [ErrClosed] if it will not be, or the error of ctx if that ends before; the entry is
// then written when the disk works again.
func (l *Log) Sync(ctx context.Context, e Entry) error {
	durable := make(chan error, 1)
	if err := l.put(waiting{counted{Entry: e}, durable}); err != nil {
		return err
	}
	select {
	case err := <-durable:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Refuse counts a refusal. It does not wait.
func (l *Log) Refuse(e Entry) {
	l.mu.Lock()
	first, now := l.refusals.add(l.cfg.Now(), e)
	l.mu.Unlock()
	if now {
		l.put(waiting{counted: counted{first, 1}}) //nolint:errcheck // it is counted if it is lost
	}
}

// SignSoon has the log sign a head now rather than an hour after the last: the site has
// a new certificate.
func (l *Log) SignSoon() {
	l.resign.Store(true)
	l.poke()
}

// Head returns the last signed head whose lines are durable, so that a crash does not take
// back what others were told; false if there is none yet.
func (l *Log) Head() (Head, bool) {
	if h := l.head.Load(); h != nil {
		return *h, true
	}
	return Head{}, false
}

// Close writes what is counted, a last head and that the log is closed.
func (l *Log) Close() error {
	l.mu.Lock()
	first := !l.closed
	l.closed = true
	l.mu.Unlock()
	if first {
		l.poke()
	}
	<-l.done
	return l.err
}

func (l *Log) put(w waiting) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return ErrClosed
	case len(l.waiting) >= mostWaiting:
		l.lost++
		return ErrLost
	}
	l.waiting = append(l.waiting, w)
	l.poke()
	return nil
}

func (l *Log) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}
