package config

import (
	"fmt"
	"strings"
)

// Mistake is one thing that is wrong with a configuration, or, as a warning,
// probably not meant so.
type Mistake struct {
	// File is empty for a configuration that is no file, Line 0 where no line
	// is to blame.
	File string
	Line int
	// Key is the key to change; empty for a line that is no TOML.
	Key string
	// Says names key and value, and what to give instead.
	Says string
}

// String returns FILE:LINE: and what is wrong.
func (m Mistake) String() string {
	switch {
	case m.File == "" && m.Line == 0:
		return m.Says
	case m.File == "":
		return fmt.Sprintf("line %d: %s", m.Line, m.Says)
	case m.Line == 0:
		return m.File + ": " + m.Says
	}
	return fmt.Sprintf("%s:%d: %s", m.File, m.Line, m.Says)
}

// Mistakes are all that is wrong with a configuration, in the order of lines.
type Mistakes []Mistake

// Error returns one mistake a line.
func (l Mistakes) Error() string { return strings.Join(l.Lines(), "\n") }

// Lines returns a line for each mistake.
func (l Mistakes) Lines() []string {
	lines := make([]string, len(l))
	for i, m := range l {
		lines[i] = m.String()
	}
	return lines
}
