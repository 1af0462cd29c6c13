package blobstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"time"
)

// A SweepReport says what a sweep did.
type SweepReport struct {
	// Kept counts the chunks that stayed, because they are live or young.
	Kept int
	// Removed counts the chunks that went.
	Removed int
	// FreedBytes is what the removed ones had counted.
	FreedBytes int64
}

// Sweep removes chunks that are not live, that no [Hold] has, and that were last
// put, found by [Store.Missing] or let go by a hold more than grace before the call.
//
// live yields every chunk that a durable record names at the time of the
// call; an error from it ends the sweep before anything is removed, because a
// sweep with half the records would remove the other half's files. Puts and
// reads go on meanwhile. A put that is followed by its record within grace is
// safe (B5): the chunk is either young or live. One sweep runs at a time.
func (s *Store) Sweep(ctx context.Context, live iter.Seq2[Sum, error], grace time.Duration) (SweepReport, error) {
	return s.sweepSome(ctx, live, grace, nil)
}

// SweepOnly is [Store.Sweep] without grace of the given chunks alone.
func (s *Store) SweepOnly(ctx context.Context, live iter.Seq2[Sum, error], sums map[Sum]struct{}) (SweepReport, error) {
	if sums == nil {
		return SweepReport{}, nil
	}
	return s.sweepSome(ctx, live, 0, sums)
}

// sweepSome sweeps the chunks of only, all of them if it is nil.
func (s *Store) sweepSome(ctx context.Context, live iter.Seq2[Sum, error], grace time.Duration, only map[Sum]struct{}) (SweepReport, error) {
	s.sweep.Lock()
	defer s.sweep.Unlock()
	s.closeDue(s.config.Now())
	before := s.config.Now().Add(-max(grace, 0)) // Read before the records are.
	marked := make(map[Sum]struct{})
	for sum, err := range live {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return SweepReport{}, fmt.Errorf("sweep file store: list of live chunks: %w", err)
		}
		marked[sum] = struct{}{}
	}
	var report SweepReport
	for i := range s.shards {
		if err := ctx.Err(); err != nil {
			return report, fmt.Errorf("sweep file store: %w", err)
		}
		s.sweepShard(&s.shards[i], marked, only, before, &report)
	}
	return report, nil
}

// sweepShard sweeps one folder. The lock is taken anew for each removal, so
// that puts do not wait for a long sweep.
func (s *Store) sweepShard(sh *shard, marked, only map[Sum]struct{}, before time.Time, report *SweepReport) {
	sh.mu.Lock()
	var dead []Sum
	for sum, e := range sh.chunks {
		_, live := marked[sum]
		if _, wanted := only[sum]; only != nil && !wanted {
			live = true
		}
		if live || sh.held[sum] > 0 || !e.touched.Before(before) {
			report.Kept++
			continue
		}
		dead = append(dead, sum)
	}
	sh.mu.Unlock()
	for _, sum := range dead {
		if freed, ok := s.removeOld(sh, sum, before); ok {
			report.Removed++
			report.FreedBytes += freed
		} else {
			report.Kept++
		}
	}
}

// removeOld removes a chunk unless it was put again since it was looked at.
func (s *Store) removeOld(sh *shard, sum Sum, before time.Time) (freed int64, ok bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	e, found := sh.chunks[sum]
	if !found || sh.held[sum] > 0 || !e.touched.Before(before) {
		return 0, false
	}
	if err := s.root.Remove(sum.path()); err != nil && !errors.Is(err, os.ErrNotExist) {
		s.log.Warn("chunk not swept", "chunk", sum.Short(), "error", err)
		return 0, false
	}
	delete(sh.chunks, sum)
	s.ledger.remove(e.size)
	return charge(e.size), true
}
