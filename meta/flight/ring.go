package flight

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"kith/internal/pathkind"
)

// Folder is the folder in a site's data folder that has its recordings.
const Folder = "flight"

const (
	// mostPending is how much may wait for the disk beside what a file begins with.
	mostPending = 16 << 20
	// retryAfter is when a recording that ended for its disk begins again.
	retryAfter = 10 * time.Minute
	// roomEvery is after how many bytes it is looked whether there is room on the disk.
	roomEvery = 4 << 20
	// mostNames is how many names are tried for a file.
	mostNames = 100
)

// RingConfig says where a ring is and what it may take.
type RingConfig struct {
	// Data is the data folder of the site, in which [Folder] is made.
	Data string
	// SizeBytes is what all files may take together, Files how many there are at most: at least 2. While the
	// next file is made of the one that is open, that one may grow by an eighth beyond its share.
	SizeBytes int64
	Files     int
	// Room returns an error if the disk has no room for recordings; nil for never.
	Room func() error
	Log  *slog.Logger
}

// Ring keeps the files of a recording: the newest ones, within its bounds. It is a [Sink]:
// what it is given it writes on a goroutine of its own, and nobody waits for the disk. If the
// disk fails or is slower than what comes, the recording ends, and begins anew after
// 10 minutes. Its files are not synced: they outlast the daemon, and not the machine's power.
type Ring struct {
	cfg  RingConfig
	root *os.Root

	mu      sync.Mutex
	change  *sync.Cond
	next    uint64
	open    bool
	head    int64  // what the file that is open begins with
	size    int64  // of the file that is open, with what is pending
	name    string // of the file that is open, once it is begun
	written int64  // of it
	large   bool   // the driver has refused to begin the next file
	roll    *roll  // makes the next file; nil for none
	rolls   sync.WaitGroup
	pending []part
	waiting int // bytes pending
	writing int // bytes on their way to the disk
	busy    bool
	closed  bool
	again   time.Time // when it may begin after a failure
	over    bool      // it never may
	figures Figures
	done    chan struct{}
}

// part is what is to be written: to a new file, or at the end of the one before.
type part struct {
	number uint64 // of a new file, else 0
	bytes  []byte
}

// Figures is what there is to count.
type Figures struct {
	// Recording says whether what happens is recorded now, Next whether the next file is made of the one that is open.
	Recording, Next bool
	// Bytes were written since the daemon began; Failures is how often a recording ended.
	Bytes, Failures uint64
}

// OpenRing opens the ring in a data folder, after the files that are there.
func OpenRing(c RingConfig) (*Ring, error) {
	data, err := os.OpenRoot(c.Data)
	if err != nil {
		return nil, err
	}
	defer data.Close() //nolint:errcheck // nothing was written to it
	if err := data.Mkdir(Folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if info, err := data.Lstat(Folder); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s/%s is %s, and is to be a folder: %w", c.Data, Folder, pathkind.Of(info.Mode()), pathkind.ErrKind)
	}
	root, err := data.OpenRoot(Folder)
	if err != nil {
		return nil, err
	}
	r := &Ring{cfg: c, root: root, next: 1, done: make(chan struct{})}
	r.change = sync.NewCond(&r.mu)
	files, err := r.files()
	if err != nil {
		root.Close() //nolint:errcheck // nothing was written to it
		return nil, err
	}
	if n := len(files); n > 0 {
		r.next = files[n-1].number + 1
	}
	if err := r.root.RemoveAll(partName); err != nil { // of a daemon that was killed
		c.Log.Warn("left in the folder of flight recordings", "file", partName, "error", err.Error())
	}
	go r.run()
	return r, nil
}

// file is one of the ring.
type file struct {
	name   string
	number uint64
	size   int64
}

// NumberOf returns the number of a file by its name, false if it is none of a ring.
func NumberOf(name string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, Suffix)
	if !ok || len(digits) != 10 {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil
}

func nameOf(number uint64) string { return fmt.Sprintf("%010d%s", number, Suffix) }

