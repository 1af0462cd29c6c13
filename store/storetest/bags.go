package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/internal/job"
	"kith/store"
	"kith/store/codec"
)

// WalkBags is [Walk] for bags and bundles.
func WalkBags(rng *rand.Rand, s *store.State) store.Command {
	now := job.Time(rng.Int64N(1 << 40))
	bags := slices.Collect(s.Bags)
	if len(bags) == 0 || len(bags) < 6 && rng.IntN(20) == 0 {
		return submitBag(rng, s, now)
	}
	switch rng.IntN(16) {
	case 0, 1, 2, 3:
		return bundleAtHost(rng, s, now)
	case 4:
		return resolve(rng, s, now)
	}
	return bagAtOrigin(rng, s, bags[rng.IntN(len(bags))], now)
}

func submitBag(rng *rand.Rand, s *store.State, now job.Time) store.Command {
	id := s.NextID()
	if rng.IntN(10) == 0 {
		id.Seq++ // not the next
	}
	text := []string{"7", "0-9", "0-40:3", "5,9,100-120", "1-3000", "0-8999:2", "0-4199"}[rng.IntN(7)]
	indices, _, err := job.ParseIndices(text)
	if err != nil {
		panic(err)
	}
	c := store.SubmitBag{
		ID: id, Indices: indices, Actor: "ada", Time: now, Priority: rng.Int32N(5) - 2, Retries: uint8(rng.IntN(3)),
		Request: job.Request{Name: "bag", User: "ada", Processors: 1, Walltime: time.Hour, OnSiteLost: job.OnSiteLost(rng.IntN(3))},
		Payload: fmt.Appendf(nil, "payload of %v", id),
	}
	if rng.IntN(3) == 0 {
		c.MaxRunning = 1 + rng.Uint32N(300)
	}
	if rng.IntN(4) == 0 {
		c.Budget = 1 + rng.Uint64N(1<<20)
	}
	if rng.IntN(2) == 0 {
		c.MaxReplicas, c.TailAt = uint8(rng.IntN(store.MaxReplicas+1)), rng.Uint32N(3)
	}
	if rng.IntN(3) == 0 {
		c.RequestID = fmt.Sprint("request-", rng.IntN(20))
	}
	c.After = someAfter(rng, s)
	return c
}

// someTasks returns a part of a set, and now and then a task that is not in it.
func someTasks(rng *rand.Rand, from *job.TaskSet) job.TaskSet {
	var some job.TaskSet
	keep := 1 + rng.IntN(4)
	for task := range from.All {
		if rng.IntN(keep) == 0 {
			some.Add(task)
		}
	}
	if rng.IntN(8) == 0 {
		some.Add(rng.Uint32N(5000))
	}
	return some
}

func someResults(rng *rand.Rand, tasks *job.TaskSet) []job.TaskResult {
	var results []job.TaskResult
	kinds := []job.OutcomeKind{job.Success, job.Success, job.Success, job.Failure, job.Timeout, job.Cancel, job.Loss}
	for task := range tasks.All {
		r := job.TaskResult{
			Ordinal: task, Kind: kinds[rng.IntN(len(kinds))], Start: job.Time(rng.Int64N(1 << 60)), Run: time.Duration(rng.Int64N(1 << 42)),
			CPUTime: time.Duration(rng.Int64N(1 << 42)), MaxRSSBytes: rng.Int64N(1 << 34), FilesLost: rng.IntN(8) == 0,
		}
		switch {
		case r.Kind == job.Failure && rng.IntN(2) == 0:
			r.Signal = 1 + rng.Int32N(job.MaxSignal)
		case r.Kind == job.Failure:
			r.ExitCode = 1 + rng.Int32N(255)
		}
		if r.Kind == job.Failure || r.Kind == job.Timeout {
			r.ErrorLine = []string{"", "no such file", "out of memory"}[rng.IntN(3)]
		}
		results = append(results, r)
	}
	return results
}

// someFiles returns what some tasks of results left.
func someFiles(rng *rand.Rand, results []job.TaskResult) (files []store.TaskFiles) {
	if rng.IntN(2) == 0 {
		return nil
	}
	for i := range results {
		if rng.IntN(4) == 0 {
			files = append(files, store.TaskFiles{Ordinal: results[i].Ordinal, Set: fmt.Appendf(nil, "files %x of %d", rng.Uint32(), results[i].Ordinal)})
		}
	}
	return files
}

func anyBundle(rng *rand.Rand, b *store.Bag) *store.TaskBundle {
	numbers := slices.Sorted(maps.Keys(b.Live))
	if len(numbers) == 0 {
		return nil
	}
	return b.Live[numbers[rng.IntN(len(numbers))]]
}

