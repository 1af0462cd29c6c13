package chaos

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"kith/testbed/local"
)

func TestMain(m *testing.M) {
	if handled, code := local.Main(os.Args); handled {
		os.Exit(code)
	}
	flag.Parse()
	// The stories mostly wait for leases: more of them at a time than there
	// are processors cost no more.
	if err := flag.Set("test.parallel", "6"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(m.Run())
}
