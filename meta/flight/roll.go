package flight

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// roll makes the next file of the one that is open, where the driver would be held up for too
// long if it wrote its state down: it plays the file that is open up to where that was cut, writes
// down what came of it, and adds what was recorded since. Until the next file has all, the one that is
// open has: there is always one that is whole.
type roll struct {
	ring   *Ring
	cut    int64 // so much of the file that is open was played
	number uint64

	old, file *os.File // that is open, and the next one
	head      int64    // what the next one begins with
	copied    int64    // so much of the old one is in the next one

	// Guarded by the ring: whether the next one is to be taken up, and is.
	ready, taken bool
}

// partName is the name of the next file while it is made.
const partName = "next.part"

// copyRounds is how often what was recorded meanwhile is copied before the writer of the ring copies the rest.
const copyRounds = 8

var (
	errSlowRoll = errors.New("what happens is recorded faster than it could be played, to make the next file")
	errGivenUp  = errors.New("nobody waits for the next file any more")
)

// startRoll begins to make the next file. The caller has the lock.
func (r *Ring) startRoll() {
	l := &roll{ring: r, cut: r.size}
	r.roll = l
	r.rolls.Go(l.run)
}

// rolled reports whether the next file is to be taken up. The caller has the lock.
func (r *Ring) rolled() bool { return r.roll != nil && r.roll.ready && !r.closed }

// endRoll gives the next file up. The caller has the lock.
func (r *Ring) endRoll() {
	if l := r.roll; l != nil && l.ready && !l.taken {
		r.rolls.Go(l.discard) // nobody waits for the disk
	}
	r.roll = nil
}

func (l *roll) run() {
	err := l.make()
	if !l.made(err) {
		l.discard()
	}
}

// made says how making the next file ended, and reports whether it is to be taken up.
func (l *roll) made(err error) bool {
	r := l.ring
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.roll != l || r.closed:
		return false
	case err != nil:
		r.fail(err)
		return false
	}
	l.ready = true
	r.change.Broadcast()
	return true
}

// over reports whether the next file is not wanted any more.
func (l *roll) over() bool {
	l.ring.mu.Lock()
	defer l.ring.mu.Unlock()
	return l.ring.roll != l || l.ring.closed
}

// discard removes what was made.
func (l *roll) discard() {
	if l.old != nil {
		l.old.Close() //nolint:errcheck // it was only read
	}
	if l.file != nil {
		l.file.Close()               //nolint:errcheck // it is removed
		l.ring.root.Remove(partName) //nolint:errcheck // the next one removes it, or says why not
	}
}

// make makes the next file, but for what is recorded at the end.
func (l *roll) make() (err error) {
	defer func() {
		if p := recover(); p != nil { // a mistake of this package, and none that a site should stop for
			err = fmt.Errorf("to make the next file: %v", p)
		}
	}()
	open, ok := l.await()
	if !ok {
		return errGivenUp
	}
	if l.old, err = l.ring.root.Open(open); err != nil {
		return err
	}
	head, err := l.play()
	if err != nil {
		return err
	}
	l.head, l.copied = int64(len(head)), l.cut
	if err := l.ring.fits(head); err != nil {
		return err
	}
	if err := errors.Join(l.ring.drop(), l.ring.room(), l.ring.root.RemoveAll(partName)); err != nil {
		return err
	}
	if l.file, err = l.ring.root.OpenFile(partName, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err != nil {
		return err
	}
	if _, err := l.file.Write(head); err != nil {
		return err
	}
	for range copyRounds {
		l.ring.mu.Lock()
		written := l.ring.written
		l.ring.mu.Unlock()
		if err := errors.Join(l.copy(written), l.ring.room()); err != nil {
			return err
		}
	}
	return nil
}

// await waits until the file that is open is written up to the cut, and returns its name; false if nobody
// waits for the next one any more.
func (l *roll) await() (name string, ok bool) {
	r := l.ring
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.roll == l && !r.closed && (r.name == "" || r.written < l.cut) {
		r.change.Wait()
	}
	if r.roll != l || r.closed {
		return "", false
	}
	l.number = r.next
	r.next++
	return r.name, true
}

// play plays the file that is open up to the cut and returns what the next one begins with.
func (l *roll) play() ([]byte, error) {
	p, err := Open(io.NewSectionReader(l.old, 0, l.cut))
	if err != nil {
		return nil, fmt.Errorf("to make the next file: %w", err)
	}
	for err == nil {
		if l.over() {
			return nil, errGivenUp
		}
		_, err = p.Next()
	}
	if !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("to make the next file: what was recorded does not play again: %w", err)
	}
	if p.frames.torn > 0 {
		return nil, fmt.Errorf("to make the next file: %d bytes of what was recorded are no longer what they were", p.frames.torn)
	}
	return p.head(l.number, time.Now().UTC())
}

// copy copies what was recorded, up to so many bytes of the file that is open.
func (l *roll) copy(to int64) error {
	n, err := io.Copy(l.file, io.NewSectionReader(l.old, l.copied, to-l.copied))
	if l.copied += n; err == nil && l.copied < to {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// follow takes up the next file: all that is recorded from here on goes there.
func (w *writer) follow(l *roll) error {
	err := l.copy(w.size)
	if err == nil {
		_, err = w.file.Write(appendFrame(nil, appendEnd(nil, goesOn)))
	}
	name := ""
	if err == nil {
		name, err = w.ring.rename(l.number)
	}
	if err != nil {
		l.discard()
		return errors.Join(err, w.close())
	}
	err = errors.Join(w.close(), l.old.Close())
	w.file, w.name, w.size, w.looked = l.file, name, l.head+l.copied-l.cut, 0
	r := w.ring
	r.mu.Lock()
	defer r.mu.Unlock()
	r.figures.Bytes += uint64(w.size)
	if r.roll == l {
		r.roll, r.large = nil, false
		r.size += l.head - l.cut
		r.head, r.name, r.written = l.head, name, w.size
	}
	return err
}

// rename gives the next file its name, or a later one where something else lies.
func (r *Ring) rename(number uint64) (string, error) {
	for range mostNames {
		name := nameOf(number)
		if _, err := r.root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			r.mu.Lock()
			r.next = max(r.next, number+1)
			r.mu.Unlock()
			return name, r.root.Rename(partName, name)
		}
		number++
	}
	return "", fs.ErrExist
}
