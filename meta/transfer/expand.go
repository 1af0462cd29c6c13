package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"kith/internal/scarce"
)

// maxComparisons bounds the work of finding the files that match patterns: a
// job can leave a folder of ten million files behind, and declare a thousand
// patterns for it.
const maxComparisons = 500_000

// expand returns the paths that the declared outputs stand for, each once: a
// plain path as it is, a folder replaced by the files beneath it, patterns by
// the files that match them, in order. What stands for nothing is noted.
func expand(ctx context.Context, root *os.Root, outputs []string, notes *notes) []string {
	e := &expansion{root: root, notes: notes, seen: make(map[string]struct{}), comparisons: maxComparisons}
	folders := make(map[string][]string) // The patterns of each folder, read once for all of them.
	for _, output := range outputs {
		output = strings.TrimRight(output, "/")
		if err := CheckPattern(output); err != nil {
			notes.add(output, "not a path inside the private folder")
			continue
		}
		dir, last := path.Split(output)
		if !strings.ContainsAny(last, `*?[\`) {
			e.plain(ctx, output)
			continue
		}
		dir = path.Clean(dir)
		if !slices.Contains(folders[dir], last) {
			folders[dir] = append(folders[dir], last)
		}
	}
	dirs := make([]string, 0, len(folders))
	for dir := range folders {
		dirs = append(dirs, dir)
	}
	slices.Sort(dirs)
	for _, dir := range dirs {
		e.folder(ctx, dir, folders[dir])
	}
	return e.paths
}

// Missing returns the declared outputs of which a set has nothing: no file of
// that path, none beneath it, and none that matches.
func Missing(outputs []string, set Set) []string {
	var missing []string
	for _, output := range outputs {
		dir, last := path.Split(strings.TrimRight(output, "/"))
		found := slices.ContainsFunc(set.Files, func(f File) bool {
			rest, inside := strings.CutPrefix(f.Path, dir)
			if !inside {
				return false
			}
			first, _, deeper := strings.Cut(rest, "/")
			if first == last {
				return true
			}
			ok, err := path.Match(last, first)
			return ok && err == nil && !deeper
		})
		if !found {
			missing = append(missing, output)
		}
	}
	return missing
}

// An expansion gathers paths.
type expansion struct {
	root        *os.Root
	notes       *notes
	paths       []string
	seen        map[string]struct{}
	comparisons int
	full        bool // there are as many paths as a set may have, and that was noted
}

// add adds a path unless it is there or cannot be in a set of outputs.
func (e *expansion) add(p string) {
	if _, again := e.seen[p]; again {
		return
	}
	e.seen[p] = struct{}{}
	first, _, _ := strings.Cut(p, "/")
	if first == Stdout || first == Stderr {
		e.notes.add(p, "the name is taken by the attempt's own output")
		return
	}
	if len(e.paths) >= MaxFiles {
		e.notes.add(p, fmt.Sprintf("only %d files of a job come back", MaxFiles))
		e.full = true
		return
	}
	e.paths = append(e.paths, p)
}

// plain adds a path, or the files beneath it if it is a folder.
func (e *expansion) plain(ctx context.Context, p string) {
	// What Stat cannot say is found out again, and told, by who opens the file.
	if info, err := e.root.Stat(filepath.FromSlash(p)); err != nil || !info.IsDir() {
		if scarce.Passes(err) { // it may be a folder
			e.notes.failed(p, err)
			return
		}
		e.add(p)
		return
	}
	if !e.tree(ctx, p) {
		e.notes.none(p, "a folder without files")
	}
}

// tree adds the files beneath a folder. It follows no links to other folders,
// and reports whether it found something to add or to say.
func (e *expansion) tree(ctx context.Context, dir string) (found bool) {
	if e.full || e.comparisons < 0 {
		return true // which was noted
	}
	f, err := e.root.OpenFile(filepath.FromSlash(dir), openFlags|syscall.O_DIRECTORY, 0)
	if err != nil {
		e.notes.failed(dir, err)
		return true
	}
	entries := e.list(ctx, f, dir)
	f.Close() //nolint:errcheck // Only read from.
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, entry := range entries {
		p := path.Join(dir, entry.Name())
		switch fault := pathFault(p); {
		case fault != "":
			e.notes.add(p, "its path "+fault)
			found = true
		case entry.IsDir():
			found = e.tree(ctx, p) || found
		default:
			e.add(p)
			found = true
		}
	}
	return found
}

// list returns what is in a folder, and no more than a set could have.
func (e *expansion) list(ctx context.Context, f *os.File, dir string) []fs.DirEntry {
	var all []fs.DirEntry
	for ctx.Err() == nil {
		entries, err := f.ReadDir(256)
		all = append(all, entries...)
		e.comparisons -= len(entries)
		switch {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			e.notes.failed(dir, err)
			return all
		case e.comparisons < 0 || len(all) > 2*MaxFiles:
			e.notes.add(dir, "too many files to look through")
			return all
		}
	}
	return all
}

// folder adds the files of a folder that match one of patterns.
func (e *expansion) folder(ctx context.Context, dir string, patterns []string) {
	f, err := e.root.OpenFile(filepath.FromSlash(dir), openFlags|syscall.O_DIRECTORY, 0)
	if err != nil {
		declared := path.Join(dir, patterns[0])
		switch {
		case errors.Is(err, fs.ErrNotExist):
			e.notes.none(declared, "not found")
		case isEscape(e.root, err):
			e.notes.add(declared, "leads out of the private folder")
		default:
			e.notes.failed(declared, err)
		}
		return
	}
	defer f.Close() //nolint:errcheck // Only read from.
	matched := make([]bool, len(patterns))
	names := e.match(ctx, f, dir, patterns, matched)
	slices.Sort(names)
	for _, name := range names {
		p := path.Join(dir, name)
		if fault := pathFault(p); fault != "" {
			e.notes.add(p, "its path "+fault)
			continue
		}
		e.add(p)
	}
	for i, ok := range matched {
		if !ok {
			e.notes.none(path.Join(dir, patterns[i]), "no file matches")
		}
	}
}

// match returns the names in a folder that match, without its folders, and
// sets in matched which patterns did.
func (e *expansion) match(ctx context.Context, f *os.File, dir string, patterns []string, matched []bool) []string {
	var names []string
	for ctx.Err() == nil {
		entries, err := f.ReadDir(256)
		for _, entry := range entries {
			if e.comparisons -= len(patterns); e.comparisons < 0 {
				e.notes.add(dir, "too many files to look through")
				return names
			}
			if !entry.IsDir() && matches(entry.Name(), patterns, matched) {
				names = append(names, entry.Name())
			}
		}
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			e.notes.failed(dir, err)
			return names
		}
	}
	return names
}

// matches reports whether a name matches one of patterns, and notes which.
func matches(name string, patterns []string, matched []bool) bool {
	any := false
	for i, pattern := range patterns {
		if ok, err := path.Match(pattern, name); ok && err == nil {
			matched[i], any = true, true
		}
	}
	return any
}
