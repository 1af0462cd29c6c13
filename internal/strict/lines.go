package strict

import (
	"fmt"
	"strings"
)

// Lines returns the line on which each key and table of a text begins, counted
// from 1. Keys are dotted; the tables of a list have their place in it:
// "peers[1].address". The text must be TOML that the library reads: Lines only
// looks for keys and skips values.
func Lines(text string) map[string]int {
	s := scanner{text: text, line: 1, lines: make(map[string]int), lists: make(map[string]int)}
	for s.blank(); s.at < len(s.text); s.blank() {
		if s.text[s.at] == '[' {
			s.header()
		} else {
			s.assignment()
		}
	}
	return s.lines
}

// scanner walks over a text.
type scanner struct {
	text  string
	at    int
	line  int
	table string
	lines map[string]int
	lists map[string]int // how many tables each list has so far
}

// skip goes n bytes on and counts lines.
func (s *scanner) skip(n int) {
	n = min(n, len(s.text)-s.at)
	s.line += strings.Count(s.text[s.at:s.at+n], "\n")
	s.at += n
}

// skipTo goes on to the next of the given bytes, or to the end.
func (s *scanner) skipTo(any string) {
	n := strings.IndexAny(s.text[s.at:], any)
	if n < 0 {
		n = len(s.text) - s.at
	}
	s.skip(n)
}

func (s *scanner) has(prefix string) bool { return strings.HasPrefix(s.text[s.at:], prefix) }

// blank skips white space and comments.
func (s *scanner) blank() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\r', '\n':
			s.skip(1)
		case '#':
			s.skipTo("\n")
		default:
			return
		}
	}
}

// header reads [table] or [[list]].
func (s *scanner) header() {
	line, list := s.line, s.has("[[")
	s.skip(1)
	if list {
		s.skip(1)
	}
	parts := s.key("]")
	s.table = ""
	for i, part := range parts {
		s.table = join(s.table, part)
		n := s.lists[s.table]
		switch {
		case list && i == len(parts)-1:
			s.lists[s.table] = n + 1
			s.note(s.table, line)
			s.table = fmt.Sprintf("%s[%d]", s.table, n)
		case n > 0:
			s.table = fmt.Sprintf("%s[%d]", s.table, n-1)
		}
	}
	s.note(s.table, line)
	s.skipTo("\n#")
}

// assignment reads key = value.
func (s *scanner) assignment() {
	line, key := s.line, s.table
	for _, part := range s.key("=\n") {
		key = join(key, part)
		s.note(key, line)
	}
	s.skip(1)
	s.value()
}

func (s *scanner) note(key string, line int) {
	if s.lines[key] == 0 {
		s.lines[key] = line
	}
}

// key reads the parts of a dotted key up to one of the bytes that end it.
func (s *scanner) key(end string) []string {
	var parts []string
	part := ""
	for s.at < len(s.text) && !strings.ContainsRune(end, rune(s.text[s.at])) {
		switch c := s.text[s.at]; c {
		case '.':
			parts, part = append(parts, part), ""
			s.skip(1)
		case ' ', '\t', '\r':
			s.skip(1)
		case '"', '\'':
			from := s.at
			s.quoted()
			part = strings.Trim(s.text[from:s.at], string(c))
		default:
			part += string(c)
			s.skip(1)
		}
	}
	return append(parts, part)
}

// value skips a value: up to the end of its line, or of the line on which its
// last bracket closes.
func (s *scanner) value() {
	depth := 0
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case '"', '\'':
			s.quoted()
			continue
		case '#':
			s.skipTo("\n")
			continue
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case '\n':
			if depth <= 0 {
				return
			}
		}
		s.skip(1)
	}
}

// quoted skips a string of any of the four kinds.
func (s *scanner) quoted() {
	mark := s.text[s.at : s.at+1]
	if long := strings.Repeat(mark, 3); s.has(long) {
		mark = long
	}
	s.skip(len(mark))
	for s.at < len(s.text) && !s.has(mark) {
		if mark[0] == '"' && s.text[s.at] == '\\' {
			s.skip(1)
		}
		if len(mark) == 1 && s.has("\n") {
			return // not TOML; the line ends the damage
		}
		s.skip(1)
	}
	s.skip(len(mark))
	for len(mark) == 3 && s.has(mark[:1]) {
		s.skip(1) // up to two quotes may stand right before the end
	}
}

func join(table, key string) string {
	if table == "" {
		return key
	}
	return table + "." + key
}
