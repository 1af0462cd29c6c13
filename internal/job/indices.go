package job

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Bounds on the indices of a bag.
const (
	// MaxTaskIndex is the highest index: room for numbers that mean something to their
	// user, such as a date.
	MaxTaskIndex = 1<<31 - 1
	// MaxIndicesLength is the longest text of indices, in bytes.
	MaxIndicesLength = 64 << 10
	// maxIndexRanges bounds how often ranges may be cut where they interleave.
	maxIndexRanges = 64 << 10
	// maxStoredRanges is the most ranges that indices can have.
	maxStoredRanges = 2 * maxIndexRanges
)

// ErrBadIndices is returned for a text that names no indices of a bag.
var ErrBadIndices = errors.New("indices read 0-15:4,17,100-200%50: indices and ranges of them, each with a step if need be, and how many tasks may run at once")

// indicesError is an [ErrBadIndices] that says what is wrong with which part, and what to write
// instead.
type indicesError string

func (e indicesError) Error() string { return string(e) }

// Is makes it one.
func (indicesError) Is(target error) bool { return target == ErrBadIndices }

// IndexRange is the indices First, First+Step, … Last; Last is one of them. Step is 1 if
// there is only one.
type IndexRange struct{ First, Last, Step uint32 }

// Count returns how many indices are in the range.
func (r IndexRange) Count() uint32 { return (r.Last-r.First)/r.Step + 1 }

// Indices are the numbers by which users know the tasks of a bag, in ascending order: the
// task with ordinal n has the n-th of them. Memory goes by the number of ranges. The zero
// value has none. Indices do not change once they are made.
type Indices struct {
	ranges []IndexRange // ascending; the last index of one lies below the first of the next
	before []uint32     // how many indices lie in earlier ranges
	count  uint32
}

// FirstIndices returns the indices 0 to count-1; count is at most [MaxTasks].
func FirstIndices(count uint32) Indices {
	var x Indices
	if count > 0 {
		x.append(IndexRange{First: 0, Last: count - 1, Step: 1})
	}
	return x
}

// RestoreIndices returns the indices that had such [Indices.Ranges]. The error wraps
// [ErrBadIndices] if none can have had them. It keeps the ranges.
func RestoreIndices(ranges []IndexRange) (Indices, error) {
	x := Indices{ranges: ranges, before: make([]uint32, 0, len(ranges))}
	least, count := uint64(0), uint64(0)
	for _, r := range ranges {
		bad := uint64(r.First) < least || r.Last < r.First || r.Last > MaxTaskIndex || r.Step == 0 || (r.Last-r.First)%r.Step != 0 || r.First == r.Last && r.Step != 1
		if bad || len(ranges) > maxStoredRanges {
			return Indices{}, fmt.Errorf("range %d-%d:%d of %d: %w", r.First, r.Last, r.Step, len(ranges), ErrBadIndices)
		}
		x.before = append(x.before, uint32(count))
		if count += uint64(r.Count()); count > MaxTasks {
			return Indices{}, fmt.Errorf("%d tasks: %w", count, ErrBadIndices)
		}
		least = uint64(r.Last) + 1
	}
	x.count = uint32(count)
	return x, nil
}

// ParseIndices reads indices as Slurm's --array has them: "0-15:4,17,100-200%50". The
// order does not matter. atMost is the number behind '%', how many tasks may run at once;
// zero if there is none. The error is an [ErrBadIndices] that names the part which is wrong and
// says what to write instead.
func ParseIndices(text string) (x Indices, atMost uint32, err error) {
	x, atMost, complaint := parseIndices(text)
	if complaint != "" {
		return Indices{}, 0, indicesError(complaint)
	}
	return x, atMost, nil
}

