package store

// Index finds records by their names. It remembers the one it was asked for
// last, because events come as bursts of questions about one job and hashing a
// name costs more than all the rest. The zero Index is not ready: see [NewIndex].
type Index[K comparable, V any] struct {
	byName map[K]*V
	name   K
	latest *V // nil if there is none
}

// NewIndex returns an empty index.
func NewIndex[K comparable, V any]() Index[K, V] {
	return Index[K, V]{byName: make(map[K]*V)}
}

// Get returns the record of a name, nil if there is none.
func (x *Index[K, V]) Get(name K) *V {
	if x.latest != nil && x.name == name {
		return x.latest
	}
	v := x.byName[name]
	if v != nil {
		x.name, x.latest = name, v
	}
	return v
}

// Put sets the record of a name.
func (x *Index[K, V]) Put(name K, v *V) {
	x.byName[name] = v
	x.name, x.latest = name, v
}

// Delete forgets a name.
func (x *Index[K, V]) Delete(name K) {
	delete(x.byName, name)
	if x.latest != nil && x.name == name {
		x.latest = nil
	}
}

// Len returns how many names there are.
func (x *Index[K, V]) Len() int { return len(x.byName) }

// All yields every name and record, in no order: callers that decide by order
// must sort.
func (x *Index[K, V]) All(yield func(K, *V) bool) {
	for name, v := range x.byName {
		if !yield(name, v) {
			return
		}
	}
}
