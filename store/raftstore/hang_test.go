package raftstore

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// hanging is a log whose disk hangs for as long as hangs says, and no longer than the test.
type hanging struct {
	raft.LogStore
	hangs *atomic.Bool
	over  context.Context //nolint:containedctx // it is the test's
}

func (h hanging) StoreLogs(logs []*raft.Log) error {
	for h.hangs.Load() && h.over.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	return h.LogStore.StoreLogs(logs)
}

// A member that is to stop waits for no disk that hangs before it has begun to lead.
func TestALeadOnADiskThatHangs(t *testing.T) {
	t.Parallel()
	var hangs atomic.Bool
	s := newSite(t, 1, func(c *Config) {
		c.wrapLog = func(l raft.LogStore) raft.LogStore { return hanging{l, &hangs, t.Context()} }
	})
	lead := s.lead()
	hangs.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := lead.m.Lead(ctx)
		ended <- err
	}()
	select {
	case err := <-ended:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it ends with %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("it waits for the disk")
	}
	hangs.Store(false)
	if err := lead.m.raft.Barrier(10 * time.Second).Error(); err != nil {
		t.Error(err)
	}
}
