// Package places bounds what is under way at a time.
package places

import "sync"

// Bound is one of the bounds of [Places].
type Bound uint8

// The bounds.
const (
	None Bound = iota
	InAll
	OfOne
)

// Places are Most in all and MostOne for each sender, so that others find some. It is safe
// for use by several goroutines.
type Places struct {
	Most, MostOne int

	mu    sync.Mutex
	of    map[string]int
	taken int
}

// Enter takes a place for a sender, which [Places.Leave] gives back. It takes none if a
// bound is met, and returns that.
func (p *Places) Enter(sender string) Bound {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.taken >= p.Most:
		return InAll
	case p.of[sender] >= p.MostOne:
		return OfOne
	}
	if p.of == nil {
		p.of = make(map[string]int)
	}
	p.taken++
	p.of[sender]++
	return None
}

// Leave gives a place back.
func (p *Places) Leave(sender string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if p.of[sender]--; p.of[sender] == 0 {
		delete(p.of, sender)
	}
}

// Taken returns how many places are taken.
func (p *Places) Taken() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}
