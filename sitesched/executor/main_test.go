package executor

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// TestMain lets the test binary act as a shim, as a daemon that is killed, and
// as a program of a job.
func TestMain(m *testing.M) {
	if isShim, code := ShimMain(os.Args); isShim {
		os.Exit(code)
	}
	if bytes, err := strconv.Atoi(os.Getenv(eatVariable)); err == nil {
		eat(bytes)
		os.Exit(0)
	}
	if dir := os.Getenv(crashVariable); dir != "" {
		if err := crashDaemon(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	if path, err := buildShim(); err == nil && os.Getenv(shimVariable) == "" {
		if err := os.RemoveAll(filepath.Dir(path)); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	os.Exit(code)
}
