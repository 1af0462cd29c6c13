package store

import (
	"cmp"
	"slices"

	"kith/internal/hashed"
)

// Index finds records by their names, which the records hold themselves. It
// remembers the record it was asked for last, because events come as bursts of
// questions about one job and hashing a name costs more than all the rest. The
// zero Index is not ready: see [NewIndex].
type Index[K hashed.Name, V any] struct {
	nameOf func(*V) K
	table  hashed.Table[K, *V]
	name   K
	latest *V // nil if there is none
}

// NewIndex returns an empty index of records with the given names. The name of
// a record must not change while it is in the index.
func NewIndex[K hashed.Name, V any](nameOf func(*V) K) Index[K, V] {
	return Index[K, V]{nameOf: nameOf, table: hashed.New[K, *V]()}
}

// Get returns the record of a name, nil if there is none.
func (x *Index[K, V]) Get(name K) *V {
	if x.latest != nil && x.name == name {
		return x.latest
	}
	v, ok := x.table.Get(name, x.nameOf)
	if ok {
		x.name, x.latest = name, v
	}
	return v
}

// Put adds a record, in place of the one of the same name if there is one.
func (x *Index[K, V]) Put(v *V) {
	x.table.Put(v, x.nameOf)
	x.name, x.latest = x.nameOf(v), v
}

// Delete forgets a name.
func (x *Index[K, V]) Delete(name K) {
	x.table.Delete(name, x.nameOf)
	if x.latest != nil && x.name == name {
		x.latest = nil
	}
}

// Len returns how many names there are.
func (x *Index[K, V]) Len() int { return x.table.Len() }

// All yields every record, in no order: callers that decide by order must sort.
// The index must not be changed meanwhile.
func (x *Index[K, V]) All(yield func(*V) bool) { x.table.All(yield) }

// Records returns the records in the order of their names, each a *V: see package
// internal/frozen.
func (x *Index[K, V]) Records() []any {
	all := make([]*V, 0, x.Len())
	for v := range x.All {
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b *V) int {
		text, p, q := x.nameOf(a).HashParts()
		other, r, s := x.nameOf(b).HashParts()
		return cmp.Or(cmp.Compare(text, other), cmp.Compare(p, r), cmp.Compare(q, s))
	})
	records := make([]any, len(all))
	for i, v := range all {
		records[i] = v
	}
	return records
}

// Record returns a nil pointer to a record.
func (x *Index[K, V]) Record() any { return (*V)(nil) }

// Refill has these records, as [Index.Records] returns them, instead of all others.
func (x *Index[K, V]) Refill(records []any) {
	x.table, x.latest = hashed.New[K, *V](), nil
	for _, r := range records {
		x.table.Put(r.(*V), x.nameOf)
	}
}
