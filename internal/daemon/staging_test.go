package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/transfer"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/sitesched/executor"
	"kith/store/blobstore"
)

// staging is what runs attempts at beta, without the rest of the site. Their
// inputs come from alpha, which sends an error as long as there is one.
type staging struct {
	*attempts
	t       *testing.T
	events  chan meta.Event
	payload []byte
	chunk   []byte
	asked   atomic.Int64

	mu   sync.Mutex
	gone bool
	err  error
}

const testPatience = 100 * time.Millisecond

func newStaging(t *testing.T) *staging {
	t.Helper()
	blobs, err := blobstore.Open(blobstore.Config{Dir: filepath.Join(t.TempDir(), "blobs")})
	if err != nil {
		t.Fatal(err)
	}
	s := &staging{t: t, events: make(chan meta.Event, 16), chunk: make([]byte, 5000)}
	set := transfer.Set{Files: []transfer.File{{Path: "in", Size: 5000, Chunks: []blobstore.Sum{blobstore.SumOf(s.chunk)}}}}
	s.payload, err = proto.Marshal(&kithv1.Payload{
		Job: &kithv1.Job{Command: []string{"/bin/sh", "-c", "test $(wc -c <in) = 5000"}}, Inputs: set.Proto(),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.attempts = &attempts{
		site: "beta", dir: filepath.Join(t.TempDir(), "attempts"), log: slog.New(slog.DiscardHandler), runs: make(map[job.AttemptID]*run),
		fetcher:  transfer.NewFetcher(blobs, transfer.FetchConfig{Patience: testPatience, FirstWait: testPatience / 10}),
		unpacker: &transfer.Unpacker{Store: blobs}, collect: &transfer.Collector{Store: blobs}, collecting: make(chan struct{}, 1),
		source: func(job.SiteID) transfer.Source { return s },
		tell:   func(ev meta.Event) { s.events <- ev },
		away: func(job.SiteID) bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.gone
		},
	}
	s.ctx, s.cancel = context.WithCancel(t.Context())
	if s.exec, err = executor.Open(executor.Config{Dir: s.dir}, s.executed); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.close()
		s.exec.Close()
		if err := blobs.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// ReadChunk implements transfer.Source.
func (s *staging) ReadChunk(_ context.Context, _ job.AttemptID, _ blobstore.Sum, offset int64, limit int) ([]byte, error) {
	s.asked.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	return s.chunk[offset:min(offset+int64(limit), int64(len(s.chunk)))], nil
}

func (s *staging) fails(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *staging) cut(gone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = gone
}

// quiet demands that nothing is heard of any attempt for a while.
func (s *staging) quiet() {
	s.t.Helper()
	select {
	case ev := <-s.events:
		s.t.Errorf("%+v while its inputs cannot be had", ev)
	case <-time.After(10 * testPatience):
	}
}

// outcome waits for the end of an attempt.
func (s *staging) outcome() job.Outcome {
	s.t.Helper()
	for {
		select {
		case ev := <-s.events:
			if ev, ok := ev.(meta.AttemptEnded); ok {
				return ev.Outcome
			}
		case <-time.After(30 * time.Second):
			s.t.Fatal("the attempt does not end")
		}
	}
}

// An attempt whose inputs cannot be had waits for as long as it takes, whatever
// the reason, and starts when they can; unless somebody does not want it any
// more. What no waiting helps against ends it at once.
func TestStagingWaits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		gone bool
		kill *meta.Kill
		want job.OutcomeKind
		ends bool // at once
	}{
		"out of reach":            {err: transfer.ErrUnavailable, want: job.Success},
		"without a stream":        {gone: true, want: job.Success},
		"busy":                    {err: transfer.ErrBusy, want: job.Success},
		"its disk fails":          {err: fmt.Errorf("peer answers: %w", transfer.ErrUnavailable), want: job.Success},
		"silent":                  {err: context.DeadlineExceeded, want: job.Success},
		"full here":               {err: &blobstore.FullError{Kind: blobstore.ErrDiskFull}, want: job.Success},
		"cancelled meanwhile":     {err: transfer.ErrUnavailable, kill: &meta.Kill{}, want: job.Cancel},
		"lease over meanwhile":    {gone: true, kill: &meta.Kill{Lease: true}, want: job.Loss},
		"refuses":                 {err: transfer.ErrDenied, want: job.Failure, ends: true},
		"does not have it":        {err: transfer.ErrNotFound, want: job.Failure, ends: true},
		"sends nonsense for long": {err: transfer.ErrBadReply, want: job.Failure, ends: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStaging(t)
			s.fails(c.err)
			s.cut(c.gone)
			a := job.AttemptID{Job: job.ID{Origin: "alpha", Generation: 1, Seq: 7}, Number: 1}
			s.launch(meta.Launch{Attempt: a, Request: job.Request{Processors: 1, Walltime: time.Second}, Payload: s.payload})
			if !c.ends {
				s.quiet()
			}
			if c.kill != nil {
				c.kill.Attempt = a
				s.kill(*c.kill)
			} else if !c.ends {
				s.fails(nil)
				s.cut(false)
			}
			if got := s.outcome(); got.Kind != c.want {
				t.Errorf("%+v after %d requests, want %v", got, s.asked.Load(), c.want)
			}
			if c.gone && c.kill != nil && s.asked.Load() > 0 {
				t.Error("a site without a stream was asked")
			}
		})
	}
}

func TestPasses(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{syscall.ENOSPC, true},
		{fmt.Errorf("site alpha: %w", errAway), true},
		{fmt.Errorf("%w: %w", transfer.ErrGaveUp, errors.New("broken pipe")), true},
		{fmt.Errorf("%w: %w", transfer.ErrGaveUp, transfer.ErrBadReply), false},
		{transfer.ErrDenied, false},
		{blobstore.ErrQuota, false},
		{errors.New("permission denied"), false},
	} {
		if got := passes(c.err); got != c.want {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}
