package wire

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Spare is how many entries beyond its bound a list keeps in [Trim], so that what is a
// little too long is told by its true length.
const Spare = 1000

// trimDepth is how deep Trim looks. No message of kith.v1 is as deep.
const trimDepth = 32

// Trim returns an encoded message of kith.v1 without the entries of lists and maps that lie
// more than [Spare] beyond their bound, and whether it left any out. [Check] refuses what is
// left then. An entry of two bytes is a hundred when it is decoded, so that is to be done
// before. It changes nothing in b, and returns b itself if it leaves nothing out. What is no
// encoding it leaves to the decoder.
func Trim(kind protoreflect.MessageDescriptor, b []byte) (trimmed []byte, left bool) {
	var c counted
	return c.trim(kind, b, trimDepth)
}

// counted is what was seen so far of a message, which may come in several parts: those of one
// field that is no list are one message.
type counted struct {
	entries map[protoreflect.FieldNumber]int
	parts   map[protoreflect.FieldNumber]*counted
}

func (c *counted) trim(kind protoreflect.MessageDescriptor, b []byte, depth int) (trimmed []byte, left bool) {
	kept := 0 // of b that is in trimmed, or left out
	for at := 0; at < len(b); {
		number, wire, n := protowire.ConsumeTag(b[at:])
		if n < 0 {
			break
		}
		m := protowire.ConsumeFieldValue(number, wire, b[at+n:])
		if m < 0 {
			break
		}
		from, to := at, at+n+m
		at = to
		field := kind.Fields().ByNumber(number)
		if field == nil {
			continue
		}
		many := field.IsList() || field.IsMap()
		if many && c.beyond(field) {
			trimmed, kept, left = append(trimmed, b[kept:from]...), to, true
			continue
		}
		if wire != protowire.BytesType || field.Message() == nil || depth == 0 {
			continue
		}
		value, _ := protowire.ConsumeBytes(b[from+n : to])
		var within *counted
		switch {
		case !many:
			within = c.part(number)
		case len(value) <= 2*Spare: // too short for as many entries
			continue
		default:
			within = &counted{}
		}
		if short, some := within.trim(field.Message(), value, depth-1); some {
			trimmed = protowire.AppendBytes(append(trimmed, b[kept:from+n]...), short)
			kept, left = to, true
		}
	}
	if !left {
		return b, false
	}
	return append(trimmed, b[kept:]...), true
}

// beyond counts an entry, and reports whether it is to be left out.
func (c *counted) beyond(field protoreflect.FieldDescriptor) bool {
	limit, ok := bounds[field.FullName()]
	if !ok {
		return false
	}
	if c.entries == nil {
		c.entries = make(map[protoreflect.FieldNumber]int)
	}
	c.entries[field.Number()]++
	return c.entries[field.Number()] > limit.entries+Spare
}

func (c *counted) part(number protoreflect.FieldNumber) *counted {
	if c.parts == nil {
		c.parts = make(map[protoreflect.FieldNumber]*counted)
	}
	if c.parts[number] == nil {
		c.parts[number] = &counted{}
	}
	return c.parts[number]
}
