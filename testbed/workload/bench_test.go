package workload

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkOpen reads the whole CTC log from its gzip, as published.
func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(traces, "CTC-SP2-1996-3.1-cln.swf.gz")
	if _, err := os.Stat(path); err != nil {
		b.Skipf("no %s: this benchmark needs the shared traces beside the repository", path)
	}
	b.ReportAllocs()
	jobs := 0
	for b.Loop() {
		w, err := Open(path)
		if err != nil {
			b.Fatal(err)
		}
		jobs += len(w.Jobs)
	}
	b.ReportMetric(float64(jobs)/b.Elapsed().Seconds(), "jobs/s")
}

// BenchmarkRead reads lines that are not compressed.
func BenchmarkRead(b *testing.B) {
	text := bytes.Repeat([]byte("2 164472 356587 75 17 2.00 -1 -1 300 -1 1 97 -1 195 3 -1 -1 -1\n"), 10000)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read("log", bytes.NewReader(text)); err != nil {
			b.Fatal(err)
		}
	}
}
