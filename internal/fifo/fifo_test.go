package fifo

import "testing"

// TestOrder pushes and pops in bursts, so that the queue moves its items to the
// front while some wait.
func TestOrder(t *testing.T) {
	var q Queue[int]
	if _, ok := q.First(); ok {
		t.Error("an empty queue has a first item")
	}
	pushed, popped := 0, 0
	for burst := range 200 {
		for range burst % 17 {
			q.Push(pushed)
			pushed++
		}
		for range burst % 13 {
			first, waits := q.First()
			v, ok := q.Pop()
			if ok != waits || ok != (popped < pushed) || ok && (v != popped || first != v) {
				t.Fatalf("got %d, %t; first %d, %t; want %d of %d", v, ok, first, waits, popped, pushed)
			}
			if ok {
				popped++
			}
		}
		next := popped
		for v := range q.All {
			if v != next {
				t.Fatalf("going over it gives %d, want %d", v, next)
			}
			if next++; next == popped+5 {
				break
			}
		}
		if next != min(popped+5, pushed) {
			t.Fatalf("going over it ends at %d, want %d", next, min(popped+5, pushed))
		}
		if q.Len() != pushed-popped {
			t.Fatalf("%d wait, want %d", q.Len(), pushed-popped)
		}
	}
	if popped < 1000 {
		t.Errorf("only %d items went through", popped)
	}
}
