package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"kith/store/blobstore"
)

// An Input is a file that a job finds in its private folder, as its submitter
// names it. At most one of Data, Source and UploadID is set; with none the
// file is empty.
type Input struct {
	// Path is where the job finds it; see [CheckPath].
	Path string
	// Executable says whether the job may execute it.
	Executable bool
	// Data is the content itself.
	Data []byte
	// Source is the absolute path of a file on the origin's disk.
	Source string
	// UploadID is what [Upload] returned, as text.
	UploadID string
}

// An InputError says which input is wrong, for an answer that names the field.
type InputError struct {
	// Index counts from 0 in the order the submitter gave.
	Index int
	// Path is the input's path.
	Path string
	// Field is "path", "data", "source" or "upload_id".
	Field string
	// Err is what is wrong.
	Err error
}

// Error names the input and the field.
func (e *InputError) Error() string {
	return fmt.Sprintf("inputs[%d].%s (%q): %v", e.Index, e.Field, clip(e.Path), e.Err)
}

// Unwrap returns Err.
func (e *InputError) Unwrap() error { return e.Err }

// A Packer makes sets of inputs at the origin. Its fields are not changed
// while it is used; it may be used from any goroutine.
type Packer struct {
	// Store takes the contents that do not travel inline.
	Store *blobstore.Store
	// Roots are the absolute paths of the folders that Source may lie in.
	Roots []string
	// MaxFileBytes is the largest file; zero means [MaxUploadBytes].
	MaxFileBytes int64
	// MaxTotalBytes is the most all files of a set may have together; zero
	// means no limit but the store's.
	MaxTotalBytes int64
}

// Pack reads all inputs and returns them as a set whose chunks are durable in
// the store. No sweep takes them until the caller has closed hold, which it does when
// a record names them; hold is nil after an error. It reads nothing before it has checked every path. Errors
// about an input are an [InputError] that wraps [ErrBadPath], [ErrBadSource],
// [ErrNotFound], [ErrOutsideRoot], [ErrNotRegular], [ErrChanged],
// [ErrTooLarge] or [ErrBadUploadID]; others are [ErrTooMany], those of the
// store, and ctx's.
func (p *Packer) Pack(ctx context.Context, inputs []Input) (_ Set, hold *blobstore.Hold, err error) {
	if len(inputs) > MaxFiles {
		return Set{}, nil, fmt.Errorf("%d inputs, at most %d are allowed: %w", len(inputs), MaxFiles, ErrTooMany)
	}
	if err := checkInputs(inputs); err != nil {
		return Set{}, nil, err
	}
	b := newBuilder(ctx, p.Store)
	total := int64(0)
	for _, i := range byPath(inputs) {
		size, fault := p.add(b, i, &inputs[i])
		if total += size; fault == nil && p.MaxTotalBytes > 0 && total > p.MaxTotalBytes {
			fault = inputError(i, &inputs[i], "path", fmt.Errorf("%w: the inputs up to here have %d bytes, at most %d are allowed", ErrTooLarge, total, p.MaxTotalBytes))
		}
		if fault != nil {
			b.group.Go(func() error { return fault })
			break
		}
	}
	set, err := b.finish()
	if err != nil {
		b.batch.Close()
		return Set{}, nil, fmt.Errorf("pack inputs: %w", err)
	}
	return set, b.batch.Keep(), nil
}

// Uploaded returns the file that was uploaded under an id, without a path, and a hold of it that the
// caller closes. The error wraps [ErrBadUploadID], [ErrNotFound] or [ErrTooLarge], or is the
// store's.
func (p *Packer) Uploaded(text string, most int64) (File, *blobstore.Hold, error) {
	id, err := ParseUploadID(text)
	if err != nil {
		return File{}, nil, err
	}
	if id.Size > most {
		return File{}, nil, fmt.Errorf("%w: %d bytes, at most %d are allowed here", ErrTooLarge, id.Size, most)
	}
	batch := p.Store.NewBatch()
	f, err := openUpload(p.Store, batch, id)
	if err != nil {
		batch.Close()
		return File{}, nil, err
	}
	return f, batch.Keep(), nil
}

// byPath returns the indices of inputs in the order of their paths, so that
// the same inputs make the same set.
func byPath(inputs []Input) []int {
	order := make([]int, len(inputs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(inputs[a].Path, inputs[b].Path) })
	return order
}

// checkInputs checks all that can be checked without reading a content.
func checkInputs(inputs []Input) error {
	index := make(map[string]int, len(inputs))
	for i := range inputs {
		in := &inputs[i]
		if err := CheckPath(in.Path); err != nil {
			return inputError(i, in, "path", err)
		}
		if other, again := index[in.Path]; again {
			return inputError(i, in, "path", fmt.Errorf("also the path of inputs[%d]: %w", other, ErrBadPath))
		}
		index[in.Path] = i
		switch {
		case in.Source != "" && (len(in.Data) > 0 || in.UploadID != ""):
			return inputError(i, in, "source", ErrBadSource)
		case in.UploadID != "" && len(in.Data) > 0:
			return inputError(i, in, "upload_id", ErrBadSource)
		}
	}
	for i := range inputs {
		var clash error
		parents(inputs[i].Path, func(dir string) bool {
			if other, isFile := index[dir]; isFile {
				clash = inputError(i, &inputs[i], "path", fmt.Errorf("%q is the file inputs[%d], not a folder: %w", clip(dir), other, ErrBadPath))
			}
			return clash == nil
		})
		if clash != nil {
			return clash
		}
	}
	return nil
}