func parseIndices(text string) (x Indices, atMost uint32, complaint string) {
	if len(text) > MaxIndicesLength {
		return x, 0, fmt.Sprintf("%d bytes, at most %d; write ranges, or give a row of parameters for each task", len(text), MaxIndicesLength)
	}
	list, limit, limited := strings.Cut(text, "%")
	if limited {
		n, err := strconv.ParseUint(limit, 10, 32)
		if err != nil || n == 0 || !digits(limit) {
			return x, 0, fmt.Sprintf("%q must be a number of tasks from 1 on; leave it out to run as many as there is room for", clip("%"+limit))
		}
		atMost = uint32(n)
	}
	if list == "" {
		return x, 0, "no task; name one index at least, for example 0-99"
	}
	var parts rangeHeap
	total := uint64(0)
	for part := range strings.SplitSeq(list, ",") {
		r, complaint := parseIndexRange(part)
		if complaint != "" {
			return x, 0, complaint
		}
		parts = append(parts, namedRange{r, part})
		total += uint64(r.Count())
	}
	if total > MaxTasks {
		return x, 0, fmt.Sprintf("%d tasks, at most %d; submit several bags", total, MaxTasks)
	}
	complaint = x.merge(parts)
	return x, atMost, complaint
}

// digits reports whether s has digits only; strconv allows for more.
func digits(s string) bool {
	return strings.IndexFunc(s, func(c rune) bool { return c < '0' || c > '9' }) < 0
}

// parseIndexRange reads "5", "5-9" or "5-9:2".
func parseIndexRange(part string) (r IndexRange, complaint string) {
	bounds, stepText, stepped := strings.Cut(part, ":")
	firstText, lastText, isRange := strings.Cut(bounds, "-")
	if !isRange {
		lastText = firstText
	}
	first, ok1 := parseIndex(firstText)
	last, ok2 := parseIndex(lastText)
	step, ok3 := uint64(1), true
	if stepped {
		step, ok3 = parseIndex(stepText)
	}
	name := clip(part)
	switch {
	case !ok1 || !ok2 || !ok3 || stepped && !isRange:
		return r, fmt.Sprintf("%q is no index and no range; write for example 7, 0-15 or 0-15:4", name)
	case first > MaxTaskIndex || last > MaxTaskIndex:
		return r, fmt.Sprintf("%q is above the highest index, %d; count from a lower number", name, MaxTaskIndex)
	case first > last:
		back := fmt.Sprintf("%d-%d", last, first)
		if stepped {
			back += ":" + clip(stepText)
		}
		return r, fmt.Sprintf("%q runs backwards; write %q", name, back)
	case step == 0:
		return r, fmt.Sprintf("%q has step 0; write a step from 1 on, or none", name)
	}
	return newIndexRange(first, last, step), ""
}

// parseIndex reads a number without a sign; one that is too large for any use comes out
// as the largest there is.
func parseIndex(text string) (uint64, bool) {
	if text == "" || !digits(text) {
		return 0, false
	}
	n, _ := strconv.ParseUint(text, 10, 64) // on overflow it is the largest
	return n, true
}

// newIndexRange returns the indices from first to at most last, which is not below.
func newIndexRange(first, last, step uint64) IndexRange {
	last -= (last - first) % step
	if first == last {
		step = 1
	}
	return IndexRange{First: uint32(first), Last: uint32(last), Step: uint32(step)}
}

// namedRange is a range and the text that it came from.
type namedRange struct {
	IndexRange
	text string
}

// rangeHeap has the range with the lowest first index on top.
type rangeHeap []namedRange

func (h rangeHeap) Len() int           { return len(h) }
func (h rangeHeap) Less(i, j int) bool { return h[i].First < h[j].First }
func (h rangeHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *rangeHeap) Push(r any)        { *h = append(*h, r.(namedRange)) }
func (h *rangeHeap) Pop() any {
	r := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return r
}