func bagAtOrigin(rng *rand.Rand, s *store.State, b *store.Bag, now job.Time) store.Command {
	site := Sites()[rng.IntN(3)]
	t := anyBundle(rng, b)
	var bundle job.AttemptID
	if t != nil {
		bundle = job.AttemptID{Job: b.ID, Number: t.Number}
		if rng.IntN(20) > 0 {
			site = t.Site
		}
	}
	all := job.TaskRange(0, b.Tasks())
	switch n := rng.IntN(47); {
	case n == 46:
		return store.SetBudget{Bag: b.ID, Budget: rng.Uint64N(1<<20) * rng.Uint64N(1<<34), Actor: "ada", Time: now}
	case n >= 44:
		c := store.SetPolicies{Bag: b.ID, Version: b.Policies.Version - rng.Uint32N(4)/3, Actor: "ada", Time: now}
		c.Texts[rng.IntN(len(c.Texts))] = []string{"", "true", fmt.Sprint("bag.left > ", rng.IntN(9)), strings.Repeat("x", store.MaxPolicyText+1)}[rng.IntN(4)]
		return c
	case n == 40:
		return store.BeginTail{Bag: b.ID, Time: now}
	case n > 40 && t != nil:
		site = Sites()[rng.IntN(3)]
		return store.GrantBundle{
			Bundle: job.AttemptID{Job: b.ID, Number: b.Number + 1}, Site: site, Stamp: rng.Uint64N(50), Generation: 1,
			Tasks: someReplicas(rng, b, site), Replica: true, Time: now,
		}
	case n < 14 || t == nil && n < 30:
		tasks := b.NextTasks(1 + rng.IntN(300))
		switch rng.IntN(12) {
		case 0:
			tasks = someTasks(rng, &all) // mostly such as do not wait
		case 1:
			tasks.Remove(b.Next) // a gap
		case 2:
			tasks = b.Again.Clone()
		}
		if t != nil && rng.IntN(20) == 0 {
			return store.GrantBundle{Bundle: bundle, Site: t.Site, Node: t.Node, Stamp: t.Stamp, Generation: t.Generation, Tasks: tasks} // repeated
		}
		return store.GrantBundle{
			Bundle: job.AttemptID{Job: b.ID, Number: b.Number + 1 + rng.Uint32N(12)/11}, Site: site, Node: []string{"", "n1"}[rng.IntN(2)],
			Stamp: rng.Uint64N(50), Generation: 1 + rng.Uint32N(2), Lease: time.Minute, Tasks: tasks, Deadline: now + 5, Time: now,
		}
	case t != nil && n < 24:
		tasks := someTasks(rng, &t.Tasks)
		c := store.RecordResults{Bundle: bundle, Site: site, Batch: t.Batch + 1 - rng.Uint32N(8)/7, Results: someResults(rng, &tasks), Time: now}
		c.Files = someFiles(rng, c.Results)
		if rng.IntN(4) == 0 {
			c.Returned = someTasks(rng, &t.Tasks)
		}
		return c
	case t != nil && n < 27:
		return store.ReturnTasks{Bundle: bundle, Site: site, Tasks: someTasks(rng, &t.Tasks), Time: now}
	case t != nil && n < 30:
		return store.RevokeBundle{Bundle: bundle, Site: site, MayRun: rng.IntN(2) == 0, Requeue: rng.IntN(3) == 0, Time: now}
	case n < 31:
		return store.HoldBag{Bag: b.ID, Actor: "ada", Reason: "lunch", Time: now}
	case n < 33:
		return store.ReleaseBag{Bag: b.ID, Actor: "ada", Time: now}
	case n < 34:
		c := store.CancelBag{Bag: b.ID, Actor: "ada", Reason: "wrong", Time: now}
		if rng.IntN(3) > 0 {
			tasks := someTasks(rng, &all)
			c.Tasks = &tasks
		}
		return c
	case n < 36:
		ended := b.Failed.Clone()
		if rng.IntN(2) == 0 {
			ended.AddAll(&b.Cancelled)
			ended.AddAll(&b.Done)
		}
		return store.RetryTasks{Bag: b.ID, Tasks: someTasks(rng, &ended), RequestID: "again", Actor: "ada", Time: now}
	case n < 38:
		return store.CloseBag{Bag: b.ID, Time: now}
	default:
		if rng.IntN(3) > 0 {
			return store.CloseBag{Bag: b.ID, Time: now}
		}
		return store.PurgeBag{Bag: b.ID}
	}
}

// someReplicas returns some tasks that are with sites, mostly with others than one.
func someReplicas(rng *rand.Rand, b *store.Bag, site job.SiteID) (tasks job.TaskSet) {
	for t := range b.Bundles {
		for task := range t.Tasks.All {
			if rng.IntN(8) == 0 && (b.RunsOf(task) <= int(b.MaxReplicas) || rng.IntN(20) == 0) {
				tasks.Add(task)
			}
		}
	}
	if rng.IntN(4) > 0 {
		here := b.TasksAt(site)
		tasks.RemoveAll(&here)
	}
	return tasks
}

