package raftlog_test

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
	raftbench "github.com/hashicorp/raft/bench"

	"kith/store/raftstore/raftlog"
)

// suite is the library's own for stores of logs.
var suite = map[string]func(b *testing.B, l raft.LogStore, v raft.StableStore){
	"FirstIndex":  func(b *testing.B, l raft.LogStore, _ raft.StableStore) { raftbench.FirstIndex(b, l) },
	"LastIndex":   func(b *testing.B, l raft.LogStore, _ raft.StableStore) { raftbench.LastIndex(b, l) },
	"GetLog":      func(b *testing.B, l raft.LogStore, _ raft.StableStore) { raftbench.GetLog(b, l) },
	"StoreLog":    func(b *testing.B, l raft.LogStore, _ raft.StableStore) { raftbench.StoreLog(b, l) },
	"StoreLogs":   func(b *testing.B, l raft.LogStore, _ raft.StableStore) { raftbench.StoreLogs(b, l) },
	"DeleteRange": func(b *testing.B, l raft.LogStore, _ raft.StableStore) { raftbench.DeleteRange(b, withoutHoles{l}) },
	"Set":         func(b *testing.B, _ raft.LogStore, v raft.StableStore) { raftbench.Set(b, v) },
	"Get":         func(b *testing.B, _ raft.LogStore, v raft.StableStore) { raftbench.Get(b, v) },
	"SetUint64":   func(b *testing.B, _ raft.LogStore, v raft.StableStore) { raftbench.SetUint64(b, v) },
	"GetUint64":   func(b *testing.B, _ raft.LogStore, v raft.StableStore) { raftbench.GetUint64(b, v) },
}

// withoutHoles numbers the entries of the suite's test of deleting anew: it writes three of
// each ten indices, which a log without holes refuses.
type withoutHoles struct{ raft.LogStore }

func (w withoutHoles) StoreLogs(entries []*raft.Log) error {
	for _, e := range entries {
		e.Index = e.Index/10*3 + e.Index%10 + 1
	}
	return w.LogStore.StoreLogs(entries)
}

func (w withoutHoles) DeleteRange(from, to uint64) error {
	return w.LogStore.DeleteRange(from/10*3+1, to/10*3+3)
}

func run(b *testing.B, test func(b *testing.B, l raft.LogStore, v raft.StableStore)) {
	dir := b.TempDir()
	test(b, open(b, filepath.Join(dir, raftlog.FileName)), openVote(b, filepath.Join(dir, raftlog.VoteName)))
}

func BenchmarkSuite(b *testing.B) {
	for name, test := range suite {
		b.Run(name, func(b *testing.B) { run(b, test) })
	}
}

// TestSuite runs each part of the library's suite a few times.
func TestSuite(t *testing.T) {
	length := flag.Lookup("test.benchtime")
	before := length.Value.String()
	if err := length.Value.Set("20x"); err != nil {
		t.Fatal(err)
	}
	defer length.Value.Set(before) //nolint:errcheck // it was there
	for name, test := range suite {
		failed := true
		r := testing.Benchmark(func(b *testing.B) { run(b, test); failed = b.Failed() })
		if failed || r.N != 20 {
			t.Errorf("%s fails, %d rounds", name, r.N)
		}
	}
}
