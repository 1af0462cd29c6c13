package chaos

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"kith/internal/job"
)

// ledger is what the jobs themselves wrote down, in the order in which they did.
type ledger struct {
	entries []entry
	jobs    map[job.ID][]int // entries of a job
}

// entry is a line of the ledger.
type entry struct {
	what    string // "start", "end" or "overlap"
	attempt job.AttemptID
	site    string
}

// readLedger reads a ledger. A line that is no entry is an error: lines are
// written whole or not at all.
func readLedger(r io.Reader) (*ledger, error) {
	l := &ledger{jobs: make(map[job.ID][]int)}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) != 3 || !slices.Contains([]string{"start", "end", "overlap"}, f[0]) {
			return nil, fmt.Errorf("ledger: %q is no entry", lines.Text())
		}
		a, err := job.ParseAttemptID(f[1])
		if err != nil {
			return nil, fmt.Errorf("ledger: %w", err)
		}
		l.jobs[a.Job] = append(l.jobs[a.Job], len(l.entries))
		l.entries = append(l.entries, entry{f[0], a, f[2]})
	}
	return l, lines.Err()
}

// run is what the ledger says of one attempt.
type run struct {
	starts, ends int
	site         string
}

// runs returns the attempts of a job that signed, by number.
func (l *ledger) runs(id job.ID) map[uint32]run {
	runs := make(map[uint32]run)
	for _, i := range l.jobs[id] {
		e := l.entries[i]
		r := runs[e.attempt.Number]
		switch e.what {
		case "start":
			r.starts++
			r.site = e.site
		case "end":
			r.ends++
		}
		runs[e.attempt.Number] = r
	}
	return runs
}

// doubleStarts describes attempts that started more than once.
func (l *ledger) doubleStarts(id job.ID) []string {
	var found []string
	starts := make(map[job.AttemptID][]string)
	for _, i := range l.jobs[id] {
		if e := l.entries[i]; e.what == "start" {
			if starts[e.attempt] = append(starts[e.attempt], e.site); len(starts[e.attempt]) > 1 {
				found = append(found, fmt.Sprintf("attempt %v started at %s", e.attempt, strings.Join(starts[e.attempt], " and at ")))
			}
		}
	}
	return found
}

// overlaps describes attempts of a job of which one ran while another did: it
// could not take the job's lock, or an earlier one signed its end after a later
// one its start.
func (l *ledger) overlaps(id job.ID) []string {
	var found []string
	begun := make(map[uint32]bool)
	for _, i := range l.jobs[id] {
		e := l.entries[i]
		switch e.what {
		case "start":
			begun[e.attempt.Number] = true
		case "overlap":
			found = append(found, fmt.Sprintf("attempt %v at %s began while another held the job's lock", e.attempt, e.site))
		case "end":
			for n := range begun {
				if n > e.attempt.Number {
					found = append(found, fmt.Sprintf("attempt %v at %s ended after attempt %d had begun", e.attempt, e.site, n))
				}
			}
		}
	}
	return found
}

// startsAfter describes attempts of a job that began with a number above one.
func (l *ledger) startsAfter(id job.ID, last uint32) []string {
	var found []string
	for _, i := range l.jobs[id] {
		if e := l.entries[i]; e.what == "start" && e.attempt.Number > last {
			found = append(found, fmt.Sprintf("attempt %v began at %s after attempt %d had ended the job", e.attempt, e.site, last))
		}
	}
	return found
}
