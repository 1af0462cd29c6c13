package faults

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"kith/internal/job"
)

// line is a line of a schedule while it is read. It keeps its first error.
type line struct {
	words []string
	given map[string]string
	err   error
}

func newLine(text string) *line {
	l := &line{given: make(map[string]string)}
	for _, w := range strings.Fields(text) {
		k, v, ok := strings.Cut(w, "=")
		if !ok {
			l.words = append(l.words, w)
			continue
		}
		if _, twice := l.given[k]; twice {
			l.fail("%s: given twice", k)
		}
		l.given[k] = v
	}
	return l
}

func (l *line) fail(format string, args ...any) {
	if l.err == nil {
		l.err = fmt.Errorf(format, args...)
	}
}

// done returns the first error, which may be a word that was not asked for.
func (l *line) done() error {
	for _, w := range l.words {
		l.fail("%q: one word too many", w)
	}
	for k := range l.given {
		l.fail("%s: unknown here", k)
	}
	return l.err
}

func (l *line) word(what string) string {
	if len(l.words) == 0 {
		l.fail("%s: missing", what)
		return ""
	}
	w := l.words[0]
	l.words = l.words[1:]
	return w
}

func (l *line) named(name, standard string) string {
	v, ok := l.given[name]
	if !ok {
		return standard
	}
	delete(l.given, name)
	return v
}

func (l *line) site() job.SiteID {
	w := l.word("site")
	id, err := job.ParseSiteID(w)
	if err != nil {
		l.fail("site %q: %w", w, err)
	}
	return id
}

// count reads a job's number.
func (l *line) count() int64 {
	w := l.word("number of the job")
	n, err := strconv.ParseInt(w, 10, 32)
	if err != nil || n < 1 {
		l.fail("job %q: choose a number from 1 on", w)
	}
	return n
}

func (l *line) int(name string, standard, least, most int64) int64 {
	text := l.named(name, "")
	if text == "" {
		return standard
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		l.fail("%s=%s: choose %d to %d", name, text, least, most)
	}
	return n
}

func (l *line) span(name string, standard time.Duration) time.Duration {
	text := l.named(name, "")
	if text == "" {
		return standard
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > maxSpan {
		l.fail("%s=%s: choose 0s to %v", name, text, maxSpan)
	}
	return d
}

// word reads a value that has a word for each choice.
func word[T any](l *line, name string, to *T, parse func(string) (T, error)) {
	text := l.named(name, "")
	if text == "" {
		return
	}
	v, err := parse(text)
	if err != nil {
		l.fail("%s: %w", name, err)
	}
	*to = v
}
