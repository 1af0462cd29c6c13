package frozen

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Rules say what of types is treated in another way than the rest. Fields are listed by the
// name of their type, as in "store.Job"; of a generic one without its arguments.
type Rules struct {
	// Scratch is never written: what is made anew whenever it is needed.
	Scratch map[string][]string
	// Caches are written into images, and do not count in what is compared.
	Caches map[string][]string
	// Opaque fields hold bytes that nobody looks into, or lists or tables of them. How many
	// they are is written, and as many zeros are read.
	Opaque map[string][]string
	// Hidden fields hold texts or arrays of bytes of which only whether they are equal is
	// written, see [Form.Append].
	Hidden map[string][]string
	// Windows are structs of a list and of how much at its beginning does not count: the names
	// of the two fields.
	Windows map[string][2]string
	// Types are all that can stand in interfaces of which the value that is read into has
	// none of the same type yet.
	Types []reflect.Type
}

// Form writes and reads values. It is safe for concurrent use.
type Form struct {
	rules  Rules
	plans  sync.Map // reflect.Type to *plan
	byName map[string]reflect.Type
}

// New returns a form. It panics if two of the types have one name.
func New(r Rules) *Form {
	f := &Form{rules: r, byName: make(map[string]reflect.Type, len(r.Types))}
	for _, t := range r.Types {
		if f.byName[nameOf(t)] != nil {
			panic("frozen: two types are called " + nameOf(t))
		}
		f.byName[nameOf(t)] = t
	}
	return f
}

// nameOf names a type, also one without a name of its own.
func nameOf(t reflect.Type) string { return t.String() }

// treat is how a field is written.
type treat uint8

const (
	opaque treat = 1 << iota
	hidden
)

// field is one that is written.
type field struct {
	index int
	treat treat
	cache bool
}

// plan says which fields of a struct are written, and how.
type plan struct {
	fields []field
	kind   structKind
	window [2]int // of a window: the places of its list and of where that begins
}

// structKind is for structs that hold the same in many ways.
type structKind uint8

const (
	ordinary structKind = iota
	window              // a list whose beginning does not count, see Rules.Windows
	index               // a store.Index: it lies as a random seed has it
)

func (f *Form) planOf(t reflect.Type) *plan {
	if p, ok := f.plans.Load(t); ok {
		return p.(*plan)
	}
	name, _, _ := strings.Cut(t.String(), "[")
	p := &plan{}
	switch names, is := f.rules.Windows[name]; {
	case is:
		p.kind = window
		for i, n := range names {
			s, _ := t.FieldByName(n)
			p.window[i] = s.Index[0]
		}
	case reflect.PointerTo(t).Implements(reflect.TypeFor[indexed]()):
		p.kind = index
	}
	for i := range t.NumField() {
		s := t.Field(i)
		if s.Type.Kind() == reflect.Func || slices.Contains(f.rules.Scratch[name], s.Name) {
			continue
		}
		w := field{index: i, cache: slices.Contains(f.rules.Caches[name], s.Name)}
		if slices.Contains(f.rules.Opaque[name], s.Name) {
			w.treat |= opaque
		}
		if slices.Contains(f.rules.Hidden[name], s.Name) {
			w.treat |= hidden
		}
		p.fields = append(p.fields, w)
	}
	f.plans.Store(t, p)
	return p
}

// indexed is a table of records that can be told by their names, as store.Index is. Records
// returns pointers to them in the order of their names; Refill has these instead of all others.
type indexed interface {
	Len() int
	Records() []any
	Refill(records []any)
	// Record returns a nil pointer to a record.
	Record() any
}

// Schema is a digest of some types and all that they lead to, and of how they are written:
// what was written by a form of another schema cannot be read.
func (f *Form) Schema(roots ...reflect.Type) string {
	w := schema{f: f, seen: make(map[reflect.Type]bool)}
	for _, t := range append(slices.Clone(roots), f.rules.Types...) {
		w.walk(t)
	}
	slices.Sort(w.lines)
	sum := sha256.Sum256([]byte(strings.Join(w.lines, "\n")))
	return hex.EncodeToString(sum[:8])
}

type schema struct {
	f     *Form
	seen  map[reflect.Type]bool
	lines []string
}

func (w *schema) walk(t reflect.Type) {
	if w.seen[t] {
		return
	}
	w.seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		w.walk(t.Elem())
	case reflect.Map:
		w.walk(t.Key())
		w.walk(t.Elem())
	case reflect.Struct:
		var b strings.Builder
		p := w.f.planOf(t)
		fmt.Fprintf(&b, "%s %d:", t, p.kind)
		for _, s := range p.fields {
			sf := t.Field(s.index)
			fmt.Fprintf(&b, " %s %s %d %t;", sf.Name, sf.Type, s.treat, s.cache)
			w.walk(sf.Type)
		}
		w.lines = append(w.lines, b.String())
	default:
		w.lines = append(w.lines, fmt.Sprintf("%s %s", t, t.Kind()))
	}
}
