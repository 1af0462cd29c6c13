package blobstore

import (
	"bytes"
	"errors"
	"os"
	"syscall"
	"testing"
)

func TestDamageIsFoundAndRepaired(t *testing.T) {
	data := random(1, 10000)
	sum := SumOf(data)
	for name, damage := range map[string]func(path string) error{
		"a bit":      func(p string) error { return overwrite(p, 5000, data[5000]^1) },
		"first byte": func(p string) error { return overwrite(p, 0, data[0]+1) },
		"shorter":    func(p string) error { return os.Truncate(p, 9999) },
		"longer":     func(p string) error { return os.Truncate(p, 10001) },
		"empty":      func(p string) error { return os.Truncate(p, 0) },
		"far longer": func(p string) error { return os.Truncate(p, MaxChunk+1) },
		"gone":       os.Remove,
		"a FIFO": func(p string) error {
			return errors.Join(os.Remove(p), syscall.Mkfifo(p, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, Config{})
			mustPut(t, s, data)
			if err := damage(chunkFile(s, sum)); err != nil {
				t.Fatal(err)
			}
			_, err := s.Get(sum)
			if !errors.Is(err, ErrNotFound) || errors.Is(err, ErrCorrupt) != (name != "gone") {
				t.Errorf("Get returned %v", err)
			}
			if s.Has(sum) || len(s.Missing([]Sum{sum})) != 1 || s.Usage().Bytes != 0 {
				t.Errorf("the chunk still counts: Has %v, usage %+v", s.Has(sum), s.Usage())
			}
			if _, err := os.Lstat(chunkFile(s, sum)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the file is still there: %v", err)
			}
			mustPut(t, s, data)
			checkContent(t, s, sum, data)
		})
	}
}

// overwrite changes one byte of a file.
func overwrite(path string, offset int64, b byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte{b}, offset)
	return errors.Join(err, f.Close())
}

func TestMissingKeepsOrder(t *testing.T) {
	s := open(t, Config{})
	a, b, c := SumOf([]byte("a")), mustPut(t, s, []byte("b")), SumOf([]byte("c"))
	got := s.Missing([]Sum{c, b, a, c, b, a})
	if len(got) != 2 || got[0] != c || got[1] != a {
		t.Errorf("Missing = %v, want %v", got, []Sum{c, a})
	}
	if got := s.Missing(nil); len(got) != 0 {
		t.Errorf("Missing of nothing = %v", got)
	}
}

func TestOpenChunk(t *testing.T) {
	clock := newClock()
	s := open(t, Config{Now: clock.read})
	data := random(2, 300000)
	sum := mustPut(t, s, data)
	chunk, err := s.OpenChunk(sum)
	if err != nil {
		t.Fatal(err)
	}
	clock.pass(1)
	if _, err := s.Sweep(background(), alive(), 0); err != nil {
		t.Fatal(err)
	}
	if s.Has(sum) {
		t.Fatal("the sweep left the chunk")
	}
	got := make([]byte, 1000)
	if n, err := chunk.ReadAt(got, 299000); n != 1000 || err != nil || !bytes.Equal(got, data[299000:]) {
		t.Errorf("ReadAt after the sweep = %d, %v", n, err)
	}
	if n, err := chunk.ReadAt(got, 299999); n != 1 || err == nil {
		t.Errorf("ReadAt over the end = %d, %v; want 1 and an error", n, err)
	}
	if chunk.Size() != 300000 {
		t.Errorf("Size = %d", chunk.Size())
	}
	if err := chunk.Close(); err != nil {
		t.Error(err)
	}
	if _, err := s.OpenChunk(sum); !errors.Is(err, ErrNotFound) {
		t.Errorf("OpenChunk of a swept chunk returned %v, want ErrNotFound", err)
	}
}

func TestOpenChunkVerifies(t *testing.T) {
	s := open(t, Config{})
	data := random(3, 1000)
	sum := mustPut(t, s, data)
	if err := overwrite(chunkFile(s, sum), 1, data[1]^0x80); err != nil {
		t.Fatal(err)
	}
	if _, err := s.OpenChunk(sum); !errors.Is(err, ErrCorrupt) {
		t.Errorf("OpenChunk returned %v, want ErrCorrupt", err)
	}
}

// TestDamagedReadSparesTheRepair checks that a reader that finds damage does
// not remove the good file that came in its place.
func TestDamagedReadSparesTheRepair(t *testing.T) {
	s := open(t, Config{})
	data := random(4, 1000)
	sum := mustPut(t, s, data)
	old, _, err := s.openChunk(sum)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close() //nolint:errcheck // Only read from.
	if err := os.Remove(chunkFile(s, sum)); err != nil {
		t.Fatal(err)
	}
	mustPut(t, s, data)
	if err := s.damaged(sum, old); !errors.Is(err, ErrCorrupt) {
		t.Fatal(err)
	}
	checkContent(t, s, sum, data)
}

// A disk that gives an error once says nothing about a chunk, which stays. The kernel
// answers EIO to a read of a process's memory where nothing is mapped.
func TestReadErrorIsNoDamage(t *testing.T) {
	s := open(t, Config{})
	data := random(5, 1000)
	sum := mustPut(t, s, data)
	broken, err := os.Open("/proc/self/mem")
	if err != nil {
		t.Skip("no file whose reads fail is here, /proc/self/mem cannot be opened: ", err)
	}
	defer broken.Close() //nolint:errcheck // Only read from.
	if _, err := broken.ReadAt(make([]byte, 1), 0); !errors.Is(err, syscall.EIO) {
		t.Skipf("reading /proc/self/mem gives %v here, not EIO", err)
	}
	if err := s.verify(broken, sum, make([]byte, len(data))); !errors.Is(err, syscall.EIO) || errors.Is(err, ErrCorrupt) || errors.Is(err, ErrNotFound) {
		t.Errorf("a read that fails is %v, want EIO and nothing else", err)
	}
	checkContent(t, s, sum, data)
	if usage := s.Usage(); usage.Chunks != 1 {
		t.Errorf("usage %+v", usage)
	}
}

func TestGetIntoReusesSpace(t *testing.T) {
	s := open(t, Config{})
	sum := mustPut(t, s, []byte("hello"))
	buf := make([]byte, 0, 100)
	got, err := s.GetInto(buf, sum)
	if err != nil || string(got) != "hello" || &got[0] != &buf[:1][0] {
		t.Errorf("GetInto = %q, %v; want hello in the given space", got, err)
	}
	if got, err := s.GetInto(make([]byte, 0, 2), sum); err != nil || string(got) != "hello" {
		t.Errorf("GetInto with little space = %q, %v", got, err)
	}
}
