package apart

import "sync"

// mailbox is a queue between goroutines whose senders never wait. What is in it at most is a few
// entries an attempt.
type mailbox[T any] struct {
	mu    sync.Mutex
	items []T
	wake  chan struct{}
}

func newMailbox[T any]() *mailbox[T] { return &mailbox[T]{wake: make(chan struct{}, 1)} }

// put adds an item.
func (m *mailbox[T]) put(item T) {
	m.mu.Lock()
	m.items = append(m.items, item)
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// each calls f with the items in order, until done or f says no.
func (m *mailbox[T]) each(done <-chan struct{}, f func(T) bool) {
	for {
		m.mu.Lock()
		items := m.items
		m.items = nil
		m.mu.Unlock()
		for _, item := range items {
			select {
			case <-done:
				return
			default:
			}
			if !f(item) {
				return
			}
		}
		select {
		case <-done:
			return
		case <-m.wake:
		}
	}
}
