package policy

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/common"

	"kith/meta/bags"
)

// maxMistakes bounds what is said of one text, maxPlace what is shown of a line.
const (
	maxMistakes = 5
	maxPlace    = 100
)

var sprintf = fmt.Sprintf

// mistake says what is wrong where, with the line and a mark below the place.
func mistake(t bags.Text, src common.Source, l common.Location, what string) bags.Mistake {
	m := bags.Mistake{Text: t, What: what}
	if l == nil || l.Line() < 1 || l.Column() < 0 {
		return m
	}
	m.Line, m.Column = l.Line(), l.Column()+1
	line, ok := src.Snippet(l.Line())
	if !ok {
		return m
	}
	runes := []rune(strings.Map(func(r rune) rune {
		if r < ' ' || r == utf8.RuneError {
			return ' '
		}
		return r
	}, line))
	from := max(0, min(l.Column(), len(runes))-maxPlace/2)
	to := min(len(runes), from+maxPlace)
	mark := min(max(0, l.Column()-from), to-from)
	m.Place = "    " + string(runes[from:to]) + "\n    " + strings.Repeat(" ", mark) + "^"
	return m
}

// plain puts what CEL says into the words of users.
func plain(what string) string {
	what = strings.TrimPrefix(what, "Syntax error: ")
	what, _, _ = strings.Cut(what, "\n")
	if strings.Contains(what, "recursion") || strings.Contains(what, "max depth") {
		what = fmt.Sprintf("the text nests too deep: at most %d", maxDepth)
	}
	if strings.HasPrefix(what, "expression count exceeds") {
		what = tooManyParts
	}
	return strings.NewReplacer("double", "number", divide, "_/_").Replace(what)
}
