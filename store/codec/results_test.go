package codec

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kith/internal/job"
	"kith/store"
)

// randomRecord is a result as a bag of real tasks has them: they begin one after another
// and run for about a time.
func randomRecord(rng *rand.Rand, ordinal uint32) store.TaskRecord {
	r := store.TaskRecord{
		Result: job.TaskResult{
			Ordinal: ordinal, Kind: job.Success, Start: job.Time(1_800_000_000_000_000_000 + int64(ordinal)*1_000_000 + rng.Int64N(1e9)/1000*1000),
			Run: time.Duration(10e9 + rng.Int64N(5e9)).Truncate(time.Microsecond), CPUTime: time.Duration(9e9 + rng.Int64N(5e9)).Truncate(time.Microsecond),
			MaxRSSBytes: (200 << 20) + rng.Int64N(1<<20)*1024, FilesLost: rng.IntN(20) == 0,
		},
		Bundle: 1 + rng.Uint32N(4000), Site: []job.SiteID{"beta", "gamma"}[rng.IntN(2)],
	}
	switch rng.IntN(30) {
	case 0:
		r.Result.Kind, r.Result.ExitCode, r.Tries = job.Failure, 1+rng.Int32N(255), uint8(rng.IntN(3))
	case 1:
		r.Result.Kind, r.Result.Signal = job.Failure, 1+rng.Int32N(64)
	case 2:
		r.Result = job.TaskResult{Ordinal: ordinal, Kind: job.Loss}
	}
	return r
}

func block(records ...store.TaskRecord) []byte {
	return sealBytes(appendBlock(nil, sortedRecords(slices.Clone(records))))
}

// However results come, in parts of any size and order, a block has the latest of each task.
func TestBlocksMerge(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 0))
		first := uint32(rng.IntN(3)) * store.ResultBlock
		want := map[uint32]store.TaskRecord{}
		var kept []byte
		for range rng.IntN(30) {
			var part []store.TaskRecord
			for range 1 + rng.IntN(20) {
				r := randomRecord(rng, first+rng.Uint32N(store.ResultBlock))
				part = append(part, r)
				want[r.Result.Ordinal] = r
			}
			before, sealed := slices.Clone(kept), block(part...)
			merged, err := MergeResults(kept, sealed)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := MergeResults(before, sealed); err != nil || !bytes.Equal(again, merged) {
				t.Fatalf("seed %d: merging is not repeatable: %v", seed, err)
			}
			kept = merged
		}
		if kept == nil {
			continue
		}
		got, err := TaskRecords(kept, first)
		if err != nil || len(got) != len(want) {
			t.Fatalf("seed %d: %d results, want %d, %v", seed, len(got), len(want), err)
		}
		for i, r := range got {
			if r != want[r.Result.Ordinal] || i > 0 && got[i-1].Result.Ordinal >= r.Result.Ordinal {
				t.Fatalf("seed %d: %+v, want %+v", seed, r, want[r.Result.Ordinal])
			}
		}
	}
}

// A finished task without output takes at most 32 bytes on disk, with its part of the key.
func TestBlocksAreSmall(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	var records []store.TaskRecord
	for ordinal := range uint32(store.ResultBlock) {
		records = append(records, randomRecord(rng, ordinal))
	}
	key := ResultsKey(job.ID{}, 0)
	n := float64(len(block(records...))+len(key)) / store.ResultBlock
	t.Logf("%.1f bytes a task", n)
	if n > 32 {
		t.Errorf("%.1f bytes a task", n)
	}
}

func TestDamagedBlocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	good := appendBlock(nil, []store.TaskRecord{randomRecord(rng, 3), randomRecord(rng, 7)})
	if _, err := TaskRecords(sealBytes(good), 0); err != nil {
		t.Fatal(err)
	}
	for n := range good {
		if records, err := TaskRecords(sealBytes(good[:n]), 0); !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("cut off at %d of %d bytes: %+v, %v", n, len(good), records, err)
		}
	}
	if _, err := TaskRecords(sealBytes(append(slices.Clone(good), 0)), 0); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("a byte more: %v", err)
	}
	broken := sealBytes(good)
	broken[10] ^= 1
	if _, err := TaskRecords(broken, 0); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("a wrong checksum: %v", err)
	}
	if _, err := MergeResults(broken, sealBytes(good)); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("a part for a damaged block: %v", err)
	}
}

func FuzzTaskRecords(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 0))
	var records []store.TaskRecord
	for ordinal := range uint32(40) {
		records = append(records, randomRecord(rng, ordinal*3))
		f.Add(appendBlock(nil, records))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := TaskRecords(sealBytes(data), 512)
		if err != nil {
			return
		}
		// What is read is written so that it is read again.
		back, err := TaskRecords(block(got...), 512)
		if err != nil || !slices.Equal(back, got) {
			t.Errorf("%x: %+v became %+v, %v", data, got, back, err)
		}
	})
}

func BenchmarkMergeResults(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 0))
	var half, part []store.TaskRecord
	for ordinal := range uint32(store.ResultBlock) {
		if ordinal%2 == 0 {
			half = append(half, randomRecord(rng, ordinal))
		} else if len(part) < 8 {
			part = append(part, randomRecord(rng, ordinal))
		}
	}
	old, more := block(half...), block(part...)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := MergeResults(old, more); err != nil {
			b.Fatal(err)
		}
	}
}
