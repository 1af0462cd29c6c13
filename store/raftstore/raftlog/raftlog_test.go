package raftlog_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	bolt "go.etcd.io/bbolt"

	"kith/store"
	"kith/store/raftstore/raftlog"
)

var whose = raftlog.Identity{Site: "alpha", Cluster: [16]byte{1, 2, 3}, Member: "a"}

func open(t testing.TB, path string) *raftlog.Log {
	t.Helper()
	l, err := raftlog.Open(path, whose)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() }) //nolint:errcheck // a test may have closed it
	return l
}

func entry(index, term uint64, data string) *raft.Log {
	return &raft.Log{Index: index, Term: term, Data: []byte(data)}
}

// content returns all entries, which must be those from first to last.
func content(t *testing.T, l *raftlog.Log) map[uint64]raft.Log {
	t.Helper()
	first, err := l.FirstIndex()
	last, err2 := l.LastIndex()
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	all := make(map[uint64]raft.Log)
	if last == 0 {
		return all
	}
	for i := first; i <= last; i++ {
		var e raft.Log
		if err := l.GetLog(i, &e); err != nil {
			t.Fatalf("entry %d of %d to %d: %v", i, first, last, err)
		}
		all[i] = e
	}
	for _, beside := range []uint64{first - 1, last + 1} {
		if err := l.GetLog(beside, new(raft.Log)); !errors.Is(err, raft.ErrLogNotFound) {
			t.Errorf("entry %d beside %d to %d: %v, want ErrLogNotFound", beside, first, last, err)
		}
	}
	return all
}

// Whatever raft does with a log, in any order and over restarts, it has what a map has.
func TestLogAgainstAMap(t *testing.T) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 0))
		path := filepath.Join(t.TempDir(), raftlog.FileName)
		l := open(t, path)
		want := make(map[uint64]raft.Log)
		var first, last uint64
		for step := range 40 {
			switch kind := rng.IntN(10); {
			case kind < 5: // an append, now and then over what is there
				from := last + 1
				if last > 0 && rng.IntN(4) == 0 {
					from = first + rng.Uint64N(last-first+1)
				}
				if last == 0 {
					from = 1 + rng.Uint64N(1000)
					first = from
				}
				for i := from; i <= last; i++ {
					delete(want, i)
				}
				var entries []*raft.Log
				most := uint64(40)
				if rng.IntN(6) == 0 {
					most = 600 // deleted in several transactions
				}
				for i := range 1 + rng.Uint64N(most) {
					e := &raft.Log{Index: from + i, Term: uint64(step), Type: raft.LogType(rng.IntN(6)), Data: make([]byte, 1+rng.IntN(40)), AppendedAt: time.Unix(0, rng.Int64())}
					for j := range e.Data {
						e.Data[j] = byte(rng.Uint32())
					}
					if rng.IntN(3) == 0 {
						e.Extensions = []byte("more")
					}
					entries = append(entries, e)
					want[e.Index], last = *e, e.Index
				}
				if err := l.StoreLogs(entries); err != nil {
					t.Fatalf("seed %d, step %d: %v", seed, step, err)
				}
			case kind < 7 && last > 0: // the beginning, or more than all
				to := first + rng.Uint64N(last-first+3)
				if err := l.DeleteRange(first, to); err != nil {
					t.Fatalf("seed %d, step %d: %v", seed, step, err)
				}
				for i := first; i <= to; i++ {
					delete(want, i)
				}
				if first = to + 1; first > last {
					first, last = 0, 0
				}
			case kind < 9 && last > 0: // the end
				from := first + rng.Uint64N(last-first+1)
				if err := l.DeleteRange(from, last); err != nil {
					t.Fatalf("seed %d, step %d: %v", seed, step, err)
				}
				for i := from; i <= last; i++ {
					delete(want, i)
				}
				if last = from - 1; last < first {
					first, last = 0, 0
				}
			default:
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
				l = open(t, path)
			}
			if got := content(t, l); !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, step %d: the log has %d entries, expected %d from %d to %d", seed, step, len(got), len(want), first, last)
			}
		}
	}
}

// A hole is refused where it would come about, and nothing changes.
func TestHolesAreRefused(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), raftlog.FileName))
	if err := l.StoreLogs([]*raft.Log{entry(5, 1, "a"), entry(6, 1, "b"), entry(7, 1, "c")}); err != nil {
		t.Fatal(err)
	}
	want := content(t, l)
	for name, err := range map[string]error{
		"behind the end":       l.StoreLog(entry(9, 2, "x")),
		"before the begin":     l.StoreLog(entry(4, 2, "x")),
		"within an append":     l.StoreLogs([]*raft.Log{entry(8, 2, "x"), entry(10, 2, "y")}),
		"twice in an append":   l.StoreLogs([]*raft.Log{entry(8, 2, "x"), entry(8, 2, "y")}),
		"deleted in the midst": l.DeleteRange(6, 6),
	} {
		if err == nil || !strings.Contains(err.Error(), "hole") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := l.StoreLog(&raft.Log{Index: 8, Data: make([]byte, raftlog.MaxEntry+1)}); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("an entry that is too large: %v", err)
	}
	if got := content(t, l); !reflect.DeepEqual(got, want) {
		t.Errorf("the log is %v, was %v", got, want)
	}
}

