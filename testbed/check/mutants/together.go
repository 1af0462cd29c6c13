package mutants

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// merge puts mutants into one set of files, so that one program has them all: of a function that
// a mutant changes there are two, and one under the old name that asks the environment which is
// wanted (a mutant schema, as the literature has it). It returns the files, by their names
// relative to root, and the mutants that change more than the bodies of functions, which need a
// program of their own.
func merge(root string, list []Mutant) (files map[string]string, alone []Mutant, err error) {
	sources := make(map[string]*source)
	for i := range list {
		m := &list[i]
		changed, err := m.Apply(root)
		if err != nil {
			return nil, nil, err
		}
		bodies := make(map[string][]body)
		for name, text := range changed {
			if sources[name] == nil {
				if sources[name], err = readSource(filepath.Join(root, name)); err != nil {
					return nil, nil, err
				}
			}
			if bodies[name], err = sources[name].differ(text); err != nil {
				break
			}
		}
		if err != nil {
			alone = append(alone, *m)
			continue
		}
		for name, list := range bodies {
			for _, b := range list {
				sources[name].variants[b.function] = append(sources[name].variants[b.function], variant{m.Name, b.text})
			}
		}
	}
	files = map[string]string{switchPackage + "/switch.go": switchSource}
	for name, s := range sources {
		if len(s.variants) > 0 {
			files[name] = s.switched()
		}
	}
	return files, alone, nil
}

// source is a file of the engines, its functions by their names, and what mutants make of them.
type source struct {
	parsed
	variants map[string][]variant
}

// variant is what a function is in a mutant.
type variant struct{ mutant, text string }

// body is a function of a mutant that differs from the one in the file.
type body struct{ function, text string }

func readSource(path string) (*source, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	p, err := parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &source{parsed: *p, variants: make(map[string][]variant)}, nil
}

// differ returns the functions of a changed text of the file that differ. It fails if anything
// else does.
func (s *source) differ(text string) ([]body, error) {
	p, err := parse(text)
	if err != nil {
		return nil, err
	}
	if p.rest != s.rest {
		return nil, fmt.Errorf("more than functions differ")
	}
	var list []body
	for _, name := range slices.Sorted(maps.Keys(p.functions)) {
		now, was := p.functions[name], s.functions[name]
		switch {
		case was == nil || p.signature(now) != s.signature(was):
			return nil, fmt.Errorf("%s is another function", name)
		case p.textOf(now) != s.textOf(was):
			list = append(list, body{name, p.named(now, suffixed(now, len(s.variants[name])+1))})
		}
	}
	return list, nil
}

// suffixed is the name of a variant of a function; 0 is the one in the file.
func suffixed(f *ast.FuncDecl, n int) string { return fmt.Sprintf("%s__%d", f.Name.Name, n) }

// switched returns the file with its variants.
func (s *source) switched() string {
	var out strings.Builder
	done := 0
	functions := slices.SortedFunc(maps.Values(s.functions), func(a, b *ast.FuncDecl) int { return int(a.Pos() - b.Pos()) })
	for _, f := range functions {
		variants := s.variants[key(f)]
		if len(variants) == 0 {
			continue
		}
		out.WriteString(s.text[done:s.at(f.Pos())])
		done = s.at(f.End())
		out.WriteString(s.dispatch(f, variants) + "\n\n" + s.named(f, suffixed(f, 0)))
		for _, v := range variants {
			out.WriteString("\n\n" + v.text)
		}
	}
	out.WriteString(s.text[done:])
	head, rest, _ := strings.Cut(out.String(), "\nimport ")
	if rest == "" { // without an import: behind the package clause
		clause := "package " + s.file.Name.Name + "\n"
		return strings.Replace(out.String(), clause, clause+"\nimport \"kith/"+switchPackage+"\"\n", 1)
	}
	return head + "\nimport \"kith/" + switchPackage + "\"\nimport " + rest
}

// dispatch returns the function under its old name, which calls a variant.
func (s *source) dispatch(f *ast.FuncDecl, variants []variant) string {
	var params, args []string
	for _, field := range f.Type.Params.List {
		for range max(len(field.Names), 1) {
			name := fmt.Sprint("p", len(params))
			params = append(params, name+" "+s.text[s.at(field.Type.Pos()):s.at(field.Type.End())])
			if _, more := field.Type.(*ast.Ellipsis); more {
				name += "..."
			}
			args = append(args, name)
		}
	}
	var head, callee string
	if f.Recv != nil {
		of := f.Recv.List[0].Type
		head, callee = "(self "+s.text[s.at(of.Pos()):s.at(of.End())]+") ", "self."
	}
	results, call := "", ""
	if f.Type.Results != nil {
		results, call = s.text[s.at(f.Type.Results.Pos()):s.at(f.Type.Results.End())], "return "
	}
	generic := ""
	if p := f.Type.TypeParams; p != nil {
		generic = s.text[s.at(p.Pos()):s.at(p.End())]
	}
	var out strings.Builder
	fmt.Fprintf(&out, "func %s%s%s(%s) %s {\n\tswitch {\n", head, f.Name.Name, generic, strings.Join(params, ", "), results)
	for i := range len(variants) + 1 {
		n := (i + 1) % (len(variants) + 1) // the one in the file comes last
		which := "default"
		if n > 0 {
			which = fmt.Sprintf("case guardswitch.Out(%q)", variants[n-1].mutant)
		}
		fmt.Fprintf(&out, "\t%s:\n\t\t%s%s%s(%s)\n", which, call, callee, suffixed(f, n), strings.Join(args, ", "))
	}
	out.WriteString("\t}\n}")
	return out.String()
}

// parsed is a file of Go.
type parsed struct {
	text      string
	set       *token.FileSet
	file      *ast.File
	functions map[string]*ast.FuncDecl
	rest      string // what is not a function
}

func parse(text string) (*parsed, error) {
	p := &parsed{text: text, set: token.NewFileSet(), functions: make(map[string]*ast.FuncDecl)}
	var err error
	if p.file, err = parser.ParseFile(p.set, "", text, parser.SkipObjectResolution); err != nil {
		return nil, err
	}
	done := 0
	for _, d := range p.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			p.functions[key(f)] = f
			p.rest += text[done:p.at(f.Pos())]
			done = p.at(f.End())
		}
	}
	p.rest += text[done:]
	return p, nil
}

// key names a function or method within its package.
func key(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	of := f.Recv.List[0].Type
	for {
		switch t := of.(type) {
		case *ast.StarExpr:
			of = t.X
		case *ast.IndexExpr:
			of = t.X
		case *ast.IndexListExpr:
			of = t.X
		case *ast.Ident:
			return t.Name + "." + f.Name.Name
		default:
			return f.Name.Name
		}
	}
}

func (p *parsed) at(pos token.Pos) int { return p.set.Position(pos).Offset }

func (p *parsed) textOf(f *ast.FuncDecl) string { return p.text[p.at(f.Pos()):p.at(f.End())] }

func (p *parsed) signature(f *ast.FuncDecl) string {
	return p.text[p.at(f.Pos()):p.at(f.Body.Pos())]
}

// named returns a function under another name.
func (p *parsed) named(f *ast.FuncDecl, name string) string {
	return p.text[p.at(f.Pos()):p.at(f.Name.Pos())] + name + p.text[p.at(f.Name.End()):p.at(f.End())]
}
