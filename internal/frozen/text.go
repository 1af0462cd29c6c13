package frozen

import (
	"fmt"
	"iter"
	"reflect"
	"strconv"
	"strings"
	"time"

	"kith/internal/job"
)

// Leaf is one thing that a value holds: where, as in "host.copies[2].rec.Phase", and what.
type Leaf struct{ Path, Text string }

// Leaves yields all that counts in what v leads to and is not zero, in the order of
// [Form.AppendLogical]. Opaque bytes are told by their number, hidden texts as hide has them.
// A struct with a method String is one leaf.
func (f *Form) Leaves(v any, hide func(string) string) iter.Seq[Leaf] {
	return func(yield func(Leaf) bool) {
		w := lister{form: f, hide: hide, yield: yield, seen: make(map[seenKey]string)}
		w.value(reflect.ValueOf(v), "", 0)
	}
}

// Text returns all that is not zero in v on one line, as [Form.Leaves] has it.
func (f *Form) Text(v any, hide func(string) string) string {
	var b strings.Builder
	for l := range f.Leaves(v, hide) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		if l.Path != "" {
			b.WriteString(l.Path)
			b.WriteByte('=')
		}
		b.WriteString(l.Text)
	}
	return b.String()
}

type lister struct {
	form  *Form
	hide  func(string) string
	yield func(Leaf) bool
	seen  map[seenKey]string
	over  bool
}

func (w *lister) leaf(path, text string) {
	if !w.over && !w.yield(Leaf{path, text}) {
		w.over = true
	}
}

var (
	stringer = reflect.TypeFor[fmt.Stringer]()
	duration = reflect.TypeFor[time.Duration]()
	instant  = reflect.TypeFor[job.Time]()
)

func instantText(t job.Time) string {
	if t == job.Never {
		return "never"
	}
	return t.Wall().UTC().Format("2006-01-02T15:04:05.000000Z")
}

// said returns what a value says of itself, false if it does not.
func said(v reflect.Value) (string, bool) {
	if !v.Type().Implements(stringer) {
		return "", false
	}
	if !v.CanInterface() {
		if !v.CanAddr() {
			return "", false
		}
		v = open(v)
	}
	return v.Interface().(fmt.Stringer).String(), true
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func (w *lister) value(v reflect.Value, path string, how treat) {
	if w.over || !v.IsValid() || v.IsZero() {
		return
	}
	switch v.Kind() {
	case reflect.Struct, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint16, reflect.Uint32:
		if text, ok := said(v); ok {
			w.leaf(path, text)
			return
		}
	}
	switch v.Kind() {
	case reflect.Bool:
		w.leaf(path, "true")
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		switch {
		case v.Type() == duration:
			w.leaf(path, time.Duration(v.Int()).String())
			return
		case v.Type() == instant:
			w.leaf(path, instantText(job.Time(v.Int())))
			return
		}
		w.leaf(path, strconv.FormatInt(v.Int(), 10))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		w.leaf(path, strconv.FormatUint(v.Uint(), 10))
	case reflect.Float32, reflect.Float64:
		w.leaf(path, strconv.FormatFloat(v.Float(), 'g', -1, 64))
	case reflect.String:
		text := v.String()
		if how&hidden != 0 && w.hide != nil {
			text = w.hide(text)
		}
		w.leaf(path, strconv.Quote(text))
	case reflect.Pointer:
		k := seenKey{v.UnsafePointer(), v.Type()}
		if at, ok := w.seen[k]; ok {
			if v.Type().Elem().Kind() == reflect.Struct && v.Type().Elem().Size() > 0 {
				w.leaf(path, "-> "+at)
			}
			return
		}
		w.seen[k] = path
		w.value(v.Elem(), path, how)
	case reflect.Interface:
		if v.Type() == errorType {
			w.leaf(path, strconv.Quote(textOf(v.Elem())))
			return
		}
		w.value(v.Elem(), path, how)
	case reflect.Slice, reflect.Array:
		w.list(v, path, how)
	case reflect.Map:
		w.table(v, path, how)
	case reflect.Struct:
		w.structure(v, path, how)
	}
}

func (w *lister) list(v reflect.Value, path string, how treat) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		switch {
		case how&opaque != 0 || v.Len() > 64:
			w.leaf(path, fmt.Sprintf("(%d bytes)", v.Len()))
		default:
			b := make([]byte, v.Len())
			for i := range b {
				b[i] = byte(v.Index(i).Uint())
			}
			w.leaf(path, fmt.Sprintf("%x", b))
		}
		return
	}
	for i := range v.Len() {
		w.value(v.Index(i), fmt.Sprintf("%s[%d]", path, i), how)
	}
}

func (w *lister) table(v reflect.Value, path string, how treat) {
	for _, e := range (&writer{form: w.form, hide: w.hide, logical: true}).entries(v) {
		var key []string
		(&lister{form: w.form, seen: w.seen, yield: func(l Leaf) bool {
			key = append(key, l.Text)
			return true
		}}).value(e.of, "", 0)
		w.value(e.value, fmt.Sprintf("%s[%s]", path, strings.Join(key, " ")), how)
	}
}

func (w *lister) structure(v reflect.Value, path string, how treat) {
	p := w.form.planOf(v.Type())
	switch p.kind {
	case window:
		items, head := v.Field(p.window[0]), int(v.Field(p.window[1]).Int())
		for i := head; i < items.Len(); i++ {
			w.value(items.Index(i), fmt.Sprintf("%s[%d]", path, i-head), how)
		}
		return
	case index:
		for i, r := range open(v).Addr().Interface().(indexed).Records() {
			w.value(reflect.ValueOf(r), fmt.Sprintf("%s[%d]", path, i), how)
		}
		return
	}
	for _, s := range p.fields {
		if !s.cache {
			w.value(v.Field(s.index), join(path, v.Type().Field(s.index).Name), how|s.treat)
		}
	}
}