// files returns those of the ring, the oldest first. What has no name of theirs is not touched.
func (r *Ring) files() ([]file, error) {
	entries, err := fs.ReadDir(r.root.FS(), ".")
	if err != nil {
		return nil, err
	}
	var files []file
	for _, e := range entries {
		number, ok := NumberOf(e.Name())
		if !ok || e.IsDir() {
			continue
		}
		f := file{name: e.Name(), number: number}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			f.size = info.Size()
		}
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b file) int { return cmp.Compare(a.number, b.number) })
	return files, nil
}

// fileSize is what one file may take.
func (r *Ring) fileSize() int64 { return r.cfg.SizeBytes / int64(r.cfg.Files) }

// Wants implements [Sink].
func (r *Ring) Wants() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.over {
		return false
	}
	if r.open {
		return r.size >= r.fileSize() && r.roll == nil && !r.large && r.head <= mostHeld
	}
	return !time.Now().Before(r.again)
}

// Open implements [Sink].
func (r *Ring) Open() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open
}

// Begin implements [Sink].
func (r *Ring) Begin(head func(number uint64) ([]byte, error)) {
	r.mu.Lock()
	number := r.next
	r.mu.Unlock()
	b, err := head(number) // which may write
	r.mu.Lock()
	defer r.mu.Unlock()
	if errors.Is(err, ErrHeld) && r.open {
		r.large = true
		r.startRoll()
		return
	}
	if err == nil {
		err = r.fits(b)
	}
	if err == nil && r.waiting+r.writing > mostPending {
		err = errSlow
	}
	if err != nil {
		r.over = errors.Is(err, ErrHeld) // it can begin only before the driver is under way: with the next start
		r.fail(err)
		return
	}
	r.next = max(r.next, number+1)
	r.open, r.head, r.size = true, int64(len(b)), int64(len(b))
	r.name, r.written = "", 0
	r.pending = append(r.pending, part{number, b})
	r.waiting += len(b)
	r.change.Broadcast()
}

// fits returns an error if what a file is to begin with leaves no room for what happens.
func (r *Ring) fits(head []byte) error {
	if int64(len(head)) <= r.fileSize()/2 {
		return nil
	}
	return fmt.Errorf("the state of the site takes %d KiB, more than half of the %d KiB of a file; raise flight.size or lower flight.files", len(head)>>10, r.fileSize()>>10)
}

var errSlow = fmt.Errorf("the disk is slower than what is to be recorded: %d MiB wait for it", mostPending>>20)

// Write implements [Sink].
func (r *Ring) Write(frame []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.open || r.closed {
		return
	}
	if r.waiting+r.writing+len(frame) > mostPending+int(r.fileSize()/2) {
		r.fail(errSlow)
		return
	}
	r.size += int64(len(frame))
	r.waiting += len(frame)
	if n := len(r.pending); n > 0 {
		r.pending[n-1].bytes = append(r.pending[n-1].bytes, frame...)
	} else {
		r.pending = append(r.pending, part{bytes: bytes.Clone(frame)})
	}
	switch {
	case r.roll != nil && r.size > r.fileSize()+r.fileSize()/8:
		r.fail(errSlowRoll)
	case r.roll == nil && (r.large || r.head > mostHeld) && r.size >= r.head+(r.fileSize()-r.head)/2:
		r.startRoll()
	}
	r.change.Broadcast()
}

// fail ends the recording for a while. The caller has the lock.
func (r *Ring) fail(err error) {
	r.endRoll()
	r.open, r.pending, r.waiting, r.large = false, nil, 0, false
	r.again = time.Now().Add(retryAfter)
	r.figures.Failures++
	again := "in " + retryAfter.String()
	if r.over {
		again = "with the next start"
	}
	r.cfg.Log.Error("the flight recording ends; the site goes on", "error", err.Error(), "again", again)
}

// Fail implements [Sink].
func (r *Ring) Fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	r.fail(err)
}

// Figures returns what there is to count.
func (r *Ring) Figures() Figures {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.figures
	f.Recording, f.Next = r.open, r.roll != nil
	return f
}

// Flush waits until all that was given is written, but no longer than patience.
func (r *Ring) Flush(patience time.Duration) {
	late := time.AfterFunc(patience, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.change.Broadcast()
	})
	defer late.Stop()
	until := time.Now().Add(patience)
	r.mu.Lock()
	defer r.mu.Unlock()
	for (len(r.pending) > 0 || r.busy) && time.Now().Before(until) {
		r.change.Wait()
	}
}

