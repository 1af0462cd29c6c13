package frozen

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
)

// ErrImage is wrapped by all errors of [Form.Decode]: the bytes are no image of the value.
var ErrImage = errors.New("this is no image of the value")

// Bounds on what an image may claim to hold.
const (
	mostOpaque = 64 << 20 // bytes of one field
	mostDeep   = 100_000  // pointers, lists and structs in one another
	// mostEmpty is how many elements of a list may take no byte each.
	mostEmpty = 1 << 16
)

// Decode reads an image into what v points to. On an error, which wraps [ErrImage], v is
// in no state of use. Bytes that no image holds it refuses and never reads beyond them, so
// that they may come from anywhere.
func (f *Form) Decode(b []byte, v any) (err error) {
	r := &reader{form: f, b: b}
	defer func() {
		switch p := recover().(type) {
		case nil:
		case failure:
			err = fmt.Errorf("%w: byte %d of %d: %s", ErrImage, len(b)-len(r.b), len(b), string(p))
		default: // a key that cannot be one, a record without a name
			err = fmt.Errorf("%w: byte %d of %d: %v", ErrImage, len(b)-len(r.b), len(b), p)
		}
	}()
	if len(b) == 0 || b[0] != isNew {
		r.fail("nothing is in it")
	}
	r.value(reflect.ValueOf(v), 0)
	if len(r.b) > 0 {
		r.fail("%d bytes are left", len(r.b))
	}
	return nil
}

type failure string

type reader struct {
	form  *Form
	b     []byte
	seen  []reflect.Value
	depth int
}

func (r *reader) fail(format string, args ...any) { panic(failure(fmt.Sprintf(format, args...))) }

func (r *reader) number() uint64 {
	n, size := binary.Uvarint(r.b)
	if size <= 0 {
		r.fail("no number")
	}
	r.b = r.b[size:]
	return n
}

func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail("%d bytes are missing", n-uint64(len(r.b)))
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) text() string { return string(r.take(r.number())) }

// value reads into v, which may be the pointer that was given to Decode or something settable.
func (r *reader) value(v reflect.Value, how treat) {
	if r.depth++; r.depth > mostDeep {
		r.fail("it is too deep")
	}
	defer func() { r.depth-- }()
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(r.take(1)[0] != 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n, size := binary.Varint(r.b)
		if size <= 0 || v.OverflowInt(n) {
			r.fail("no %v", v.Type())
		}
		r.b = r.b[size:]
		v.SetInt(n)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n := r.number()
		if v.OverflowUint(n) {
			r.fail("no %v", v.Type())
		}
		v.SetUint(n)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(math.Float64frombits(binary.LittleEndian.Uint64(r.take(8))))
	case reflect.String:
		v.SetString(r.text())
	case reflect.Pointer:
		r.pointer(v, how)
	case reflect.Interface:
		r.boxed(v, how)
	case reflect.Slice:
		r.list(v, how)
	case reflect.Array:
		for i := range v.Len() {
			r.value(v.Index(i), how)
		}
	case reflect.Map:
		r.table(v, how)
	case reflect.Struct:
		r.structure(v, how)
	default:
		r.fail("%v cannot be read", v.Type())
	}
}

// pointer reads what a pointer leads to, into what it leads to already.
func (r *reader) pointer(v reflect.Value, how treat) {
	switch n := r.number(); {
	case n == isNil:
		v.SetZero()
	case n == isNew:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		to := reflect.NewAt(v.Type().Elem(), v.UnsafePointer())
		r.seen = append(r.seen, to)
		r.value(to.Elem(), how)
	case n-firstSeen < uint64(len(r.seen)):
		to := r.seen[n-firstSeen]
		if !to.Type().AssignableTo(v.Type()) {
			r.fail("a %v is a %v", v.Type(), to.Type())
		}
		v.Set(to)
	default:
		r.fail("it leads nowhere")
	}
}

