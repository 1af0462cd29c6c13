package blobstore

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"testing"
)

func BenchmarkPutSmall(b *testing.B) {
	s := open(b, Config{})
	for i := 0; b.Loop(); i++ {
		mustPut(b, s, fmt.Appendf(nil, "chunk %d", i))
	}
}

func BenchmarkPutAgain(b *testing.B) {
	s := open(b, Config{})
	data := random(1, 2048)
	for b.Loop() {
		mustPut(b, s, data)
	}
}

func BenchmarkPutReader64MiB(b *testing.B) {
	const size = 64 << 20
	data := make([]byte, size)
	b.SetBytes(size)
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		s := open(b, Config{})
		b.StartTimer()
		for c := range size / MaxChunk {
			copy(data[c*MaxChunk:], fmt.Appendf(nil, "%d.%d", i, c))
		}
		if _, err := s.PutReader(background(), io.MultiReader(bytes.NewReader(data)), math.MaxInt64); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGet4MiB(b *testing.B) {
	s := open(b, Config{})
	sum := mustPut(b, s, random(1, MaxChunk))
	buf := make([]byte, MaxChunk)
	b.SetBytes(MaxChunk)
	for b.Loop() {
		if _, err := s.GetInto(buf, sum); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCheckFree is what each submission and each attempt pays to look at the disk.
func BenchmarkCheckFree(b *testing.B) {
	dir := b.TempDir()
	b.ReportAllocs()
	for b.Loop() {
		if err := CheckFree(dir, 1, 1); err != nil {
			b.Fatal(err)
		}
	}
}
