package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"kith/internal/job"
	"kith/internal/pause"
	"kith/meta"
	"kith/meta/transfer"
)

const (
	// tasksAtOnce is how many tasks of a batch have their files fetched at a time.
	tasksAtOnce = 8
	// homeFor is how long what tasks left is held here after it came, until its batch is
	// recorded.
	homeFor = time.Minute
)

// taskFetches are the batches whose files are on their way home.
type taskFetches struct {
	mu  sync.Mutex
	all map[taskBatch]struct{}
}

type taskBatch struct {
	bundle job.AttemptID
	batch  uint32
}

func (f *taskFetches) begin(b taskBatch) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, under := f.all[b]; under {
		return false
	}
	if f.all == nil {
		f.all = make(map[taskBatch]struct{})
	}
	f.all[b] = struct{}{}
	return true
}

func (f *taskFetches) end(b taskBatch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.all, b)
}

// FetchTasks carries out a [meta.FetchTasks]. If the site that has the files is out of
// reach there is no answer: it tells the batch again when it is back, and the engine asks
// again.
func (s *Runner) FetchTasks(f meta.FetchTasks) {
	if f.From == s.site {
		s.cfg.Tell(meta.TasksHome{Bundle: f.Bundle, Batch: f.Batch}) // they are held until they are cleared
		return
	}
	b := taskBatch{f.Bundle, f.Batch}
	if !s.batches.begin(b) {
		return
	}
	s.wg.Go(func() {
		defer s.batches.end(b)
		s.fetchTasks(&f)
	})
}

// fetchTasks brings what tasks left. What cannot be had of one keeps nothing from the others.
func (s *Runner) fetchTasks(f *meta.FetchTasks) {
	var mu sync.Mutex
	var lost []uint32
	var lostOf error
	lose := func(task uint32, err error) {
		mu.Lock()
		defer mu.Unlock()
		if lost = append(lost, task); lostOf == nil {
			lostOf = fmt.Errorf("task %d: %w", task, err)
		}
	}
	hold := s.files.blobs.Hold()
	defer hold.CloseAfter(homeFor)
	g, ctx := errgroup.WithContext(s.ctx)
	g.SetLimit(tasksAtOnce)
	for i := range f.Files {
		task := f.Files[i].Ordinal
		set, err := transfer.Decode(f.Files[i].Set)
		if err == nil {
			err = s.everFits(set)
		}
		if err != nil {
			lose(task, err)
			continue
		}
		if !hasChunks(set) {
			continue
		}
		hold.Add(set.Sums()...)
		g.Go(func() error {
			err := s.fetchTask(ctx, f, task, set)
			if final(err) {
				lose(task, err)
				return nil
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		if s.ctx.Err() == nil {
			s.log.Warn("output of tasks not brought home; asked for again when its site tells of it again",
				"bundle_id", f.Bundle.String(), "batch", f.Batch, "peer_id", string(f.From), "error", err.Error())
		}
		return
	}
	home := meta.TasksHome{Bundle: f.Bundle, Batch: f.Batch, Lost: lost}
	if len(lost) > 0 {
		s.log.Warn("output of tasks is lost", "bundle_id", f.Bundle.String(), "batch", f.Batch, "peer_id", string(f.From), "tasks", len(lost), "error", lostOf.Error())
	}
	s.cfg.Post(home)
}

// fetchTask brings what one task left. It waits for room on this site's disk.
func (s *Runner) fetchTask(ctx context.Context, f *meta.FetchTasks, task uint32, set transfer.Set) error {
	const first, longest = 2 * time.Second, 30 * time.Second
	// As [store.HeldBundle.RunID] names it.
	run := job.AttemptID{Job: job.ID{Origin: f.Bundle.Job.Origin, Seq: f.Run}, Number: task + 1}
	for again := first; ; again = min(2*again, longest) {
		if s.cfg.Away(f.From) {
			return fmt.Errorf("no stream is up to site %s", f.From)
		}
		err := s.fetcher.Fetch(ctx, run, set, s.sourceAt(f.From), nil)
		if err == nil || !comesBack(err) || ctx.Err() != nil {
			return err
		}
		s.log.Warn("output of a task waits for room on the disk", "bundle_id", f.Bundle.String(), "task", task, "error", err.Error())
		if !pause.For(ctx, again) {
			return errors.Join(err, ctx.Err())
		}
	}
}
