package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/transfer"
	"kith/store/blobstore"
)

// The output of each task is its own, whatever container it is in, or if it is too long for one.
func TestOutputsAreGathered(t *testing.T) {
	t.Parallel()
	const script = `case $KITH_TASK_INDEX in 18) n=200000;; *) n=3000;; esac; head -c $n /dev/zero | tr '\0' $1`
	s := taskStaging(t, script, transfer.Set{})
	for task := range uint32(3) {
		s.Launch(launchOf(foreignBundle, task+2))
	}
	sets := make(map[uint32]transfer.Set)
	for range 3 {
		for {
			var ended meta.AttemptEnded
			select {
			case ev := <-s.events:
				var is bool
				if ended, is = ev.(meta.AttemptEnded); !is {
					continue
				}
			case <-time.After(30 * time.Second):
				t.Fatal("a task does not end")
			}
			set, err := transfer.Decode(ended.Outcome.Files)
			if err != nil || ended.Outcome.Kind != job.Success || !ended.Outcome.FilesRemain {
				t.Fatalf("%+v, %v", ended.Outcome, err)
			}
			sets[ended.Attempt.Number-1] = set
			break
		}
	}
	for task, set := range sets {
		f, ok := set.Find("stdout")
		x, n := fmt.Sprint(task/2+1), 3000
		if task == 4 {
			n = 200000
		}
		r := transfer.OpenFile(s.files.blobs, f)
		data := make([]byte, f.Size)
		_, err := r.ReadAt(data, 0)
		if closeErr := r.Close(); !ok || err != nil || closeErr != nil || string(data) != strings.Repeat(x, n) {
			t.Errorf("task %d: %d bytes %.5q, %v", task, len(data), data, err)
		}
	}
	if s.gathering.bytes != 0 {
		t.Errorf("%d bytes are still reserved", s.gathering.bytes)
	}
}

// Outputs of tasks that wait together are one chunk, which is opened and verified once
// however many of them are read.
func TestOutputsShareAContainer(t *testing.T) {
	t.Parallel()
	s := taskStaging(t, "head -c 3000 /dev/zero | tr '\\0' $1", transfer.Set{})
	const tasks = 3
	b := &gatheredBag{full: make(chan struct{}, 1)}
	s.gathering.bags = map[job.ID]*gatheredBag{foreignBundle.Job: b} // nothing is taken before all wait
	for task := range uint32(tasks) {
		s.Launch(launchOf(foreignBundle, task+2))
	}
	for deadline := time.Now().Add(30 * time.Second); s.gathering.count(b) < tasks; {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d outputs wait for a container", s.gathering.count(b), tasks)
		}
		time.Sleep(5 * time.Millisecond)
	}
	s.wg.Go(func() { s.pour(foreignBundle.Job, b) })
	containers := make(map[blobstore.Sum]bool)
	for range tasks {
		set, err := transfer.Decode(s.outcome().Files)
		f, ok := set.Find("stdout")
		if err != nil || !ok || f.Container != 3000*tasks {
			t.Fatalf("%+v, %v: want a place among %d bytes", f, err, 3000*tasks)
		}
		containers[f.Chunks[0]] = true
		if data, end, err := s.files.ReadFile(f, 0); len(data) != 3000 || !end || err != nil {
			t.Errorf("%d bytes, %v", len(data), err)
		}
		// What is read of it next is read from the file that is open.
		name := f.Chunks[0].String()
		if err := os.Remove(filepath.Join(s.files.cfg.Dir, "blobs", "chunks", name[:2], name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	if len(containers) != 1 {
		t.Errorf("%d containers", len(containers))
	}
}

// What goes into one container is bounded, and what waits of a bag is forgotten with the last.
func TestContainersAreBounded(t *testing.T) {
	output := func(n int64) gathered {
		return gathered{collection: transfer.Collection{Loose: []transfer.Loose{{File: transfer.File{Size: n}}}}}
	}
	for name, c := range map[string]struct {
		size int64
		n    int
		want []int
	}{
		"few":  {100, 3, []int{3}},
		"many": {100, gatherMost + 1, []int{gatherMost, 1}},
		"long": {transfer.MaxLoose, 17, []int{16, 1}},
	} {
		b := &gatheredBag{}
		g := gathering{bags: map[job.ID]*gatheredBag{{}: b}}
		for range c.n {
			b.waiting = append(b.waiting, output(c.size))
			b.bytes += c.size
		}
		for _, want := range append(c.want, 0) {
			if got := len(g.take(job.ID{}, b)); got != want {
				t.Errorf("%s: %d in a container, want %d", name, got, want)
			}
		}
		if len(g.bags) != 0 || b.bytes != 0 {
			t.Errorf("%s: %d bags, %d bytes are left", name, len(g.bags), b.bytes)
		}
	}
}

// What cannot be put into a container is stored by itself.
func TestGatheredOutputIsStoredByItself(t *testing.T) {
	t.Parallel()
	s := taskStaging(t, "head -c 3000 /dev/zero", transfer.Set{})
	collect := s.collect
	s.collect = func(ctx context.Context, l transfer.Leaving) (transfer.Collection, error) {
		c, err := collect(ctx, l)
		for i := range c.Loose { // longer than a chunk may be
			c.Loose[i].Data = make([]byte, blobstore.MaxChunk+1)
		}
		return c, err
	}
	s.Launch(launchOf(foreignBundle, 3))
	o := s.outcome()
	set, err := transfer.Decode(o.Files)
	if f, ok := set.Find("stdout"); err != nil || o.Kind != job.Success || !ok || f.Size != 3000 || !s.files.blobs.Has(f.Chunks[0]) {
		t.Errorf("%+v, %v", o, err)
	}
}

// A task that leaves a gigabyte does so by itself: the short outputs of the others do not wait
// for it, and it takes no memory that they have.
func TestAGigabyteAmongShortOutputs(t *testing.T) {
	if testing.Short() {
		t.Skip("left out of short runs: reads a gigabyte")
	}
	t.Parallel()
	const size = 1 << 30
	s := taskStaging(t, `case $1 in 3) truncate -s 1073741824 /proc/self/fd/1;; *) head -c 3000 /dev/zero;; esac`, transfer.Set{})
	s.collector.MaxFileBytes = 2 * size
	for task := range uint32(3) { // with 2, 2 and 3 for $1
		s.Launch(launchOf(foreignBundle, 2+task))
	}
	long, short := 0, 0
	for range 3 {
		o := s.outcome()
		set, err := transfer.Decode(o.Files)
		if err != nil || o.Kind != job.Success {
			t.Fatalf("%+v, %v", o, err)
		}
		switch f, _ := set.Find("stdout"); f.Size {
		case size:
			long++
		case 3000:
			if short++; long > 0 {
				t.Error("a short output has waited for a long one")
			}
		default:
			t.Errorf("%d bytes", f.Size)
		}
	}
	if long != 1 || short != 2 {
		t.Errorf("%d long outputs, %d short ones", long, short)
	}
	if n := s.gathering.bytes; n != 0 {
		t.Errorf("%d bytes are still taken", n)
	}
}
