package transfer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"kith/internal/jobfile"
	"kith/store/blobstore"
)

// A Collector makes sets of what attempts leave behind. Its fields are not
// changed while it is used; it may be used from any goroutine.
type Collector struct {
	// Store takes the contents that do not travel inline.
	Store *blobstore.Store
	// MaxFileBytes is the largest file that is returned; zero means
	// [MaxUploadBytes]. Longer stdout and stderr are cut there, longer outputs
	// are left behind.
	MaxFileBytes int64
	// MaxTotalBytes is the most that all files of an attempt may have
	// together; zero means no limit but the store's.
	MaxTotalBytes int64
}

// A Leaving is what an ended attempt left on the host's disk.
type Leaving struct {
	// Dir is the private folder. What the job put in its place is not opened.
	Dir string
	// Stdout and Stderr are the paths of the files that the outputs went to;
	// empty if there is none. A link in the last element is not followed; the
	// folders above it must not be the job's to change.
	Stdout, Stderr string
	// Outputs are the declared outputs, as checked by [CheckPattern].
	Outputs []string
	// Ran says that its command ran. Then both streams were there when it began, and
	// one that is missing was removed by the job.
	Ran bool
	// Loose says that contents, which have at most [MaxLoose] bytes together, are not stored
	// but left in memory, for [PutContainer].
	Loose bool
}

// A Collection is what Collect brought in.
type Collection struct {
	// Set has "stdout" and "stderr" unless they are empty, and the outputs.
	Set Set
	// Notes say, for people, what was declared and is not in the set, or not
	// all of it, and why. At most [MaxNotes].
	Notes []string
	// Hold keeps the chunks of the set from sweeps. The caller closes it when a record
	// names them, or nothing is to.
	Hold *blobstore.Hold
	// Loose are files of the set that are not in it yet, see [Leaving.Loose].
	Loose []Loose
	// Incomplete says that some of the notes are about declared outputs.
	Incomplete bool
	// Untaken says that some of the notes are about what the attempt wrote, rather than about
	// what it did not leave.
	Untaken bool
	// Lost says that stdout or stderr was removed by the job, with all that it wrote
	// there. One of the notes says which.
	Lost bool
}

// MaxNotes is the most notes of a collection.
const MaxNotes = 32

// Collect reads what an attempt left into a set whose chunks are durable in
// the store. Nothing in the private folder is trusted: only regular files
// inside it are read, each up to the length it has when it is opened. What
// cannot be had is a note. The errors are those of the store, ctx's, and those that say
// that the machine has run out of something ([scarce.Passes]), if only for one file; the
// caller may collect again. Without output it costs two lstat.
func (c *Collector) Collect(ctx context.Context, l Leaving) (Collection, error) {
	k := &collecting{Collector: c, builder: newBuilder(ctx, c.Store), bytesLeft: c.MaxTotalBytes}
	if k.bytesLeft <= 0 {
		k.bytesLeft = maxFileBytes
	}
	k.builder.loose, k.looseLeft = l.Loose, MaxLoose
	k.stream(Stdout, l.Stdout, l.Ran)
	k.stream(Stderr, l.Stderr, l.Ran)
	streams := k.notes.count()
	if len(l.Outputs) > 0 {
		k.outputs(ctx, l)
	}
	set, err := k.builder.finish()
	if err == nil {
		err = k.notes.trouble()
	}
	if err != nil {
		k.builder.batch.Close()
		return Collection{}, fmt.Errorf("collect output: %w", err)
	}
	return Collection{
		Set: set, Loose: k.builder.held, Notes: k.notes.texts(), Hold: k.builder.batch.Keep(), Incomplete: k.notes.count() > streams,
		Untaken: k.notes.untaken(), Lost: k.lost,
	}, nil
}

// Bytes returns what an attempt left, about, without reading it: what Collect would take
// at most.
func (c *Collector) Bytes(ctx context.Context, l Leaving) int64 {
	var n int64
	for _, path := range []string{l.Stdout, l.Stderr} {
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
			n += info.Size()
		}
	}
	if len(l.Outputs) == 0 {
		return n
	}
	root, err := jobfile.Reopened(l.Dir)
	if err != nil {
		return n
	}
	defer root.Close() //nolint:errcheck // Only read from.
	for _, path := range expand(ctx, root, l.Outputs, &notes{}) {
		if info, err := root.Stat(filepath.FromSlash(path)); err == nil && info.Mode().IsRegular() {
			n += info.Size()
		}
	}
	return n
}

// A collecting is one Collect under way.
type collecting struct {
	*Collector
	builder   *builder
	bytesLeft int64
	looseLeft int64
	notes     notes
	lost      bool // a stream was removed
}

// limit is the longest file that is still taken.
func (k *collecting) limit() int64 {
	limit := int64(MaxUploadBytes)
	if k.MaxFileBytes > 0 {
		limit = min(limit, k.MaxFileBytes)
	}
	return min(limit, k.bytesLeft)
}

