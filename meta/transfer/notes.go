package transfer

import (
	"fmt"
	"sync"

	"kith/internal/scarce"
)

// notes gathers what is to be said about the outputs of an attempt. The files
// are the job's, so their number and names are bounded here.
type notes struct {
	mu      sync.Mutex
	list    []string
	dropped int
	absent  int // of what was not there at all
	// scarce is the first error that says nothing about a file, because the machine
	// had run out of something.
	scarce error
}

// failed notes why a file could not be had, unless that lies with the machine: then
// the files can be had another time, and nothing is said of them.
func (n *notes) failed(path string, err error) {
	n.unless(err, path, reason(err))
}

// unless is failed with another text.
func (n *notes) unless(err error, path, text string) {
	if !scarce.Passes(err) {
		n.add(path, text)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.scarce == nil {
		n.scarce = fmt.Errorf("%q: %w", clip(path), err)
	}
}

// trouble returns the first error that lies with the machine.
func (n *notes) trouble() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.scarce
}

// add notes text about a path.
func (n *notes) add(path, text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.list) >= MaxNotes-1 {
		n.dropped++
		return
	}
	n.list = append(n.list, fmt.Sprintf("%q: %s", clip(path), text))
}

// none notes text about what is declared and was not left.
func (n *notes) none(path, text string) {
	n.add(path, text)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.absent++
}

// untaken reports whether something was there and was not taken, or not all of it.
func (n *notes) untaken() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.list)+n.dropped > n.absent
}

// count returns how many notes were added.
func (n *notes) count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.list) + n.dropped
}

// texts returns the notes.
func (n *notes) texts() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.dropped > 0 {
		return append(n.list, fmt.Sprintf("and %d more", n.dropped))
	}
	return n.list
}
