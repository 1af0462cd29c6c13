package meta_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/sitesched"
	"kith/store"
)

// A job that waits at its own site costs little more than its facts: 1,250 bytes
// with all that the store, both roles and the scheduler keep of it, its name
// and its request id included.
func TestMemoryOfAQueuedJob(t *testing.T) {
	const jobs, most = 20_000, 1_300
	site, err := sitesched.New(sitesched.Config{Processors: 1})
	if err != nil {
		t.Fatal(err)
	}
	cfg := meta.Default()
	cfg.Self = meta.Self{Processors: 1, Speed: 1}
	cfg.Limits.Jobs, cfg.Limits.CopiesPerOrigin, cfg.Limits.Copies = 2*jobs, 2*jobs, 2*jobs
	state := store.NewState("alpha", 1)
	engine, err := meta.New(cfg, state, site)
	if err != nil {
		t.Fatal(err)
	}
	now := job.Time(time.Hour)
	engine.Restore(now, nil)
	submit := func(i int) {
		engine.Step(now, meta.Submit{
			Request: job.Request{Name: fmt.Sprint("job-", i), Processors: 1, Walltime: time.Hour, Copies: 1}, RequestID: fmt.Sprint("fill-", i),
		})
		engine.Step(now, meta.Pass{})
		state.DropChanges()
	}
	submit(0) // it runs
	before := live()
	for i := range jobs {
		submit(i + 1)
	}
	each := (int64(live()) - int64(before)) / jobs
	if state.CopyCount() != jobs+1 {
		t.Fatalf("%d copies are queued, want %d", state.CopyCount(), jobs+1)
	}
	t.Logf("%d bytes a job", each)
	if each > most {
		t.Errorf("a queued job takes %d bytes, want at most %d", each, most)
	}
	runtime.KeepAlive(engine)
}

// live returns the bytes of the heap that are in use.
func live() uint64 {
	var m runtime.MemStats
	for range 2 { // what has a finalizer goes in the second round
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
