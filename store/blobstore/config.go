package blobstore

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"
)

// MaxChunk is the largest chunk, in bytes. Files are cut every MaxChunk bytes,
// so it is part of what gives a file its name; it never changes.
const MaxChunk = 4 << 20

// blockBytes is what a chunk's size is rounded up to when it is counted:
// a million chunks of one byte fill a disk as surely as one large file.
const blockBytes = 4096

// Config says where a store lies and how much it may take.
type Config struct {
	// Dir is the folder, absolute. Open makes it if its parent exists.
	Dir string
	// QuotaBytes is the most the chunks may take together, each rounded up to
	// 4 KiB. Zero: no limit but the disk's.
	QuotaBytes int64
	// LowWaterBytes is the free space to leave on the disk for others. Zero: none.
	LowWaterBytes int64
	// MaxChunkBytes is where files are cut: 1 to MaxChunk. Zero: MaxChunk, and
	// nothing else fits the file sets of other sites; tests take less.
	MaxChunkBytes int
	// Reclaim is called, on the goroutine that puts, when a chunk is about to be refused for
	// [ErrQuota] or [ErrDiskFull]: it sweeps what is not needed and reports whether
	// another try may succeed. Nil: the chunk is refused at once.
	Reclaim func() bool
	// Copies has other machines keep the chunks, too; nil where there are none.
	Copies Copies
	// Log gets what an operator should know: damaged chunks, foreign files.
	// Nil: nothing is logged.
	Log *slog.Logger
	// Now reads the clock. Nil: [time.Now].
	Now func() time.Time
}

// Copies are those of chunks on other machines.
type Copies interface {
	// Keep returns once enough other machines have chunks of a store durably. What a put or a
	// commit says is durable has come through it.
	Keep(from *Store, sums []Sum) error
	// Bring returns a chunk that is not here; [ErrNotFound] if it is nowhere.
	Bring(sum Sum) ([]byte, error)
}

// ErrBadConfig is returned by Open when a field of [Config] is out of range.
var ErrBadConfig = errors.New("the configuration of the file store is wrong")

// Validate returns all that is wrong with c, joined, or nil. Every error wraps
// [ErrBadConfig] and names field and value.
func (c *Config) Validate() error {
	var errs []error
	bad := func(field string, value any, rule string) {
		errs = append(errs, fmt.Errorf("%s %v: %s: %w", field, value, rule, ErrBadConfig))
	}
	if !filepath.IsAbs(c.Dir) {
		bad("dir", fmt.Sprintf("%q", c.Dir), "must be absolute")
	}
	if c.QuotaBytes < 0 {
		bad("quota_bytes", c.QuotaBytes, "must not be negative")
	}
	if c.LowWaterBytes < 0 {
		bad("low_water_bytes", c.LowWaterBytes, "must not be negative")
	}
	if c.MaxChunkBytes < 0 || c.MaxChunkBytes > MaxChunk {
		bad("max_chunk_bytes", c.MaxChunkBytes, fmt.Sprintf("must be 1 to %d, or 0 for that", MaxChunk))
	}
	return errors.Join(errs...)
}

// withDefaults fills in what zero stands for.
func (c Config) withDefaults() Config {
	if c.MaxChunkBytes == 0 {
		c.MaxChunkBytes = MaxChunk
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}