// stream adds stdout or stderr, cut where it is too long. ran says that the command
// ran.
func (k *collecting) stream(name, path string, ran bool) {
	if path == "" {
		return
	}
	info, err := os.Lstat(path)
	if err == nil && info.Mode().IsRegular() && info.Size() == 0 {
		return
	}
	var f *os.File
	if err == nil {
		f, info, err = openStream(path, info)
	}
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist) && !ran:
		return // Never opened: empty.
	case errors.Is(err, fs.ErrNotExist):
		k.lost = true
		k.notes.add(name, "lost, the job removed the file")
		return
	default:
		k.notes.failed(name, err)
		return
	}
	size := info.Size()
	if limit := k.limit(); size > limit {
		k.notes.add(name, fmt.Sprintf("cut after %d of %d bytes", limit, size))
		size = limit
	}
	k.take(File{Path: name, Size: size}, f)
}

// openStream opens the file that an attempt's stdout or stderr goes to, which
// lstat said looks as info does. It looks before it opens and after, as
// [openRegular] does.
func openStream(path string, info fs.FileInfo) (*os.File, fs.FileInfo, error) {
	if !info.Mode().IsRegular() {
		return nil, nil, kindError(info.Mode())
	}
	f, err := os.OpenFile(path, openFlags|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, nil, err
	}
	return statRegular(f)
}

// outputs adds the declared outputs.
func (k *collecting) outputs(ctx context.Context, l Leaving) {
	root, err := jobfile.Reopened(l.Dir)
	if err != nil {
		why := "the private folder: " + reason(err)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, jobfile.ErrNotFolder) {
			why = "the private folder is gone"
		}
		k.none(l.Outputs, err, why)
		return
	}
	defer root.Close() //nolint:errcheck // Only read from.
	owner, err := root.Stat(".")
	if err != nil {
		k.none(l.Outputs, err, "the private folder: "+reason(err))
		return
	}
	for _, path := range expand(ctx, root, l.Outputs, &k.notes) {
		if ctx.Err() != nil {
			return
		}
		k.output(root, owner, path)
	}
}

// none notes why there is none of the declared outputs, by the name of the first.
func (k *collecting) none(declared []string, err error, why string) {
	if more := len(declared) - 1; more > 0 {
		why += fmt.Sprintf(", and the other outputs with it: %d", more)
	}
	k.notes.unless(err, declared[0], why)
}

// output adds one file of the private folder.
func (k *collecting) output(root *os.Root, owner fs.FileInfo, path string) {
	f, info, err := openRegular(root, filepath.FromSlash(path))
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist):
		k.notes.none(path, "not found")
		return
	case isEscape(root, err):
		k.notes.add(path, "leads out of the private folder")
		return
	default:
		k.notes.failed(path, err)
		return
	}
	refusal := ""
	if borrowed(info, owner) {
		refusal = "a link to a file of another account"
	} else if limit := k.limit(); info.Size() > limit {
		refusal = fmt.Sprintf("%d bytes, only %d are allowed here", info.Size(), limit)
	}
	if refusal != "" {
		k.notes.add(path, refusal)
		f.Close() //nolint:errcheck // Only read from.
		return
	}
	k.take(File{Path: path, Executable: info.Mode()&0o111 != 0, Size: info.Size()}, f)
}

// borrowed reports whether a file may be a hard link that the job made to
// another account's file, which the job could not read and kithd can.
func borrowed(info, owner fs.FileInfo) bool {
	file, ok := info.Sys().(*syscall.Stat_t)
	folder, ok2 := owner.Sys().(*syscall.Stat_t)
	return !ok || !ok2 || file.Nlink > 1 && file.Uid != folder.Uid
}

// take adds the first f.Size bytes of an open file and closes it.
func (k *collecting) take(f File, file *os.File) {
	inline, fits := k.builder.claim(f.Path, f.Size)
	if !fits {
		k.notes.add(f.Path, "the set of outputs is full")
		file.Close() //nolint:errcheck // Only read from.
		return
	}
	k.bytesLeft -= f.Size
	loose := k.builder.loose && !inline && f.Size > 0 && f.Size <= k.looseLeft
	if !inline && !loose {
		k.builder.store(f, file, f.Size, func(err error, _ int64) error {
			if err != nil {
				k.notes.failed(f.Path, err)
			}
			return nil
		})
		return
	}
	data, err := readUpTo(file, f.Size)
	file.Close() //nolint:errcheck // Only read from.
	if err != nil {
		k.notes.failed(f.Path, err)
		return
	}
	f.Size = int64(len(data))
	switch {
	case loose && f.Size > 0:
		k.looseLeft -= f.Size
		k.builder.held = append(k.builder.held, Loose{f, data})
		return
	case f.Size > 0:
		f.Inline = data
	}
	k.builder.add(f)
}

// reason says why a file could not be had, without the path of the folder.
func reason(err error) string {
	switch {
	case errors.Is(err, ErrNotRegular):
		return strings.SplitN(err.Error(), "\n", 2)[0]
	case errors.Is(err, fs.ErrPermission):
		return "permission denied"
	case errors.Is(err, syscall.ELOOP):
		return "a link, or too many of them"
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	return "cannot be read"
}
