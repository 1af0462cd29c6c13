package blobstore

import (
	"errors"
	"fmt"
	"syscall"
)

// Errors of opening a folder.
var (
	// ErrLocked is returned by Open when another process has the folder open.
	ErrLocked = errors.New("the folder is in use by another process")
	// ErrFormat is returned by Open when a newer version wrote the folder.
	ErrFormat = errors.New("the folder was written by a newer version")
	// ErrForeign is returned by Open when the folder holds something else.
	ErrForeign = errors.New("the folder is not empty and not a file store")
)

// Errors of putting.
var (
	// ErrQuota is returned when a chunk would go over the store's quota.
	ErrQuota = errors.New("the quota of the file store is used up")
	// ErrDiskFull is returned when the disk is full, or would be fuller than
	// the low-water mark allows. It wraps ENOSPC.
	ErrDiskFull = fmt.Errorf("the disk is full: %w", syscall.ENOSPC)
	// ErrChunkSize is returned when a chunk is empty or longer than the largest.
	ErrChunkSize = errors.New("a chunk is at least 1 byte and at most the chunk size of the store")
	// ErrMismatch is returned when bytes do not have the sum they should have.
	ErrMismatch = errors.New("the bytes do not match their sha256")
	// ErrCopies is returned when too few other machines have a chunk, or can be asked for it.
	ErrCopies = errors.New("too few members of the site can be reached to keep or to bring the file")
	// ErrTooLong is returned when a reader has more bytes than its limit.
	ErrTooLong = errors.New("the content is longer than allowed")
)

// Errors of reading.
var (
	// ErrNotFound is returned when the store does not have a chunk.
	ErrNotFound = errors.New("no such chunk")
	// ErrCorrupt is returned, together with ErrNotFound, when a chunk was
	// there but damaged. It has been removed.
	ErrCorrupt = errors.New("the chunk was damaged and has been removed")
	// ErrClosed is returned by every method after Close.
	ErrClosed = errors.New("the file store is closed")
)

// A FullError says what is full, how full, and what helps. It wraps
// [ErrQuota] or [ErrDiskFull].
type FullError struct {
	// Dir is the folder that was written to.
	Dir string
	// Kind is ErrQuota or ErrDiskFull.
	Kind error
	// NeedBytes is how much more was wanted.
	NeedBytes int64
	// UsedBytes and LimitBytes are the store's usage and quota, for ErrQuota.
	UsedBytes, LimitBytes int64
	// FreeBytes and KeepBytes are the disk's free space and the low-water
	// mark, for ErrDiskFull.
	FreeBytes, KeepBytes int64
	// NoInodes says that the disk has space but no room for another file.
	NoInodes bool
}

// Error returns the numbers and the remedy.
func (e *FullError) Error() string {
	if errors.Is(e.Kind, ErrQuota) {
		return fmt.Sprintf("file store %s: %v: %s of %s used, %s more needed; raise files.quota or let jobs' files expire sooner",
			e.Dir, e.Kind, FormatBytes(e.UsedBytes), FormatBytes(e.LimitBytes), FormatBytes(e.NeedBytes))
	}
	text := fmt.Sprintf("disk of %s: %v: ", e.Dir, e.Kind)
	if e.NoInodes {
		return text + "no inodes are free; remove files from this disk"
	}
	text += FormatBytes(e.FreeBytes) + " free"
	if e.KeepBytes > 0 {
		text += ", of which " + FormatBytes(e.KeepBytes) + " must stay free"
	}
	if e.NeedBytes > 0 {
		text += ", " + FormatBytes(e.NeedBytes) + " more needed"
	}
	text += "; free space on this disk"
	if e.KeepBytes > 0 {
		text += " or lower files.keep_free"
	}
	return text
}

// Unwrap returns Kind.
func (e *FullError) Unwrap() error { return e.Kind }

// FormatBytes returns n for people, with a binary unit: "512 B", "4.0 MiB".
func FormatBytes(n int64) string {
	if n > -1024 && n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n)/1024, 0
	for (value >= 1024 || value <= -1024) && unit < 4 {
		value /= 1024
		unit++
	}
	return fmt.Sprintf("%.1f %ciB", value, "KMGTP"[unit])
}
