package daemon

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"kith/cmd/kithd/config"
	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
)

// unreadable is a backend that cannot read what jobs run until it is told that
// it can.
type unreadable struct {
	store.Backend
	healed atomic.Bool
	tries  atomic.Int64
}

func (u *unreadable) Payload(id job.ID) ([]byte, error) {
	if !u.healed.Load() {
		u.tries.Add(1)
		return nil, fmt.Errorf("payload of job %v: %w", id, syscall.EIO)
	}
	return u.Backend.Payload(id)
}

// notes is a log that can be searched.
type notes struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (n *notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(p)
}

func (n *notes) has(all ...string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for line := range strings.Lines(n.text.String()) {
		found := true
		for _, part := range all {
			found = found && strings.Contains(line, part)
		}
		if found {
			return true
		}
	}
	return false
}

// A store that cannot be read when a grant is sent was taken for a job that had
// been purged: nothing was sent, nobody was told, and the host claimed for ever.
func TestGrantWhileTheStoreCannotBeRead(t *testing.T) {
	t.Parallel()
	// The origin is too narrow for the job, so that it runs at the other site.
	origin, host := testConfig(t, "alpha"), testConfig(t, "beta")
	origin.Scheduler.Processors = 1
	origin.Peers = []config.Peer{{Site: "beta"}}
	host.Timing.Claim, host.Timing.Backoff = 100*time.Millisecond, 100*time.Millisecond

	log := &notes{}
	logger := slog.New(slog.NewTextHandler(log, nil))
	d := newDaemon(origin, logger, Options{Host: ownHost(origin, logger)})
	if err := d.open(); err != nil {
		t.Fatal(err)
	}
	disk := &unreadable{Backend: d.backend}
	d.effects.backend = disk
	if err := d.start(); err != nil {
		t.Fatal(err)
	}
	a := &testSite{t: t, cfg: origin, d: d}
	a.dial()
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	host.Peers = []config.Peer{{Site: "alpha", Address: d.Address()}}
	startSite(t, host)

	j := shell("echo here")
	j.Processors = 2
	var id string
	a.eventually("the other site is known", func() bool {
		r, err := a.jobs.SubmitJob(a.ctx(), &kithv1.SubmitJobRequest{Job: j})
		id = r.GetJobId()
		return err == nil
	})
	// The host asks again, and again is not answered.
	a.eventually("the grant is tried again", func() bool { return disk.tries.Load() >= 3 })
	if !log.has("level=ERROR", "grant not sent", "job_id="+id, "host=beta", syscall.EIO.Error()) {
		t.Errorf("the log does not tell of it:\n%s", log.text.String())
	}
	disk.healed.Store(true)
	if got := a.waitState(id, completed, failed); got.GetStatus().GetState() != completed || got.GetStatus().GetHostSiteId() != "beta" {
		t.Errorf("%v", got.GetStatus())
	}
}