func bundleAtHost(rng *rand.Rand, s *store.State, now job.Time) store.Command {
	held := s.HeldBundles()
	if len(held) == 0 || len(held) < 6 && rng.IntN(3) == 0 {
		lo := rng.Uint32N(5000)
		return store.AcceptBundle{
			Bundle:  job.AttemptID{Job: job.ID{Origin: Sites()[rng.IntN(3)], Generation: 1, Seq: rng.Uint64N(5)}, Number: rng.Uint32N(20)},
			Request: job.Request{Processors: 1, Walltime: time.Hour}, BootID: "boot", Tasks: job.TaskRange(lo, lo+rng.Uint32N(280)),
			Payload: fmt.Appendf(nil, "rows from %d", lo), Time: now,
		}
	}
	h := held[rng.IntN(len(held))]
	tasks := someTasks(rng, &h.Tasks)
	switch rng.IntN(5) {
	case 0, 1:
		results := someResults(rng, &tasks)
		return store.EndTasks{Bundle: h.ID, Results: results, Files: someFiles(rng, results)}
	case 2:
		return store.DropTasks{Bundle: h.ID, Tasks: tasks}
	case 3:
		return store.ForgetTasks{Bundle: h.ID, Batch: rng.Uint32N(h.Batch + 2)}
	default:
		return store.ForgetTasks{Bundle: h.ID, Batch: h.Batch, All: rng.IntN(10) == 0}
	}
}

// testBags is [testReopen] for bags, with the results that were recorded.
func testBags(t *testing.T, open Opener) {
	const seed = 1
	rng := rand.New(rand.NewPCG(seed, 1))
	b := open(t)
	s := load(t, b)
	type task struct {
		bag     job.ID
		ordinal uint32
	}
	want, wantFiles := make(map[task]store.TaskRecord), make(map[task]string)
	purged, results, cleared := 0, 0, 0
	for round := range 40 {
		twin := load(t, b) // says what changes
		for range 20 + rng.IntN(100) {
			c := WalkBags(rng, s)
			if first, second := s.Apply(c), twin.Apply(c); (first == nil) != (second == nil) {
				t.Fatalf("seed %d, round %d: %T: %v, and from the disk %v", seed, round, c, first, second)
			}
		}
		changes := twin.TakeChanges()
		for _, r := range changes.Results {
			want[task{r.Bag, r.Result.Ordinal}] = r.TaskRecord
			results++
		}
		for _, f := range changes.TaskFiles {
			key := task{f.Bag, f.Ordinal}
			if _, had := wantFiles[key]; had && len(f.Set) == 0 {
				cleared++
			}
			if wantFiles[key] = string(f.Set); len(f.Set) == 0 {
				delete(wantFiles, key)
			}
		}
		for _, id := range changes.ForgottenBags {
			purged++
			maps.DeleteFunc(want, func(k task, _ store.TaskRecord) bool { return k.bag == id })
			maps.DeleteFunc(wantFiles, func(k task, _ string) bool { return k.bag == id })
		}
		commit(t, b, s)
		dump := codec.Dump(s)
		for range rng.IntN(5) {
			s.Apply(WalkBags(rng, s)) //nolint:errcheck // never committed
		}
		closed(t, b)
		b = open(t)
		s = load(t, b)
		if got := codec.Dump(s); !bytes.Equal(got, dump) {
			t.Fatalf("seed %d, round %d: reopened with another state than was committed (%d and %d bytes)", seed, round, len(got), len(dump))
		}
	}
	got, gotFiles := make(map[task]store.TaskRecord), make(map[task]string)
	for seq := range s.Site().NextSeq {
		id := job.ID{Origin: "alpha", Generation: s.Site().Generation, Seq: seq}
		for block := range uint32(9000/store.ResultBlock + 1) {
			records, err := b.TaskResults(id, block)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range records {
				got[task{id, r.Result.Ordinal}] = r
			}
		}
		for f, err := range store.AllTaskFiles(b, id) {
			if err != nil {
				t.Fatal(err)
			}
			gotFiles[task{id, f.Ordinal}] = string(f.Set)
		}
		if _, err := b.Payload(id); (err == nil) != (s.Bag(id) != nil) {
			t.Errorf("payload of bag %v: %v", id, err)
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("%d results are kept, want %d, or others", len(got), len(want))
	}
	if !maps.Equal(gotFiles, wantFiles) {
		t.Errorf("files of %d tasks are kept, want %d, or others", len(gotFiles), len(wantFiles))
	}
	for _, h := range s.HeldBundles() {
		if p, err := b.HeldPayload(h.ID); err != nil || len(p) == 0 {
			t.Errorf("payload of %v: %q, %v", h.ID, p, err)
		}
	}
	if _, err := b.HeldPayload(job.AttemptID{Number: 99}); !errors.Is(err, store.ErrUnknown) {
		t.Errorf("payload of no bundle: %v", err)
	}
	if len(wantFiles) < 100 || cleared == 0 {
		t.Errorf("the walk only came to files of %d tasks, %d were replaced by nothing", len(wantFiles), cleared)
	}
	if purged == 0 || results < 3000 || len(s.HeldBundles()) == 0 || s.BagCount() == 0 {
		t.Errorf("the walk only came to %d results, %d purged bags, %d held bundles, %d bags", results, purged, len(s.HeldBundles()), s.BagCount())
	}
	closed(t, b)
}
