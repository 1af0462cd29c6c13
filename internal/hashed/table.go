// Package hashed finds things by names that the things themselves hold.
//
// A Go map keeps each name beside its value. The names here are long (an attempt
// takes 40 bytes) and the same job is looked for in many tables, so that the
// names alone would cost a waiting job 300 bytes.
package hashed

import (
	"hash/maphash"
	"math/bits"
)

// Name is what a thing is called. HashParts returns all that tells it from other
// names. A name says its parts, instead of being hashed as a struct, because names
// are looked up several times for each event and the general hash takes three
// times as long.
type Name interface {
	comparable
	HashParts() (text string, a, b uint64)
}

// Text is a name without a type of its own.
type Text string

// HashParts returns the text.
func (t Text) HashParts() (text string, a, b uint64) { return string(t), 0, 0 }

// Table is a set of references to things that have names of type K. A reference
// costs its own size and 4 bytes, and a quarter to a half of the places are
// vacant. Every method that needs the names of things is given the function that
// tells them; the name of a thing must not change while it is in the table.
// The zero Table is not ready: see [New]. It is not safe for concurrent use.
type Table[K Name, R any] struct {
	seed maphash.Seed
	// hashes and refs are an open hash table, a power of two long: a reference
	// lies at the place of its hash or behind it, with no vacant place between.
	// The hash 0 marks a vacant place.
	hashes []uint32
	refs   []R
	n      int
}

// leastPlaces is the length of the smallest table.
const leastPlaces = 8

// New returns an empty table.
func New[K Name, R any]() Table[K, R] { return Table[K, R]{seed: maphash.MakeSeed()} }

// Len returns how many references there are.
func (t *Table[K, R]) Len() int { return t.n }

// CopyFrom makes t an independent table of the same references as o. It uses the memory of t
// again.
func (t *Table[K, R]) CopyFrom(o *Table[K, R]) {
	hashes, refs := append(t.hashes[:0], o.hashes...), append(t.refs[:0], o.refs...)
	*t = *o
	t.hashes, t.refs = hashes, refs
}

// Get returns the reference to the thing of a name, and whether there is one.
func (t *Table[K, R]) Get(name K, nameOf func(R) K) (ref R, ok bool) {
	if t.n == 0 {
		return ref, false
	}
	at, ok := t.find(t.hash(name), name, nameOf)
	if ok {
		ref = t.refs[at]
	}
	return ref, ok
}

// Put adds a reference, in place of the one of the same name if there is one.
func (t *Table[K, R]) Put(ref R, nameOf func(R) K) {
	name := nameOf(ref)
	hash := t.hash(name)
	if len(t.hashes) == 0 {
		t.resize(leastPlaces)
	}
	at, found := t.find(hash, name, nameOf)
	if !found {
		if t.n >= len(t.hashes)-len(t.hashes)/8 {
			t.resize(2 * len(t.hashes))
			at = t.vacant(hash)
		}
		t.n++
	}
	t.hashes[at], t.refs[at] = hash, ref
}

// Delete removes the reference of a name, if there is one.
func (t *Table[K, R]) Delete(name K, nameOf func(R) K) {
	if t.n == 0 {
		return
	}
	hole, found := t.find(t.hash(name), name, nameOf)
	if !found {
		return
	}
	t.n--
	// What lies behind the hole moves into it where its own place is not between.
	mask := len(t.hashes) - 1
	for at := (hole + 1) & mask; t.hashes[at] != 0; at = (at + 1) & mask {
		if home := int(t.hashes[at]) & mask; (at-home)&mask >= (at-hole)&mask {
			t.hashes[hole], t.refs[hole] = t.hashes[at], t.refs[at]
			hole = at
		}
	}
	var none R
	t.hashes[hole], t.refs[hole] = 0, none
}

// All yields every reference, in no order: callers that decide by order must
// sort. The table must not be changed meanwhile.
func (t *Table[K, R]) All(yield func(R) bool) {
	for at, hash := range t.hashes {
		if hash != 0 && !yield(t.refs[at]) {
			return
		}
	}
}

// hash mixes the numbers of a name with a secret that its text and the seed make:
// one who chooses names cannot tell which of them lie at one place.
func (t *Table[K, R]) hash(name K) uint32 {
	text, a, b := name.HashParts()
	secret := maphash.String(t.seed, text)
	high, low := bits.Mul64(secret^a, bits.RotateLeft64(secret, 32)^b)
	return max(1, uint32(high^low))
}

// find returns where the reference of a name lies, or else the vacant place that
// it would get. There must be a table.
func (t *Table[K, R]) find(hash uint32, name K, nameOf func(R) K) (at int, found bool) {
	mask := len(t.hashes) - 1
	for at = int(hash) & mask; t.hashes[at] != 0; at = (at + 1) & mask {
		if t.hashes[at] == hash && nameOf(t.refs[at]) == name {
			return at, true
		}
	}
	return at, false
}

// vacant returns the vacant place for a hash.
func (t *Table[K, R]) vacant(hash uint32) int {
	mask := len(t.hashes) - 1
	at := int(hash) & mask
	for t.hashes[at] != 0 {
		at = (at + 1) & mask
	}
	return at
}

func (t *Table[K, R]) resize(places int) {
	hashes, refs := t.hashes, t.refs
	t.hashes, t.refs = make([]uint32, places), make([]R, places)
	for i, hash := range hashes {
		if hash != 0 {
			at := t.vacant(hash)
			t.hashes[at], t.refs[at] = hash, refs[i]
		}
	}
}
