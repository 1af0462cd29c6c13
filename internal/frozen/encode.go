package frozen

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"unsafe"
)

// Append appends an image of what v leads to, which is a pointer, or of v itself. Hide makes
// another text of one that is hidden, the same one of the same text and of what it has made
// before; nil leaves texts as they are. It panics on what cannot be written.
func (f *Form) Append(b []byte, v any, hide func(string) string) []byte {
	w := writer{form: f, b: b, hide: hide}
	w.value(reflect.ValueOf(v), 0)
	return w.b
}

// AppendLogical appends what counts when v is compared with another value.
func (f *Form) AppendLogical(b []byte, v any, hide func(string) string) []byte {
	w := writer{form: f, b: b, hide: hide, logical: true}
	w.value(reflect.ValueOf(v), 0)
	return w.b
}

// AppendAtMost is [Form.Append], or [Form.AppendLogical], of what takes at most so many bytes,
// each element of a map or an index counted as 32 at least. It stops where there is more,
// and returns false with b as it was: so the caller is never held up for much longer than
// those take.
func (f *Form) AppendAtMost(b []byte, v any, hide func(string) string, logical bool, most int) (image []byte, ok bool) {
	w := writer{form: f, b: b, hide: hide, logical: logical, most: len(b) + most}
	defer func() {
		switch p := recover().(type) {
		case nil:
		case more:
			image, ok = b, false
		default:
			panic(p)
		}
	}()
	w.value(reflect.ValueOf(v), 0)
	if len(w.b) > w.most {
		return b, false
	}
	return w.b, true
}

// more is what a writer panics with that has more to write than it may.
type more struct{}

// leastElement is what an element of a map or an index counts at least: they are sorted, which
// takes time before the first is written.
const leastElement = 32

// expect is told before n more bytes at least are written.
func (w *writer) expect(n int) {
	if w.most > 0 && len(w.b)+n > w.most {
		panic(more{})
	}
}

// What stands for a pointer or an interface.
const (
	isNil   = 0
	isNew   = 1 // what it leads to follows
	isError = 2 // of an interface: a text follows
	// A pointer that was met before is its number and firstSeen.
	firstSeen = 2
)

type writer struct {
	form    *Form
	b       []byte
	hide    func(string) string
	logical bool
	most    int // how long b may become; 0 for any length
	seen    map[seenKey]uint64
}

// seenKey has the type as well: a struct and its first field lie at one place.
type seenKey struct {
	at unsafe.Pointer
	of reflect.Type
}

func (w *writer) number(n uint64) { w.b = binary.AppendUvarint(w.b, n) }

func (w *writer) text(s string) {
	w.number(uint64(len(s)))
	w.b = append(w.b, s...)
}

var errorType = reflect.TypeFor[error]()

func (w *writer) value(v reflect.Value, how treat) {
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			w.b = append(w.b, 1)
		} else {
			w.b = append(w.b, 0)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		w.b = binary.AppendVarint(w.b, v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		w.number(v.Uint())
	case reflect.Float32, reflect.Float64:
		w.b = binary.LittleEndian.AppendUint64(w.b, math.Float64bits(v.Float()))
	case reflect.String:
		w.string(v.String(), how)
	case reflect.Pointer:
		w.pointer(v, how)
	case reflect.Interface:
		w.boxed(v, how)
	case reflect.Slice:
		w.list(v, how)
	case reflect.Array:
		if how&hidden != 0 && v.Type().Elem().Kind() == reflect.Uint8 {
			w.b = append(w.b, w.hidden(v)...)
			return
		}
		for i := range v.Len() {
			w.value(v.Index(i), how)
		}
	case reflect.Map:
		w.table(v, how)
	case reflect.Struct:
		w.structure(v, how)
	default:
		panic(fmt.Sprintf("frozen: %v cannot be written", v.Type()))
	}
}

// hidden returns what stands for an array of bytes, which are all zero only if those are, in
// as many: of each an unsigned number is read, and less than 128 is one byte of it.
func (w *writer) hidden(v reflect.Value) []byte {
	b := make([]byte, v.Len())
	for i := range b {
		b[i] = byte(v.Index(i).Uint())
	}
	if w.hide != nil && !v.IsZero() {
		sum := sha256.Sum256([]byte(w.hide(string(b))))
		for i := range b {
			b[i] = sum[i%len(sum)] & 0x7f
		}
		b[0] |= 1
	}
	return b
}

