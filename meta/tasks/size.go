package tasks

import (
	"container/heap"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"kith/internal/params"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
)

// ErrTooLarge is returned for a bag of which a bundle would be too large for a message.
var ErrTooLarge = errors.New("what 256 tasks run must fit into a message of 3 MiB, and their rows into 1 MiB of it; put long values into files, and the names of these into the rows")

// CheckBundles looks whether every bundle of a bag, whatever tasks it has, takes at most so
// many bytes, and has rows that a host reads. The error wraps [ErrTooLarge]. It must not be
// called at a host.
func (b *Bag) CheckBundles(most int) error {
	n := min(int(b.indices.Count()), store.MaxBundleTasks)
	rows, err := b.longestRows(n)
	if err != nil {
		return err
	}
	if rows > params.MaxRowsSize {
		return fmt.Errorf("rows of %d tasks can have %d bytes, at most %d: %w", n, rows, params.MaxRowsSize, ErrTooLarge)
	}
	common := &kithv1.BagPayload{Template: b.payload.GetTemplate(), Inputs: b.payload.GetInputs(), Names: b.names, Array: b.array}
	// Around a row and each of its values are lengths and the names of fields.
	const aroundRow, aroundValue = 32, 4
	if size := proto.Size(common) + rows + n*(aroundRow+aroundValue*len(b.names)); size > most {
		return fmt.Errorf("a bundle of %d tasks can have %d bytes, at most %d: %w", n, size, most, ErrTooLarge)
	}
	return nil
}

// longestRows returns the most bytes that the values of n rows can have together.
func (b *Bag) longestRows(n int) (int, error) {
	widest := 0
	for _, w := range b.source.Widths() {
		widest += w
	}
	if _, table := b.source.(*params.Table); !table || n*widest <= params.MaxRowsSize {
		if _, written := b.source.(*params.Rows); written {
			return min(n*widest, params.MaxRowsSize), nil // all of them have no more
		}
		return n * widest, nil
	}
	// The n longest rows so far, the shortest of them first: a table may be too long to
	// remember the length of each.
	longest := make(lengths, 0, n)
	err := b.source.Each(0, func(_ uint32, values []string) bool {
		size := 0
		for _, v := range values {
			size += len(v)
		}
		switch {
		case len(longest) < n:
			heap.Push(&longest, size)
		case size > longest[0]:
			longest[0] = size
			heap.Fix(&longest, 0)
		}
		return true
	})
	sum := 0
	for _, size := range longest {
		sum += size
	}
	return sum, err
}

// lengths is a heap.
type lengths []int

func (l lengths) Len() int           { return len(l) }
func (l lengths) Less(i, j int) bool { return l[i] < l[j] }
func (l lengths) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *lengths) Push(x any)        { *l = append(*l, x.(int)) }
func (l *lengths) Pop() any          { panic("lengths only grow") }
