package policy

import (
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/parser"

	"kith/meta/bags"
	"kith/store"
)

// maxKeptBytes bounds what programs take that are kept for texts that come again. Those of
// open bags are bounded by what all of them may cost.
const maxKeptBytes = 32 << 20

// Compiler implements [bags.Policies].
type Compiler struct {
	env      *cel.Env
	parser   *parser.Parser
	byName   map[string]bags.Var
	programs map[key]*program // of texts that were seen lately
	bytes    int              // of programs
	kept     int              // verdicts that all judges keep
	scene    activation
}

type key struct {
	text   bags.Text
	source string
}

var _ bags.Policies = (*Compiler)(nil)

// program is a text that can be evaluated. Judges share it.
type program struct {
	text     bags.Text
	source   string
	checked  *cel.Ast
	program  cel.Program
	reads    bags.VarSet
	replicas bool
	cost     int // steps that evaluating it may take
	bytes    int // about what it takes of memory
}

// New returns a compiler. It panics if the language does not fit together, which a test
// would find.
func New() *Compiler {
	env, err := newEnv(&replicaTypes{types.NewEmptyRegistry()})
	if err != nil {
		panic(err)
	}
	p, err := newParser()
	if err != nil {
		panic(err)
	}
	c := &Compiler{env: env, parser: p, byName: make(map[string]bags.Var), programs: make(map[key]*program)}
	for v := range bags.VarCount {
		c.byName[bags.Vars[v].Name] = v
	}
	c.scene.byName = c.byName
	return c
}

// Compile implements [bags.Policies].
func (c *Compiler) Compile(texts *store.BagPolicies) (bags.Judge, error) {
	j := &judge{c: c}
	var mistakes []bags.Mistake
	for t := range bags.TextCount {
		source := t.Of(texts)
		if source == "" || len(mistakes) >= maxMistakes { // of more texts nothing is said: finding mistakes takes long
			continue
		}
		p, wrong := c.program(t, source)
		mistakes = append(mistakes, wrong...)
		j.programs[t] = p
	}
	if len(mistakes) > 0 {
		return nil, &bags.TextsError{Mistakes: mistakes}
	}
	j.plan()
	return j, nil
}

// program returns the program of a text, or what is wrong with the text.
func (c *Compiler) program(t bags.Text, source string) (*program, []bags.Mistake) {
	if p := c.programs[key{t, source}]; p != nil {
		return p, nil
	}
	p, wrong := c.compile(t, source)
	if len(wrong) > 0 {
		return nil, wrong
	}
	if c.bytes += p.bytes; c.bytes > maxKeptBytes {
		clear(c.programs)
		c.bytes = p.bytes
	}
	c.programs[key{t, source}] = p
	return p, nil
}

