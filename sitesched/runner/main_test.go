package runner

import (
	"os"
	"testing"

	"kith/sitesched/executor"
)

// TestMain lets the test binary act as the shim of its jobs.
func TestMain(m *testing.M) {
	if isShim, code := executor.ShimMain(os.Args); isShim {
		os.Exit(code)
	}
	os.Exit(m.Run())
}
