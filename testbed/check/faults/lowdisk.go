package faults

import (
	"math/rand/v2"
	"time"
)

// runsLow reports whether a wide schedule of a seed has sites that run low on disk.
func runsLow(seed uint64) bool { return isOneOf(seed, 0, 6, 25, 28) }

// roomPatience is for how long what is launched waits for room. It is that of kithd.
const roomPatience = 5 * time.Second

// fillDisks has sites of a schedule run low on disk while jobs wait; what they launch starts
// nevertheless, or finds no room either. It has draws of its own, so that the schedule is else
// what it was.
func (s *Schedule) fillDisks() {
	d := &draw{Rand: rand.New(rand.NewPCG(s.Seed, 0x6c6f776469736b)), s: s}
	if d.one(2) {
		d.burst(d.span(s.End/2), d.site(), 10+d.IntN(30))
	}
	for range 1 + d.IntN(3) {
		at, span := d.anyTime()
		f := Fault{Kind: LowDisk, Site: d.site(), At: at, For: span}
		if d.one(2) {
			f.By = roomPatience
		}
		if d.one(2) {
			f.For = 30*time.Second + d.span(s.End/2)
			d.stream(d.site(), 1)
		}
		d.add(f)
	}
}
