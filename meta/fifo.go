package meta

// fifo is a queue of things that become due in the order they were added.
type fifo[T any] struct {
	items []T
	head  int
}

func (f *fifo[T]) push(v T) { f.items = append(f.items, v) }

func (f *fifo[T]) first() (T, bool) {
	if f.head == len(f.items) {
		var none T
		return none, false
	}
	return f.items[f.head], true
}

func (f *fifo[T]) pop() {
	var none T
	f.items[f.head] = none
	f.head++
	if f.head == len(f.items) {
		f.items, f.head = f.items[:0], 0
	} else if f.head > 64 && f.head > len(f.items)/2 {
		n := copy(f.items, f.items[f.head:])
		clear(f.items[n:])
		f.items, f.head = f.items[:n], 0
	}
}

func (f *fifo[T]) len() int { return len(f.items) - f.head }
