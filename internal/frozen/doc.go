// Package frozen writes down all that a Go value holds, with what its types keep to
// themselves, and puts it back into a value of the same types.
//
// A [Form] knows the types, and what of them is left out. [Form.Append] writes a value.
// The same state gives the same bytes: what maps and [store.Index] hold stands in the order
// of its keys, and what several pointers lead to is written once and named by a number
// afterwards. So the bytes are two things:
//
//   - an image, from which [Form.Decode] makes the value again. It writes into the
//     value that it is given, as encoding/json does: functions and what is left out stay as
//     they are there;
//   - with [Form.AppendLogical], what can be hashed to compare two values: caches do not
//     count there, nor whether an empty list is nil.
//
// There is no rule for any one type: a field that is added to a type is written from then
// on. Whether an image is of the same types is for [Form.Schema] to say; there is no
// reading of older ones.
//
// # What it cannot write
//
// Channels, unsafe pointers, and pointers into the middle of something else: what such a
// one leads to would be two things afterwards. A pointer to a field or to an element of a
// list must not be in what is written.
package frozen
