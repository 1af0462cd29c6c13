package place

import "slices"

// Scheme names a way of placing copies (spec 001 section 2.4, spec 004 section 2.2).
type Scheme string

// The schemes.
const (
	// Independent keeps every job at its origin.
	Independent Scheme = "independent"
	// Distributed sends a job to the one least loaded site.
	Distributed Scheme = "distributed"
	// KDistributed sends copies to the K least loaded sites.
	KDistributed Scheme = "k-distributed"
	// KDual keeps a copy at the origin and sends K-1 to the least loaded others.
	KDual Scheme = "k-dual"
	// MCT sends a job to the one site that promises the earliest completion.
	MCT Scheme = "mct"
	// Hierarchical sends a job to the one site where it would start earliest.
	Hierarchical Scheme = "hierarchical"
)

// composition says what a scheme is made of. What it leaves open is up to
// [Options].
type composition struct {
	name Scheme
	// rank is what it ranks by; RankUnset leaves the choice.
	rank Rank
	// filters are those that it has beside the usual ones, before them.
	filters []Filter
	// loads says that loads tell equal starts apart.
	loads bool
	// single says that a job gets one copy, whatever it asks for.
	single bool
	// keepsOwn and staysHome are those of [Policy].
	keepsOwn, staysHome bool
}

// compositions are the schemes, in the order in which they are listed.
var compositions = []composition{
	{name: Independent, rank: RankUnset, filters: []Filter{localOnly}, single: true, keepsOwn: true, staysHome: true},
	{name: Distributed, rank: RankUnset, single: true},
	{name: KDistributed, rank: RankUnset},
	{name: KDual, rank: RankUnset, keepsOwn: true},
	{name: MCT, rank: RankCompletion, single: true},
	{name: Hierarchical, rank: RankStart, single: true, loads: true},
}

// Schemes lists them all.
func Schemes() []Scheme {
	list := make([]Scheme, len(compositions))
	for i := range compositions {
		list[i] = compositions[i].name
	}
	return list
}

// composition returns what s is made of, nil if there is no such scheme.
func (s Scheme) composition() *composition {
	i := slices.IndexFunc(compositions, func(c composition) bool { return c.name == s })
	if i < 0 {
		return nil
	}
	return &compositions[i]
}

// ImpliedRank returns the rank that a scheme is defined with, and false if it
// leaves the choice.
func (s Scheme) ImpliedRank() (Rank, bool) {
	c := s.composition()
	if c == nil || c.rank == RankUnset {
		return 0, false
	}
	return c.rank, true
}
