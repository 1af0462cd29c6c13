package blobstore

import (
	"os"
	"testing"

	"kith/testbed/scratch"
)

func TestMain(m *testing.M) {
	scratch.InMemory()
	os.Exit(m.Run())
}
