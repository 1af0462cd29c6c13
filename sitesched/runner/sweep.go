package runner

import (
	"context"
	"errors"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"kith/internal/job"
	"kith/internal/pause"
	"kith/meta"
	"kith/meta/transfer"
	"kith/store"
	"kith/store/blobstore"
)

// Sweeping of chunks that no job names any more. What came here lately may be wanted
// again by a job with the same inputs, so it is left for a while; but nothing is
// refused for its sake.
const (
	sweepEvery = time.Hour
	sweepGrace = time.Hour
	// dropAfter is how long the output of an attempt that is over, and at its origin,
	// may lie here yet: those of many go in one sweep.
	dropAfter = 10 * time.Second
	// sweepShare bounds the sweeps that a full store asks for: each is followed by a
	// pause of so many times what it took, up to sweepPause.
	sweepShare = 3
	sweepPause = 5 * time.Second
	// mostDropped bounds the list of what is to go; the hourly sweep finds the rest.
	mostDropped = 1 << 20
)

// garbage is what is known of chunks that are not needed.
type garbage struct {
	ctx  context.Context
	stop context.CancelFunc
	// changes counts what may have made a chunk garbage, beside the ends of holds.
	changes atomic.Uint64
	// sweeps counts the whole sweeps that were asked for by a full store.
	sweeps atomic.Uint64

	// sweeping guards the next three. It is held during a sweep, not while one waits for
	// the pause before it.
	sweeping sync.Mutex
	seen     uint64    // changes and ends of holds when the latest of them began
	looked   bool      // there was one
	rest     time.Time // no other before

	mu      sync.Mutex
	dropped map[blobstore.Sum]struct{} // to go at the next look, unless they are needed
	wake    chan struct{}
}

func newGarbage() garbage {
	ctx, stop := context.WithCancel(context.Background())
	return garbage{ctx: ctx, stop: stop, wake: make(chan struct{}, 1)}
}

// changed says that a job of this site, or a copy, may need fewer files than before.
func (f *Files) changed() { f.garbage.changes.Add(1) }

// JobChanged says that a job of this site may need fewer files than before, and that
// another site, or none, may hold it now: the former holder reads nothing more of it.
func (s *Runner) JobChanged(id job.ID) {
	s.files.server.ForgetJob(id)
	s.files.changed()
}

// reclaim removes all that is not needed, without any grace, because a put is about to
// be refused. It reports whether that may have helped: another try is worth it.
func (f *Files) reclaim() bool {
	g := &f.garbage
	before := g.sweeps.Load()
	for {
		helped, wait := f.tryReclaim(before)
		if wait <= 0 {
			return helped
		}
		if !pause.For(g.ctx, wait) {
			return false
		}
	}
}

// tryReclaim is reclaim for a put that came when there had been so many sweeps. It does
// not wait for the pause after the latest of them: what is left of that is returned, and
// it did nothing.
func (f *Files) tryReclaim(before uint64) (helped bool, wait time.Duration) {
	g := &f.garbage
	g.sweeping.Lock()
	defer g.sweeping.Unlock()
	if g.sweeps.Load() != before {
		return true, 0 // another put had the same done meanwhile
	}
	seen := g.changes.Load() + f.blobs.Released()
	if g.looked && seen == g.seen {
		return false, 0 // nothing can have become garbage since
	}
	if wait := time.Until(g.rest); wait > 0 {
		return false, wait
	}
	began := time.Now()
	report, err := f.blobs.Sweep(g.ctx, f.liveChunks(g.ctx), 0)
	g.rest = time.Now().Add(min(sweepShare*time.Since(began), sweepPause))
	if err != nil {
		f.cfg.Log.Warn("sweep of a full file store failed", "error", err.Error())
		return false, 0
	}
	g.seen, g.looked = seen, true
	g.sweeps.Add(1)
	f.cfg.Log.Info("full file store swept", "kept", report.Kept, "removed", report.Removed, "freed_bytes", report.FreedBytes)
	return report.Removed > 0, 0
}

// drop has the chunks of a set go soon, but for those that are needed.
func (f *Files) drop(set transfer.Set) {
	g := &f.garbage
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.dropped == nil {
		g.dropped = make(map[blobstore.Sum]struct{})
	}
	for sum := range set.Chunks() {
		if len(g.dropped) < mostDropped {
			g.dropped[sum] = struct{}{}
		}
	}
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// takeDropped returns what is to go.
func (g *garbage) takeDropped() map[blobstore.Sum]struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	dropped := g.dropped
	g.dropped = nil
	return dropped
}