// closePatience is how long a daemon that stops waits for the disk.
const closePatience = 2 * time.Second

// Close ends the ring. A disk that hangs is not waited for.
func (r *Ring) Close() {
	r.Flush(closePatience)
	r.mu.Lock()
	r.closed, r.open = true, false
	r.change.Broadcast()
	r.mu.Unlock()
	select {
	case <-r.done:
	case <-time.After(closePatience):
	}
}

// run writes what is pending.
func (r *Ring) run() {
	w := writer{ring: r}
	defer close(r.done)
	defer r.root.Close() //nolint:errcheck // what is in it has its own errors
	defer r.rolls.Wait()
	defer w.close() //nolint:errcheck // nothing is left to be written
	for {
		r.mu.Lock()
		for r.busy, r.writing = false, 0; len(r.pending) == 0 && !r.rolled(); {
			if r.change.Broadcast(); r.closed {
				r.endRoll()
				r.mu.Unlock()
				return
			}
			r.change.Wait()
		}
		parts := r.pending
		var roll *roll
		if r.rolled() {
			roll = r.roll
			roll.taken = true
		}
		r.pending, r.waiting, r.writing, r.busy = nil, 0, r.waiting, true
		r.mu.Unlock()
		n, err := w.write(parts)
		if err == nil && roll != nil {
			err = w.follow(roll)
		}
		r.mu.Lock()
		r.figures.Bytes += uint64(n)
		if err != nil && r.open {
			r.fail(err)
		}
		r.mu.Unlock()
	}
}

// writer has the file that is open.
type writer struct {
	ring   *Ring
	file   *os.File
	name   string
	size   int64 // what was written to it
	looked int   // bytes since room was looked for
}

func (w *writer) close() error {
	if w.file == nil {
		return nil
	}
	err := w.file.Close()
	w.file = nil
	return err
}

func (w *writer) write(parts []part) (n int, err error) {
	for _, p := range parts {
		if p.number > 0 {
			if err := w.begin(p.number); err != nil {
				return n, err
			}
		}
		if w.file == nil { // what was to begin it has failed
			continue
		}
		if w.looked += len(p.bytes); w.looked >= roomEvery {
			if err := w.room(); err != nil {
				return n, errors.Join(err, w.close())
			}
		}
		m, err := w.file.Write(p.bytes)
		n += m
		w.wrote(m)
		if err != nil {
			return n, errors.Join(err, w.close())
		}
	}
	return n, nil
}

// wrote notes that more of the file that is open is written.
func (w *writer) wrote(n int) {
	w.size += int64(n)
	w.ring.mu.Lock()
	defer w.ring.mu.Unlock()
	if w.ring.name == w.name {
		w.ring.written = w.size
		w.ring.change.Broadcast()
	}
}

func (w *writer) room() error {
	w.looked = 0
	return w.ring.room()
}

func (r *Ring) room() error {
	if r.cfg.Room == nil {
		return nil
	}
	return r.cfg.Room()
}

// begin makes room for a file and opens it. A file that is there is never opened, whatever it is.
func (w *writer) begin(number uint64) error {
	if err := w.close(); err != nil {
		return err
	}
	if err := w.ring.drop(); err != nil {
		return err
	}
	if err := w.room(); err != nil {
		return err
	}
	var err error
	for range mostNames {
		if w.file, err = w.ring.root.OpenFile(nameOf(number), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); !errors.Is(err, fs.ErrExist) {
			break
		}
		number++
	}
	if err != nil {
		w.file = nil
		return err
	}
	w.name, w.size = nameOf(number), 0
	w.ring.mu.Lock()
	defer w.ring.mu.Unlock()
	w.ring.next = max(w.ring.next, number+1)
	w.ring.name, w.ring.written = w.name, 0
	return nil
}

// drop removes the oldest files, so that there is room for one more beside the newest.
func (r *Ring) drop() error {
	files, err := r.files()
	if err != nil {
		return err
	}
	var sum int64
	for _, f := range files {
		sum += f.size
	}
	for len(files) > 1 && (len(files) >= r.cfg.Files || sum > r.cfg.SizeBytes-r.fileSize()) {
		if err := r.root.Remove(files[0].name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		sum -= files[0].size
		files = files[1:]
	}
	return nil
}