func (c *Compiler) compile(t bags.Text, source string) (*program, []bags.Mistake) {
	whole := func(what string) []bags.Mistake { return []bags.Mistake{{Text: t, What: what}} }
	switch {
	case len(source) > store.MaxPolicyText:
		return nil, whole(sprintf("a text of %d bytes: give at most %d", len(source), store.MaxPolicyText))
	case !utf8.ValidString(source):
		return nil, whole("the text is not UTF-8")
	}
	src := common.NewTextSource(source)
	at := func(l common.Location, what string) bags.Mistake { return mistake(t, src, l, what) }
	parsed, errs := c.parse(src)
	if len(errs) > 0 {
		return nil, fromCEL(t, src, errs)
	}
	tree := parsed.NativeRep()
	wrong := rewrite(tree, at)
	checked, issues := c.env.Check(parsed)
	if errs := issues.Errors(); len(errs) > 0 { // not Err(), which shows the whole line for each
		return nil, append(wrong, fromCEL(t, src, errs)...)
	}
	p := &program{text: t, source: source, checked: checked, bytes: bytesOf(source, checked)}
	wrong = append(wrong, c.reads(p, at)...)
	if want, is := typeOf(t), checked.OutputType(); !is.IsExactType(want) {
		wrong = append(wrong, at(tree.SourceInfo().GetStartLocation(tree.Expr().ID()), sprintf("this is a %s: %s must be a %s", nameOf(is), t, nameOf(want))))
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	var err error
	if p.cost, err = costOf(c.env, checked); err != nil {
		return nil, whole(err.Error())
	}
	if p.cost > MaxCost {
		return nil, whole(sprintf("evaluating it may take %d steps: at most %d are allowed; nest fewer all() and exists(), and match fewer or simpler patterns", p.cost, MaxCost))
	}
	if p.program, err = c.env.Program(checked, cel.EvalOptions(cel.OptOptimize)); err != nil {
		return nil, whole(err.Error())
	}
	return p, nil
}

func typeOf(t bags.Text) *cel.Type {
	if bags.Texts[t].Truth {
		return cel.BoolType
	}
	return cel.DoubleType
}

// nameOf is the name of a type as users know it.
func nameOf(t *cel.Type) string {
	switch {
	case t.IsExactType(cel.DoubleType):
		return "number"
	case t.IsExactType(cel.BoolType):
		return "bool (true or false)"
	}
	return t.String()
}

// rewrite makes all numbers doubles, but for indices of lists, so that 2 * host.places
// means what it says, and every division one that knows 0. It returns what cannot be.
func rewrite(tree *ast.AST, at func(common.Location, string) bags.Mistake) (wrong []bags.Mistake) {
	facts := ast.NewExprFactory()
	next := ast.MaxID(tree)
	indices := make(map[int64]bool)
	say := func(e ast.Expr, what string) {
		wrong = append(wrong, at(tree.SourceInfo().GetStartLocation(e.ID()), what))
	}
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.Index {
			indices[e.AsCall().Args()[1].ID()] = true
		}
	}))
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.LiteralKind:
			if n, whole := e.AsLiteral().(types.Int); whole && !indices[e.ID()] {
				e.SetKindCase(facts.NewLiteral(e.ID(), types.Double(n)))
			}
		case ast.CallKind:
			call := e.AsCall()
			switch call.FunctionName() {
			case operators.Divide:
				if n, constant := numberOf(call.Args()[1]); constant && n == 0 {
					say(call.Args()[1], "division by zero")
				}
				e.SetKindCase(facts.NewCall(e.ID(), divide, call.Args()...))
			case overloads.Size:
				next++
				tree.SourceInfo().SetOffsetRange(next, offsetOf(tree, e))
				size := facts.NewCall(next, overloads.Size, call.Args()...)
				if call.IsMemberFunction() {
					size = facts.NewMemberCall(next, overloads.Size, call.Target(), call.Args()...)
				}
				e.SetKindCase(facts.NewCall(e.ID(), overloads.TypeConvertDouble, size))
			case overloads.Matches:
				if what := wrongPattern(call); what != "" {
					say(e, what)
				}
			}
		}
	}))
	return wrong
}

func offsetOf(tree *ast.AST, e ast.Expr) ast.OffsetRange {
	r, _ := tree.SourceInfo().GetOffsetRange(e.ID())
	return r
}

func numberOf(e ast.Expr) (float64, bool) {
	if e.Kind() != ast.LiteralKind {
		return 0, false
	}
	n, ok := e.AsLiteral().(types.Double)
	return float64(n), ok
}

// reads notes what a program reads; mistakes are variables that its policy may not read.
func (c *Compiler) reads(p *program, at func(common.Location, string) bags.Mistake) (wrong []bags.Mistake) {
	tree := p.checked.NativeRep()
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		r := tree.ReferenceMap()[e.ID()]
		if r == nil || r.Name == "" {
			return
		}
		name := strings.TrimPrefix(r.Name, ".") // that of the outermost scope, where all() and exists() have the name, too
		v, known := c.byName[name]
		switch {
		case name == replicasName:
			p.replicas = true
			if p.text != bags.Replicate {
				wrong = append(wrong, at(tree.SourceInfo().GetStartLocation(e.ID()), sprintf("%s does not know %s: only %s does", p.text, name, bags.Replicate)))
			}
		case known:
			p.reads.Add(v)
			if !mayRead(p.text, v) {
				wrong = append(wrong, at(tree.SourceInfo().GetStartLocation(e.ID()), sprintf("%s does not know %s: %s", p.text, name, whoReads(v))))
			}
		}
	}))
	return wrong
}

func mayRead(t bags.Text, v bags.Var) bool {
	root := bags.Vars[v].Root
	if root == bags.RootTime {
		return true
	}
	for _, r := range bags.Texts[t].Reads {
		if r == root {
			return true
		}
	}
	return false
}

func whoReads(v bags.Var) string {
	var names []string
	for t := range bags.TextCount {
		if mayRead(t, v) {
			names = append(names, t.String())
		}
	}
	return "only " + strings.Join(names, ", ") + map[bool]string{true: " does", false: " do"}[len(names) == 1]
}

// fromCEL are the first mistakes that CEL found.
func fromCEL(t bags.Text, src common.Source, errs []*common.Error) (found []bags.Mistake) {
	for _, e := range errs[:min(len(errs), maxMistakes)] {
		found = append(found, mistake(t, src, e.Location, plain(e.Message)))
		if found[len(found)-1].What == tooManyParts { // said of each macro that comes after
			break
		}
	}
	return found
}
