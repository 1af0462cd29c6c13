package flight

import (
	"iter"
	"reflect"
	"strings"

	"kith/internal/frozen"
	"kith/internal/job"
)

// Kind names an event, a message or an effect for people: "Submit".
func Kind(v any) string {
	t := reflect.TypeOf(v)
	if t == nil {
		return "restore"
	}
	return t.Name()
}

// Text tells on one line what is not zero in an event or an effect.
func Text(v any) string { return form().Text(v, nil) }

// State yields all that is not zero in the engine as it is now: facts, queues, what waits for
// which answer.
func (p *Player) State() iter.Seq[frozen.Leaf] { return form().Leaves(p.engine, nil) }

// Concerns reports whether an event, an effect or a leaf of the state names a job or bag, or
// an attempt of it.
func Concerns(v any, id job.ID) bool {
	for l := range form().Leaves(v, nil) {
		if Names(l, id) {
			return true
		}
	}
	return false
}

// Names reports whether a leaf names a job or bag, or an attempt of it.
func Names(l frozen.Leaf, id job.ID) bool {
	name := id.String()
	return isOf(l.Text, name) || strings.Contains(l.Path, "["+name+"]") || strings.Contains(l.Path, "["+name+"#")
}

func isOf(text, name string) bool {
	rest, ok := strings.CutPrefix(text, name)
	return ok && (rest == "" || rest[0] == '#' || rest[0] == '/')
}