// written returns a log of some entries that is closed.
func written(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), raftlog.FileName)
	l := open(t, path)
	for from := uint64(1); from <= 200; from += 50 {
		var entries []*raft.Log
		for i := range uint64(50) {
			entries = append(entries, entry(from+i, 1, strings.Repeat("entry", 100)))
		}
		if err := l.StoreLogs(entries); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func change(t *testing.T, path string, f func(tx *bolt.Tx) error) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(f), db.Close()); err != nil {
		t.Fatal(err)
	}
}

func key(index uint64) []byte { return binary.BigEndian.AppendUint64(nil, index) }

// What is not this member's log, or not whole, is refused with a reason and not changed.
func TestLogsThatAreRefused(t *testing.T) {
	other := func(f func(id *raftlog.Identity)) func(t *testing.T, path string) raftlog.Identity {
		return func(*testing.T, string) raftlog.Identity { id := whose; f(&id); return id }
	}
	damage := func(f func(t *testing.T, path string)) func(t *testing.T, path string) raftlog.Identity {
		return func(t *testing.T, path string) raftlog.Identity { f(t, path); return whose }
	}
	cases := map[string]struct {
		prepare func(t *testing.T, path string) raftlog.Identity
		want    error
		says    string
	}{
		"another site":    {other(func(id *raftlog.Identity) { id.Site = "beta" }), store.ErrOtherSite, `of site "alpha", not of "beta"`},
		"another cluster": {other(func(id *raftlog.Identity) { id.Cluster[0] = 9 }), raftlog.ErrOtherCluster, "of cluster 0102"},
		"another member":  {other(func(id *raftlog.Identity) { id.Member = "b" }), raftlog.ErrOtherMember, `of member "a", not of "b"`},
		"a later format": {damage(func(t *testing.T, path string) {
			change(t, path, func(tx *bolt.Tx) error {
				b := tx.Bucket([]byte("identity"))
				v := bytes.Clone(b.Get([]byte("identity")))
				v[0] = raftlog.Format + 1
				return b.Put([]byte("identity"), v)
			})
		}), store.ErrNewerFormat, "upgrade kithd"},
		"a hole": {damage(func(t *testing.T, path string) {
			change(t, path, func(tx *bolt.Tx) error { return tx.Bucket([]byte("entries")).Delete(key(77)) })
		}), store.ErrCorrupt, "entry 78 follows 76"},
		"a changed entry": {damage(func(t *testing.T, path string) {
			change(t, path, func(tx *bolt.Tx) error {
				b := tx.Bucket([]byte("entries"))
				v := bytes.Clone(b.Get(key(77)))
				v[len(v)-1] ^= 1
				return b.Put(key(77), v)
			})
		}), store.ErrCorrupt, "entry 77"},
		"an entry in another's place": {damage(func(t *testing.T, path string) {
			change(t, path, func(tx *bolt.Tx) error {
				b := tx.Bucket([]byte("entries"))
				return b.Put(key(77), bytes.Clone(b.Get(key(78))))
			})
		}), store.ErrCorrupt, "entry 77"},
		"no log of raft": {damage(func(t *testing.T, path string) {
			change(t, path, func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte("entries")) })
		}), store.ErrCorrupt, "no log of raft"},
		"a folder": {damage(func(t *testing.T, path string) {
			if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
				t.Fatal(err)
			}
		}), store.ErrCorrupt, "a folder"},
		"no bbolt file": {damage(func(t *testing.T, path string) {
			if err := os.WriteFile(path, bytes.Repeat([]byte("no log"), 10000), 0o600); err != nil {
				t.Fatal(err)
			}
		}), store.ErrCorrupt, "damaged"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			path := written(t)
			id := c.prepare(t, path)
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			var before []byte
			if !info.IsDir() {
				before = read(t, path)
			}
			l, err := raftlog.Open(path, id)
			if err == nil {
				l.Close() //nolint:errcheck // it should not have opened
			}
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), path) {
				t.Errorf("%v; want %v, %q and the file's name", err, c.want, c.says)
			}
			if before != nil && !bytes.Equal(read(t, path), before) {
				t.Error("the file was changed")
			}
		})
	}
}

// A file cut short has all its entries or is refused; it never has some.
func TestLogsCutShort(t *testing.T) {
	path := written(t)
	whole := read(t, path)
	rng := rand.New(rand.NewPCG(1, 0))
	refused := 0
	for range 40 {
		cut := filepath.Join(t.TempDir(), raftlog.FileName)
		size := 1 + rng.IntN(len(whole)-1)
		if err := os.WriteFile(cut, whole[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := raftlog.Open(cut, whose)
		if err != nil {
			if !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), "have it join anew") {
				t.Errorf("cut to %d of %d bytes: %v; want ErrCorrupt and a remedy", size, len(whole), err)
			}
			refused++
			continue
		}
		if got := content(t, l); len(got) != 200 {
			t.Errorf("cut to %d of %d bytes: opened with %d entries of 200", size, len(whole), len(got))
		}
		l.Close() //nolint:errcheck // it was only read
	}
	if refused == 0 {
		t.Error("no cut was refused")
	}
}

