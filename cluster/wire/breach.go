package wire

import (
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// A Breach is a field that breaks its bound.
type Breach struct {
	// Field is its path from the message, for example "job.labels".
	Field string
	// Reason says how long it is, how long it may be, and what to do.
	Reason string
}

// Error implements error.
func (b Breach) Error() string { return b.Field + ": " + b.Reason }

func (p *plan) check(m protoreflect.Message) (breaches []Breach) {
	if p == nil {
		return nil
	}
	if n := len(m.GetUnknown()); n > unknownBytes {
		breaches = append(breaches, Breach{string(m.Descriptor().Name()), tooLong(n, unknownBytes) + " in fields that this version does not know; leave them out"})
	}
	for i := range p.fields {
		if f := &p.fields[i]; m.Has(f.fd) {
			breaches = append(breaches, f.check(m.Get(f.fd))...)
		}
	}
	for i := range p.choices {
		c := &p.choices[i]
		if fd := m.WhichOneof(c.of); fd != nil {
			if f := c.fields[fd.Number()]; f != nil {
				breaches = append(breaches, f.check(m.Get(fd))...)
			}
		}
	}
	return breaches
}

// check says what of a field breaks its bound. What breaks none, and that is nearly all
// there ever is, allocates nothing here.
func (f *planned) check(v protoreflect.Value) []Breach {
	switch {
	case f.fd.IsMap():
		return f.checkMap(v.Map())
	case f.fd.IsList():
		return f.checkList(v.List())
	case f.sub != nil:
		return f.below("", f.sub.check(v.Message()))
	}
	if n := size(f.fd, v); n > f.most.bytes {
		return []Breach{{f.name(), tooLong(n, f.most.bytes) + "; shorten it"}}
	}
	return nil
}

func (f *planned) checkMap(m protoreflect.Map) (breaches []Breach) {
	if n := m.Len(); n > f.most.entries {
		return []Breach{{f.name(), tooMany(n, f.most.entries)}}
	}
	m.Range(func(k protoreflect.MapKey, value protoreflect.Value) bool {
		if n := max(len(k.String()), len(value.String())); n > f.most.bytes {
			breaches = append(breaches, Breach{f.name(), fmt.Sprintf("entry %.64q: ", k.String()) + tooLong(n, f.most.bytes) + "; shorten it"})
		}
		return true
	})
	return breaches
}

func (f *planned) checkList(l protoreflect.List) (breaches []Breach) {
	if l.Len() > f.most.entries {
		return []Breach{{f.name(), tooMany(l.Len(), f.most.entries)}}
	}
	for i := range l.Len() {
		switch {
		case f.sub != nil:
			if found := f.sub.check(l.Get(i).Message()); len(found) > 0 {
				breaches = append(breaches, f.below(fmt.Sprintf("[%d]", i), found)...)
			}
		case f.most.bytes > 0:
			if n := size(f.fd, l.Get(i)); n > f.most.bytes {
				breaches = append(breaches, Breach{fmt.Sprintf("%s[%d]", f.name(), i), tooLong(n, f.most.bytes) + "; shorten it"})
			}
		}
	}
	return breaches
}

// below names what was found in a message of the field, or in one of its list.
func (f *planned) below(index string, found []Breach) []Breach {
	for i := range found {
		found[i].Field = f.name() + index + "." + found[i].Field
	}
	return found
}

func (f *planned) name() string { return string(f.fd.Name()) }

func size(fd protoreflect.FieldDescriptor, v protoreflect.Value) int {
	if fd.Kind() == protoreflect.BytesKind {
		return len(v.Bytes())
	}
	return len(v.String())
}

func tooLong(n, most int) string { return fmt.Sprintf("has %d bytes, at most %d", n, most) }

func tooMany(n, most int) string { return fmt.Sprintf("%d of them, at most %d; send fewer", n, most) }
