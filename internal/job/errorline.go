package job

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// MaxErrorLine bounds [TaskResult.ErrorLine], in bytes.
const MaxErrorLine = 128

// ErrorLineOf returns the last line of what a command wrote that is not blank, of which tail
// is the end, as it stands in a [TaskResult]: nothing in it that a terminal would obey, at
// most [MaxErrorLine] bytes, and "…" at the end if it was longer. A carriage return ends
// a line, too: what it went back over is not to be seen.
func ErrorLineOf(tail []byte) string {
	tail = bytes.TrimRight(tail, " \t\r\n")
	line := tail[bytes.LastIndexAny(tail, "\r\n")+1:]
	text := strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case obeyed(r):
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(withoutEscapes(string(line)), string(utf8.RuneError)))
	return ClipText(strings.Trim(text, " "), MaxErrorLine)
}

// withoutEscapes leaves out what colours a line or moves the cursor: ESC [, parameters, a
// letter.
func withoutEscapes(s string) string {
	const begin = "\x1b["
	if !strings.Contains(s, begin) {
		return s
	}
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, begin)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		end := strings.IndexFunc(after, func(r rune) bool { return r < 0x20 || r > 0x3f })
		switch {
		case end < 0:
			return b.String()
		case after[end] >= 0x40 && after[end] <= 0x7e:
			end++
		}
		s = after[end:]
	}
}

// obeyed reports whether a character does something where it is printed instead of
// being seen: control characters, and those that break lines or turn the direction of
// text. The list is fixed: sites with other versions of Unicode agree on it.
func obeyed(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7f && r <= 0x9f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return true
	}
	return r == 0x061c || r == 0x200e || r == 0x200f || r == 0x2028 || r == 0x2029 || r == 0xfeff
}

// isErrorLine reports whether a text from outside may stand as one.
func isErrorLine(s string) bool {
	return len(s) <= MaxErrorLine && utf8.ValidString(s) && !strings.ContainsFunc(s, obeyed)
}
