package chaos

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
)

// logs keeps what the sites' logs tell that no API does.
type logs struct {
	mu sync.Mutex
	// lost are the shims of attempts that a site reported as lost.
	lost map[string]int // attempt → pid
	// tail is what a site last said that was no log line: a panic, mostly.
	tail     map[string][]string
	crashes  int
	panics   int
	problems []string
}

const (
	maxTail     = 12
	maxProblems = 40
)

func newLogs() *logs { return &logs{lost: make(map[string]int), tail: make(map[string][]string)} }

// line takes a line of a site's log.
func (l *logs) line(site string, line []byte) {
	var m struct {
		Msg       string
		AttemptID string `json:"attempt_id"`
		Pid       int
		Method    string
		Panic     string
		Error     string
	}
	bad := json.Unmarshal(line, &m) != nil
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case bad:
		if len(l.tail[site]) < maxTail {
			l.tail[site] = append(l.tail[site], string(line))
		}
		if strings.Contains(string(line), "DATA RACE") { // of a build that looks for them
			l.add("site %s: a data race, see its log", site)
		}
	case m.Msg == "site ready":
		delete(l.tail, site)
	case m.Msg == "attempt lost":
		l.lost[m.AttemptID] = m.Pid
	case m.Msg == "handler panicked" || m.Msg == "request failed":
		l.panics++
		l.add("site %s: %s in %s: %s%s", site, m.Msg, m.Method, m.Panic, m.Error)
	}
}

// crashed notes that a site's daemon ended by itself.
func (l *logs) crashed(site string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.crashes++
	l.add("site %s: kithd ended by itself: %s", site, strings.Join(l.tail[site], " | "))
}

// problem notes what went wrong, for people.
func (l *logs) problem(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(format, args...)
}

func (l *logs) add(format string, args ...any) {
	if len(l.problems) < maxProblems {
		l.problems = append(l.problems, fmt.Sprintf(format, args...))
	}
}
