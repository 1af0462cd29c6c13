package bags

import (
	"math/bits"
	"time"

	"kith/internal/job"
)

// Shape is what a pilot must hold so that it can run any task of some bags: processors,
// memory and the longest walltime. Offers, asks and stocks are of one shape, and bags of
// one shape share pilots. Only [ShapeOf] and [ParseShape] make shapes.
//
// Memory and walltime are rounded up to one of eight steps for each doubling, so that a
// shape asks for at most an eighth more than a task, and a user who measures each bag
// anew does not need pilots of his own for each.
type Shape struct {
	Processors  int32
	MemoryBytes int64 // a multiple of 1 MiB; 0 for no limit of its own
	Walltime    time.Duration
}

const (
	stepBits     = 3 // steps for each doubling, as a power of two
	memoryUnit   = 1 << 20
	walltimeUnit = time.Minute
)

// ShapeOf returns the shape of tasks of a valid request.
func ShapeOf(r *job.Request) Shape {
	return Shape{
		Processors:  r.Processors,
		MemoryBytes: int64(stepValue(step(ceil(uint64(r.MemoryBytes), memoryUnit)))) * memoryUnit,
		Walltime:    walltimeOf(step(ceil(uint64(r.Walltime), uint64(walltimeUnit)))),
	}
}

func walltimeOf(step uint64) time.Duration {
	return time.Duration(min(stepValue(step), uint64(job.MaxWalltime/walltimeUnit))) * walltimeUnit
}

// Number returns the name of the shape in messages and in the ids of pilots; it says all
// of the shape.
func (s Shape) Number() uint64 {
	memory := step(uint64(s.MemoryBytes) / memoryUnit)
	walltime := step(ceil(uint64(s.Walltime), uint64(walltimeUnit)))
	return walltime<<40 | memory<<32 | uint64(uint32(s.Processors))
}

// ParseShape returns the shape of a number that came from outside, false if it is none's.
func ParseShape(number uint64) (Shape, bool) {
	walltime, memory, processors := number>>40, number>>32&0xff, number&0xffff_ffff
	if walltime > 0xff || processors < 1 || processors > job.MaxProcessors || stepValue(memory) > job.MaxMemoryBytes/memoryUnit {
		return Shape{}, false
	}
	s := Shape{int32(processors), int64(stepValue(memory)) * memoryUnit, walltimeOf(walltime)}
	return s, s.Walltime > 0 && s.Number() == number
}

// Compare orders shapes by processors, walltime and memory.
func (s Shape) Compare(o Shape) int {
	switch a, b := s.order(), o.order(); {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// order is the number with the processors before the rest.
func (s Shape) order() uint64 { return bits.RotateLeft64(s.Number(), 32) }

func ceil(v, unit uint64) uint64 { return (v + unit - 1) / unit }

// step returns the number of the lowest step at or above v: its binary digits behind the
// first stepBits+1 are dropped, rounding up.
func step(v uint64) uint64 {
	shift := max(0, bits.Len64(v)-1-stepBits)
	return uint64(shift)<<stepBits + (v+1<<shift-1)>>shift
}

// stepValue returns the value of a step.
func stepValue(step uint64) uint64 {
	if step < 1<<stepBits {
		return step
	}
	return (step&(1<<stepBits-1) | 1<<stepBits) << (step>>stepBits - 1)
}
