package commit_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/commit"
	"kith/sitesched/batch"
	"kith/store/memstore"
)

// life is a daemon's, before a batch system.
type life struct {
	t       *testing.T
	now     job.Time
	engine  *meta.Engine
	barrier *commit.Barrier
}

func begin(t *testing.T, disk *memstore.Disk, now job.Time) *life {
	t.Helper()
	backend, err := memstore.Open(disk, "alpha", 1)
	if err != nil {
		t.Fatal(err)
	}
	facts, err := backend.Load()
	if err != nil {
		t.Fatal(err)
	}
	cfg := meta.Default()
	cfg.Self = meta.Self{Processors: 4, Speed: 1}
	engine, err := meta.New(cfg, facts, batch.New(4))
	if err != nil {
		t.Fatal(err)
	}
	l := &life{t: t, now: now, engine: engine, barrier: commit.New(facts, backend, nil)}
	l.add(engine.Restore(now, nil))
	l.feed(meta.Pass{})
	return l
}

func (l *life) add(effects []meta.Effect) {
	l.t.Helper()
	if now := l.barrier.Add(effects); len(now) > 0 {
		l.t.Errorf("leave before the commit: %v", now)
	}
}

func (l *life) feed(ev meta.Event) {
	l.t.Helper()
	l.add(l.engine.Step(l.now, ev))
}

// sync makes all durable and returns what a batch system is told then.
func (l *life) sync() []string {
	l.t.Helper()
	told := []string{}
	ready, ok := l.barrier.Next()
	if !ok {
		return told
	}
	effects, err := ready.Commit()
	if err != nil {
		l.t.Fatal(err)
	}
	l.barrier.Done()
	for _, f := range effects {
		switch f := f.(type) {
		case meta.Queue:
			told = append(told, fmt.Sprintf("queue %d", f.Copy.ID.Job.Seq))
		case meta.Dequeue:
			told = append(told, fmt.Sprintf("dequeue %d", f.Attempt.Job.Seq))
		case meta.Launch:
			told = append(told, fmt.Sprintf("launch %d", f.Attempt.Job.Seq))
		case meta.Adopt:
			told = append(told, fmt.Sprintf("adopt %d", f.Attempt.Job.Seq))
		case meta.Restored:
			told = append(told, "restored")
		}
	}
	return told
}

func (l *life) expect(want ...string) {
	l.t.Helper()
	if got := l.sync(); !reflect.DeepEqual(got, want) {
		l.t.Errorf("the batch system is told %q, expected %q", got, want)
	}
}

// What a batch system queues for this site, a crash cannot take back; what a crash
// keeps it from taking out, the next daemon tells it to.
func TestABatchSystemIsToldOfDurableFacts(t *testing.T) {
	var disk memstore.Disk
	submit := meta.Submit{Request: job.Request{Name: "x", Processors: 1, Copies: 1, Walltime: time.Minute}}
	first := job.ID{Origin: "alpha", Generation: 1, Seq: 1}

	l := begin(t, &disk, job.Time(time.Hour))
	l.expect("restored")
	l.feed(submit) // and it is killed before the commit

	l = begin(t, &disk, l.now+1)
	l.expect("restored")
	l.feed(submit)
	l.feed(submit)
	l.expect("queue 1", "queue 2")
	l.feed(meta.TurnCame{Attempt: job.AttemptID{Job: job.ID{Origin: "alpha", Generation: 1, Seq: 2}, Number: 1}})
	l.feed(meta.Pass{})
	l.expect("launch 2")
	l.feed(meta.Cancel{Job: first})
	ready, _ := l.barrier.Next()
	if _, err := ready.Commit(); err != nil { // and it is killed before the effects leave
		t.Fatal(err)
	}

	// The cancelled one is not named: it is a stray.
	begin(t, &disk, l.now+1).expect("adopt 2", "restored")
}
