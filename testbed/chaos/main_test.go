package chaos

import (
	"os"
	"testing"

	"kith/testbed/local"
)

func TestMain(m *testing.M) {
	if handled, code := local.Main(os.Args); handled {
		os.Exit(code)
	}
	os.Exit(m.Run())
}
