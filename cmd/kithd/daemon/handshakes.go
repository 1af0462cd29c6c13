package daemon

import (
	"cmp"
	"context"
	"slices"
	"sync"
)

// Bounds of handshakes at a time, in all and of one address. Where there would be more,
// the address that has most of them gives its oldest up: a handshake that goes on takes
// milliseconds, so the oldest is one that does not.
const (
	mostHandshakes    = 256
	mostHandshakesOne = 64
)

// handshakes are those under way at the port. It is safe for use by several goroutines.
type handshakes struct {
	// met is told which bound an address has met; it must not wait.
	met func(bound, address string, most int)

	mu   sync.Mutex
	of   map[string][]*handshaking // the oldest first
	many int
}

type handshaking struct{ end context.CancelFunc }

// begin makes room for one more of an address, of which end is the end. The caller calls
// over when it is.
func (h *handshakes) begin(address string, end context.CancelFunc) (over func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case len(h.of[address]) >= mostHandshakesOne:
		h.giveUp(address, "handshakes of one address", mostHandshakesOne)
	case h.many >= mostHandshakes:
		h.giveUp(h.greediest(), "handshakes", mostHandshakes)
	}
	if h.of == nil {
		h.of = make(map[string][]*handshaking)
	}
	one := &handshaking{end}
	h.of[address] = append(h.of[address], one)
	h.many++
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.remove(address, one)
	}
}

// greediest returns the address that has most of them.
func (h *handshakes) greediest() (address string) {
	most := 0
	for a, all := range h.of {
		if c := cmp.Compare(len(all), most); c > 0 || c == 0 && a < address {
			address, most = a, len(all)
		}
	}
	return address
}

func (h *handshakes) giveUp(address, bound string, most int) {
	oldest := h.of[address][0]
	oldest.end()
	h.remove(address, oldest)
	h.met(bound, address, most)
}

// remove forgets one, if it is there.
func (h *handshakes) remove(address string, one *handshaking) {
	all := h.of[address]
	i := slices.Index(all, one)
	if i < 0 {
		return
	}
	h.many--
	if all = slices.Delete(all, i, i+1); len(all) == 0 {
		delete(h.of, address)
	} else {
		h.of[address] = all
	}
}
