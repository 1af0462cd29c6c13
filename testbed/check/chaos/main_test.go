package chaos

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"kith/internal/scratch"
	"kith/testbed/local/inprocess"
)

func TestMain(m *testing.M) {
	if handled, code := inprocess.Main(os.Args); handled {
		os.Exit(code)
	}
	scratch.InMemory()
	flag.Parse()
	// The stories mostly wait for leases: more of them at a time than there
	// are processors cost no more.
	if err := flag.Set("test.parallel", "6"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(m.Run())
}

// thorough skips a test that is for those who have the time: with -short all
// that start sites are skipped, without KITH_THOROUGH=1 variants of others.
func thorough(t *testing.T) {
	t.Helper()
	if os.Getenv("KITH_THOROUGH") != "1" {
		t.Skip("a variant of another test: left out unless KITH_THOROUGH=1")
	}
}
