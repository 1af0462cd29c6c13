package transfer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"kith/internal/jobfile"
	"kith/store/blobstore"
)

// An Unpacker materialises sets in private folders at the host. Its fields
// are not changed while it is used; it may be used from any goroutine.
type Unpacker struct {
	// Store has the chunks of the sets.
	Store *blobstore.Store
	// MaxBytes is the most the files of a set may have together; zero means no
	// limit. One chunk may be named a thousand times, so what was fetched says
	// nothing about what is written.
	MaxBytes int64
	// LowWaterBytes is the free space to leave on the folder's disk. Zero: none.
	LowWaterBytes int64
	// Chown says that files and folders are given to UID and GID, because the
	// job runs under another account than kithd.
	Chown    bool
	UID, GID int
}

// Unpack writes the files of set below dir, which exists and belongs to the
// attempt alone. Folders get the mode 0700, files 0600 or, if executable,
// 0700. What has a file's name already is replaced, so that it can be
// repeated after a crash; nothing is synced, because an attempt does not
// survive a crash of its machine. No link is followed out of dir.
//
// Errors: [ErrBadSet], [ErrTooLarge], blobstore.ErrNotFound (fetch again),
// blobstore.ErrDiskFull, ctx's, or one of the file system. After an error the
// caller removes the folder or unpacks again.
func (u *Unpacker) Unpack(ctx context.Context, set Set, dir string) error {
	if err := set.Validate(); err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	if len(set.Files) == 0 {
		return nil
	}
	if n := set.Bytes(); u.MaxBytes > 0 && n > u.MaxBytes {
		return fmt.Errorf("unpack: %w: %d bytes, at most %d are allowed", ErrTooLarge, n, u.MaxBytes)
	}
	if err := blobstore.CheckFree(dir, set.Bytes(), u.LowWaterBytes); err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	root, err := jobfile.Folder(dir)
	if err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	defer root.Close() //nolint:errcheck // Only names were looked up through it.
	w := &unpacking{Unpacker: u, root: root, made: map[string]struct{}{".": {}}}
	for i := range set.Files {
		f := &set.Files[i]
		if err := w.file(ctx, f); err != nil {
			return fmt.Errorf("unpack %q: %w", clip(f.Path), blobstore.CheckFull(dir, f.Size, err))
		}
	}
	return nil
}

// An unpacking is one Unpack under way.
type unpacking struct {
	*Unpacker
	root *os.Root
	made map[string]struct{} // folders that exist
	buf  []byte              // one chunk
}

// file writes one file.
func (w *unpacking) file(ctx context.Context, f *File) error {
	if err := w.mkdir(path.Dir(f.Path)); err != nil {
		return err
	}
	mode := os.FileMode(0o600)
	if f.Executable {
		mode = 0o700
	}
	out, err := w.create(filepath.FromSlash(f.Path), mode)
	if err != nil {
		return err
	}
	err = w.fill(ctx, out, f)
	if err == nil && w.Chown {
		err = out.Chown(w.UID, w.GID)
	}
	return errors.Join(err, out.Close())
}

// create makes a new file; what has its name goes.
func (w *unpacking) create(name string, mode os.FileMode) (*os.File, error) {
	const flags = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	out, err := w.root.OpenFile(name, flags, mode)
	if !errors.Is(err, os.ErrExist) {
		return out, err
	}
	if err := w.root.Remove(name); err != nil {
		return nil, err
	}
	return w.root.OpenFile(name, flags, mode)
}

// fill writes the content of f. A chunk is verified in memory and written from
// there: the bytes on disk are the bytes that were checked.
func (w *unpacking) fill(ctx context.Context, out *os.File, f *File) error {
	if len(f.Inline) > 0 {
		_, err := out.Write(f.Inline)
		return err
	}
	for i, sum := range f.Chunks {
		if err := ctx.Err(); err != nil {
			return err
		}
		if f.Container != 0 {
			return fmt.Errorf("%q is in a container, in which no input can be: %w", clip(f.Path), ErrBadSet)
		}
		data, err := w.Store.GetInto(w.buf, sum)
		if err != nil {
			return err
		}
		w.buf = data[:cap(data)]
		if int64(len(data)) != f.ChunkSize(i) {
			return fmt.Errorf("chunk %s has %d bytes, the set says %d: %w", sum.Short(), len(data), f.ChunkSize(i), ErrBadSet)
		}
		if _, err := out.Write(data); err != nil {
			return err
		}
	}
	return nil
}

// mkdir makes a folder and those above it.
func (w *unpacking) mkdir(dir string) error {
	if _, ok := w.made[dir]; ok {
		return nil
	}
	if err := w.mkdir(path.Dir(dir)); err != nil {
		return err
	}
	name := filepath.FromSlash(dir)
	err := w.root.Mkdir(name, 0o700)
	switch {
	case errors.Is(err, os.ErrExist):
		err = nil
	case err == nil && w.Chown:
		err = w.root.Lchown(name, w.UID, w.GID)
	}
	if err != nil {
		return err
	}
	w.made[dir] = struct{}{}
	return nil
}
