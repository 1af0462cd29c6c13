package audit

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"kith/internal/durable"
)

// chain appends lines to the files of a log. It is used by one goroutine.
type chain struct {
	dir      string
	maxBytes int64
	maxAge   time.Duration
	maxFiles int

	number uint64 // of the last line
	hash   Hash   // of it

	out    *os.File // nil until something is written
	path   string   // of the newest file, "" if there is none
	size   int64    // of what is whole in it
	opened time.Time
	torn   bool // behind size there may be something
	dirty  bool // not synced
}

// openChain reads how the log of a folder ends, and cuts a line off that was not
// finished. It returns what is to be said about it.
func openChain(dir string, maxBytes int64, maxAge time.Duration, maxFiles int) (*chain, []Entry, error) {
	c := &chain{dir: dir, maxBytes: maxBytes, maxAge: maxAge, maxFiles: maxFiles}
	files, err := filesOf(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("audit log in %s: %w", dir, err)
	}
	var said []Entry
	for i := len(files) - 1; i >= 0; i-- {
		t, err := tailOf(files[i])
		if err != nil {
			return nil, nil, fmt.Errorf("audit log: %w", err)
		}
		name := filepath.Base(files[i].path)
		if t.rest > 0 {
			if err := os.Truncate(files[i].path, t.begin); err != nil {
				return nil, nil, fmt.Errorf("audit log: cut %d bytes of an unfinished line: %w", t.rest, err)
			}
			said = append(said, Entry{Kind: KindCut, Text: fmt.Sprintf("%d bytes of a line that was not finished were cut off %s", t.rest, name)})
		}
		if t.damaged != nil {
			said = append(said, Entry{Kind: KindDamaged, Text: fmt.Sprintf("%s:%d %v", name, t.lines, t.damaged)})
		}
		if i == len(files)-1 {
			c.path, c.size, c.dirty = files[i].path, t.begin, t.rest > 0
		}
		if t.lines > 0 {
			c.number, c.hash = t.number, t.hash
			if i == len(files)-1 && t.opened != nil {
				c.opened = t.opened.Time
			}
			break
		}
	}
	return c, said, nil
}

// errChain is returned by append if the lines are not in the log.
var errChain = errors.New("audit log not written")

// append writes lines at the end of the log, all or none of them: the chain is what it
// was if it returns an error. They are not durable yet.
func (c *chain) append(now time.Time, lines []*Line) error {
	if err := c.ready(now, lines); err != nil {
		return fmt.Errorf("%w: %w", errChain, err)
	}
	number, hash := c.number, c.hash
	var text []byte
	for _, l := range lines {
		number++
		l.Number, l.Prev = number, hash
		one, err := l.encode()
		if err != nil {
			return fmt.Errorf("%w: %w", errChain, err)
		}
		hash = sha256.Sum256(one)
		text = append(append(text, one...), '\n')
	}
	if _, err := c.out.WriteAt(text, c.size); err != nil {
		c.torn = true
		c.mend() //nolint:errcheck // tried again before the next lines
		return fmt.Errorf("%w: %w", errChain, err)
	}
	c.number, c.hash, c.size, c.dirty = number, hash, c.size+int64(len(text)), true
	return nil
}

// mend cuts off what a failed write left.
func (c *chain) mend() error {
	if !c.torn {
		return nil
	}
	if err := c.out.Truncate(c.size); err != nil {
		return err
	}
	c.torn = false
	return nil
}

// ready has a file open that takes lines.
func (c *chain) ready(now time.Time, lines []*Line) error {
	if c.out == nil && c.path != "" {
		f, err := os.OpenFile(c.path, os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		c.out = f
	}
	if c.out != nil {
		if err := c.mend(); err != nil {
			return err
		}
		if c.size == 0 || c.size < c.maxBytes && now.Sub(c.opened) < c.maxAge {
			if c.size == 0 {
				c.opened = now
			}
			return nil
		}
	}
	return c.begin(now)
}

// begin begins the next file.
func (c *chain) begin(now time.Time) error {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	path := filepath.Join(c.dir, nameOf(c.number+1))
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := durable.SyncFolder(c.dir); err != nil {
		return errors.Join(err, f.Close(), os.Remove(path))
	}
	if c.out != nil {
		if err := c.sync(); err != nil { // a chain must not go on behind what may be lost
			return errors.Join(err, f.Close(), os.Remove(path))
		}
		c.out.Close() //nolint:errcheck // it is synced
	}
	c.out, c.path, c.size, c.opened, c.torn, c.dirty = f, path, 0, now, false, false
	return nil
}

// sync makes what was appended durable.
func (c *chain) sync() error {
	if !c.dirty || c.out == nil {
		return nil
	}
	if err := c.out.Sync(); err != nil {
		return fmt.Errorf("%w: %w", errChain, err)
	}
	c.dirty = false
	return nil
}

// spare removes the oldest files while there are too many, each after a durable line
// that says so.
func (c *chain) spare(now time.Time) error {
	files, err := filesOf(c.dir)
	if err != nil {
		return err
	}
	for ; len(files) > c.maxFiles; files = files[1:] {
		t, err := tailOf(files[0])
		if err != nil {
			return err
		}
		if t.lines > 0 {
			l := Entry{Kind: KindRemoved, Text: "the oldest file was removed: " + filepath.Base(files[0].path)}.line(now, 0)
			l.Removed = &Removal{Last: t.number, Hash: t.hash}
			if err := c.append(now, []*Line{l}); err != nil {
				return err
			}
			if err := c.sync(); err != nil {
				return err
			}
		}
		if err := os.Remove(files[0].path); err != nil {
			return err
		}
	}
	return nil
}

func (c *chain) close() error {
	if c.out == nil {
		return nil
	}
	return errors.Join(c.sync(), c.out.Close())
}