// KeepSweeping removes what no job needs any more, at once, now and then, and after
// attempts were cleared, until ctx is done.
func (f *Files) KeepSweeping(ctx context.Context) {
	f.sweep(ctx)
	hourly := time.NewTicker(sweepEvery)
	defer hourly.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-hourly.C:
			f.sweep(ctx)
		case <-f.garbage.wake:
			began := time.Now()
			if !pause.For(ctx, dropAfter) {
				return
			}
			if _, err := f.blobs.SweepOnly(ctx, f.liveChunks(ctx), f.garbage.takeDropped()); err != nil {
				f.cfg.Log.Warn("sweep of cleared files failed", "error", err.Error())
			}
			pause.For(ctx, sweepShare*(time.Since(began)-dropAfter))
		}
	}
}

// sweep removes what has not been needed for a while.
func (f *Files) sweep(ctx context.Context) {
	report, err := f.blobs.Sweep(ctx, f.liveChunks(ctx), sweepGrace)
	if err != nil {
		f.cfg.Log.Warn("sweep of files failed", "error", err.Error())
		return
	}
	f.cfg.Log.Info("files swept", "kept", report.Kept, "removed", report.Removed, "freed_bytes", report.FreedBytes)
}

// liveChunks yields every chunk that a job or attempt of this site names.
func (f *Files) liveChunks(ctx context.Context) iter.Seq2[blobstore.Sum, error] {
	if f.cfg.live != nil {
		return f.cfg.live
	}
	if f.cfg.Apart { // what attempts have is held
		return func(func(blobstore.Sum, error) bool) {}
	}
	return func(yield func(blobstore.Sum, error) bool) {
		var encoded [][]byte
		var open, closed, bags []job.ID
		var demoted []meta.DemotedAttempt
		err := f.cfg.Look(ctx, func(_ job.Time, v meta.Views) {
			open, closed, bags, encoded = v.FileHolders()
			demoted = v.DemotedAttempts()
		})
		if err != nil {
			yield(blobstore.Sum{}, err)
			return
		}
		for _, raw := range encoded {
			set, err := transfer.Decode(raw)
			if err == nil && !yieldSet(set, yield) {
				return
			}
		}
		inputs := func(raw []byte) (transfer.Set, error) {
			p, err := parsePayload(raw)
			if err != nil {
				return transfer.Set{}, err
			}
			return p.inputs, nil
		}
		if yieldStored(open, f.cfg.Backend.Payload, inputs, yield) && yieldStored(bags, f.cfg.Backend.Payload, filesOfBag, yield) &&
			yieldStored(closed, f.cfg.Backend.Outputs, transfer.Decode, yield) && f.yieldDemoted(demoted, yield) {
			f.yieldTasks(bags, yield)
		}
	}
}

// yieldDemoted yields the chunks of what attempts left that were demoted, but for checkpoints
// that no attempt goes on from.
func (f *Files) yieldDemoted(list []meta.DemotedAttempt, yield func(blobstore.Sum, error) bool) bool {
	for _, d := range list {
		raw, err := f.cfg.Backend.AttemptFiles(d.ID)
		if err != nil {
			return yield(blobstore.Sum{}, err)
		}
		set, err := transfer.Decode(raw)
		if err != nil {
			continue
		}
		if !d.Saved {
			set = withoutSaved(set)
		}
		if !yieldSet(set, yield) {
			return false
		}
	}
	return true
}

// yieldTasks yields the chunks of what tasks of bags left.
func (f *Files) yieldTasks(bags []job.ID, yield func(blobstore.Sum, error) bool) {
	for _, id := range bags {
		for files, err := range store.AllTaskFiles(f.cfg.Backend, id) {
			if err != nil {
				yield(blobstore.Sum{}, err)
				return
			}
			set, err := transfer.Decode(files.Set)
			if err == nil && !yieldSet(set, yield) {
				return
			}
		}
	}
}

// yieldStored yields the chunks that side records of jobs name.
func yieldStored(ids []job.ID, read func(job.ID) ([]byte, error), parse func([]byte) (transfer.Set, error),
	yield func(blobstore.Sum, error) bool,
) bool {
	for _, id := range ids {
		raw, err := read(id)
		if errors.Is(err, store.ErrUnknown) {
			continue // purged meanwhile
		}
		if err != nil {
			return yield(blobstore.Sum{}, err)
		}
		set, err := parse(raw)
		if err == nil && !yieldSet(set, yield) {
			return false
		}
	}
	return true
}

func yieldSet(set transfer.Set, yield func(blobstore.Sum, error) bool) bool {
	for i := range set.Files {
		for _, sum := range set.Files[i].Chunks {
			if !yield(sum, nil) {
				return false
			}
		}
	}
	return true
}
