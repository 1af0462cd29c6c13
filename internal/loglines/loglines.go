// Package loglines keeps lines about the same thing from filling the log.
package loglines

import (
	"maps"
	"sync"
	"time"
)

// mostThings bounds the things that are told apart; others share a line.
const mostThings = 1024

// Pacer lets one line about a thing into the log in a while, and counts those that it
// holds back. The zero Pacer is ready. It is safe for use by several goroutines.
type Pacer[K comparable] struct {
	mu   sync.Mutex
	of   map[K]*line
	rest line
}

type line struct {
	next time.Time
	held int
}

// Pass reports whether a line about a thing may be written, and how many were held back
// since the last one. The next may be written when so much time has passed.
func (p *Pacer[K]) Pass(about K, now time.Time, every time.Duration) (held int, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.of[about]
	if l == nil {
		l = p.add(about, now)
	}
	if now.Before(l.next) {
		l.held++
		return 0, false
	}
	held, l.held, l.next = l.held, 0, now.Add(every)
	return held, true
}

// add returns the line of a new thing. The mutex is held.
func (p *Pacer[K]) add(about K, now time.Time) *line {
	if len(p.of) >= mostThings && !now.Before(p.rest.next) {
		maps.DeleteFunc(p.of, func(_ K, l *line) bool { return !now.Before(l.next) })
	}
	if len(p.of) >= mostThings {
		return &p.rest
	}
	if p.of == nil {
		p.of = make(map[K]*line)
	}
	l := new(line)
	p.of[about] = l
	return l
}