func (w *writer) string(s string, how treat) {
	if how&hidden != 0 && w.hide != nil && s != "" {
		s = w.hide(s)
	}
	w.text(s)
}

func (w *writer) pointer(v reflect.Value, how treat) {
	if v.IsNil() {
		w.number(isNil)
		return
	}
	k := seenKey{v.UnsafePointer(), v.Type()}
	if n, ok := w.seen[k]; ok {
		w.number(firstSeen + n)
		return
	}
	if w.seen == nil {
		w.seen = make(map[seenKey]uint64)
	}
	w.expect(0)
	w.seen[k] = uint64(len(w.seen))
	w.number(isNew)
	w.value(v.Elem(), how)
}

func (w *writer) boxed(v reflect.Value, how treat) {
	switch {
	case v.IsNil():
		w.number(isNil)
	case v.Type() == errorType:
		w.number(isError)
		w.text(textOf(v.Elem()))
	default:
		w.number(isNew)
		w.text(nameOf(v.Elem().Type()))
		w.value(v.Elem(), how)
	}
}

// textOf returns what an error says.
func textOf(v reflect.Value) string {
	if !v.CanInterface() { // it stands in a field that is not exported
		if v.Kind() != reflect.Pointer {
			return v.Type().String()
		}
		v = reflect.NewAt(v.Type().Elem(), v.UnsafePointer())
	}
	return v.Interface().(error).Error()
}

func (w *writer) list(v reflect.Value, how treat) {
	n := v.Len()
	if !w.logical { // zero is nil there
		if n++; v.IsNil() {
			n = 0
		}
	}
	w.number(uint64(n))
	if v.Type().Elem().Kind() == reflect.Uint8 {
		if how&opaque == 0 {
			w.b = append(w.b, v.Bytes()...)
		}
		return
	}
	for i := range v.Len() {
		w.expect(0)
		w.value(v.Index(i), how)
	}
}

// table writes a map in the order of what its keys look like.
func (w *writer) table(v reflect.Value, how treat) {
	n := v.Len()
	if !w.logical {
		if n++; v.IsNil() {
			n = 0
		}
	}
	w.number(uint64(n))
	if v.Len() == 0 {
		return
	}
	w.expect(n * leastElement)
	for _, e := range w.entries(v) {
		w.b = append(w.b, e.key...)
		w.value(e.value, how)
	}
}

// entry is one of a map; key is what its key looks like.
type entry struct {
	key       string
	of, value reflect.Value
}

// entries returns those of a map in the order of what their keys look like.
func (w *writer) entries(v reflect.Value) []entry {
	entries := make([]entry, 0, v.Len())
	for it := v.MapRange(); it.Next(); {
		k := writer{form: w.form, hide: w.hide, logical: w.logical}
		k.value(it.Key(), 0)
		entries = append(entries, entry{string(k.b), it.Key(), it.Value()})
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	return entries
}

func (w *writer) structure(v reflect.Value, how treat) {
	p := w.form.planOf(v.Type())
	switch p.kind {
	case window:
		items, head := v.Field(p.window[0]), int(v.Field(p.window[1]).Int())
		w.number(uint64(items.Len() - head))
		for i := head; i < items.Len(); i++ {
			w.expect(0)
			w.value(items.Index(i), how)
		}
		return
	case index:
		x := open(v).Addr().Interface().(indexed)
		w.expect(x.Len() * leastElement)
		records := x.Records()
		w.number(uint64(len(records)))
		for _, r := range records {
			w.value(reflect.ValueOf(r), how)
		}
		return
	}
	for _, s := range p.fields {
		if !s.cache || !w.logical {
			w.value(v.Field(s.index), how|s.treat)
		}
	}
}

// open returns v so that it may be read and written although it is not exported.
func open(v reflect.Value) reflect.Value {
	if v.CanSet() {
		return v
	}
	return reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem() //nolint:gosec // It is of this very type.
}
