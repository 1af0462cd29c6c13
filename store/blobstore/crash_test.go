package blobstore

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

const crashDirVariable = "BLOBSTORE_CRASH_TEST_DIR"

// TestKilledProcess kills a process that puts chunks and checks that each one
// it acknowledged is there, whole, and that nothing else is left (B1).
func TestKilledProcess(t *testing.T) {
	if dir := os.Getenv(crashDirVariable); dir != "" {
		putForever(t, dir)
		return
	}
	dir := filepath.Join(t.TempDir(), "blobs")
	for round := range 3 {
		acknowledged := runAndKill(t, dir, time.Duration(20+20*round)*time.Millisecond)
		s, err := Open(Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range acknowledged {
			sum, err := ParseSum(text)
			if err != nil {
				t.Fatalf("the process printed %q", text)
			}
			if _, err := s.Get(sum); err != nil {
				t.Errorf("round %d: acknowledged, but %v", round, err)
			}
		}
		if n := leftovers(t, s); n != 0 {
			t.Errorf("round %d: %d temporary files are left", round, n)
		}
		if len(acknowledged) == 0 {
			t.Errorf("round %d: the process put nothing", round)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// putForever puts chunks and prints the name of each once it is durable.
func putForever(t *testing.T, dir string) {
	s := open(t, Config{Dir: dir})
	for i := 0; ; i++ {
		sum := mustPut(t, s, fmt.Appendf(nil, "%d of process %d", i, os.Getpid()))
		if _, err := fmt.Println(sum); err != nil {
			return
		}
	}
}

// runAndKill runs putForever in a process of its own, kills it a while after
// its first chunk, and returns the whole lines that it printed.
func runAndKill(t *testing.T, dir string, after time.Duration) []string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledProcess$")
	cmd.Env = append(os.Environ(), crashDirVariable+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for scanner := bufio.NewScanner(out); scanner.Scan(); {
		if len(lines) == 0 {
			timer := time.AfterFunc(after, func() { cmd.Process.Kill() }) //nolint:errcheck // Wait tells.
			defer timer.Stop()
		}
		if len(scanner.Text()) == 64 {
			lines = append(lines, scanner.Text())
		}
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the process ended by itself")
	}
	return lines
}