func TestLogInUse(t *testing.T) {
	path := written(t)
	open(t, path)
	if _, err := raftlog.Open(path, whose); !errors.Is(err, store.ErrLocked) {
		t.Errorf("%v, want ErrLocked", err)
	}
}

func openVote(t testing.TB, path string) *raftlog.Vote {
	t.Helper()
	v, err := raftlog.OpenVote(path, whose)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() }) //nolint:errcheck // a test may have closed it
	return v
}

func TestVote(t *testing.T) {
	path := filepath.Join(t.TempDir(), raftlog.VoteName)
	v := openVote(t, path)
	if b, err := v.Get([]byte("none")); b != nil || err != nil {
		t.Errorf("what was never set is %q, %v", b, err)
	}
	if n, err := v.GetUint64([]byte("none")); n != 0 || err != nil {
		t.Errorf("what was never set is %d, %v", n, err)
	}
	for i := range uint64(50) {
		if err := errors.Join(v.SetUint64([]byte("term"), i), v.Set([]byte("for"), fmt.Append(nil, "member ", i))); err != nil {
			t.Fatal(err)
		}
		if i%7 == 0 {
			v.Close() //nolint:errcheck // it is opened again
			v = openVote(t, path)
		}
		if n, err := v.GetUint64([]byte("term")); n != i || err != nil {
			t.Fatalf("term %d, %v, want %d", n, err, i)
		}
		if b, err := v.Get([]byte("for")); string(b) != fmt.Sprint("member ", i) || err != nil {
			t.Fatalf("vote for %q, %v", b, err)
		}
	}
	if err := v.Set([]byte("large"), make([]byte, 9000)); err == nil || !strings.Contains(err.Error(), "do not fit") {
		t.Errorf("a value that is too large: %v", err)
	}
	if err := v.Set(nil, []byte("x")); err == nil {
		t.Error("a value without a key was taken")
	}
	if _, err := v.GetUint64([]byte("for")); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("a text as a number: %v", err)
	}
	v.Close() //nolint:errcheck // it is opened again
	v = openVote(t, path)
	if n, _ := v.GetUint64([]byte("term")); n != 49 {
		t.Errorf("after a value that was refused the term is %d", n)
	}
}

// A write that the machine did not live to finish leaves the values before it, never others,
// wherever it was torn.
func TestTornVote(t *testing.T) {
	path := filepath.Join(t.TempDir(), raftlog.VoteName)
	v := openVote(t, path)
	if err := errors.Join(v.SetUint64([]byte("term"), 1), v.SetUint64([]byte("term"), 2)); err != nil {
		t.Fatal(err)
	}
	before := read(t, path)
	if err := v.SetUint64([]byte("term"), 3); err != nil {
		t.Fatal(err)
	}
	after := read(t, path)
	for at := range before {
		if at%512 != 0 && before[at] == after[at] {
			continue
		}
		torn := append(bytes.Clone(after[:at]), before[at:]...)
		tornPath := filepath.Join(t.TempDir(), raftlog.VoteName)
		if err := os.WriteFile(tornPath, torn, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := openVote(t, tornPath).GetUint64([]byte("term"))
		want := uint64(2)
		if bytes.Equal(torn, after) {
			want = 3
		}
		if got != want || err != nil {
			t.Errorf("torn at %d: term %d, %v, want %d", at, got, err, want)
		}
	}
}

func TestVotesThatAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), raftlog.VoteName)
	if err := openVote(t, path).SetUint64([]byte("term"), 7); err != nil {
		t.Fatal(err)
	}
	whole := read(t, path)
	site, cluster, member := whose, whose, whose
	site.Site, cluster.Cluster[3], member.Member = "beta", 9, "b"
	for name, c := range map[string]struct {
		text []byte
		id   raftlog.Identity
		want error
	}{
		"another site":    {whole, site, store.ErrOtherSite},
		"another cluster": {whole, cluster, raftlog.ErrOtherCluster},
		"another member":  {whole, member, raftlog.ErrOtherMember},
		"cut short":       {whole[:len(whole)-1], whose, store.ErrCorrupt},
		"empty":           {nil, whose, store.ErrCorrupt},
		"zeros":           {make([]byte, len(whole)), whose, store.ErrCorrupt},
	} {
		file := filepath.Join(t.TempDir(), raftlog.VoteName)
		if err := os.WriteFile(file, c.text, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := raftlog.OpenVote(file, c.id); !errors.Is(err, c.want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v, want %v and the file's name", name, err, c.want)
		}
		if !bytes.Equal(read(t, file), c.text) {
			t.Errorf("%s: the file was changed", name)
		}
	}
}
