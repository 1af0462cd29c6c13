package api

import (
	"fmt"
	"sync"
)

// slots bound what is under way at a time, in all and from one address.
type slots struct {
	what          string // in the plural
	most, mostOne int

	mu  sync.Mutex
	of  map[string]int
	all int
}

// enter takes a slot, which leave gives back. The error wraps [ErrBusy].
func (p *slots) enter(host string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.all >= p.most:
		return fmt.Errorf("%d %s: %w", p.all, p.what, ErrBusy)
	case p.of[host] >= p.mostOne:
		return fmt.Errorf("%d %s from %s: %w", p.of[host], p.what, host, ErrBusy)
	}
	if p.of == nil {
		p.of = make(map[string]int)
	}
	p.all++
	p.of[host]++
	return nil
}

func (p *slots) leave(host string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all--
	if p.of[host]--; p.of[host] == 0 {
		delete(p.of, host)
	}
}
