package policy

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/parser"
)

const (
	// maxDepth bounds how deep a text may nest.
	maxDepth = 64
	// maxParts bounds of how many parts a text may consist, each name, value, operator and
	// call being one, all() and exists() some ten. Compiling takes up to 5 us for each.
	maxParts = 500
	// maxLists bounds how deep lists nest: what checking one takes grows with its square.
	maxLists = 4
)

// newParser returns the parser of CEL that is written by hand. The other one of cel-go, which
// is generated from the grammar, takes 100 us for a minus, as it looks ahead to the end.
func newParser() (*parser.Parser, error) {
	return parser.NewParser(
		parser.EnablePrattParser(true),
		parser.Macros(parser.HasMacro, parser.AllMacro, parser.ExistsMacro),
		parser.PopulateMacroCalls(true), // explanations show all() and exists() as they were written
		parser.MaxRecursionDepth(maxDepth), parser.ErrorRecoveryLimit(4), parser.MaxExpressionNodeCount(maxParts),
	)
}

// parse returns a text as a tree, or what is wrong with it.
func (c *Compiler) parse(src common.Source) (*cel.Ast, []*common.Error) {
	tree, errs := c.parser.Parse(src)
	if wrong := errs.GetErrors(); len(wrong) > 0 {
		return nil, wrong
	}
	if at, what := tooMuch(tree); what != "" {
		errs.ReportErrorString(at, what)
		return nil, errs.GetErrors()
	}
	// cel-go has no other way to take a tree of a parser that its environment did not make.
	parsed := cel.ParsedExprToAstWithSource(nil, src)
	*parsed.NativeRep() = *tree
	return parsed, nil
}

// tooMuch says what of a tree would take too long to check, and where; "" if nothing would.
func tooMuch(tree *ast.AST) (common.Location, string) {
	if n := ast.NodeCount(tree); n > maxParts { // the parser counts those of all() and exists() alone
		return common.NoLocation, tooManyParts
	}
	for _, e := range ast.MatchDescendants(ast.NavigateAST(tree), holds) {
		lists := 0
		for p, in := e.Parent(); in; p, in = p.Parent() {
			if holds(p) {
				lists++
			}
		}
		if lists >= maxLists {
			return tree.SourceInfo().GetStartLocation(e.ID()), sprintf("lists nest too deep: at most %d; what is in them can be written one by one", maxLists)
		}
	}
	return nil, ""
}

// tooManyParts says so without their number: of macros the parser does not count to the end.
var tooManyParts = sprintf("the text has too many names, values, operators and calls: give at most %d, where all() and exists() count some ten; a pattern says many names in one", maxParts)

func holds(e ast.NavigableExpr) bool { return e.Kind() == ast.ListKind || e.Kind() == ast.MapKind }
