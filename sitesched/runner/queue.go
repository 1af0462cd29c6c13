package runner

import "kith/meta"

// Queues reports whether the system has a queue of its own: it is a [work.Batch].
func (s *Runner) Queues() bool { return s.batch != nil }

// Queue carries out a [meta.Queue].
func (s *Runner) Queue(f meta.Queue) {
	if s.batch != nil {
		s.batch.Queue(f.Copy, f.NotBefore)
	}
}

// Dequeue carries out a [meta.Dequeue].
func (s *Runner) Dequeue(f meta.Dequeue) {
	if s.batch != nil {
		s.batch.Dequeue(f.Attempt)
	}
}

// Restored carries out a [meta.Restored].
func (s *Runner) Restored() {
	if s.batch != nil {
		s.batch.Restored()
	}
}
