package policy

import (
	"strconv"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
	"cel.dev/cel-go/parser"

	"kith/meta/bags"
)

// Explain implements [bags.Judge].
func (j *judge) Explain(s *bags.Scene) (all []bags.Given) {
	for t := range bags.TextCount {
		switch p := j.programs[t]; {
		case p == nil:
		case t == bags.Replicate && s.Task == nil:
			all = append(all, bags.Given{Text: t, Undefined: true, Value: "asked for each task that sites have, in the tail"})
		default:
			all = append(all, j.explained(t).explain(j.c, s))
		}
	}
	return all
}

// explained is a program that tells what came between. The judge that is asked keeps it, as
// programs are shared and most are never explained.
type explained struct {
	*program
	tracked cel.Program
	written *ast.AST // the text as parsed, before numbers became doubles; nil if it is not
	err     error
}

// explained returns the program of a text that explains itself, made at the first time.
func (j *judge) explained(t bags.Text) *explained {
	if e := j.explain[t]; e != nil {
		return e
	}
	p := j.programs[t]
	e := &explained{program: p}
	e.tracked, e.err = j.c.env.Program(p.checked, cel.EvalOptions(cel.OptTrackState), cel.OptimizeRegex(interpreter.MatchesRegexOptimization))
	if parsed, errs := j.c.parse(common.NewTextSource(p.source)); len(errs) == 0 {
		e.written = parsed.NativeRep()
	}
	j.explain[t] = e
	return e
}

// explain evaluates a text with all that comes between.
func (p *explained) explain(c *Compiler, s *bags.Scene) bags.Given {
	g := bags.Given{Text: p.text}
	if p.err != nil {
		return bags.Given{Text: p.text, Undefined: true, Value: p.err.Error()}
	}
	c.scene.Scene = s
	v, details, err := p.tracked.Eval(&c.scene)
	c.scene.Scene = nil
	if err != nil {
		v = types.WrapErr(err)
	}
	g.Value, g.Undefined = words(v)
	if details != nil {
		whole := p.checked.NativeRep().Expr()
		if part := decisive(whole, v, details.State()); part != nil && part.ID() != whole.ID() {
			g.Part = p.textOf(part.ID())
		}
	}
	return g
}

// decisive returns the smallest part of an expression that gave it its value: of a
// conjunction that is false, the conjunct that is, and of a choice what was chosen.
func decisive(e ast.Expr, v ref.Val, state interpreter.EvalState) ast.Expr {
	if e.Kind() != ast.CallKind {
		return e
	}
	args := e.AsCall().Args()
	of := func(part ast.Expr, want func(ref.Val) bool) ast.Expr {
		if got, known := state.Value(part.ID()); known && want(got) {
			return decisive(part, got, state)
		}
		return nil
	}
	same := func(got ref.Val) bool { return got == v || types.IsError(got) && types.IsError(v) }
	switch e.AsCall().FunctionName() {
	case operators.LogicalAnd, operators.LogicalOr:
		// Both sides count where it is true and they have to be, or the other way round.
		if both := types.Bool(e.AsCall().FunctionName() == operators.LogicalAnd); v == both {
			return e
		}
		for _, side := range args {
			if part := of(side, same); part != nil {
				return part
			}
		}
	case operators.Conditional:
		if part := of(args[0], types.IsError); part != nil {
			return part
		}
		chosen := args[2]
		if condition, _ := state.Value(args[0].ID()); condition == types.True {
			chosen = args[1]
		}
		if chosen.Kind() == ast.LiteralKind { // the condition says more
			return args[0]
		}
		if part := of(chosen, same); part != nil {
			return part
		}
	case operators.LogicalNot:
		if part := of(args[0], func(ref.Val) bool { return true }); part != nil && part.ID() != args[0].ID() {
			return part
		}
	}
	return e
}

// textOf returns a part of a text as it was written, but for blanks.
func (p *explained) textOf(id int64) string {
	if p.written == nil {
		return ""
	}
	found := ast.Expr(nil)
	ast.PostOrderVisit(p.written.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.ID() == id {
			found = e
		}
	}))
	if found == nil {
		return ""
	}
	text, err := parser.Unparse(found, p.written.SourceInfo())
	if err != nil {
		return ""
	}
	return strings.Join(strings.Fields(text), " ")
}

// words says what a value is.
func words(v ref.Val) (text string, undefined bool) {
	switch v := v.(type) {
	case types.Bool:
		return strconv.FormatBool(bool(v)), false
	case types.Double:
		n := strconv.FormatFloat(float64(v), 'g', 6, 64)
		if strings.ContainsAny(n, "In") {
			return "UNDEFINED: " + n, true
		}
		return n, false
	case *types.Err:
		return "UNDEFINED: " + plainError(v.Error()), true
	}
	return sprintf("%v", v), false
}

// plainError says in the words of users why there is no value.
func plainError(what string) string {
	if name, ok := strings.CutPrefix(what, "no such attribute(s): "); ok {
		return name + " is not known"
	}
	return plain(what)
}
