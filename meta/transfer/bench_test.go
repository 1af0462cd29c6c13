package transfer

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kith/store/blobstore"
)

// BenchmarkCollectNothing is the end of /bin/true: thousands of them a second.
func BenchmarkCollectNothing(b *testing.B) {
	l, dir := leave(b)
	write(b, filepath.Dir(dir), "out", nil)
	write(b, filepath.Dir(dir), "err", nil)
	benchmarkCollect(b, l)
}

// BenchmarkCollectHello is the end of a job that prints a line.
func BenchmarkCollectHello(b *testing.B) {
	l, dir := leave(b)
	write(b, filepath.Dir(dir), "out", []byte("hello\n"))
	write(b, filepath.Dir(dir), "err", nil)
	benchmarkCollect(b, l)
}

func benchmarkCollect(b *testing.B, l Leaving) {
	c := &Collector{Store: openStore(b, blobstore.Config{})}
	b.ReportAllocs()
	for b.Loop() {
		got, err := c.Collect(background(), l)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := got.Set.Encode(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPackTooMany refuses 10,000 files, at once and without reading one.
func BenchmarkPackTooMany(b *testing.B) {
	p := &Packer{Store: openStore(b, blobstore.Config{})}
	inputs := make([]Input, 10000)
	for i := range inputs {
		inputs[i] = Input{Path: fmt.Sprintf("f%d", i), Source: "/proc/self/exe"}
	}
	for b.Loop() {
		if _, _, err := p.Pack(background(), inputs); !errors.Is(err, ErrTooMany) {
			b.Fatal(err)
		}
	}
}

// BenchmarkThousandTiny packs and unpacks 1000 files of 1 KiB, of which 64
// travel inline and 936 are chunks of their own.
func BenchmarkThousandTiny(b *testing.B) {
	root := b.TempDir()
	var inputs []Input
	for i := range MaxFiles {
		name := fmt.Sprintf("f%03d", i)
		inputs = append(inputs, Input{Path: "in/" + name, Source: write(b, root, name, random(uint64(i), 1024))})
	}
	var packing, unpacking time.Duration
	for b.Loop() {
		store := openStore(b, blobstore.Config{}) // Anew: a chunk that is there costs nothing.
		begin := time.Now()
		set, _, err := (&Packer{Store: store, Roots: []string{root}}).Pack(background(), inputs)
		if err != nil {
			b.Fatal(err)
		}
		packing += time.Since(begin)
		begin = time.Now()
		if err := (&Unpacker{Store: store}).Unpack(background(), set, b.TempDir()); err != nil {
			b.Fatal(err)
		}
		unpacking += time.Since(begin)
	}
	b.ReportMetric(float64(packing.Milliseconds())/float64(b.N), "pack-ms")
	b.ReportMetric(float64(unpacking.Milliseconds())/float64(b.N), "unpack-ms")
}

// BenchmarkOneGiB packs and unpacks a file of 1 GiB and measures next to it
// what the machine can do at best: hash, write and sync, and copy as much.
func BenchmarkOneGiB(b *testing.B) {
	if testing.Short() {
		b.Skip("left out with -short: it writes 4 GiB")
	}
	const size = 1 << 30
	root := b.TempDir()
	path := filepath.Join(root, "big")
	piece := random(1, ChunkBytes)
	var spent struct{ sha, write, read, pack, again, unpack time.Duration }
	clock := func(d *time.Duration, f func() error) {
		b.Helper()
		begin := time.Now()
		if err := f(); err != nil {
			b.Fatal(err)
		}
		*d += time.Since(begin)
	}
	b.SetBytes(2 * size)
	for b.Loop() {
		store := openStore(b, blobstore.Config{})
		clock(&spent.write, func() error { return writeNumbered(path, piece, size) })
		clock(&spent.sha, func() error { return hashTimes(piece, size) })
		clock(&spent.read, func() error { return copyFile(path, filepath.Join(root, "copy")) })
		var set Set
		pack := func() (err error) {
			set, _, err = (&Packer{Store: store, Roots: []string{root}}).Pack(background(), []Input{{Path: "big", Source: path}})
			return err
		}
		clock(&spent.pack, pack)
		clock(&spent.again, pack)
		clock(&spent.unpack, func() error { return (&Unpacker{Store: store}).Unpack(background(), set, b.TempDir()) })
	}
	rate := func(d time.Duration, unit string) {
		b.ReportMetric(float64(b.N)*size/1e6/d.Seconds(), unit)
	}
	rate(spent.sha, "sha256-MB/s")
	rate(spent.write, "write+sync-MB/s")
	rate(spent.read, "copy-MB/s")
	rate(spent.pack, "pack-MB/s")
	rate(spent.again, "pack-again-MB/s")
	rate(spent.unpack, "unpack-MB/s")
}

// writeNumbered writes size bytes, no two pieces of them equal, and syncs them.
func writeNumbered(path string, piece []byte, size int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	for n := range size / len(piece) {
		copy(piece, fmt.Appendf(nil, "%08d", n))
		if _, err := f.Write(piece); err != nil {
			return err
		}
	}
	return errors.Join(f.Sync(), f.Close())
}

// hashTimes hashes size bytes.
func hashTimes(piece []byte, size int) error {
	h := sha256.New()
	for range size / len(piece) {
		if _, err := h.Write(piece); err != nil {
			return err
		}
	}
	return nil
}

// copyFile copies a file through a buffer, without syncing it.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // Only read from.
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{in}, make([]byte, ChunkBytes))
	return errors.Join(err, out.Close())
}
