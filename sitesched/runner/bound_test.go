package runner

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/sitesched/work"
)

// saying is a system with an estimator that has given a bound.
type saying struct {
	work.System
	bound atomic.Int64
	looks atomic.Int64
}

func (s *saying) Bound(job.AttemptID) float64 {
	s.looks.Add(1)
	return float64(s.bound.Load())
}

// The engine is told of each bound once, as long as the attempt runs, the daemon does and the estimator may.
func TestBoundsAreLookedAt(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(r *run, stop func()){
		"the attempt ends": func(r *run, _ func()) { close(r.ended) },
		"the daemon ends":  func(_ *run, stop func()) { stop() },
		"its time is over": func(r *run, _ func()) { time.Sleep(r.estimate.Limit + boundRest) },
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var told []float64
			system := &saying{}
			s := &Runner{system: system, ctx: ctx}
			s.cfg.Tell = func(ev meta.Event) {
				if ev, ok := ev.(meta.EstimateTold); ok && ev.Attempt.Number == 1 {
					told = append(told, ev.Bound)
				}
			}
			r := &run{attempt: job.AttemptID{Number: 1}, ended: make(chan struct{}), estimate: meta.Estimate{Limit: time.Minute}}
			s.watchBound(r)
			for _, bound := range []int64{0, 300, 300, 200} {
				system.bound.Store(bound)
				time.Sleep(boundLook)
				synctest.Wait()
			}
			if fmt.Sprint(told) != "[300 200]" {
				t.Errorf("%s: told %v", name, told)
			}
			end(r, stop)
			s.wg.Wait()
			looks := system.looks.Load()
			time.Sleep(time.Hour)
			if system.looks.Load() != looks || len(told) != 2 {
				t.Errorf("%s: it is looked on, told %v", name, told)
			}
		})
	}
}

// A system that knows no bounds is not asked.
func TestNoBoundsAreLookedAt(t *testing.T) {
	t.Parallel()
	s := &Runner{system: idleSystem{}, ctx: t.Context()}
	s.watchBound(&run{})
	s.wg.Wait()
}
