package chaos

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"kith/internal/job"
)

// state is what a job that counts saves: a number of its own that grows, how far it is, and the sum.
type state struct{ seq, at, sum uint64 }

// counted is what an attempt of such a job has signed.
type counted struct {
	attempt uint32
	// used is the checkpoint that it was told to go on from, 0 for none, and from what it found there.
	used uint64
	from state
	last uint64 // the last number
	// saves are what it was about to save; whole is the number of the last one that was in place.
	saves []state
	whole uint64
	// left says that it ended to go on elsewhere, with what it had saved in place.
	left bool
}

// story is what all attempts of a job have signed, in their order.
type story struct {
	attempts []counted
	// wrong is what no such job does by itself; writers are attempts that signed after a later one had begun.
	wrong, writers []string
}

// readStory reads what a job has signed. A line that is no entry is an error.
func readStory(r io.Reader, id job.ID) (*story, error) {
	s := &story{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if err := s.line(lines.Text(), id); err != nil {
			return nil, err
		}
	}
	return s, lines.Err()
}

// entries says how many numbers follow each word.
var entries = map[string]int{"from": 4, "n": 1, "save": 3, "saved": 1, "left": 0}

func (s *story) line(text string, id job.ID) error {
	f := strings.Fields(text)
	if len(f) < 2 {
		return fmt.Errorf("job %v signed %q, which is no entry", id, text)
	}
	a, err := job.ParseAttemptID(f[1])
	n, known := entries[f[0]]
	if err != nil || !known || a.Job != id || len(f) != 2+n {
		return fmt.Errorf("job %v signed %q, which is no entry", id, text)
	}
	var v [4]uint64
	for i, word := range f[2:] {
		if v[i], err = strconv.ParseUint(word, 10, 64); err != nil {
			return fmt.Errorf("job %v signed %q: %w", id, text, err)
		}
	}
	if f[0] == "from" {
		s.begin(a.Number, v[0], state{v[1], v[2], v[3]})
		return nil
	}
	x := s.of(a.Number)
	if x == nil {
		s.writers = append(s.writers, fmt.Sprintf("attempt %d signed %q after attempt %d had begun", a.Number, text, s.attempts[len(s.attempts)-1].attempt))
		return nil
	}
	switch f[0] {
	case "n":
		if v[0] != x.last+1 {
			s.wrong = append(s.wrong, fmt.Sprintf("attempt %d counted %d after %d", a.Number, v[0], x.last))
		}
		x.last = v[0]
	case "save":
		x.saves = append(x.saves, state{v[0], v[1], v[2]})
	case "saved":
		x.whole = v[0]
	case "left":
		x.left = true
	}
	return nil
}

// begin is the first entry of an attempt.
func (s *story) begin(attempt uint32, used uint64, from state) {
	if n := len(s.attempts); n > 0 && s.attempts[n-1].attempt >= attempt {
		s.writers = append(s.writers, fmt.Sprintf("attempt %d began after attempt %d", attempt, s.attempts[n-1].attempt))
		return
	}
	s.attempts = append(s.attempts, counted{attempt: attempt, used: used, from: from, last: from.at})
}

// of returns the attempt that signs at the moment, nil if that is another one.
func (s *story) of(attempt uint32) *counted {
	if n := len(s.attempts); n > 0 && s.attempts[n-1].attempt == attempt {
		return &s.attempts[n-1]
	}
	return nil
}

// known reports whether one of the first n attempts was about to save a state.
func (s *story) known(n int, x state) bool {
	for _, a := range s.attempts[:n] {
		for _, y := range a.saves {
			if x == y {
				return true
			}
		}
	}
	return false
}
