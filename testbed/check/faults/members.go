package faults

import (
	"math/rand/v2"
	"time"

	"kith/testbed/sim"
)

// Faults of sites whose facts several members keep. Those of any site hit the member that leads:
// a crash kills it, a freeze stops it, a wiped disk is its disk, and a clock its clock.
const (
	// MemberDown kills a member; it comes back with its disk.
	MemberDown Kind = "member-down"
	// Split cuts a member off from the other members, and from nobody else.
	Split Kind = "split"
	// SplitAll cuts all members off from each other: nobody has a majority.
	SplitAll Kind = "split-all"
	// WipeMember kills a member; it comes back with an empty disk.
	WipeMember Kind = "wipe-member"
	// Rolling restarts all members one after another, By apart.
	Rolling Kind = "rolling-restart"
	// HandOver has the member that leads hand over to another one.
	HandOver Kind = "hand-over"
)

// MemberKinds lists the faults of sites that have members.
func MemberKinds() []Kind { return []Kind{MemberDown, Split, SplitAll, WipeMember, Rolling, HandOver} }

// ofMembers reports whether a fault is one of a site's members.
func (k Kind) ofMembers() bool {
	switch k {
	case MemberDown, Split, SplitAll, WipeMember, Rolling, HandOver:
		return true
	}
	return false
}

// ofOne reports whether a fault hits one of the members.
func (k Kind) ofOne() bool { return k == MemberDown || k == Split || k == WipeMember }

// Membered makes a schedule of a seed in which several members keep the facts of one site at
// least: one of [Random] or, of an odd seed, of [Wide], with faults of members besides.
func Membered(seed uint64, size Size) *Schedule {
	var s *Schedule
	if seed%2 == 0 {
		s = Random(seed, size)
	} else {
		s = wideAlone(seed, size)
	}
	s.someMembers(1)
	return s
}

// membered reports whether a wide schedule of a seed has sites of several members.
func membered(seed uint64) bool { return seed%10 == 7 || seed%20 == 12 }

// someMembers gives a schedule sites of several members: one in so many others beside the first.
// It has draws of its own, so that the other schedules are as they were.
func (s *Schedule) someMembers(others int) {
	d := &draw{Rand: rand.New(rand.NewPCG(s.Seed, 0x6d656d62657273)), s: s}
	first := d.IntN(len(s.Sites))
	for i := range s.Sites {
		if i != first && !d.one(others+1) {
			continue
		}
		x := &s.Sites[i]
		x.Members = 3
		if d.one(6) {
			x.Members = 5
		}
		if d.one(3) {
			x.Clocks = []time.Duration{time.Second, time.Hour, 24 * time.Hour}[d.IntN(3)]
		}
		for range 2 + d.IntN(6) {
			d.memberFault(x)
		}
	}
}

// memberFault draws a fault of a site with members.
func (d *draw) memberFault(x *Site) {
	kinds := append(MemberKinds(), Split, MemberDown, Crash, Crash, Freeze, Freeze)
	f := Fault{Kind: kinds[d.IntN(len(kinds))], Site: x.Name, At: d.span(d.s.End), For: d.upTo(d.s.End / 4)}
	if f.Kind.ofOne() && d.one(2) {
		f.Member = 1 + d.IntN(x.Members)
	}
	if f.Kind == Rolling {
		f.By = time.Second + d.upTo(30*time.Second)
		f.For = 100*time.Millisecond + d.upTo(10*time.Second)
	}
	if f.Kind != Rolling && d.one(2) { // between two effects, whose facts are durable
		f.Before = &Point{Site: x.Name, Effect: effects[d.IntN(len(effects))], Nth: 1 + d.IntN(30)}
		if f.Before.Effect == "any" {
			f.Before.Nth = 1 + d.IntN(600)
		}
		f.At = 0
	}
	d.s.Faults = append(d.s.Faults, f)
}

// startMembers makes something go wrong at the members of a site.
func (x *run) startMembers(f *Fault, site *sim.Site) bool {
	n := site.Members()
	if n == 0 || site.Gone() {
		return false
	}
	m := f.Member - 1
	if m < 0 {
		if m = site.Leader(); m < 0 {
			return false
		}
	}
	m %= n
	switch f.Kind {
	case MemberDown:
		site.KillMember(m)
		x.in(f.For, func() { site.StartMember(m) })
	case WipeMember:
		if !site.WipeMember(m) {
			return false
		}
		x.in(f.For, func() { site.StartMember(m) })
	case Split, SplitAll:
		if f.Kind == SplitAll {
			m = -1
		}
		site.PartMember(m)
		x.in(f.For, site.JoinMembers)
	case Rolling:
		for i := range n {
			x.at(x.since()+time.Duration(i)*f.By, func() {
				if x.over {
					return
				}
				site.KillMember(i)
				x.in(f.For, func() { site.StartMember(i) })
			})
		}
	case HandOver:
		site.HandOver()
	default:
		return false
	}
	return true
}

// forgetAgain is how long after a site was to be given up that is said again: a site whose members
// elect a leader has not heard it, and one that has a stream to it up to this moment does not do it.
const forgetAgain = 5 * time.Second

// membersRound is how long the members of a site take to agree, the slowest site.
func (s *Schedule) membersRound() time.Duration {
	for i := range s.Sites {
		if s.Sites[i].Members > 0 {
			return 2*time.Millisecond + 2*(s.Sync+s.SyncJitter)
		}
	}
	return 0
}
