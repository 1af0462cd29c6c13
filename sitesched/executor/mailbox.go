package executor

import "sync"

// mailbox runs errands one after the other in a goroutine of its own, so that
// the caller never waits for them. It holds at most a few errands per attempt
// that the site holds.
type mailbox struct {
	mu     sync.Mutex
	queue  []func()
	closed bool
	wake   chan struct{}
}

func newMailbox() *mailbox { return &mailbox{wake: make(chan struct{}, 1)} }

// post adds an errand. After close it is dropped.
func (m *mailbox) post(errand func()) {
	m.mu.Lock()
	if !m.closed {
		m.queue = append(m.queue, errand)
	}
	m.mu.Unlock()
	m.poke()
}

// run carries errands out until close; what is still queued then is dropped.
func (m *mailbox) run() {
	for range m.wake {
		for {
			m.mu.Lock()
			errands, closed := m.queue, m.closed
			m.queue = nil
			m.mu.Unlock()
			if closed {
				return
			}
			if len(errands) == 0 {
				break
			}
			for _, errand := range errands {
				errand()
			}
		}
	}
}

func (m *mailbox) close() {
	m.mu.Lock()
	m.closed, m.queue = true, nil
	m.mu.Unlock()
	m.poke()
}

func (m *mailbox) poke() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}