func (r *reader) boxed(v reflect.Value, how treat) {
	switch r.number() {
	case isNil:
		v.SetZero()
		return
	case isError:
		if v.Type() != errorType {
			r.fail("a %v is an error", v.Type())
		}
		v.Set(reflect.ValueOf(errors.New(r.text())))
		return
	case isNew:
	default:
		r.fail("no %v", v.Type())
	}
	name := r.text()
	t, ok := r.form.byName[name]
	if !v.IsNil() && nameOf(v.Elem().Type()) == name {
		t, ok = v.Elem().Type(), true
	}
	if !ok || !t.Implements(v.Type()) {
		r.fail("no %v is a %.100q", v.Type(), name)
	}
	box := reflect.New(t).Elem()
	if !v.IsNil() && v.Elem().Type() == t && t.Kind() == reflect.Pointer {
		box.Set(reflect.NewAt(t.Elem(), v.Elem().UnsafePointer()))
	}
	r.value(box, how)
	v.Set(box)
}

// count reads how many elements there are, false for a list that is nil.
func (r *reader) count() (int, bool) {
	n := r.number()
	if n == 0 {
		return 0, false
	}
	n--
	if n > uint64(len(r.b))+mostEmpty {
		r.fail("%d elements in %d bytes", n, len(r.b))
	}
	return int(n), true
}

func (r *reader) list(v reflect.Value, how treat) {
	t := v.Type()
	if t.Elem().Kind() == reflect.Uint8 {
		n := r.number()
		switch {
		case n == 0:
			v.SetZero()
		case how&opaque != 0:
			if n > mostOpaque {
				r.fail("%d bytes in one field", n)
			}
			v.SetBytes(make([]byte, n-1))
		default:
			v.SetBytes(append([]byte{}, r.take(n-1)...))
		}
		return
	}
	n, ok := r.count()
	if !ok {
		v.SetZero()
		return
	}
	// It grows with what is there: a number that promises more than the bytes hold costs little.
	list := reflect.MakeSlice(t, 0, min(n, 1024))
	for range n {
		list = reflect.Append(list, reflect.Zero(t.Elem()))
		r.value(list.Index(list.Len()-1), how)
	}
	v.Set(list)
}

func (r *reader) table(v reflect.Value, how treat) {
	t := v.Type()
	n, ok := r.count()
	if !ok {
		v.SetZero()
		return
	}
	table := reflect.MakeMapWithSize(t, min(n, 1024))
	for range n {
		key, value := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
		r.value(key, 0)
		r.value(value, how)
		table.SetMapIndex(key, value)
	}
	v.Set(table)
}

func (r *reader) structure(v reflect.Value, how treat) {
	p := r.form.planOf(v.Type())
	switch p.kind {
	case window:
		items, head := open(v.Field(p.window[0])), open(v.Field(p.window[1]))
		n := r.number()
		if n > uint64(len(r.b))+mostEmpty {
			r.fail("%d elements in %d bytes", n, len(r.b))
		}
		list := reflect.MakeSlice(items.Type(), 0, min(int(n), 1024))
		for range n {
			list = reflect.Append(list, reflect.Zero(items.Type().Elem()))
			r.value(list.Index(list.Len()-1), how)
		}
		items.Set(list)
		head.SetInt(0)
		return
	case index:
		r.index(open(v).Addr().Interface().(indexed), how)
		return
	}
	for _, s := range p.fields {
		r.value(open(v.Field(s.index)), how|s.treat)
	}
}

func (r *reader) index(x indexed, how treat) {
	n := r.number()
	if n > uint64(len(r.b)) {
		r.fail("%d records in %d bytes", n, len(r.b))
	}
	t := reflect.TypeOf(x.Record())
	records := make([]any, 0, min(n, 1024))
	for range n {
		record := reflect.New(t).Elem()
		if r.value(record, how); record.IsNil() {
			r.fail("a record is missing")
		}
		records = append(records, record.Interface())
	}
	x.Refill(records)
}
