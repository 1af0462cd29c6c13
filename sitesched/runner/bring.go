package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/transfer"
	"kith/store/blobstore"
)

// defaultStaging is how long processors are held while inputs are brought, see
// [Config].
const defaultStaging = time.Minute

// errBringing is returned when inputs take longer than processors may be held for
// them. They go on coming.
var errBringing = errors.New("its inputs are still on their way, and others have its processors until they are here")

// A bring is the inputs of an attempt on their way from its origin. It outlives the
// processors: once they have been given back it goes on, and the attempt's next turn
// finds what came. It ends when the attempt's folder has the files, or the attempt is
// cleared; until then no sweep takes any of them.
type bring struct {
	hold *blobstore.Hold
	stop context.CancelFunc
	done chan struct{} // closed when it is over, err says how
	err  error
	told bool // a goroutine waits to tell the engine; guarded by the mutex of the runs
}

// bringIn brings the inputs of an attempt from its origin, or goes on with that, and
// waits for as long as processors may be held for it.
func (s *Runner) bringIn(ctx context.Context, r *run, set transfer.Set) error {
	a := r.attempt
	b := s.bringOf(a, r.inputsOf(), set)
	bound := time.NewTimer(s.cfg.Staging)
	defer bound.Stop()
	select {
	case <-b.done:
		if b.err != nil {
			s.dropBring(a, b) // the next try begins anew, with what came
		}
		return b.err
	case <-ctx.Done():
		return ctx.Err()
	case <-bound.C:
		return errBringing
	}
}

// bringOf returns the inputs of an attempt on their way, which it begins if need be. They
// are asked for as those of the attempt named of.
func (s *Runner) bringOf(a, of job.AttemptID, set transfer.Set) *bring {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.brings[a]; b != nil {
		return b
	}
	ctx, stop := context.WithCancel(s.ctx)
	b := &bring{hold: s.files.blobs.Hold(set.Sums()...), stop: stop, done: make(chan struct{})}
	s.brings[a] = b
	s.wg.Go(func() {
		defer stop()
		defer close(b.done)
		b.err = s.bringFrom(ctx, of, set)
	})
	return b
}

func (s *Runner) bringFrom(ctx context.Context, a job.AttemptID, set transfer.Set) error {
	origin := a.Job.Origin
	if s.cfg.Away(origin) {
		return fmt.Errorf("site %s: %w", origin, errAway)
	}
	if err := s.fetcher.Fetch(ctx, a, set, s.sourceAt(origin), nil); err != nil {
		return fmt.Errorf("inputs could not be brought from site %s: %w", origin, err)
	}
	return nil
}

// tellWhenHere tells the engine when inputs that took too long are here, or will not
// come for now.
func (s *Runner) tellWhenHere(a job.AttemptID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.brings[a]
	if b == nil || b.told {
		return
	}
	b.told = true
	s.wg.Go(func() {
		select {
		case <-b.done:
		case <-s.ctx.Done():
			return
		}
		s.mu.Lock()
		b.told = false
		s.mu.Unlock()
		if s.ctx.Err() == nil {
			s.cfg.Tell(meta.FilesHere{Attempt: a})
		}
	})
}

// letGo ends the bringing of an attempt's inputs: it has them, or wants them no more.
func (s *Runner) letGo(a job.AttemptID) {
	s.mu.Lock()
	b := s.brings[a]
	delete(s.brings, a)
	s.mu.Unlock()
	if b != nil {
		b.stop()
		b.hold.Close()
	}
}

// dropBring lets go of one that failed, unless another has taken its place.
func (s *Runner) dropBring(a job.AttemptID, b *bring) {
	s.mu.Lock()
	mine := s.brings[a] == b
	s.mu.Unlock()
	if mine {
		s.letGo(a)
	}
}
