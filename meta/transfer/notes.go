package transfer

import (
	"fmt"
	"sync"
)

// notes gathers what is to be said about the outputs of an attempt. The files
// are the job's, so their number and names are bounded here.
type notes struct {
	mu      sync.Mutex
	list    []string
	dropped int
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
