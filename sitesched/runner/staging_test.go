package runner

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
	"google.golang.org/protobuf/types/known/durationpb"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/transfer"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/sitesched/executor"
	"kith/sitesched/work"
	"kith/store/blobstore"
)

// staging is what runs attempts at beta, without the rest of the site. Their
// inputs come from alpha, which sends an error as long as there is one.
type staging struct {
	*Runner
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
	s := &staging{t: t, events: make(chan meta.Event, 16), chunk: make([]byte, 5000)}
	s.payload = payloadOf(t, transfer.Set{Files: []transfer.File{{Path: "in", Size: 5000, Chunks: []blobstore.Sum{blobstore.SumOf(s.chunk)}}}},
		"test $(wc -c <in) = 5000")
	log := slog.New(slog.DiscardHandler)
	files, err := OpenFiles(FilesConfig{Site: "beta", Dir: t.TempDir(), MaxFileBytes: 1 << 20, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	s.Runner, err = New(Config{
		Files: files, Peers: s, Log: log, Tell: func(ev meta.Event) { s.events <- ev },
		Fetch: transfer.FetchConfig{Patience: testPatience, FirstWait: testPatience / 10},
		System: func(report func(work.Event)) (work.System, error) {
			return executor.Open(executor.Config{Dir: filepath.Join(t.TempDir(), "attempts")}, report)
		},
		Away: func(job.SiteID) bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.gone
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		if err := files.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// payloadOf runs a script with inputs.
func payloadOf(t *testing.T, inputs transfer.Set, script string) []byte {
	t.Helper()
	raw, err := proto.Marshal(&kithv1.Payload{
		Job: &kithv1.Job{Command: []string{"/bin/sh", "-c", script}, Processors: 1, Walltime: durationpb.New(time.Minute)}, Inputs: inputs.Proto(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// ReadFile implements Peers.
func (s *staging) ReadFile(_ context.Context, _ job.SiteID, r *kithv1.FileRequest) (*kithv1.FileReply, error) {
	s.asked.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	offset := r.GetOffset()
	for _, answer := range replyErrors {
		if errors.Is(s.err, answer) {
			return errorReply(s.err), nil
		}
	}
	if errors.Is(s.err, transfer.ErrBadReply) {
		return &kithv1.FileReply{Data: make([]byte, r.GetLimit()+1)}, nil
	}
	if s.err != nil {
		return nil, s.err
	}
	return &kithv1.FileReply{Data: s.chunk[offset:min(offset+int64(r.GetLimit()), int64(len(s.chunk)))]}, nil
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

// heard returns the next event, nil if there is none for a while.
func (s *staging) heard() meta.Event {
	select {
	case ev := <-s.events:
		return ev
	case <-time.After(10 * testPatience):
		return nil
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

// An attempt whose inputs cannot be had is given back, whatever the reason, and
// starts when they can and it is launched again. One without room waits; what no
// waiting helps against ends it at once.
func TestStagingWaits(t *testing.T) {
	t.Parallel()
	const waits, back, ends = "it waits", "it is given back", "it ends"
	for name, c := range map[string]struct {
		err  error
		gone bool
		kill *meta.Kill // right after the launch
		does string
		want job.OutcomeKind
	}{
		"out of reach":            {err: transfer.ErrUnavailable, does: back, want: job.Success},
		"without a stream":        {gone: true, does: back, want: job.Success},
		"busy":                    {err: transfer.ErrBusy, does: back, want: job.Success},
		"its disk fails":          {err: fmt.Errorf("peer answers: %w", transfer.ErrUnavailable), does: back, want: job.Success},
		"silent":                  {err: context.DeadlineExceeded, does: back, want: job.Success},
		"full here":               {err: &blobstore.FullError{Kind: blobstore.ErrDiskFull}, does: waits, want: job.Success},
		"cancelled meanwhile":     {err: transfer.ErrUnavailable, kill: &meta.Kill{}, does: ends, want: job.Cancel},
		"lease over meanwhile":    {err: transfer.ErrUnavailable, kill: &meta.Kill{Lease: true}, does: ends, want: job.Loss},
		"refuses":                 {err: transfer.ErrDenied, does: ends, want: job.Failure},
		"does not have it":        {err: transfer.ErrNotFound, does: ends, want: job.Failure},
		"sends nonsense for long": {err: transfer.ErrBadReply, does: ends, want: job.Failure},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStaging(t)
			s.fails(c.err)
			s.cut(c.gone)
			a := job.AttemptID{Job: job.ID{Origin: "alpha", Generation: 1, Seq: 7}, Number: 1}
			launch := meta.Launch{Attempt: a, Request: job.Request{Processors: 1, Walltime: time.Second}, Payload: s.payload}
			s.Launch(launch)
			if c.kill != nil {
				c.kill.Attempt = a
				s.Kill(*c.kill)
			}
			switch c.does {
			case waits:
				if ev := s.heard(); ev != nil {
					t.Errorf("%+v while the disk is full", ev)
				}
				s.fails(nil)
			case back:
				if ev := s.heard(); ev != (meta.AttemptMissing{Attempt: a}) {
					t.Errorf("%+v while its inputs cannot be had", ev)
				}
				if c.gone && s.asked.Load() > 0 {
					t.Error("a site without a stream was asked")
				}
				s.fails(nil)
				s.cut(false)
				s.Launch(launch)
			}
			if got := s.outcome(); got.Kind != c.want {
				t.Errorf("%+v after %d requests, want %v", got, s.asked.Load(), c.want)
			}
		})
	}
}

func TestComesLater(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{syscall.ENOSPC, false},
		{fmt.Errorf("site alpha: %w", errAway), true},
		{fmt.Errorf("%w: %w", transfer.ErrGaveUp, errors.New("broken pipe")), true},
		{fmt.Errorf("%w: %w", transfer.ErrGaveUp, transfer.ErrBadReply), false},
		{transfer.ErrDenied, false},
		{blobstore.ErrQuota, true},
		{errors.New("permission denied"), false},
	} {
		if got := comesLater(c.err); got != c.want {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}
