package job

import (
	"errors"
	"fmt"
	"slices"
)

// ErrNoSuchIndex is returned for an index that no task of a bag has.
var ErrNoSuchIndex = errors.New("the bag has no task with it")

// Ordinals returns the tasks that have the indices of another list, all of which must be
// among x. The error wraps [ErrNoSuchIndex] and names the first that is not. It takes
// O(indices), and next to nothing for ranges with the steps that x has.
func (x *Indices) Ordinals(of *Indices) (TaskSet, error) {
	var tasks TaskSet
	for _, r := range of.ranges {
		for index := uint64(r.First); index <= uint64(r.Last); {
			first, ok := x.Ordinal(uint32(index))
			if !ok {
				return TaskSet{}, fmt.Errorf("index %d: %w; there are %s", index, ErrNoSuchIndex, clip(x.String()))
			}
			count := x.goesOn(first, r, uint32(index))
			if count == 1 { // a range looks at all pages of the set
				tasks.Add(first)
			} else {
				tasks.AddRange(first, first+count)
			}
			index += uint64(count) * uint64(r.Step)
		}
	}
	return tasks, nil
}

// goesOn returns how many tasks from the one with an ordinal and an index on follow one
// another in x and in r, at least 1.
func (x *Indices) goesOn(ordinal uint32, r IndexRange, index uint32) uint32 {
	at, found := slices.BinarySearch(x.before, ordinal)
	if !found {
		at--
	}
	if own := x.ranges[at]; own.Step == r.Step {
		return (min(own.Last, r.Last)-index)/r.Step + 1
	}
	return 1
}
