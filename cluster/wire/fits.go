package wire

import (
	"reflect"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// A layout says where the fields of a plan lie in the Go struct of its message. Nearly
// every message breaks no bound: to see that in the struct takes a fraction of what it
// takes to ask the message for each of its fields. What may break one is looked at by
// [plan.check], which is the only one to say what is wrong. Both go by the same plan.
type layout struct {
	fields []placed
	// unknown is the index of the bytes of unknown fields.
	unknown int
}

// placed is a field of a struct: of a plan, or a oneof.
type placed struct {
	index int
	kind  kind
	most  bound
	sub   *plan                   // of messages
	holds map[reflect.Type]placed // of a oneof, by the wrappers of what it can hold
}

// kind is how a field lies in the struct.
type kind uint8

const (
	oneText kind = iota
	oneMessage
	texts
	messages
	entries // of a map, or of a list without a plan or texts
	oneOf
)

// fits reports whether a message surely breaks no bound. v is its struct. It allocates
// nothing.
func (p *plan) fits(v reflect.Value) bool {
	if p == nil {
		return true
	}
	l := p.layout
	if l == nil || v.Field(l.unknown).Len() > unknownBytes {
		return false
	}
	for i := range l.fields {
		f := &l.fields[i]
		if !f.fits(v.Field(f.index)) {
			return false
		}
	}
	return true
}

func (f *placed) fits(v reflect.Value) bool {
	switch f.kind {
	case oneText:
		return v.Len() <= f.most.bytes
	case oneMessage:
		return v.IsNil() || f.sub.fits(v.Elem())
	case oneOf:
		if v.IsNil() {
			return true
		}
		wrapper := v.Elem()
		held, ok := f.holds[wrapper.Type()]
		return !ok || !wrapper.IsNil() && held.fits(wrapper.Elem().Field(held.index))
	case texts:
		if v.Len() > f.most.entries {
			return false
		}
		for i := range v.Len() {
			if v.Index(i).Len() > f.most.bytes {
				return false
			}
		}
		return true
	case messages:
		if v.Len() > f.most.entries {
			return false
		}
		for i := range v.Len() {
			if m := v.Index(i); !m.IsNil() && !f.sub.fits(m.Elem()) {
				return false
			}
		}
		return true
	}
	if f.most.bytes > 0 { // the names and values of a map
		return v.Len() == 0
	}
	return v.Len() <= f.most.entries
}

// lay returns the layout of a plan, nil if the struct of its message is not as expected:
// then every message is looked at closely.
func (p *plan) lay(m protoreflect.MessageDescriptor) *layout {
	kind, err := protoregistry.GlobalTypes.FindMessageByName(m.FullName())
	if err != nil {
		return nil
	}
	t := structOf(kind.Zero().Interface())
	if t == nil {
		return nil
	}
	unknown, ok := t.FieldByName("unknownFields")
	if !ok || unknown.Type.Kind() != reflect.Slice {
		return nil
	}
	l := &layout{unknown: unknown.Index[0]}
	for i := range p.fields {
		f, ok := p.fields[i].place(t)
		if !ok {
			return nil
		}
		l.fields = append(l.fields, f)
	}
	for i := range p.choices {
		f, ok := p.choices[i].place(t, kind)
		if !ok {
			return nil
		}
		l.fields = append(l.fields, f)
	}
	return l
}

func structOf(m proto.Message) reflect.Type {
	if t := reflect.TypeOf(m); t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct {
		return t.Elem()
	}
	return nil
}

// place finds a field in a struct by its number.
func (f *planned) place(t reflect.Type) (placed, bool) {
	for i := range t.NumField() {
		tag := strings.Split(t.Field(i).Tag.Get("protobuf"), ",")
		if len(tag) < 2 || tag[1] != strconv.Itoa(int(f.fd.Number())) {
			continue
		}
		at := placed{index: i, most: f.most, sub: f.sub}
		is := t.Field(i).Type
		var ok bool
		switch {
		case f.fd.IsMap():
			at.kind, ok = entries, is.Kind() == reflect.Map
		case f.fd.IsList() && f.sub != nil:
			at.kind, ok = messages, is.Kind() == reflect.Slice && is.Elem().Kind() == reflect.Pointer
		case f.fd.IsList() && f.most.bytes > 0:
			at.kind, ok = texts, is.Kind() == reflect.Slice && isText(is.Elem())
		case f.fd.IsList():
			at.kind, ok = entries, is.Kind() == reflect.Slice
		case f.sub != nil:
			at.kind, ok = oneMessage, is.Kind() == reflect.Pointer
		default:
			at.kind, ok = oneText, isText(is)
		}
		return at, ok
	}
	return placed{}, false
}

func isText(t reflect.Type) bool {
	return t.Kind() == reflect.String || t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
}

// place finds a oneof in a struct, and the wrappers of what it can hold.
func (c *choice) place(t reflect.Type, kind protoreflect.MessageType) (placed, bool) {
	for i := range t.NumField() {
		if t.Field(i).Tag.Get("protobuf_oneof") != string(c.of.Name()) {
			continue
		}
		at := placed{index: i, kind: oneOf, holds: make(map[reflect.Type]placed)}
		for _, f := range c.fields {
			m := kind.New()
			m.Set(f.fd, m.NewField(f.fd))
			wrapper := reflect.ValueOf(m.Interface()).Elem().Field(i).Elem().Type()
			held, ok := f.place(wrapper.Elem())
			if !ok {
				return placed{}, false
			}
			at.holds[wrapper] = held
		}
		return at, true
	}
	return placed{}, false
}
