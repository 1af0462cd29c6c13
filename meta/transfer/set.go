package transfer

import (
	"iter"
	"slices"
	"strings"

	"kith/store/blobstore"
)

// Limits of file sets. They are part of the protocol between sites.
const (
	// MaxFiles is the most files in a set.
	MaxFiles = 1000
	// MaxPathBytes is the longest path, and MaxNameBytes its longest element.
	MaxPathBytes = 1024
	MaxNameBytes = 255
	// MaxDepth is the most elements of a path.
	MaxDepth = 64
	// MaxEncodedBytes is the longest encoding of a set.
	MaxEncodedBytes = 1 << 20
	// MaxInlineFileBytes is the longest content that travels inside a set, and
	// MaxInlineBytes the most of it in one set.
	MaxInlineFileBytes = 2 << 10
	MaxInlineBytes     = 64 << 10
	// ChunkBytes is where longer contents are cut.
	ChunkBytes = blobstore.MaxChunk
)

// Names of the two outputs that every attempt has. In a set of outputs they
// stand for no file of the private folder; a missing one is empty.
const (
	Stdout = "stdout"
	Stderr = "stderr"
)

// A File is a path and a content.
type File struct {
	// Path is relative to the private folder, with '/' between elements; see [CheckPath].
	Path string
	// Executable says whether it may be executed.
	Executable bool
	// Size is the length in bytes.
	Size int64
	// Inline is the content if it travels inside the set. It is shared, not
	// copied: it is never changed.
	Inline []byte
	// Chunks are the pieces of ChunkBytes otherwise; the last may be shorter.
	Chunks []blobstore.Sum
	// Container is the length of the one chunk if it is a container, which has the contents
	// of several attempts one after another, and else 0. Offset is where in it this content
	// begins.
	Container, Offset int64
}

// Place returns in which chunk the byte at offset is, and where in that; left is how many
// bytes the file has there.
func (f *File) Place(offset int64) (chunk int, within, left int64) {
	at := f.Offset + offset
	chunk, within = int(at/ChunkBytes), at%ChunkBytes
	return chunk, within, min(f.Size-offset, ChunkBytes-within)
}

// ChunkSize returns the length of the i-th chunk.
func (f *File) ChunkSize(i int) int64 {
	if f.Container > 0 {
		return f.Container
	}
	return min(ChunkBytes, f.Size-int64(i)*ChunkBytes)
}

// A Set describes the files of a job or of an attempt by content. The zero
// value is empty. A set is a value: once made it is not changed.
type Set struct {
	// Files are ordered by path, without duplicates.
	Files []File
}

// Find returns the file with a path.
func (s Set) Find(path string) (File, bool) {
	i, ok := slices.BinarySearchFunc(s.Files, path, func(f File, path string) int {
		return strings.Compare(f.Path, path)
	})
	if !ok {
		return File{}, false
	}
	return s.Files[i], true
}

// Bytes returns the size of all files together.
func (s Set) Bytes() int64 {
	var n int64
	for i := range s.Files {
		n += s.Files[i].Size
	}
	return n
}

// Chunks yields every chunk of the set and its length, some more than once.
// It is what a sweep of the blob store has to be told of a set that is in use.
func (s Set) Chunks() iter.Seq2[blobstore.Sum, int64] {
	return func(yield func(blobstore.Sum, int64) bool) {
		for i := range s.Files {
			f := &s.Files[i]
			for c, sum := range f.Chunks {
				if !yield(sum, f.ChunkSize(c)) {
					return
				}
			}
		}
	}
}

// Sums returns the chunks of the set in order, some more than once.
func (s Set) Sums() []blobstore.Sum {
	var sums []blobstore.Sum
	for sum := range s.Chunks() {
		sums = append(sums, sum)
	}
	return sums
}