// add adds the i-th input to b and returns its size.
func (p *Packer) add(b *builder, i int, in *Input) (int64, error) {
	switch {
	case in.Source != "":
		return p.addSource(b, i, in)
	case in.UploadID != "":
		return p.addUpload(b, i, in)
	}
	size := int64(len(in.Data))
	inline, err := p.claim(b, in.Path, size)
	if err != nil {
		return 0, inputError(i, in, "data", err)
	}
	f := File{Path: in.Path, Executable: in.Executable, Size: size}
	if inline {
		if size > 0 {
			f.Inline = bytes.Clone(in.Data)
		}
		b.add(f)
		return size, nil
	}
	b.store(f, io.NopCloser(bytes.NewReader(in.Data)), size, func(err error, _ int64) error { return err })
	return size, nil
}

// addUpload adds a file that was uploaded.
func (p *Packer) addUpload(b *builder, i int, in *Input) (int64, error) {
	id, err := ParseUploadID(in.UploadID)
	if err != nil {
		return 0, inputError(i, in, "upload_id", err)
	}
	f, err := openUpload(p.Store, b.batch, id)
	if err != nil {
		return 0, inputError(i, in, "upload_id", err)
	}
	inline, err := p.claim(b, in.Path, f.Size)
	if err != nil {
		return 0, inputError(i, in, "upload_id", err)
	}
	f.Path, f.Executable = in.Path, in.Executable
	if inline && f.Size > 0 {
		data, err := p.Store.Get(f.Chunks[0])
		switch {
		case errors.Is(err, blobstore.ErrNotFound):
			return 0, inputError(i, in, "upload_id", fmt.Errorf("%w: %w", ErrNotFound, err))
		case err != nil:
			return 0, inputError(i, in, "upload_id", err)
		}
		if int64(len(data)) != f.Size {
			return 0, inputError(i, in, "upload_id", ErrBadUploadID)
		}
		f.Inline, f.Chunks = data, nil
	}
	b.add(f)
	return f.Size, nil
}

// addSource adds a file of the origin's disk.
func (p *Packer) addSource(b *builder, i int, in *Input) (int64, error) {
	file, info, err := openSource(p.Roots, in.Source)
	if err != nil {
		return 0, inputError(i, in, "source", err)
	}
	size := info.Size()
	inline, err := p.claim(b, in.Path, size)
	if err != nil {
		return 0, errors.Join(inputError(i, in, "source", err), file.Close())
	}
	f := File{Path: in.Path, Executable: in.Executable, Size: size}
	check := func(readErr error, n int64) error {
		if readErr == nil && (n != size || changed(file, info)) {
			readErr = ErrChanged
		}
		if readErr != nil {
			return inputError(i, in, "source", fmt.Errorf("%q: %w", clip(in.Source), readErr))
		}
		return nil
	}
	if !inline {
		b.store(f, file, size, check)
		return size, nil
	}
	data, err := readUpTo(file, size)
	if err = errors.Join(check(err, int64(len(data))), file.Close()); err != nil {
		return 0, err
	}
	f.Inline = data
	b.add(f)
	return size, nil
}

// readUpTo returns the first n bytes of r, or all if it has fewer; nil for none.
func readUpTo(r io.Reader, n int64) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	data := make([]byte, n)
	got, err := io.ReadFull(r, data)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	if got == 0 {
		return nil, err
	}
	return data[:got], err
}

// changed reports whether a file was written to since info was taken.
func changed(file *os.File, info os.FileInfo) bool {
	now, err := file.Stat()
	return err != nil || now.Size() != info.Size() || !now.ModTime().Equal(info.ModTime())
}

// claim takes the room for a file of size bytes in b's set.
func (p *Packer) claim(b *builder, path string, size int64) (inline bool, err error) {
	limit := int64(MaxUploadBytes)
	if p.MaxFileBytes > 0 {
		limit = min(limit, p.MaxFileBytes)
	}
	if size > limit {
		return false, fmt.Errorf("%w: %d bytes, at most %d are allowed in a file", ErrTooLarge, size, limit)
	}
	inline, fits := b.claim(path, size)
	if !fits {
		return false, fmt.Errorf("%w: the list of the files' chunks would have more than %d bytes", ErrTooLarge, MaxEncodedBytes)
	}
	return inline, nil
}

// inputError is an error about the i-th input.
func inputError(i int, in *Input, field string, err error) error {
	return &InputError{Index: i, Path: in.Path, Field: field, Err: err}
}
