package transfer

import (
	"fmt"

	"kith/store/blobstore"
)

// Validate returns nil if s keeps the rules of file sets, else an error
// wrapping [ErrBadSet] that names the first field that does not, and its value.
func (s Set) Validate() error {
	if len(s.Files) > MaxFiles {
		return fmt.Errorf("files: %d of them, at most %d are allowed: %w: %w", len(s.Files), MaxFiles, ErrTooMany, ErrBadSet)
	}
	inline := 0
	sizes := make(map[blobstore.Sum]int64)
	for i := range s.Files {
		f := &s.Files[i]
		if err := f.validate(i, sizes); err != nil {
			return err
		}
		if i > 0 && s.Files[i-1].Path >= f.Path {
			return bad(i, "path", f.Path, "comes after %q: paths are ordered and each is there once", clip(s.Files[i-1].Path))
		}
		if inline += len(f.Inline); inline > MaxInlineBytes {
			return bad(i, "inline", "", "the files up to here have %d bytes inline, at most %d are allowed", inline, MaxInlineBytes)
		}
	}
	return s.validateFolders()
}

// validate checks the i-th file by itself. sizes holds the length of each
// chunk seen so far: one chunk cannot have two.
func (f *File) validate(i int, sizes map[blobstore.Sum]int64) error {
	if fault := pathFault(f.Path); fault != "" {
		return bad(i, "path", f.Path, "%s", fault)
	}
	if f.Size < 0 {
		return bad(i, "size_bytes", f.Path, "%d is negative", f.Size)
	}
	if f.Container != 0 || f.Offset != 0 {
		if err := f.validateContainer(i); err != nil {
			return err
		}
	}
	if len(f.Inline) > 0 {
		return f.validateInline(i)
	}
	if want := (f.Size + ChunkBytes - 1) / ChunkBytes; f.Size > maxFileBytes || int64(len(f.Chunks)) != want {
		return bad(i, "chunks", f.Path, "%d of them do not make %d bytes", len(f.Chunks), f.Size)
	}
	for c, sum := range f.Chunks {
		size := f.ChunkSize(c)
		if other, seen := sizes[sum]; seen && other != size {
			return bad(i, "chunks", f.Path, "chunk %s has %d bytes here and %d elsewhere", sum.Short(), size, other)
		}
		sizes[sum] = size
	}
	return nil
}

// maxFileBytes is far above what fits a set and far below an overflow.
const maxFileBytes = int64(MaxEncodedBytes) * ChunkBytes

// validateContainer checks the i-th file, which says that it is in a container.
func (f *File) validateContainer(i int) error {
	switch {
	case f.Container <= 0 || f.Container > ChunkBytes:
		return bad(i, "container_bytes", f.Path, "%d, must be 1 to %d", f.Container, int64(ChunkBytes))
	case f.Offset < 0 || f.Size <= 0 || f.Offset > f.Container-f.Size:
		return bad(i, "offset_bytes", f.Path, "%d bytes at %d are not within a container of %d", f.Size, f.Offset, f.Container)
	case len(f.Inline) > 0:
		return bad(i, "inline", f.Path, "given besides container_bytes")
	}
	return nil
}

// validateInline checks the i-th file, which has its content inside.
func (f *File) validateInline(i int) error {
	switch {
	case len(f.Chunks) > 0:
		return bad(i, "chunks", f.Path, "given besides inline")
	case len(f.Inline) > MaxInlineFileBytes:
		return bad(i, "inline", f.Path, "%d bytes, at most %d are allowed", len(f.Inline), MaxInlineFileBytes)
	case int64(len(f.Inline)) != f.Size:
		return bad(i, "size_bytes", f.Path, "%d, but inline has %d bytes", f.Size, len(f.Inline))
	}
	return nil
}

// validateFolders checks that no file is also the folder of another.
func (s Set) validateFolders() error {
	index := make(map[string]struct{}, len(s.Files))
	for i := range s.Files {
		index[s.Files[i].Path] = struct{}{}
	}
	for i := range s.Files {
		var clash error
		parents(s.Files[i].Path, func(dir string) bool {
			if _, isFile := index[dir]; isFile {
				clash = bad(i, "path", s.Files[i].Path, "%q is a file of the set, not a folder", clip(dir))
			}
			return clash == nil
		})
		if clash != nil {
			return clash
		}
	}
	return nil
}

// bad is an error about a field of the i-th file of a set.
func bad(i int, field, path, format string, args ...any) error {
	where := fmt.Sprintf("files[%d].%s", i, field)
	if path != "" {
		where += fmt.Sprintf(" (%q)", clip(path))
	}
	return fmt.Errorf("%s: %s: %w", where, fmt.Sprintf(format, args...), ErrBadSet)
}
