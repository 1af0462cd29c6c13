package executor

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// thorough is set where there is time for more rounds, as in .ci/run.
var thorough = os.Getenv("KITH_THOROUGH") == "1"

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
	if what := os.Getenv(poisonVariable); what != "" {
		os.Exit(poison(what))
	}
	if dir := os.Getenv(reserveVariable); dir != "" {
		if err := showLimits(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if dir := os.Getenv(crashVariable); dir != "" {
		if err := crashDaemon(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	// The tests wait for jobs most of the time: run more of them than there are
	// processors, unless another number is asked for.
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		if err := f.Value.Set("8"); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	if path, err := buildShim(); err == nil && os.Getenv(shimVariable) == "" {
		if err := os.RemoveAll(filepath.Dir(path)); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	os.Exit(code)
}