// merge makes x of ranges in any order. Where two interleave, as 1-9:2 and 4 do, the
// earlier one is cut; an index that is in both is complained of.
func (x *Indices) merge(parts rangeHeap) (complaint string) {
	heap.Init(&parts)
	for cuts := 0; len(parts) > 0; {
		r := heap.Pop(&parts).(namedRange)
		if len(parts) == 0 || parts[0].First > r.Last {
			x.append(r.IndexRange)
			continue
		}
		next := &parts[0]
		if next.First == r.First {
			a, b := clip(r.text), clip(next.text)
			if a > b {
				a, b = b, a // the heap has no order of its own among equals
			}
			return fmt.Sprintf("index %d is in %q and in %q; name each index once", r.First, a, b)
		}
		if cuts++; cuts > maxIndexRanges {
			return fmt.Sprintf("%q and %q have too many indices between one another's; submit a bag for each", clip(r.text), clip(next.text))
		}
		low := newIndexRange(uint64(r.First), uint64(next.First)-1, uint64(r.Step))
		x.append(low)
		if rest := uint64(low.Last) + uint64(r.Step); rest <= uint64(r.Last) {
			r.IndexRange = newIndexRange(rest, uint64(r.Last), uint64(r.Step))
			heap.Push(&parts, r)
		}
	}
	return ""
}

// append adds a range behind the last one, or prolongs that.
func (x *Indices) append(r IndexRange) {
	n := r.Count()
	if at := len(x.ranges) - 1; at < 0 || !x.ranges[at].prolong(r) {
		x.ranges = append(x.ranges, r)
		x.before = append(x.before, x.count)
	}
	x.count += n
}

// prolong adds the indices of next, a range behind r, if r goes on with them. A single
// index goes on with what follows it without a gap only: 4,7 stays as it is.
func (r *IndexRange) prolong(next IndexRange) bool {
	step := next.First - r.Last
	if r.First == r.Last && step != 1 || r.First != r.Last && step != r.Step || next.First != next.Last && step != next.Step {
		return false
	}
	r.Last, r.Step = next.Last, step
	return true
}

// Count returns how many indices there are, and so how many tasks.
func (x *Indices) Count() uint32 { return x.count }

// Index returns the index of the task with an ordinal below [Indices.Count]. It panics for
// another one. It takes O(log ranges).
func (x *Indices) Index(ordinal uint32) uint32 {
	if ordinal >= x.count {
		panic(fmt.Sprintf("job: ordinal %d of %d", ordinal, x.count))
	}
	at, found := slices.BinarySearch(x.before, ordinal)
	if !found {
		at--
	}
	return x.ranges[at].First + (ordinal-x.before[at])*x.ranges[at].Step
}

// Ordinal returns the ordinal of the task that has an index, false if none has it. It
// takes O(log ranges).
func (x *Indices) Ordinal(index uint32) (uint32, bool) {
	at, found := slices.BinarySearchFunc(x.ranges, index, func(r IndexRange, index uint32) int { return cmp.Compare(r.First, index) })
	if !found {
		if at--; at < 0 {
			return 0, false
		}
	}
	r := x.ranges[at]
	if index > r.Last || (index-r.First)%r.Step != 0 {
		return 0, false
	}
	return x.before[at] + (index-r.First)/r.Step, true
}

// Min and Max return the lowest and the highest index, 0 if there is none.
func (x *Indices) Min() uint32 {
	if x.count == 0 {
		return 0
	}
	return x.ranges[0].First
}

// Max returns the highest index; see [Indices.Min].
func (x *Indices) Max() uint32 {
	if x.count == 0 {
		return 0
	}
	return x.ranges[len(x.ranges)-1].Last
}

// Step returns the step that all ranges of more than one index have, 1 if they have none
// in common. A task of a bag with step s may do the work of s numbers from its own on.
func (x *Indices) Step() uint32 {
	step := uint32(0)
	for _, r := range x.ranges {
		switch {
		case r.First == r.Last:
		case step != 0 && step != r.Step:
			return 1
		default:
			step = r.Step
		}
	}
	return max(step, 1)
}

// Ranges returns the ranges in ascending order. The caller must not change them.
func (x *Indices) Ranges() []IndexRange { return x.ranges }

// String returns the indices as text, in ascending order; [ParseIndices] reads it back.
func (x *Indices) String() string {
	var b []byte
	for i, r := range x.ranges {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, uint64(r.First), 10)
		if r.First != r.Last {
			b = append(b, '-')
			b = strconv.AppendUint(b, uint64(r.Last), 10)
		}
		if r.Step != 1 {
			b = append(b, ':')
			b = strconv.AppendUint(b, uint64(r.Step), 10)
		}
	}
	return string(b)
}
