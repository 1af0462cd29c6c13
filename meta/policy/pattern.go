package policy

import (
	"regexp/syntax"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
)

// Bounds on one regular expression.
const (
	// maxPattern is how long it may be, in bytes: longer ones are not even parsed.
	maxPattern = 512
	// maxProgram is how many instructions it may come to: matching takes at most so many
	// steps for each byte of a name.
	maxProgram = 256
)

// patternOf returns the regular expression of a call of matches, "" if that is no literal:
// what is only known at evaluation would be compiled then.
func patternOf(args []ast.Expr) string {
	if len(args) == 0 {
		return ""
	}
	last := args[len(args)-1]
	if last.Kind() != ast.LiteralKind {
		return ""
	}
	pattern, _ := last.AsLiteral().(types.String)
	return string(pattern)
}

// wrongPattern says what is wrong with the regular expression of a call, "" for nothing.
func wrongPattern(call ast.CallExpr) string {
	pattern := patternOf(call.Args())
	switch {
	case pattern == "":
		return "matches() wants a pattern in quotes"
	case len(pattern) > maxPattern:
		return sprintf("a pattern of %d bytes: give at most %d", len(pattern), maxPattern)
	}
	n, err := instructions(pattern)
	switch {
	case err != nil:
		return err.Error()
	case n > maxProgram:
		return sprintf("the pattern comes to %d steps for each letter: at most %d are allowed", n, maxProgram)
	}
	return ""
}

// instructions returns what a pattern comes to, at least, without making it: a few bytes may
// come to millions.
func instructions(pattern string) (int, error) {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0, err
	}
	return 2 + weight(tree), nil // to fail and to match
}

// weight is how many instructions a part of a pattern comes to. A class of many ranges is
// searched at each letter, and counts more.
func weight(r *syntax.Regexp) int {
	n := 0
	for _, sub := range r.Sub {
		n = min(n+weight(sub), 1<<30)
	}
	switch r.Op {
	case syntax.OpLiteral:
		return len(r.Rune)
	case syntax.OpCharClass:
		return 1 + len(r.Rune)/32
	case syntax.OpAlternate:
		return n + len(r.Sub) - 1
	case syntax.OpCapture, syntax.OpStar:
		return n + 2
	case syntax.OpPlus, syntax.OpQuest:
		return n + 1
	case syntax.OpConcat:
		return n
	case syntax.OpRepeat: // at most 1000 times, all levels together
		if r.Max < 0 {
			return n*max(1, r.Min) + 2
		}
		return n*r.Max + r.Max - r.Min
	default:
		return 1
	}
}
