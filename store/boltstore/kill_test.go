package boltstore_test

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kith/store/boltstore"
	"kith/store/codec"
	"kith/store/storetest"
)

// writerVariable makes the test binary a writer that commits until it is killed.
const writerVariable = "KITH_TEST_WRITER"

func TestMain(m *testing.M) {
	if path := os.Getenv(writerVariable); path != "" {
		if err := writeUntilKilled(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// writeUntilKilled says the hash of each state before and after committing it.
// It ends by itself after a while if it is not killed.
func writeUntilKilled(path string) error {
	b, err := boltstore.Open(path, "alpha")
	if err != nil {
		return err
	}
	s, err := b.Load()
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(s.Site().NextSeq, 0))
	for range 5000 {
		for range 1 + rng.IntN(30) {
			s.Apply(storetest.Walk(rng, s)) //nolint:errcheck // a walk takes wrong steps too
		}
		h := sha256.Sum256(codec.Dump(s))
		batch := b.Seal(s)
		fmt.Printf("sealed %x\n", h)
		if err := batch.Commit(); err != nil {
			return err
		}
		fmt.Printf("acknowledged %x\n", h)
	}
	return nil
}

// Whenever the process is killed, the file holds the last state that was
// acknowledged, or the one that was just being committed.
func TestKillWhileCommitting(t *testing.T) {
	path := filepath.Join(t.TempDir(), boltstore.FileName)
	rounds := 30
	if testing.Short() {
		rounds = 6
	}
	rng := rand.New(rand.NewPCG(0, 0))
	acknowledged := hashOf(load(t, path))
	commits := 0
	for round := range rounds {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), writerVariable+"="+path)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		delay := time.Duration(rng.Int64N(int64(100 * time.Millisecond)))
		kill := time.AfterFunc(time.Hour, func() { cmd.Process.Kill() }) //nolint:errcheck // it may have ended
		if round%5 == 0 {
			kill.Reset(delay) // while it starts and opens the file; else while it commits
		}
		sealed, first := acknowledged, round%5 != 0
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if first {
				kill.Reset(delay)
				first = false
			}
			verb, hash, _ := strings.Cut(lines.Text(), " ")
			switch verb {
			case "sealed":
				sealed = hash
			case "acknowledged":
				acknowledged = hash
				commits++
			}
		}
		cmd.Wait() //nolint:errcheck // it was killed
		kill.Stop()
		got := hashOf(load(t, path))
		if got != acknowledged && got != sealed {
			t.Fatalf("seed 0, round %d: killed after %v, reopened with a state that was neither acknowledged nor being committed", round, delay)
		}
		acknowledged = got
	}
	if commits == 0 {
		t.Error("nothing was committed")
	}
	t.Logf("%d commits, %d kills", commits, rounds)
}

func hashOf(dump []byte) string { return fmt.Sprintf("%x", sha256.Sum256(dump)) }
