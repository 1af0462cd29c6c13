package wire

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Bounds returns the bounds of the texts and lists of a kind of message, in words, those
// of messages inside it included: "`request.name` 256 B", "`entries` 16384".
func Bounds(m protoreflect.MessageDescriptor) (list []string) {
	listBounds(m, "", func(field, most string) { list = append(list, "`"+field+"` "+most) })
	return list
}

func listBounds(m protoreflect.MessageDescriptor, path string, add func(field, most string)) {
	for i := range m.Fields().Len() {
		fd := m.Fields().Get(i)
		name := path + string(fd.Name())
		var most []string
		if b := bounds[fd.FullName()]; b.entries > 0 {
			most = append(most, fmt.Sprint(b.entries))
		}
		if b := bounds[fd.FullName()]; b.bytes > 0 {
			most = append(most, fmt.Sprintf("%d B", b.bytes))
		}
		if len(most) > 0 {
			add(name, strings.Join(most, " of "))
		}
		if sub := fd.Message(); sub != nil && !fd.IsMap() && sub.ParentFile().Package() == m.ParentFile().Package() {
			listBounds(sub, name+".", add)
		}
	}
}
