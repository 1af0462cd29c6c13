package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// How a bar appears: only where the work takes long enough for people to
// wonder, and no more often than they can see.
const (
	progressAfter = 500 * time.Millisecond
	progressEvery = 100 * time.Millisecond
	progressWidth = 30
)

// Progress is a bar on the user's terminal beside the answer. A nil one shows
// nothing. It is used by one goroutine.
type Progress struct {
	w     io.Writer
	now   func() time.Time
	what  string
	total int
	began time.Time
	drawn time.Time // zero while nothing has been drawn
}

// Progress returns a bar for total things to be done, nil if stderr is no
// terminal or there is nothing to be done.
func (p *Program) Progress(what string, total int) *Progress {
	f, ok := p.Stderr.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || total <= 0 {
		return nil
	}
	return &Progress{w: p.Stderr, now: p.Now, what: what, total: total, began: p.Now()}
}

// Set draws the bar if it is time to.
func (p *Progress) Set(done int) {
	if p == nil {
		return
	}
	now := p.now()
	if now.Sub(p.began) < progressAfter || now.Sub(p.drawn) < progressEvery {
		return
	}
	p.drawn = now
	done = min(max(done, 0), p.total)
	full := progressWidth * done / p.total
	left := ""
	if done > 0 {
		rest := float64(now.Sub(p.began)) / float64(done) * float64(p.total-done)
		left = ", " + Span(time.Duration(rest)) + " left"
	}
	_, _ = fmt.Fprintf(p.w, "\r\x1b[K%s [%s%s] %d%%%s", p.what, strings.Repeat("#", full), strings.Repeat(".", progressWidth-full), 100*done/p.total, left)
}

// Clear takes the bar away.
func (p *Progress) Clear() {
	if p != nil && !p.drawn.IsZero() {
		_, _ = fmt.Fprint(p.w, "\r\x1b[K")
	}
}
